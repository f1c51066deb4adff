// What stands around the statements of a kernel: its constants by name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "generators/group_code.h"
#include "generators/ir/arrays.h"
#include "generators/ir/constants.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// A block of constants whose arrays have names in the code.
class NamedConstants {
public:
    /// `name` must be one that no other array has. Returns it.
    std::string append(const std::string& name, const std::vector<float>& values);
    /// `body` with all names bound to their places in the call's block of constants.
    [[nodiscard]] Halide::Internal::Stmt around(Halide::Internal::Stmt body) const;
    [[nodiscard]] std::vector<float> take() && { return std::move(block_).take(); }

private:
    ConstantBlock block_;
    std::vector<std::pair<std::string, int64_t>> offsets_;  ///< elements
};

}  // namespace laminate
