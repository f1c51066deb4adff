#include "generators/code_frame.h"

#include "scheduler/halide/group_lowering.h"

namespace laminate {

using Halide::Internal::Stmt;

std::string NamedConstants::append(const std::string& name, const std::vector<float>& values) {
    offsets_.emplace_back(name, block_.append(values));
    return name;
}

Stmt NamedConstants::around(Stmt body) const {
    for (const auto& [name, offset] : offsets_) body = ir::with_array(name, argument::constants, offset, body);
    return body;
}

GroupCode layer_code(const LayerProblem& problem, Stmt body, NamedConstants constants, const std::string& scratch,
                     int64_t scratch_bytes, int64_t strips) {
    GroupCode code;
    body = ir::with_array(scratch, argument::scratch, 0, constants.around(body));
    body = ir::with_pointer("X", argument::inputs, 0, body);
    body = ir::with_pointer("Y", argument::outputs, 0, body);
    code.body = Halide::Internal::simplify(body);
    code.arrays = {{"X", ArrayRole::external_input, 0}, {"Y", ArrayRole::external_output, 0}};
    code.inputs = {problem.inputs.front().name};
    code.constants = std::move(constants).take();
    code.scratch_bytes = scratch_bytes;
    code.strips = strips;
    return code;
}

}  // namespace laminate
