#include "scheduler/explore/random_schedule.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/indexed.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/buffer_shapes.h"

namespace laminate {

namespace {

template <class T>
const T& any_of(const std::vector<T>& values, Rng& rng) {
    return values[static_cast<size_t>(rng.below(std::ssize(values)))];
}

/// A size from 1 to `extent`: often the extent, often a divisor, and often any size (mostly no
/// divisor).
int64_t random_size(int64_t extent, Rng& rng) {
    switch (rng.below(4)) {
        case 0:
            return extent;
        case 1: {
            std::vector<int64_t> divisors;
            for (int64_t d = 1; d * d <= extent; ++d) {
                if (extent % d != 0) continue;
                divisors.push_back(d);
                if (d * d != extent) divisors.push_back(extent / d);
            }
            std::sort(divisors.begin(), divisors.end());
            return any_of(divisors, rng);
        }
        default:
            return rng.between(1, extent);
    }
}

/// Which freedom a draw gives up: for kernels of whole maps, or to call kernels less often.
struct Restraint {
    bool whole_maps = false;       ///< tiles have all channels and columns, and there are no strips
    bool keep_everything = false;  ///< intermediates are stored at the root
    int64_t least = 0;  ///< size of tiles and strips, where their extents are not smaller
    std::vector<bool> coarse;  ///< by nest: whether nothing is placed inside its inner loops
};

Nest random_nest(const LayerProblem& problem, bool is_sink, const Restraint& restraint, Rng& rng) {
    const auto size = [&](Dim d) {
        return std::max(random_size(problem[d], rng), std::min(restraint.least, problem[d]));
    };
    Nest nest;
    nest.layer = problem.name;
    if (is_sink && !restraint.whole_maps) {
        std::vector<Loop> strips;
        for (size_t axis = 0; axis < 2; ++axis) {
            if (!rng.chance(1, 4)) continue;
            const Dim d = axis == 0 ? Dim::y : Dim::x;
            strips.push_back({d, Band::strip});
            nest.strip[axis] = size(d);
        }
        rng.shuffle(strips);
        nest.loops = strips;
    }
    for (const Band band : {Band::outer, Band::inner}) {
        std::vector<Loop> loops;
        for (const Dim d : all_dims) loops.push_back({d, band});
        rng.shuffle(loops);
        nest.loops.insert(nest.loops.end(), loops.begin(), loops.end());
    }
    for (const Dim d : all_dims)
        nest.tile[d] = restraint.whole_maps && d != Dim::y ? problem[d] : size(d);
    if (!is_sink || problem.reads_all_of_i()) nest.tile[Dim::i] = problem[Dim::i];
    return nest;
}

bool is_left_out(const GroupSchedule& group, const Restraint& restraint, Level level) {
    return !level.is_root() && restraint.coarse[static_cast<size_t>(level.nest)] &&
           group.loop(level).band == Band::inner;
}

/// Any of the outermost `stores` levels to store at, then any compute level at or inside it.
/// `levels` come outermost first.
Placement random_placement(const GroupSchedule& group, std::vector<Level> levels,
                           std::ptrdiff_t stores, const Restraint& restraint, Rng& rng) {
    const auto left_out = [&](Level level) { return is_left_out(group, restraint, level); };
    const auto last_store = levels.begin() + std::min(stores, std::ssize(levels));
    stores -= std::count_if(levels.begin(), last_store, left_out);
    std::erase_if(levels, left_out);
    const int64_t store = rng.below(std::min(stores, std::ssize(levels)));
    const int64_t compute = rng.between(store, std::ssize(levels) - 1);
    return {levels[static_cast<size_t>(store)], levels[static_cast<size_t>(compute)]};
}

/// Any legal placement of a tensor whose readers are placed already.
Placement random_tensor_placement(const GroupSchedule& group,
                                  const std::vector<GroupTensor>& tensors,
                                  const GroupTensor& tensor,
                                  const std::vector<LayerProblem>& problems,
                                  const Restraint& restraint, Rng& rng) {
    // Levels around every reader, outermost first, but not inside an `ii` that reads no box.
    std::vector<Level> levels = path(group, tensor.readers.front().nest);
    std::ptrdiff_t stores = std::ssize(levels);  // levels where it may be stored
    for (const TensorReader& reader : tensor.readers) {
        const LayerProblem& problem = problems[static_cast<size_t>(reader.nest)];
        const Nest& nest = group.nest(reader.nest);
        std::vector<Level> around = path(group, reader.nest);
        if (problem.reads_all_of_i()) {
            const Level ii{reader.nest, nest.find({Dim::i, Band::inner})};
            around.erase(std::find(around.begin(), around.end(), ii), around.end());
        }
        const auto parts =
            std::mismatch(levels.begin(), levels.end(), around.begin(), around.end());
        levels.erase(parts.first, levels.end());
    }
    for (const int k : tensor.is_shared() ? branch_nests(tensors, tensor) : std::vector<int>{}) {
        const std::vector<Level> around = path(group, k);
        const auto own_store = std::find(around.begin(), around.end(), group.nest(k).y.store);
        stores = std::min(stores, own_store - around.begin() + 1);
    }
    return random_placement(group, std::move(levels), stores, restraint, rng);
}

GroupSchedule draw(const std::vector<LayerProblem>& problems, Rng& rng,
                   const Restraint& restraint) {
    GroupSchedule group;
    const int sink = static_cast<int>(problems.size()) - 1;
    for (int k = 0; k <= sink; ++k) {
        group.nests.push_back(
            random_nest(problems[static_cast<size_t>(k)], k == sink, restraint, rng));
    }
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (int k = sink; k >= 0; --k) {
        Nest& nest = group.nest(k);
        if (k == sink) {
            std::vector<Level> levels = path(group, k);
            const LayerProblem& problem = problems[static_cast<size_t>(k)];
            if (!problem.has_weights() && problem.reads_all_of_i()) {
                const Level ii{k, nest.find({Dim::i, Band::inner})};
                levels.erase(std::find(levels.begin(), levels.end(), ii), levels.end());
            }
            std::erase_if(levels, [&](Level l) { return is_left_out(group, restraint, l); });
            const Level level = any_of(levels, rng);
            nest.y = {level, level};
        } else {
            const auto own = std::find_if(tensors.begin(), tensors.end(),
                                          [&](const GroupTensor& t) { return t.producer == k; });
            nest.y = random_tensor_placement(group, tensors, *own, problems, restraint, rng);
            if (restraint.keep_everything) nest.y.store = Level{};
        }
        if (problems[static_cast<size_t>(k)].has_weights())
            nest.w = random_placement(group, path(group, k), INT64_MAX, restraint, rng);
    }
    for (const GroupTensor& tensor : tensors) {
        if (!tensor.is_external()) continue;
        const TensorReader& first = tensor.readers.front();
        group.nest(first.nest)
            .x.push_back(
                {first.operand,
                 random_tensor_placement(group, tensors, tensor, problems, restraint, rng)});
    }
    return group;
}

/// The layers of a group with this sink, producers first. The group grows upwards through layers
/// whose readers are all in it, so only the group reads the outputs inside. After each layer it
/// ends with probability 1 / `stop_one_in`.
std::vector<LayerId> random_members(const Network& network, LayerId sink,
                                    const IndexVector<bool, LayerId>& free, int64_t stop_one_in,
                                    const RandomOptions& options, Rng& rng) {
    IndexVector<bool, LayerId> is_member(network.layers.size());
    std::vector<LayerId> members{sink};  // sink first, every layer after its readers
    is_member[sink] = true;
    const auto may_join = [&](LayerId id) {
        if (id < 0 || !free[id] || is_member[id]) return false;
        const TensorId output = network.layer(id).output;
        const std::vector<LayerId> readers = network.consumers(output);
        return !network.is_output(output) &&
               std::all_of(readers.begin(), readers.end(),
                           [&](LayerId reader) { return is_member[reader]; });
    };
    while (static_cast<int64_t>(members.size()) < options.max_depth &&
           !rng.chance(1, stop_one_in)) {
        std::vector<LayerId> next;
        for (const LayerId member : members) {
            for (const TensorId input : network.layer(member).inputs) {
                const LayerId producer = network.producer(input);
                if (may_join(producer) &&
                    std::find(next.begin(), next.end(), producer) == next.end())
                    next.push_back(producer);
            }
        }
        if (next.empty()) break;
        const LayerId chosen = any_of(next, rng);
        members.push_back(chosen);
        is_member[chosen] = true;
    }
    return {members.rbegin(), members.rend()};
}

}  // namespace

GroupSchedule random_group(const Network& network, const std::vector<LayerId>& segment, Rng& rng,
                           const RandomOptions& options) {
    std::vector<LayerProblem> problems;
    int64_t least = 0;
    for (const LayerId id : segment) {
        problems.push_back(layer_problem(network, id));
        const LayerProblem& p = problems.back();
        const Elements window = Elements(p.y().kernel) * p.x().kernel * p[Dim::i];
        least = checked_add(least, (window * p.output_elements().value()).value());
    }
    const Macs limit = std::max(options.max_macs, 4 * Macs(least));
    const bool whole_maps = problems.size() <= options.whole_map_layers && rng.chance(1, 8);
    constexpr int free_draws = 100, draws_of_a_size = 20;
    for (int attempt = 0;; ++attempt) {
        // In a long chain hardly any free draw stays below the limits. After many draws,
        // intermediates are stored at the root, where nothing is computed twice. After still more,
        // tiles grow and fewer nests have anything inside their inner loops, which ends the search:
        // with whole tiles and nothing there each kernel is called once.
        const int doublings = std::clamp(
            (attempt - 2 * free_draws + draws_of_a_size) / draws_of_a_size, 0, 60);
        Restraint restraint{whole_maps, attempt >= free_draws, int64_t{1} << doublings,
                            std::vector<bool>(problems.size(), false)};
        for (size_t k = 0; doublings > 0 && k < problems.size(); ++k)
            restraint.coarse[k] = rng.chance(std::min(doublings, 8), 8);
        GroupSchedule group = draw(problems, rng, restraint);
        try {
            if ((segment.size() == 1 || two_level_work(problems, group) <= limit) &&
                kernel_calls(asked_boxes(group, problems)) <= options.max_calls)
                return group;
        } catch (const std::overflow_error&) {
            continue;  // more than 2^63 exceeds the limits
        }
    }
}

Schedule random_schedule(const Network& network, uint64_t seed, const RandomOptions& options) {
    Rng rng(seed);
    const auto count = static_cast<LayerId>(network.layers.size());
    IndexVector<bool, LayerId> free(network.layers.size());
    // Half of the schedules cut often and half seldom, so long groups are as common as single
    // layers. Some schedules leave layers without weights to the reference operators.
    const int64_t stop_one_in = rng.chance(1, 2) ? 2 : 8;
    const bool leave_out = rng.chance(1, 4);
    for (LayerId id = 0; id < count; ++id) {
        free[id] = must_be_scheduled(network, id) ||
                   (is_schedulable(network, id) && !(leave_out && rng.chance(1, 2)));
    }
    std::vector<GroupSchedule> groups;
    for (LayerId sink = count; sink-- > 0;) {
        if (!free[sink]) continue;
        const std::vector<LayerId> members =
            random_members(network, sink, free, stop_one_in, options, rng);
        for (const LayerId member : members) free[member] = false;
        groups.push_back(random_group(network, members, rng, options));
    }
    // A group's inputs come from layers before its sink, and such a layer is the sink of its own
    // group. So in the order of sinks every group finds its inputs computed.
    std::reverse(groups.begin(), groups.end());
    return {network, std::move(groups)};
}

}  // namespace laminate
