#include "scheduler/explore/group_search/group_choice.h"

#include <algorithm>

namespace laminate::search {

GroupSchedule group_schedule(const std::vector<LayerProblem>& problems, const GroupChoice& choice) {
    const int layers = static_cast<int>(problems.size());
    const auto level = [](int nest, int position) { return Level{nest, 3 + position}; };
    // The input of a nest is stored in its own loops, or with its output.
    const auto store_of_input = [&](int nest) {
        while (choice.structures[nest].store < 0) ++nest;
        return level(nest, choice.structures[nest].store);
    };
    GroupSchedule group;
    for (int k = 0; k < layers; ++k) {
        const LayerStructure& s = choice.structures[k];
        Nest nest;
        nest.layer = problems[static_cast<size_t>(k)].name;
        for (const Dim d : all_dims) nest.loops.push_back({d, Band::outer});
        for (const Dim d : s.order) nest.loops.push_back({d, Band::inner});
        nest.tile = choice.tiles[k];
        if (k == 0) nest.x = {{0, {store_of_input(0), level(0, s.compute)}}};
        switch (s.weights) {
            case WeightsLife::own:
                nest.w = Placement{level(k, s.weights_store), level(k, 4)};
                break;
            case WeightsLife::scope:
                nest.w = Placement{store_of_input(k + 1), store_of_input(k + 1)};
                break;
            case WeightsLife::resident:
                nest.w = Placement{};
                break;
        }
        if (k + 1 < layers) {
            nest.y = {store_of_input(k + 1), level(k + 1, choice.structures[k + 1].compute)};
        } else {
            const auto ii = std::find(s.order.begin(), s.order.end(), Dim::i) - s.order.begin();
            nest.y = {level(k, static_cast<int>(ii)), level(k, static_cast<int>(ii))};
        }
        group.nests.push_back(std::move(nest));
    }
    return group;
}

}  // namespace laminate::search
