// One body for the code of groups that differs in numbers alone (alike_bodies.h). Each group keeps its numbers
// at the front of its constants, where the code finds them, so layers of the same kind on maps of other sizes
// are compiled once.
#pragma once

#include <Halide.h>

#include <cstddef>
#include <vector>

namespace laminate {

struct SharedBody {
    std::vector<size_t> groups;  ///< two or more, in ascending order
    Halide::Internal::Stmt body;
    /// Of each of the groups, in front of its other constants; a multiple of 16 elements.
    std::vector<std::vector<float>> numbers;
};

/// All bodies that more than one of the groups can share.
[[nodiscard]] std::vector<SharedBody> shared_bodies(
    const std::vector<Halide::Internal::Stmt>& bodies, int threads = 1);

}  // namespace laminate
