#include "generators/ir/code_frame.h"

#include "generators/lowering/group_lowering.h"

namespace laminate {

using Halide::Internal::Stmt;

std::string NamedConstants::append(const std::string& name, const Packing& packing,
                                   const Layer& layer, const LayerProblem& problem) {
    const std::vector<float> values = packed(packing, layer, problem);
    if (values.empty()) return "";
    offsets_.emplace_back(name, block_.append(values));
    packings_.push_back(packing);
    return name;
}

void NamedConstants::move_into(GroupCode& code) && {
    code.constants = std::move(block_).take();
    code.packings = std::move(packings_);
}

Stmt NamedConstants::around(Stmt body) const {
    for (const auto& [name, offset] : offsets_)
        body = ir::with_array(name, argument::constants, offset, body);
    return body;
}

}  // namespace laminate
