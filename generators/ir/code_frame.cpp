#include "generators/ir/code_frame.h"

#include "generators/lowering/group_lowering.h"

namespace laminate {

using Halide::Internal::Stmt;

std::string NamedConstants::append(const std::string& name, const std::vector<float>& values) {
    offsets_.emplace_back(name, block_.append(values));
    return name;
}

Stmt NamedConstants::around(Stmt body) const {
    for (const auto& [name, offset] : offsets_)
        body = ir::with_array(name, argument::constants, offset, body);
    return body;
}

}  // namespace laminate
