#include "scheduler/counts/two_level/axis.h"

namespace laminate::two_level {

std::vector<int64_t> AxisProblem::key() const {
    std::vector<int64_t> key{static_cast<int64_t>(nests.size())};
    for (const AxisNest& n : nests) {
        key.push_back(static_cast<int64_t>(n.role));
        if (n.role == Role::none) continue;
        key.push_back(n.extent);
        key.push_back(static_cast<int64_t>(n.steps.size()));
        key.insert(key.end(), n.steps.begin(), n.steps.end());
        if (n.role == Role::grouped) key.insert(key.end(), {n.group_outputs, n.group_inputs});
        if (n.role != Role::spatial) continue;
        const AxisWindow& w = n.window;
        append_window(key, w);
    }
    for (const AxisArray& a : arrays) {
        const AxisPlacement& p = a.placement;
        key.insert(key.end(),
                   {a.is_weights ? 1 : 0, a.producer, a.whole, p.store.nest, p.store.depth,
                    p.compute.nest, p.compute.depth, static_cast<int64_t>(a.readers.size())});
        for (const AxisReader& r : a.readers)
            key.insert(key.end(), {r.nest, r.first_output, r.channels, r.is_repeated ? 1 : 0});
    }
    return key;
}

}  // namespace laminate::two_level
