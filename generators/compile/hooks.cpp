#include "generators/compile/hooks.h"

#include <stdexcept>
#include <vector>

#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "generators/lowering/events.h"
#include "runtime/trace.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/buffer_shapes.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

using Triple = std::array<int64_t, 3>;

Triple output_dims(const LayerProblem& p) { return {p[Dim::z], p[Dim::y], p[Dim::x]}; }

std::string output_name(const Network& network, const LayerProblem& p) {
    return network.tensor(network.layer(p.layer).output).name;
}

PromisedNest nest_of(const LayerProblem& p, Macs macs) {
    PromisedNest nest{.layer = p.name, .macs = macs.value(), .transposed = p.y().transposed};
    for (size_t axis = 0; axis < 2; ++axis) {
        const AxisWindow& w = p.window[axis];
        nest.kernel[axis] = w.kernel;
        nest.stride[axis] = w.stride;
        nest.dilation[axis] = w.dilation;
        nest.pad_begin[axis] = w.pad_begin;
    }
    return nest;
}

/// By array of the code: the number of its buffer, none for weights that do not exist.
std::vector<int32_t> buffer_numbers(const std::vector<CodeArray>& arrays,
                                    const std::vector<LayerProblem>& problems) {
    constexpr int32_t none = -1;
    const int sink = static_cast<int>(problems.size()) - 1;
    std::vector<int32_t> numbers;
    int32_t next = 0, output = none;
    for (const CodeArray& array : arrays) {
        switch (array.role) {
            case ArrayRole::external_input:
                numbers.push_back(next++);
                break;
            case ArrayRole::external_output:
                numbers.push_back(output = next++);
                break;
            case ArrayRole::external_weights:
                numbers.push_back(problems[static_cast<size_t>(array.index)].has_weights() ? next++
                                                                                           : none);
                break;
            case ArrayRole::output_buffer:
                numbers.push_back(array.index == sink ? output : next++);
                break;
            default:
                throw std::logic_error("an array that no event names");
        }
    }
    return numbers;
}

laminate_trace_kind kind_of(EventKind kind) {
    switch (kind) {
        case EventKind::lifetime:
            return LAMINATE_BEGINS;
        case EventKind::fetch:
            return LAMINATE_FETCHES;
        case EventKind::compute:
            return LAMINATE_COMPUTES;
        case EventKind::read_back:
            return LAMINATE_READS_BACK;
        case EventKind::write:
            return LAMINATE_WRITES;
        case EventKind::end:
            return LAMINATE_ENDS;
        case EventKind::read:
        case EventKind::store:
            break;
    }
    throw std::logic_error("no kind of event");
}

class Hooks : public IRMutator {
public:
    Hooks(const std::vector<int32_t>& buffers, const std::string& symbol)
        : buffers_(buffers), symbol_(symbol) {}

private:
    using IRMutator::visit;
    Stmt visit(const Evaluate* evaluate) override {
        const std::optional<ir::Event> event = ir::as_event(evaluate);
        if (!event) return IRMutator::visit(evaluate);
        std::vector<Expr> arguments{Variable::make(Halide::Handle(), hook_argument),
                                    Expr(static_cast<int32_t>(kind_of(event->kind))),
                                    Expr(buffers_.at(event->array))};
        arguments.insert(arguments.end(), event->box.begin(), event->box.end());
        return Evaluate::make(Call::make(Halide::Int(32), symbol_, arguments, Call::Extern));
    }

    const std::vector<int32_t>& buffers_;
    const std::string& symbol_;
};

}  // namespace

GroupPromise promise_of(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    const BufferShapes shapes = buffer_shapes(group, problems);
    const GroupCounts counts = two_level_counts(problems, group);
    GroupPromise promise;
    promise.live_total_elements = counts.live_total.value();
    std::vector<Triple> extents(problems.size());  // of the outputs of nests
    for (size_t t = 0; t < tensors.size(); ++t) {
        const GroupTensor& tensor = tensors[t];
        if (!tensor.is_external()) {
            extents[static_cast<size_t>(tensor.producer)] = shapes.tensors[t].extent;
            continue;
        }
        const TensorReader& reader = tensor.readers.front();
        const LayerProblem& p = problems[static_cast<size_t>(reader.nest)];
        promise.buffers.push_back(
            {LAMINATE_INPUT,
             p.name,
             tensor.name,
             p.operand_extents(reader.operand),
             shapes.tensors[t].extent,
             counts.inputs[t].reads.value(),
             0});
    }
    const LayerProblem& sink = problems.back();
    promise.buffers.push_back({LAMINATE_OUTPUT, sink.name, output_name(network, sink),
                               output_dims(sink), shapes.output.extent, counts.output_reads.value(),
                               counts.output_writes.value()});
    for (size_t k = 0; k < problems.size(); ++k) {
        const LayerProblem& p = problems[k];
        if (p.has_weights()) {
            promise.buffers.push_back({LAMINATE_WEIGHTS,
                                       p.name,
                                       p.name,
                                       {p[Dim::z], p[Dim::i], p.y().kernel * p.x().kernel},
                                       shapes.weights[k].extent,
                                       counts.layers[k].weight_reads.value(),
                                       0});
        }
        if (k + 1 < problems.size()) {
            promise.buffers.push_back({LAMINATE_INTERMEDIATE, p.name, output_name(network, p),
                                       output_dims(p), extents[k], 0, 0});
        }
        promise.nests.push_back(nest_of(p, counts.layers[k].macs));
    }
    return promise;
}

Stmt hooked_body(const Network& network, const GroupSchedule& group, const std::string& symbol) {
    const GroupCode code = group_code(network, group, Events::marked);
    const std::vector<int32_t> buffers =
        buffer_numbers(code.arrays, group_problems(network, group));
    return Hooks(buffers, symbol).mutate(code.body);
}

}  // namespace laminate
