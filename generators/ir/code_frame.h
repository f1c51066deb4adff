// What stands around the statements of a kernel: its constants by name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "generators/group_code.h"
#include "generators/ir/arrays.h"
#include "generators/ir/constants.h"
#include "generators/ir/packing.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// A block of constants whose arrays have names in the code.
class NamedConstants {
public:
    /// `name` must be one that no other array has; `layer` and `problem` are those that the packing
    /// names. Returns the name, or an empty one if there is nothing to pack.
    std::string append(const std::string& name, const Packing& packing, const Layer& layer,
                       const LayerProblem& problem);
    /// `body` with all names bound to their places in the call's block of constants.
    [[nodiscard]] Halide::Internal::Stmt around(Halide::Internal::Stmt body) const;
    /// Hands values and packings over to the code.
    void move_into(GroupCode& code) &&;

private:
    ConstantBlock block_;
    std::vector<Packing> packings_;
    std::vector<std::pair<std::string, int64_t>> offsets_;  ///< elements
};

}  // namespace laminate
