#include "tests/scheduler/explore/every_schedule/shapes.h"

#include <algorithm>

namespace laminate::every {

Shape shape_of(const std::vector<LayerProblem>& problems, size_t k, const ChainSchedule::Layer& l) {
    const bool is_last = k + 1 == problems.size();
    Shape s;
    s.is_kept = l.store < 0;
    const int store = std::max(l.store, 0);
    const int compute = k == 0 ? 4 : l.compute;
    s.weights = l.weights <= 4 ? 0 : l.weights;
    bool is_inside_output = false;
    int ii = 0;
    for (int n = 0; n < 4; ++n) {
        const Axis a = axis_of(l.order[static_cast<size_t>(n)]);
        // A loop with one trip counts as the innermost.
        const bool has_one_trip = a == inputs && problems[k][Dim::i] == 1;
        if (n >= compute || has_one_trip)
            s.place[a] = s.is_kept ? Place::kept_below : Place::below_compute;
        else if (s.is_kept || n >= store)
            s.place[a] = s.is_kept ? Place::kept_between : Place::between;
        else
            s.place[a] = Place::above_store;
        if (n >= store && n < compute && !has_one_trip) s.walk.push_back(a);
        if (s.weights == 0 && n >= l.weights) {
            s.inside_weights[a] = true;
            s.weights_walk.push_back(a);
        }
        if (is_inside_output && is_last) s.inside_output[a] = true;
        if (a == inputs) {
            is_inside_output = true;
            ii = n;
        }
    }
    // The order of neighbouring loops does not matter if all of them index the weights or none
    // does, because none of them overlaps.
    const auto indexes = [](Axis a) { return a == inputs || a == outputs; };
    for (auto begin = s.weights_walk.begin(); begin != s.weights_walk.end();) {
        auto end = begin;
        while (end != s.weights_walk.end() && indexes(*end) == indexes(*begin)) ++end;
        std::sort(begin, end);
        begin = end;
    }
    s.weights_below = k > 0 && s.weights == 0 && l.weights > compute;
    s.output_below = k > 0 && is_last && ii > compute;
    return s;
}

std::map<Shape, ChainSchedule::Layer> shapes_of(const std::vector<LayerProblem>& problems, size_t k,
                                                bool only_resident) {
    const bool is_last = k + 1 == problems.size();
    std::map<Shape, ChainSchedule::Layer> found;
    const bool is_alone = problems.size() == 1;
    ChainSchedule::Layer l;
    std::sort(l.order.begin(), l.order.end());
    do {
        for (l.store = is_last ? 0 : -1; l.store <= 4; ++l.store) {
            for (l.compute = k == 0 ? 4 : std::max(l.store, 0); l.compute <= 4; ++l.compute) {
                for (l.weights = 0; l.weights <= 6; ++l.weights) {
                    if (l.weights == 5 && is_last) continue;
                    if (l.weights == 6 && is_alone) continue;
                    if (only_resident && !is_alone && l.weights != 6) continue;
                    const Shape s = shape_of(problems, k, l);
                    const bool is_z_between = s.place[outputs] == Place::between ||
                                              s.place[outputs] == Place::kept_between;
                    if (k > 0 && is_z_between) continue;
                    found.emplace(s, l);
                }
            }
        }
    } while (std::next_permutation(l.order.begin(), l.order.end()));
    return found;
}

}  // namespace laminate::every
