#include "scheduler/random_schedule.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "scheduler/models/two_level/two_level.h"

namespace laminate {

namespace {

/// 1 to `extent`: everything, a divisor, or any size (mostly no divisor), each often.
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
            return divisors[static_cast<size_t>(rng.below(static_cast<int64_t>(divisors.size())))];
        }
        default:
            return rng.between(1, extent);
    }
}

Nest random_nest(const LayerProblem& problem, bool is_sink, Rng& rng) {
    Nest nest;
    nest.layer = problem.name;
    if (is_sink) {
        std::vector<Loop> strips;
        for (size_t axis = 0; axis < 2; ++axis) {
            if (!rng.chance(1, 4)) continue;
            const Dim d = axis == 0 ? Dim::y : Dim::x;
            strips.push_back({d, Band::strip});
            nest.strip[axis] = random_size(problem[d], rng);
        }
        rng.shuffle(strips);
        nest.loops = strips;
    }
    for (const Band band : {Band::outer, Band::inner}) {
        std::vector<Loop> loops;
        for (const Dim d : {Dim::z, Dim::y, Dim::x, Dim::i}) loops.push_back({d, band});
        rng.shuffle(loops);
        nest.loops.insert(nest.loops.end(), loops.begin(), loops.end());
    }
    for (size_t d = 0; d < 4; ++d) nest.tile[d] = random_size(problem.extent[d], rng);
    if (!is_sink || problem.groups > 1) nest.tile[3] = problem[Dim::i];
    return nest;
}

/// Any store level, then any compute level at or inside it; `levels` outermost first.
Placement random_placement(const std::vector<Level>& levels, Rng& rng) {
    const auto count = static_cast<int64_t>(levels.size());
    const int64_t store = rng.below(count);
    const int64_t compute = rng.between(store, count - 1);
    return {levels[static_cast<size_t>(store)], levels[static_cast<size_t>(compute)]};
}

/// Any legal placement of a tensor whose readers are placed already.
Placement random_tensor_placement(const GroupSchedule& group, const GroupTensor& tensor, const std::vector<LayerProblem>& problems, Rng& rng) {
    // Levels around every reader, outermost first; not inside `ii` of a grouped one.
    std::vector<Level> levels = path(group, tensor.readers.front().nest);
    size_t stores = levels.size();  // levels where it may be stored
    for (const TensorReader& reader : tensor.readers) {
        const LayerProblem& problem = problems[static_cast<size_t>(reader.nest)];
        const Nest& nest = group.nests[static_cast<size_t>(reader.nest)];
        std::vector<Level> around = path(group, reader.nest);
        if (problem.groups > 1 && problem[Dim::i] > 1) {
            const Level ii{reader.nest, nest.find({Dim::i, Band::inner})};
            around.erase(std::find(around.begin(), around.end(), ii), around.end());
        }
        const auto parts = std::mismatch(levels.begin(), levels.end(), around.begin(), around.end());
        levels.erase(parts.first, levels.end());
        if (!tensor.is_shared() || reader.nest == group.sink()) continue;
        const auto own_store = std::find(around.begin(), around.end(), nest.y.store);
        stores = std::min(stores, static_cast<size_t>(own_store - around.begin()) + 1);
    }
    const auto count = static_cast<int64_t>(levels.size());
    const int64_t store = rng.below(static_cast<int64_t>(std::min(stores, levels.size())));
    const int64_t compute = rng.between(store, count - 1);
    return {levels[static_cast<size_t>(store)], levels[static_cast<size_t>(compute)]};
}

GroupSchedule draw(const std::vector<LayerProblem>& problems, Rng& rng, bool keep_everything) {
    GroupSchedule group;
    const int sink = static_cast<int>(problems.size()) - 1;
    for (int k = 0; k <= sink; ++k)
        group.nests.push_back(random_nest(problems[static_cast<size_t>(k)], k == sink, rng));
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (int k = sink; k >= 0; --k) {
        Nest& nest = group.nests[static_cast<size_t>(k)];
        if (k == sink) {
            const std::vector<Level> levels = path(group, k);
            const Level level = levels[static_cast<size_t>(rng.below(static_cast<int64_t>(levels.size())))];
            nest.y = {level, level};
        } else {
            const auto own = std::find_if(tensors.begin(), tensors.end(), [&](const GroupTensor& t) { return t.producer == k; });
            nest.y = random_tensor_placement(group, *own, problems, rng);
            if (keep_everything) nest.y.store = Level{};
        }
        if (problems[static_cast<size_t>(k)].has_weights()) nest.w = random_placement(path(group, k), rng);
    }
    for (const GroupTensor& tensor : tensors) {
        if (!tensor.is_external()) continue;
        const TensorReader& first = tensor.readers.front();
        group.nests[static_cast<size_t>(first.nest)].x.push_back({first.operand, random_tensor_placement(group, tensor, problems, rng)});
    }
    return group;
}

}  // namespace

GroupSchedule random_group(const Network& network, const std::vector<LayerId>& segment, Rng& rng,
                           const RandomOptions& options) {
    std::vector<LayerProblem> problems;
    int64_t least = 0;
    for (const LayerId id : segment) {
        problems.push_back(layer_problem(network, id));
        const LayerProblem& p = problems.back();
        least = checked_add(least, (p.weight_elements() * p[Dim::y] * p[Dim::x]).value());
    }
    const Macs limit = std::max(options.max_macs, 4 * Macs(least));
    constexpr int free_draws = 100;
    for (int attempt = 0;; ++attempt) {
        // In a long chain hardly any free draw stays below the limit: then intermediates are stored at the root, where nothing is computed twice.
        GroupSchedule group = draw(problems, rng, attempt >= free_draws);
        if (segment.size() == 1) return group;
        try {
            if (two_level_counts(problems, group).macs() <= limit) return group;
        } catch (const std::overflow_error&) {
            continue;  // more than 2^63 of something is more than the limit
        }
    }
}

Schedule random_schedule(const Network& network, uint64_t seed, const RandomOptions& options) {
    Rng rng(seed);
    std::vector<GroupSchedule> groups;
    for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
        const auto count = static_cast<int64_t>(chain.size());
        // Half of the schedules cut often, half seldom, so that long groups are as common as single layers.
        const bool cut_often = rng.chance(1, 2);
        for (int64_t begin = 0; begin < count;) {
            int64_t end = begin + 1;
            while (end < count && end - begin < options.max_depth && !rng.chance(1, cut_often ? 2 : 8)) ++end;
            const std::vector<LayerId> segment(chain.begin() + begin, chain.begin() + end);
            groups.push_back(random_group(network, segment, rng, options));
            begin = end;
        }
    }
    // By the last layer: an order in which every group finds its input computed.
    std::sort(groups.begin(), groups.end(), [&](const GroupSchedule& a, const GroupSchedule& b) {
        return network.find_layer(a.nests.back().layer) < network.find_layer(b.nests.back().layer);
    });
    return {network, std::move(groups)};
}

}  // namespace laminate
