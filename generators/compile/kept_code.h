// What is kept of a group's code for later: machine code, and what a network needs to run it with
// weights of its own. Whoever finds it makes no Halide IR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generators/group_code.h"

namespace laminate {

struct KeptCode {
    GroupCode code;      ///< without body, arrays, names of inputs and values of constants
    std::vector<std::string> objects;  ///< JitGroup::objects()
};

[[nodiscard]] std::string to_bytes(const GroupCode& code, const std::vector<std::string>& objects);
/// Returns nothing for bytes that to_bytes() did not write.
[[nodiscard]] std::optional<KeptCode> parse_kept_code(const std::string& bytes);

}  // namespace laminate
