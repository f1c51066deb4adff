#include "scheduler/explore/compute_levels.h"

#include <utility>

#include "base/error.h"

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
