#include "generators/ir/layer_output.h"

#include <algorithm>
#include <utility>

#include "generators/ir/activations.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using Halide::Expr;
using Halide::Internal::Stmt;

LayerOutput LayerOutput::of(const Network& network, const GroupSchedule& group, size_t first,
                            size_t end) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    LayerOutput output;
    output.first_ = first;
    output.sink_ = problems.size() - 1;
    output.source_ = problems.front().inputs.front();
    for (size_t k = first; k < end; ++k)
        output.layers_.push_back({problems[k], &network.layer(problems[k].layer)});
    return output;
}

void LayerOutput::pack(int64_t block, NamedConstants& constants) {
    for (size_t k = 0; k < layers_.size(); ++k) {
        Stage& stage = layers_[k];
        stage.slope = constants.append(
            Halide::Internal::unique_name(stage.problem.name + ".slope"),
            {.layer = static_cast<int>(first_ + k), .source = Packing::Source::slope, .block = block},
            *stage.layer, stage.problem);
    }
}

Expr LayerOutput::after(const Stage& stage, const Expr& channel, const Expr& value) {
    Expr slope = Halide::Internal::make_zero(value.type());
    if (!stage.slope.empty()) {
        slope = ir::load(stage.slope, channel);
        if (channel.type().is_scalar()) slope = ir::broadcast(slope, value.type().lanes());
    }
    return ir::activate(stage.layer->activation, value, slope);
}

Expr LayerOutput::activated(const Expr& channel, const Expr& sum) const {
    return after(layers_.front(), channel, sum);
}

bool LayerOutput::has_slopes() const {
    return std::any_of(layers_.begin(), layers_.end(), [](const Stage& stage) {
        return stage.layer->activation.kind == ActivationKind::prelu;
    });
}

Expr LayerOutput::combined_operands(size_t k, const Expr& own, const Place& place,
                                    const Expr& predicate) const {
    const LayerProblem& problem = layers_[k].problem;
    const auto loaded = [&](size_t number) {
        const LayerInput& operand = problem.inputs[number];
        const std::string array = array_of(k, number);
        if (operand.is_pixel) {
            return ir::broadcast(ir::load(array, operand.is_plane ? Expr(0) : place.channel),
                                 place.index.type().lanes());
        }
        return ir::load(array, operand.is_plane ? place.position : place.index,
                        ir::Alignment::element, predicate);
    };
    // The order is that of the operands, as the reference operators add.
    Expr value;
    for (size_t number = 0; number < problem.inputs.size(); ++number) {
        const Expr next = is_own(problem.inputs[number]) ? own : loaded(number);
        value = value.defined() ? ir::combined(problem.operation, value, next) : next;
    }
    return value;
}

Stmt LayerOutput::store_activated(const Expr& channel, const Expr& value, const Expr& index,
                                  const Expr& predicate) const {
    const size_t last = layers_.size() - 1;
    const Expr result =
        last == 0 ? value
                  : after(layers_[last], channel,
                          combined_operands(last, value, {.channel = channel, .index = index}, predicate));
    return ir::store(target_, result, index, ir::Alignment::element, predicate);
}

Stmt LayerOutput::prefetch(const Expr& first, int64_t count) const {
    const size_t last = layers_.size() - 1;
    if (last == 0) return {};
    constexpr int64_t line = 16;
    const std::vector<LayerInput>& operands = layers_[last].problem.inputs;
    std::vector<Stmt> all;
    for (size_t operand = 0; operand < operands.size(); ++operand) {
        if (is_own(operands[operand])) continue;
        // Lines begin anywhere, so the last element may lie in one more.
        for (int64_t n = 0; n < count - 1 + line; n += line)
            all.push_back(
                ir::prefetch(array_of(last, operand), first + ir::size(std::min(n, count - 1))));
    }
    return ir::sequence(all);
}

GroupCode LayerOutput::code(Stmt body, NamedConstants constants, const std::string& scratch,
                            int64_t scratch_bytes, int64_t strips) const {
    GroupCode code;
    body = ir::with_array(scratch, argument::scratch, 0, constants.around(body));
    const auto read = [&](const std::string& array, const LayerInput& input) {
        const int number = static_cast<int>(code.inputs.size());
        body = ir::with_pointer(array, argument::inputs, number, body);
        code.arrays.push_back({array, ArrayRole::external_input, number});
        code.inputs.push_back(input.name);
    };
    if (!combines(0)) read("X", source_);
    for (size_t k = 0; k < layers_.size(); ++k) {
        const std::vector<LayerInput>& operands = layers_[k].problem.inputs;
        for (size_t operand = 0; combines(k) && operand < operands.size(); ++operand) {
            if (!is_own(operands[operand])) read(array_of(k, operand), operands[operand]);
        }
    }
    body = ir::with_pointer("Y", argument::outputs, 0, body);
    code.body = Halide::Internal::simplify(body);
    code.arrays.push_back({"Y", ArrayRole::external_output,
                           static_cast<int>(sink_)});
    std::move(constants).move_into(code);
    code.scratch_bytes = scratch_bytes;
    code.strips = strips;
    return code;
}

}  // namespace laminate
