// The search of fused groups against schedules drawn and changed at random from the same space, written down here a second time: none of
// them may beat the front. Every point of the front is what the model says; the search itself checks that and throws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "scheduler/explore.h"
#include "scheduler/models/two_level/two_level.h"
#include "tests/scheduler/chain.h"

namespace laminate {
namespace {

using Cost = std::array<int64_t, 3>;  // accesses, memory, MACs

bool beats(const Cost& a, const Cost& b) { return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] && a != b; }

/// A schedule of the space fusion-recompute as its definition says, in docs/search.md's words.
struct Drawn {
    struct Layer {
        std::array<Dim, 4> order{Dim::z, Dim::y, Dim::x, Dim::i};
        int store = 0;    // -1: with the layer's own output
        int compute = 0;  // X: 4
        int weights = 0;  // 0 .. 4 own level, 5 with the layer's own output, 6 resident
        std::array<int64_t, 4> tile{1, 1, 1, 1};
    };
    std::vector<Layer> layers;
};

class SpaceOfAChain {
public:
    explicit SpaceOfAChain(const Network& network) {
        for (const LayerId id : all_layers(network)) problems_.push_back(layer_problem(network, id));
    }

    [[nodiscard]] Drawn draw(Rng& rng) const {
        Drawn d;
        d.layers.resize(problems_.size());
        for (size_t k = 0; k < d.layers.size(); ++k) {
            for (int field = 0; field < 8; ++field) change(d, k, field, rng);
        }
        return d;
    }

    void change(Drawn& d, Rng& rng) const {
        change(d, static_cast<size_t>(rng.below(static_cast<int64_t>(d.layers.size()))), static_cast<int>(rng.below(8)), rng);
    }

