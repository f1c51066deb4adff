// Costs of one layer with its order, levels and tiles, and of the layers so far together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/explore/explore.h"
#include "scheduler/schedule/problem.h"
#include "tests/scheduler/explore/every_schedule/patterns.h"
#include "tests/scheduler/explore/every_schedule/shapes.h"
#include "tests/scheduler/explore/space_of_a_chain.h"

namespace laminate::every {

/// Costs of the layers so far, from the last one back. The total memory is `resident` plus the
/// largest of `elsewhere`, `beside + s` and `around + s + m`. Here s is stored with the tensor that
/// comes next (by the layers before it), and m is held by the nests before.
struct Costs {
    int64_t accesses = 0;
    int64_t macs = 0;
    int64_t resident = 0;
    int64_t elsewhere = 0;
    int64_t beside = 0;
    int64_t around = 0;
    size_t trace = 0;
    [[nodiscard]] int64_t memory() const {
        return resident + std::max({elsewhere, beside, around});
    }
    [[nodiscard]] bool no_worse(const Costs& o) const {
        return accesses <= o.accesses && macs <= o.macs && resident <= o.resident &&
               elsewhere <= o.elsewhere && beside <= o.beside && around <= o.around;
    }
};

/// Costs of one layer.
struct Local {
    int64_t accesses = 0;
    int64_t resident = 0;
    int64_t with_output = 0;  ///< stored where the output is stored
    int64_t held = 0;         ///< in the nest, while the producer runs too
    int64_t below = 0;        ///< inside, not while the producer runs
    ChainSchedule::Layer layer;
    [[nodiscard]] bool no_worse(const Local& o) const {
        return accesses <= o.accesses && resident <= o.resident && with_output <= o.with_output &&
               held <= o.held && below <= o.below;
    }
};

/// Adds a value to a set unless another one is no worse, and removes those that are.
template <class T>
void insert(std::vector<T>& set, const T& value) {
    for (const T& other : set) {
        if (other.no_worse(value)) return;
    }
    std::erase_if(set, [&](const T& other) { return value.no_worse(other); });
    set.push_back(value);
}

/// The costs of layer k in a shape and with a tile. Sets `next` to what the layer asks of the one
/// before it.
[[nodiscard]] Local local_costs(Patterns& patterns, size_t k, const Patterns::Tables& tables,
                                const Shape& s, PerDim<int64_t> tile, State& next);

/// Costs `c` of the layers after one with `macs`, and that layer's own. `is_kept`: Shape::is_kept.
[[nodiscard]] Costs add_layer(Costs c, const Local& layer, bool is_kept, int64_t macs,
                              Footprint footprint);

/// The least that the first layers of a chain cost, whatever the schedule: coordinates that are
/// really read, each once.
class LeastCosts {
public:
    explicit LeastCosts(const std::vector<LayerProblem>& problems);

    /// A bound for schedules with costs `c` from layer k on. Layers before it need weights and
    /// input once, layer k - 1 the MACs `macs_of_next`, and each a kernel and one element.
    [[nodiscard]] ThreeCosts bound(size_t k, Costs c, int64_t macs_of_next) const;
    /// MACs of all layers, each alone.
    [[nodiscard]] int64_t macs_alone() const { return macs_alone_; }

private:
    int64_t kernel_ = 0;             ///< of the first layer
    std::vector<int64_t> macs_;      ///< of layers 0 .. k - 1
    std::vector<int64_t> accesses_;  ///< weights of layers 0 .. k - 1, and the group's input
    int64_t macs_alone_ = 0;
};

}  // namespace laminate::every
