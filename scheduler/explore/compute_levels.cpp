#include "scheduler/explore/compute_levels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

namespace laminate {

std::vector<Level> common_path(const GroupSchedule& group, const GroupTensor& tensor) {
    std::vector<Level> levels = path(group, tensor.readers.front().nest);
    for (const TensorReader& reader : tensor.readers) {
        const std::vector<Level> other = path(group, reader.nest);
        levels.erase(std::mismatch(levels.begin(), levels.end(), other.begin(), other.end()).first,
                     levels.end());
    }
    return levels;
}

namespace {

bool is_legal(const Network& network, const GroupSchedule& group) {
    try {
        check_group(network, group);
        return true;
    } catch (const InputError&) {
        return false;
    }
}

/// Placements of inputs, and of outputs that other nests read, each with its nest.
std::vector<std::pair<int, Placement*>> moveable(GroupSchedule& group) {
    std::vector<std::pair<int, Placement*>> all;
    for (int k = group.sink(); k >= 0; --k) {
        Nest& nest = group.nest(k);
        if (k != group.sink()) all.emplace_back(k, &nest.y);
        for (InputPlacement& input : nest.x) all.emplace_back(k, &input.placement);
    }
    return all;
}

}  // namespace

GroupSchedule with_outer_compute_levels(const Network& network, GroupSchedule group,
                                        TwoLevelCache& cache) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    const size_t placements = moveable(group).size();
    // A placement that moves may let others move as well.
    for (size_t n = 0, unmoved = 0; unmoved < placements; n = (n + 1) % placements) {
        GroupSchedule moved = group;
        const auto [nest, placement] = moveable(moved)[n];
        const std::vector<Level> levels = path(group, nest);
        const int at = position(levels, placement->compute);
        const bool is_outermost = placement->compute == placement->store || at <= 0;
        if (!is_outermost) placement->compute = levels[static_cast<size_t>(at) - 1];
        if (is_outermost || !is_legal(network, moved) ||
            two_level_counts(problems, moved, &cache) != counts) {
            ++unmoved;
            continue;
        }
        unmoved = 0;
        group = std::move(moved);
    }
    return group;
}

namespace {

/// What groups have in common that differ in sizes only: loops, levels and kernels.
GroupSchedule without_sizes(GroupSchedule group) {
    for (Nest& nest : group.nests) {
        nest.tile = {1, 1, 1, 1};
        for (int64_t& strip : nest.strip) strip = strip > 0 ? 1 : 0;
    }
    return group;
}

/// `group` with the compute levels of `other`, which differs in these and in sizes only; `group`
/// itself if that is illegal or changes a count.
GroupSchedule with_levels_of(GroupSchedule other, const Network& network, GroupSchedule group,
                             TwoLevelCache& cache) {
    for (int k = 0; k <= group.sink(); ++k) {
        other.nest(k).tile = group.nest(k).tile;
        other.nest(k).strip = group.nest(k).strip;
    }
    const bool is_wanted = is_legal(network, other) && two_level_counts(network, other, &cache) ==
                                                           two_level_counts(network, group, &cache);
    return is_wanted ? other : group;
}

}  // namespace

void move_compute_levels_out(const Network& network, const std::vector<GroupSchedule*>& groups,
                             int threads) {
    std::map<GroupSchedule, std::vector<GroupSchedule*>> alike;
    for (GroupSchedule* group : groups) alike[without_sizes(*group)].push_back(group);
    struct Follower {
        GroupSchedule* group;
        const GroupSchedule* first;
    };
    std::vector<GroupSchedule*> firsts;
    std::vector<Follower> followers;
    for (const auto& [common, all] : alike) {
        firsts.push_back(all.front());
        for (size_t n = 1; n < all.size(); ++n) followers.push_back({all[n], all.front()});
    }
    in_parallel_with<TwoLevelCache>(firsts.size(), threads, [&](size_t n, TwoLevelCache& cache) {
        *firsts[n] = with_outer_compute_levels(network, std::move(*firsts[n]), cache);
    });
    in_parallel_with<TwoLevelCache>(followers.size(), threads, [&](size_t n, TwoLevelCache& cache) {
        const auto [group, first] = followers[n];
        *group = with_outer_compute_levels(
            network, with_levels_of(*first, network, std::move(*group), cache), cache);
    });
}

GroupSchedule with_whole_tiles(const Network& network, const GroupSchedule& group) {
    GroupSchedule moved = group;
    const auto move_out = [&](Level& level) {
        while (!level.is_root() && group.loop(level).band == Band::inner) --level.loop;
    };
    for (const auto& [nest, placement] : moveable(moved)) {
        move_out(placement->store);
        move_out(placement->compute);
    }
    return is_legal(network, moved) ? moved : group;
}

}  // namespace laminate