    /// Nothing when the space does not have it.
    [[nodiscard]] std::optional<GroupSchedule> group(const Drawn& d) const {
        const int sink = static_cast<int>(problems_.size()) - 1;
        const auto level = [](int nest, int position) { return Level{nest, 3 + position}; };
        GroupSchedule group;
        // Where the input of a nest is stored.
        const auto store = [&](int nest) {
            while (nest < sink && d.layers[static_cast<size_t>(nest)].store < 0) ++nest;
            return level(nest, std::max(0, d.layers[static_cast<size_t>(nest)].store));
        };
        for (int k = 0; k <= sink; ++k) {
            const Drawn::Layer& l = d.layers[static_cast<size_t>(k)];
            const LayerProblem& p = problems_[static_cast<size_t>(k)];
            if (k == sink && (l.store < 0 || l.weights == 5)) return std::nullopt;
            if (sink == 0 && l.weights == 6) return std::nullopt;
            if (l.compute < l.store) return std::nullopt;
            Nest nest;
            nest.layer = p.name;
            for (const Dim dim : {Dim::z, Dim::y, Dim::x, Dim::i}) nest.loops.push_back({dim, Band::outer});
            for (const Dim dim : l.order) nest.loops.push_back({dim, Band::inner});
            nest.tile = l.tile;
            if (k < sink) nest.tile[3] = p[Dim::i];
            const bool whole = l.store < 0 || l.weights == 5;  // tiles are the calls
            if (whole) nest.tile = p.extent;
            const int compute = k == 0 ? 4 : l.compute;
            // z between the levels of a tensor from inside the group only where it has one trip.
            const int z = static_cast<int>(std::find(l.order.begin(), l.order.end(), Dim::z) - l.order.begin());
            if (k > 0 && z >= std::max(0, l.store) && z < compute && nest.tile[0] > 1) return std::nullopt;
            if (l.store < 0) {
                // Retention: not across a channel loop of the layer after.
                const Drawn::Layer& reader = d.layers[static_cast<size_t>(k) + 1];
                const int i = static_cast<int>(std::find(reader.order.begin(), reader.order.end(), Dim::i) - reader.order.begin());
                if (i >= std::max(0, reader.store) && i < reader.compute && problems_[static_cast<size_t>(k) + 1][Dim::i] > 1)
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

    [[nodiscard]] Cost cost(const GroupSchedule& group, Footprint footprint, TwoLevelCache& cache) const {
        const GroupCounts c = two_level_counts(problems_, group, &cache);
        return {c.accesses().value(), (footprint == Footprint::live ? c.live_total : c.sum_total).value(), c.macs().value()};
    }

private:
    void change(Drawn& d, size_t k, int field, Rng& rng) const {
        Drawn::Layer& l = d.layers[k];
        if (field == 0) {
            for (size_t n = 4; n > 1; --n) std::swap(l.order[n - 1], l.order[static_cast<size_t>(rng.below(static_cast<int64_t>(n)))]);
        } else if (field == 1) {
            l.store = static_cast<int>(rng.between(-1, 4));
        } else if (field == 2) {
            l.compute = static_cast<int>(rng.between(0, 4));
        } else if (field == 3) {
            l.weights = static_cast<int>(rng.between(0, 6));
        } else {
            const auto dim = static_cast<size_t>(field - 4);
            l.tile[dim] = rng.between(1, problems_[k].extent[dim]);
        }
        l.compute = k == 0 ? 4 : std::max(l.compute, l.store);
    }

    std::vector<LayerProblem> problems_;
};

/// A chain of 2 to `most` tiny convolutions: any kernel, stride, dilation and padding that is schedulable.
Network tiny_chain(uint64_t seed, int64_t most) {
    for (Rng rng(seed);;) {
        std::vector<LayerSpec> specs;
        const int64_t layers = rng.between(2, most);
        for (int64_t k = 0; k < layers; ++k) {
            LayerSpec spec;
            spec.channels = rng.between(1, 3);
            const int64_t pad = rng.chance(1, 2) ? 1 : 0;
            spec.window = square_window(rng.between(1, 3), rng.chance(1, 4) ? 2 : 1, pad);
            if (rng.chance(1, 4)) spec.window.kernel[1] = 1, spec.window.pad_begin[1] = spec.window.pad_end[1] = 0;
            if (rng.chance(1, 6)) spec.window.dilation = {2, 1};
            specs.push_back(spec);
        }
        try {
            Network network = chain(rng.between(1, 2), rng.between(4, 9), rng.between(4, 8), specs);
            const auto chains = schedulable_chains(network);
            if (chains.size() == 1 && chains.front().size() == specs.size()) return network;
        } catch (const InputError&) {  // an output without extent: draw again
        }
    }
}

/// Random draws, and walks that start from a draw and keep every change that is no worse in some mixture of the costs.
void expect_unbeaten(uint64_t seed, int64_t layers, int64_t draws) {
    const Network network = tiny_chain(seed, layers);
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.footprint = seed % 2 == 0 ? Footprint::live : Footprint::sum;
    options.macs_is_axis = true;
    options.max_steps = INT64_MAX;
    // Two layers: the front of the one group. More: that of all partitions, which a single group may only equal.
    const bool is_pair = network.layers.size() == 2;
    std::vector<Cost> costs;
    if (is_pair) {
        for (const GroupPoint& p : group_front(network, all_layers(network), options))
            costs.push_back({p.accesses.value(), p.live_total.value(), p.macs.value()});
    } else {
        const Front front = explore(network, options);
        ASSERT_TRUE(front.is_complete && front.macs_is_axis);
        for (const FrontPoint& p : front.points)
            costs.push_back({p.counts.accesses.value(), memory_of(p.counts, options.footprint).value(), p.counts.macs.value()});
    }
    ASSERT_FALSE(costs.empty());
    const SpaceOfAChain space(network);
    Rng rng(seed + 1000);
    TwoLevelCache cache;
    Drawn at;
    double value = 0;
    std::array<double, 3> weight{};
    for (int64_t n = 0; n < draws; ++n) {
        const bool starts = n % 400 == 0;
        Drawn next = at;
        if (starts) {
            do next = space.draw(rng);
            while (!space.group(next));
            for (double& w : weight) w = static_cast<double>(rng.between(1, 20));
        } else {
            for (int64_t changes = rng.between(1, 3); changes > 0; --changes) space.change(next, rng);
        }
        const auto group = space.group(next);
        if (!group) continue;
        check_group(network, *group);
        const Cost c = space.cost(*group, options.footprint, cache);
        EXPECT_TRUE(std::none_of(costs.begin(), costs.end(), [&](const Cost& f) { return beats(c, f); }) ||
                    std::any_of(costs.begin(), costs.end(), [&](const Cost& f) { return f == c; }))
            << "seed " << seed << ": " << to_text(*group) << " costs " << c[0] << ", " << c[1] << ", " << c[2];
        EXPECT_TRUE(std::any_of(costs.begin(), costs.end(), [&](const Cost& f) { return f == c || beats(f, c); }))
            << "seed " << seed << ": " << to_text(*group) << " costs " << c[0] << ", " << c[1] << ", " << c[2];
        double own = 0;
        for (size_t a = 0; a < 3; ++a) own += weight[a] * std::log(static_cast<double>(c[a]));
        if (starts || own <= value) {
            at = next;
            value = own;
        }
    }
}

TEST(GroupSearch, NoScheduleOfTheSpaceBeatsTheFront) {
    for (uint64_t seed = 1; seed <= 6; ++seed) expect_unbeaten(seed, 2, 2000);
    expect_unbeaten(8, 3, 1000);
}

/// 200 chains; of the long label.
TEST(GroupSearchLong, NoScheduleOfTheSpaceBeatsTheFront) {
    for (uint64_t seed = 100; seed < 300; ++seed) expect_unbeaten(seed, 2 + static_cast<int64_t>(seed % 3), 20000);
}

}  // namespace
}  // namespace laminate
