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
    const int64_t channels = problem.extent[ConvolutionLoop::k];
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

/// One tensor of a group: its levels, and what it moves and holds.
struct ManagedTensor {
    Placement& (*placement)(GroupSchedule&);
    Elements (*moved)(const GroupCounts&);
    Elements (*held)(const GroupCounts&);
};
constexpr ManagedTensor input_tensor{
    [](GroupSchedule& g) -> Placement& { return g.nests.front().x.front().placement; },
    [](const GroupCounts& c) { return c.input_reads(); },
    [](const GroupCounts& c) { return c.input_buffers(); }};
constexpr ManagedTensor weight_tensor{
    [](GroupSchedule& g) -> Placement& { return *g.nests.front().w; },
    [](const GroupCounts& c) { return c.weight_reads(); },
    [](const GroupCounts& c) { return c.layers.front().weight_buffer; }};
constexpr ManagedTensor output_tensor{
    [](GroupSchedule& g) -> Placement& { return g.nests.back().y; },
    [](const GroupCounts& c) { return c.output_reads + c.output_writes; },
    [](const GroupCounts& c) { return c.layers.back().output_buffer; }};

/// Where one tensor may be kept.
struct Choice {
    Placement placement;
    int64_t moved = 0;
    int64_t held = 0;
    int64_t banks = 0;
};

/// The levels of a group whose nests are given, tensor by tensor: the counts of a tensor depend on
/// its own levels alone.
class LevelSearch {
public:
    LevelSearch(const Network& network, const std::vector<LayerProblem>& problems,
                GroupSchedule group, const BankedBuffer& buffer)
        : network_(network), problems_(problems), group_(std::move(group)), buffer_(buffer) {}

    /// The levels that move the fewest elements, then take the fewest banks, then hold the fewest
    /// elements; nothing where none fit.
    [[nodiscard]] std::optional<ManagedSchedule> run() && {
        const std::vector<Choice> inputs = choices(input_tensor, levels(0), false);
        const std::vector<Choice> weights = choices(weight_tensor, levels(0), false);
        const std::vector<Choice> outputs = choices(output_tensor, levels(group_.sink()), true);
        const int64_t between = held_between();
        using Cost = std::tuple<int64_t, int64_t, int64_t>;  // moved, banks, held
        std::optional<Cost> best;
        GroupSchedule best_group = group_;
        for (const Choice& x : inputs) {
            for (const Choice& w : weights) {
                for (const Choice& y : outputs) {
                    const int64_t banks =
                        x.banks + w.banks + ceil_div(between + y.held, buffer_.bank_words);
                    const Cost cost{x.moved + w.moved + y.moved, banks, x.held + w.held + y.held};
                    if (banks > buffer_.banks || (best && *best <= cost)) continue;
                    best = cost;
                    input_tensor.placement(best_group) = x.placement;
                    weight_tensor.placement(best_group) = w.placement;
                    output_tensor.placement(best_group) = y.placement;
                }
            }
        }
        if (!best) return {};
        check_group(network_, best_group);
        GroupCounts counts = two_level_counts(problems_, best_group, &cache_);
        return ManagedSchedule{std::move(best_group), std::move(counts), std::get<1>(*best)};
    }

private:
    /// Outside the loops over blocks, between them, and between the loops within a block of a nest.
    [[nodiscard]] std::vector<Level> levels(int nest) const {
        std::vector<Level> result{Level{}};
        for (int loop = 0; loop < 8; ++loop)
            result.push_back({loop < 4 ? group_.sink() : nest, loop});
        return result;
    }

    [[nodiscard]] std::vector<Choice> choices(const ManagedTensor& tensor,
                                              const std::vector<Level>& levels, bool at_one_level) {
        std::vector<Choice> list;
        for (size_t store = 0; store < levels.size(); ++store) {
            for (size_t compute = store; compute < (at_one_level ? store + 1 : levels.size());
                 ++compute) {
                Choice choice{{levels[store], levels[compute]}};
                GroupSchedule candidate = group_;
                tensor.placement(candidate) = choice.placement;
                try {
                    check_group(network_, candidate);
                } catch (const InputError&) {
                    continue;
                }
                const GroupCounts counts = two_level_counts(problems_, candidate, &cache_);
                choice.moved = tensor.moved(counts).value();
                choice.held = tensor.held(counts).value();
                choice.banks = ceil_div(choice.held, buffer_.bank_words);
                list.push_back(choice);
            }
        }
        return list;
    }

    /// Words of the maps between the layers.
    [[nodiscard]] int64_t held_between() {
        if (problems_.size() == 1) return 0;
        const GroupCounts counts = two_level_counts(problems_, group_, &cache_);
        int64_t words = 0;
        for (size_t k = 0; k + 1 < problems_.size(); ++k)
            words += counts.layers[k].output_buffer.value();
        return words;
    }

    const Network& network_;
    const std::vector<LayerProblem>& problems_;
    GroupSchedule group_;
    const BankedBuffer& buffer_;
    TwoLevelCache cache_;
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
    return LevelSearch(network, problems, nests_of(problems, *dims), buffer).run();
}

}  // namespace laminate
