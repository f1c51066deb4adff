#include "scheduler/models/layer_optimum/managed_schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scheduler/models/two_level/two_level.h"

namespace laminate {

namespace {

std::optional<Dim> dim_of(ConvolutionLoop loop) {
    switch (loop) {
        case ConvolutionLoop::k: return Dim::z;
        case ConvolutionLoop::c: return Dim::i;
        case ConvolutionLoop::x: return Dim::x;
        case ConvolutionLoop::y: return Dim::y;
        default: return {};
    }
}

/// Bodies of the root and of the outer loops, outermost first.
std::vector<Level> block_levels() {
    std::vector<Level> levels{Level{}};
    for (int loop = 0; loop < 4; ++loop) levels.push_back({0, loop});
    return levels;
}

}  // namespace

std::optional<ManagedSchedule> managed_schedule(const Network& network, LayerId layer, const BlockOrder& order, const PerOperand& banks,
                                                const BankedBuffer& buffer) {
    const ConvolutionProblem problem = convolution_problem(network, layer);
    if (problem.groups != 1 || at(problem.extent, ConvolutionLoop::f) != 1) return {};
    const std::vector<LayerProblem> problems = layer_problems(network, {layer});
    Nest nest;
    nest.layer = problem.name;
    nest.tile = problems.front().extent;
    std::vector<Dim> dims;
    for (const BlockLoop& l : order) {
        const std::optional<Dim> dim = dim_of(l.loop);
        if (!dim) return {};
        dims.push_back(*dim);
        nest.tile[static_cast<size_t>(*dim)] = l.block;
    }
    for (const Dim dim : {Dim::z, Dim::y, Dim::x, Dim::i})
        if (std::find(dims.begin(), dims.end(), dim) == dims.end()) dims.push_back(dim);
    for (const Dim dim : dims) nest.loops.push_back({dim, Band::outer});
    for (const Dim dim : {Dim::z, Dim::y, Dim::x, Dim::i}) nest.loops.push_back({dim, Band::inner});
    const std::vector<Level> levels = block_levels();
    const Placement whole{levels.front(), levels.front()};
    nest.x = {{0, whole}};
    nest.w = whole;
    nest.y = whole;

    // The counts of a tensor depend on its own levels alone, so each is chosen by itself.
    const auto counts_with = [&](const Nest& candidate) -> std::optional<GroupCounts> {
        GroupSchedule group{{candidate}};
        try {
            check_group(network, group);
        } catch (const InputError&) {
            return {};
        }
        return two_level_counts(problems, group);
    };
    const auto place = [&](Operand operand, const auto& set, const auto& moved, const auto& held) {
        const Elements room(banks[static_cast<size_t>(operand)] * buffer.bank_words);
        std::optional<std::pair<Elements, Elements>> best;  // moved, held
        Nest chosen = nest;
        for (size_t store = 0; store < levels.size(); ++store) {
            for (size_t compute = store; compute < levels.size(); ++compute) {
                if (operand == Operand::output && compute != store) continue;
                Nest candidate = nest;
                set(candidate, Placement{levels[store], levels[compute]});
                const std::optional<GroupCounts> counts = counts_with(candidate);
                if (!counts || held(*counts) > room) continue;
                const std::pair<Elements, Elements> cost{moved(*counts), held(*counts)};
                if (best && cost >= *best) continue;
                best = cost;
                chosen = std::move(candidate);
            }
        }
        nest = std::move(chosen);
        return best.has_value();
    };
    const bool fits =
        place(Operand::input, [](Nest& n, Placement p) { n.x = {{0, p}}; }, [](const GroupCounts& c) { return c.input_reads(); },
              [](const GroupCounts& c) { return c.input_buffers(); }) &&
        place(Operand::weight, [](Nest& n, Placement p) { n.w = p; }, [](const GroupCounts& c) { return c.weight_reads(); },
              [](const GroupCounts& c) { return c.layers.front().weight_buffer; }) &&
        place(Operand::output, [](Nest& n, Placement p) { n.y = p; },
              [](const GroupCounts& c) { return c.output_reads + c.output_writes; },
              [](const GroupCounts& c) { return c.layers.front().output_buffer; });
    if (!fits) return {};
    ManagedSchedule result{{{nest}}, {}};
    check_group(network, result.group);
    result.counts = two_level_counts(problems, result.group);
    return result;
}

}  // namespace laminate
