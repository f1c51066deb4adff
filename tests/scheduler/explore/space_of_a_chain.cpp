#include "tests/scheduler/explore/space_of_a_chain.h"

#include <algorithm>

namespace laminate {

ChainSchedule SpaceOfAChain::draw(Rng& rng) const {
    ChainSchedule d;
    d.layers.resize(problems_.size());
    for (size_t k = 0; k < d.layers.size(); ++k) {
        for (int field = 0; field < 8; ++field) change(d, k, field, rng);
    }
    return d;
}

void SpaceOfAChain::change(ChainSchedule& d, Rng& rng) const {
    change(d, static_cast<size_t>(rng.below(static_cast<int64_t>(d.layers.size()))),
           static_cast<int>(rng.below(8)), rng);
}

std::optional<GroupSchedule> SpaceOfAChain::group(const ChainSchedule& d) const {
    const int sink = static_cast<int>(problems_.size()) - 1;
    const auto level = [](int nest, int position) { return Level{nest, 3 + position}; };
    GroupSchedule group;
    // Where the input of a nest is stored.
    const auto store = [&](int nest) {
        while (nest < sink && d.layers[static_cast<size_t>(nest)].store < 0) ++nest;
        return level(nest, std::max(0, d.layers[static_cast<size_t>(nest)].store));
    };
    for (int k = 0; k <= sink; ++k) {
        const ChainSchedule::Layer& l = d.layers[static_cast<size_t>(k)];
        const LayerProblem& p = problems_[static_cast<size_t>(k)];
        if (k == sink && (l.store < 0 || l.weights == 5)) return std::nullopt;
        if (sink == 0 && l.weights == 6) return std::nullopt;
        if (l.compute < l.store) return std::nullopt;
        Nest nest;
        nest.layer = p.name;
        for (const Dim dim : all_dims) nest.loops.push_back({dim, Band::outer});
        for (const Dim dim : l.order) nest.loops.push_back({dim, Band::inner});
        nest.tile = l.tile;
        if (k < sink) nest.tile[Dim::i] = p[Dim::i];
        const bool whole = l.store < 0 || l.weights == 5;  // tiles are the calls
        if (whole) nest.tile = p.extent;
        const int compute = k == 0 ? 4 : l.compute;
        // z may lie between the levels of an internal tensor only if it has one trip.
        const int z =
            static_cast<int>(std::find(l.order.begin(), l.order.end(), Dim::z) - l.order.begin());
        if (k > 0 && z >= std::max(0, l.store) && z < compute && nest.tile[Dim::z] > 1)
            return std::nullopt;
        if (l.store < 0) {
            // Retention must not cross a channel loop of the next layer.
            const ChainSchedule::Layer& reader = d.layers[static_cast<size_t>(k) + 1];
            const int i = static_cast<int>(
                std::find(reader.order.begin(), reader.order.end(), Dim::i) - reader.order.begin());
            if (i >= std::max(0, reader.store) && i < reader.compute &&
                problems_[static_cast<size_t>(k) + 1][Dim::i] > 1)
                return std::nullopt;
        }
        if (k == 0) nest.x = {{0, {store(0), level(0, 4)}}};
        if (l.weights <= 4) nest.w = Placement{level(k, l.weights), level(k, 4)};
        if (l.weights == 5) nest.w = Placement{store(k + 1), store(k + 1)};
        if (l.weights == 6) nest.w = Placement{};
        if (k < sink) {
            nest.y = {store(k + 1), level(k + 1, d.layers[static_cast<size_t>(k) + 1].compute)};
        } else {
            const auto ii = std::find(l.order.begin(), l.order.end(), Dim::i) - l.order.begin();
            nest.y = {level(k, static_cast<int>(ii)), level(k, static_cast<int>(ii))};
        }
        group.nests.push_back(std::move(nest));
    }
    return group;
}

ThreeCosts SpaceOfAChain::cost(const GroupSchedule& group, Footprint footprint,
                               TwoLevelCache& cache) const {
    const GroupCounts c = two_level_counts(problems_, group, &cache);
    return {c.accesses().value(),
            (footprint == Footprint::live ? c.live_total : c.sum_total).value(), c.macs().value()};
}

void SpaceOfAChain::change(ChainSchedule& d, size_t k, int field, Rng& rng) const {
    ChainSchedule::Layer& l = d.layers[k];
    if (field == 0) {
        for (size_t n = 4; n > 1; --n)
            std::swap(l.order[n - 1],
                      l.order[static_cast<size_t>(rng.below(static_cast<int64_t>(n)))]);
    } else if (field == 1) {
        l.store = static_cast<int>(rng.between(-1, 4));
    } else if (field == 2) {
        l.compute = static_cast<int>(rng.between(0, 4));
    } else if (field == 3) {
        l.weights = static_cast<int>(rng.between(0, 6));
    } else {
        const auto dim = static_cast<Dim>(field - 4);
        l.tile[dim] = rng.between(1, problems_[k].extent[dim]);
    }
    l.compute = k == 0 ? 4 : std::max(l.compute, l.store);
}

}  // namespace laminate
