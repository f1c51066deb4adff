// Calls of nests that repeat, remembered. A producer that recomputes is called again and again with
// the same box in the same state; remembering the effect of a call makes recomputation linear
// instead of exponential in the number of layers.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/counts/two_level/axis_state.h"

namespace laminate::two_level {

class CallMemory {
public:
    /// `state` before anything has run.
    CallMemory(const AxisState& state, const AxisProblem& problem);

    /// Calls nest `k` for `box`: by `run()`, or, if the same call was made before in the same
    /// state, by repeating its effect on `state`.
    template <class Run>
    void call(int64_t k, Range box, AxisState& state, const Run& run) {
        OfNest& nest = nests_[k];
        std::vector<int64_t> key = key_of(nest, box, state);
        if (const auto known = nest.effects.find(key); known != nest.effects.end()) {
            repeat(nest, known->second, state);
            return;
        }
        const SetAside aside = set_aside(nest, state);
        run();
        nest.effects.emplace(std::move(key), effect(nest, state.first[k], aside, state));
    }

private:
    /// What one call does to the state.
    struct Effect {
        std::vector<int64_t> brought;    ///< by OfNest::buffers
        std::vector<int64_t> taps;       ///< by OfNest::buffers
        std::vector<Range> calls;        ///< by OfNest::waiting
        std::vector<Range> needs;        ///< by OfNest::open
        std::vector<int64_t> frontiers;  ///< of the buffers of OfNest::open and their tracks
        std::vector<AxisBody> seen;      ///< of the tracks of OfNest::open
    };
    /// Accumulators that outlive a call, while it runs on fresh ones.
    struct SetAside {
        std::vector<int64_t> brought;
        std::vector<int64_t> taps;
        std::vector<Range> calls;
        std::vector<AxisBody> seen;
    };
    struct OfNest {
        std::vector<size_t> buffers;  ///< brought somewhere inside a call of this nest
        std::vector<size_t> open;     ///< those of them that live longer than the call
        std::vector<size_t> waiting;  ///< readers that run inside, of buffers brought outside
        std::unordered_map<std::vector<int64_t>, Effect, SequenceHash> effects;
    };

    static std::vector<int64_t> key_of(const OfNest& nest, Range box, const AxisState& state);
    static SetAside set_aside(const OfNest& nest, AxisState& state);
    /// The effect of the call that has just run, whose first body is `node`. Puts back what was set
    /// aside.
    static Effect effect(const OfNest& nest, size_t node, const SetAside& aside, AxisState& state);
    static void repeat(const OfNest& nest, const Effect& effect, AxisState& state);

    IndexVector<OfNest, int64_t> nests_;
};

}  // namespace laminate::two_level
