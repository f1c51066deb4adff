#include "papers/layer_optimum/managed_schedule.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/counts/two_level/two_level.h"

namespace laminate {

namespace {

std::optional<Dim> dim_of(ConvolutionLoop loop) {
    switch (loop) {
        case ConvolutionLoop::k:
            return Dim::z;
        case ConvolutionLoop::c:
            return Dim::i;
        case ConvolutionLoop::x:
            return Dim::x;
        case ConvolutionLoop::y:
            return Dim::y;
        default:
            return {};
    }
}

struct DimBlock {
    Dim dim;
    int64_t block;
};

/// The order over a schedule's dimensions, of one image. None: a schedule cannot say it.
std::optional<std::vector<DimBlock>> as_dims(const ConvolutionProblem& problem,
                                             const BlockOrder& order) {
    std::vector<DimBlock> dims;
    for (const BlockLoop& l : order) {
        if (l.loop == ConvolutionLoop::f) continue;
        const std::optional<Dim> dim = dim_of(l.loop);
        if (!dim || (problem.transposed && (*dim == Dim::x || *dim == Dim::y))) return {};
        dims.push_back({*dim, l.block});
    }
    if (problem.groups == 1) return dims;
    const int64_t channels = at(problem.extent, ConvolutionLoop::k);
    for (size_t p = 0; p < dims.size(); ++p) {
        if (dims[p].dim == Dim::i ||
            (dims[p].dim == Dim::z && (p > 0 || channels % dims[p].block != 0)))
            return {};
    }
    if (dims.empty() || dims.front().dim != Dim::z) dims.insert(dims.begin(), {Dim::z, channels});
    return dims;
}

/// `first`, then the others of a nest's dimensions.
std::array<Dim, 4> starting_with(const std::vector<Dim>& first) {
    std::array<Dim, 4> result{};
    auto end = std::copy(first.begin(), first.end(), result.begin());
    for (const Dim dim : all_dims)
        if (std::find(first.begin(), first.end(), dim) == first.end()) *end++ = dim;
    return result;
}

std::vector<Loop> loops(const std::vector<Dim>& outer, const std::vector<Dim>& inner) {
    std::vector<Loop> result;
    for (const Dim dim : starting_with(outer)) result.push_back({dim, Band::outer});
    for (const Dim dim : starting_with(inner)) result.push_back({dim, Band::inner});
    return result;
}

/// The nests of the group, everything at the root but the maps between, which live for a block of
/// the sink. A layer in front of the sink cannot tile input channels: from their loop on the order
/// is that of its single iterations, which move no more, for its outputs stay until they are
/// finished.
GroupSchedule nests_of(const std::vector<LayerProblem>& problems,
                       const std::vector<DimBlock>& order) {
    GroupSchedule group;
    const int sink = static_cast<int>(problems.size()) - 1;
    std::vector<DimBlock> blocks = order;
    std::vector<Dim> iterations;
    if (sink > 0) {
        const auto channels = std::find_if(blocks.begin(), blocks.end(),
                                           [](const DimBlock& d) { return d.dim == Dim::i; });
        for (auto d = channels; d != blocks.end(); ++d) iterations.push_back(d->dim);
        blocks.erase(channels, blocks.end());
    }
    std::vector<Dim> outer;
    for (const DimBlock& d : blocks) outer.push_back(d.dim);
    const Level block{sink, 3};
    for (int k = 0; k <= sink; ++k) {
        const LayerProblem& problem = problems[static_cast<size_t>(k)];
        Nest& nest = group.nests.emplace_back();
        nest.layer = problem.name;
        nest.tile = problem.extent;
        if (problem.has_weights()) nest.w = Placement{};
        if (k == 0) nest.x = {{0, Placement{}}};
        if (k < sink) nest.y = {block, block};
        nest.loops =
            loops(k == sink ? outer : std::vector<Dim>{}, k == 0 ? iterations : std::vector<Dim>{});
    }
    Nest& last = group.nests.back();
    for (const DimBlock& d : blocks) {
        int64_t tile = d.block;
        if (d.dim == Dim::x || d.dim == Dim::y) {
            // Whole windows of every layer that follows; the last of them may reach beyond what is
            // read.
            for (size_t k = 1; k < problems.size(); ++k) {
                const AxisWindow& w = d.dim == Dim::y ? problems[k].y() : problems[k].x();
                tile = w.out == 1 ? 1 : ceil_div(tile, w.stride);
            }
        }
        last.tile[d.dim] = std::min(tile, problems.back()[d.dim]);
    }
    return group;
}

/// Where one tensor may be kept.
struct Choice {
    Placement placement;
    int64_t moved = 0;
    int64_t banks = 0;
    int64_t held = 0;
};

}  // namespace

int64_t banks_of(const GroupCounts& counts, const BankedBuffer& buffer) {
    int64_t banks = 0;
    const auto hold = [&](Elements elements) {
        banks += ceil_div(elements.value(), buffer.bank_words);
    };
    for (const InputCounts& input : counts.inputs) hold(input.buffer);
    for (const LayerCounts& layer : counts.layers) {
        hold(layer.weight_buffer);
        hold(layer.output_buffer);
    }
    return banks;
}

std::optional<ManagedSchedule> managed_schedule(const Network& network,
                                                const std::vector<LayerId>& layers,
                                                const BlockOrder& order,
                                                const BankedBuffer& buffer) {
    const std::optional<std::vector<DimBlock>> dims =
        as_dims(convolution_problem(network, layers.front()), order);
    if (!dims) return {};
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    GroupSchedule group = nests_of(problems, *dims);
    const int sink = group.sink();
    std::vector<Level> levels{Level{}};
    for (int loop = 0; loop < 4; ++loop) levels.push_back({sink, loop});
    std::vector<Level> input_levels = levels;
    for (int loop = 4; loop < 8; ++loop) {
        levels.push_back({sink, loop});
        input_levels.push_back({0, loop});
    }

    // The counts of a tensor depend on its own levels alone, so each is looked at by itself.
    TwoLevelCache cache;
    const auto choices = [&](const std::vector<Level>& at_levels, bool at_one_level,
                             const auto& place, const auto& moved, const auto& held) {
        std::vector<Choice> list;
        for (size_t store = 0; store < at_levels.size(); ++store) {
            for (size_t compute = store; compute < (at_one_level ? store + 1 : at_levels.size());
                 ++compute) {
                Choice choice{{at_levels[store], at_levels[compute]}};
                GroupSchedule candidate = group;
                place(candidate) = choice.placement;
                try {
                    check_group(network, candidate);
                } catch (const InputError&) {
                    continue;
                }
                const GroupCounts counts = two_level_counts(problems, candidate, &cache);
                choice.moved = moved(counts).value();
                choice.held = held(counts).value();
                choice.banks = ceil_div(choice.held, buffer.bank_words);
                list.push_back(choice);
            }
        }
        return list;
    };
    const auto input = [](GroupSchedule& g) -> Placement& {
        return g.nests.front().x.front().placement;
    };
    const auto weights = [](GroupSchedule& g) -> Placement& { return *g.nests.front().w; };
    const auto output = [](GroupSchedule& g) -> Placement& { return g.nests.back().y; };
    const std::vector<Choice> of_input = choices(
        input_levels, false, input, [](const GroupCounts& c) { return c.input_reads(); },
        [](const GroupCounts& c) { return c.input_buffers(); });
    const std::vector<Choice> of_weights = choices(
        input_levels, false, weights, [](const GroupCounts& c) { return c.weight_reads(); },
        [](const GroupCounts& c) { return c.layers.front().weight_buffer; });
    const std::vector<Choice> of_output = choices(
        levels, true, output, [](const GroupCounts& c) { return c.output_reads + c.output_writes; },
        [](const GroupCounts& c) { return c.layers.back().output_buffer; });
    int64_t between = 0;  // words of the maps between the layers
    if (sink > 0) {
        const GroupCounts counts = two_level_counts(problems, group, &cache);
        for (int k = 0; k < sink; ++k)
            between += counts.layers[static_cast<size_t>(k)].output_buffer.value();
    }
    using Cost = std::tuple<int64_t, int64_t, int64_t>;  // moved, banks, held
    std::optional<Cost> best;
    for (const Choice& x : of_input) {
        for (const Choice& w : of_weights) {
            for (const Choice& y : of_output) {
                const int64_t banks =
                    x.banks + w.banks + ceil_div(between + y.held, buffer.bank_words);
                const Cost cost{x.moved + w.moved + y.moved, banks, x.held + w.held + y.held};
                if (std::get<1>(cost) > buffer.banks || (best && *best <= cost)) continue;
                best = cost;
                input(group) = x.placement;
                weights(group) = w.placement;
                output(group) = y.placement;
            }
        }
    }
    if (!best) return {};
    check_group(network, group);
    ManagedSchedule result{std::move(group), {}, std::get<1>(*best)};
    result.counts = two_level_counts(problems, result.group, &cache);
    return result;
}

}  // namespace laminate
