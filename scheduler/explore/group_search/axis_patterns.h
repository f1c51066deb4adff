// Call patterns: what one spatial axis of a fused group asks of each of its tensors.
//
// A chain is searched from its last layer to its first. The nest of layer k runs once per *call*,
// one iteration of the compute level of its output A_k. Along one axis the calls form *scopes*, the
// lifetimes of A_k's buffer, each a sequence of new intervals of A_k; a pattern is the multiset of
// its scopes. Costs of a group are products over axes of sums over patterns
// (scheduler/counts/two_level/axis.h), so a pattern is all that layer k needs to know of the layers
// after it along that axis. Windows are clipped to the tensors, hence intervals and not just
// lengths; scopes that no border touches on their way down to the group's input are moved to one
// place, so that equal ones are counted, not kept.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

/// Where the loop of an axis lies in the nest that reads a tensor: relative to the tensor's store
/// and compute level.
enum class Kind : uint8_t {
    above,    ///< around the store level: a lifetime per coordinate
    between,  ///< inside the store level, the compute level at or inside it: a lifetime per tile,
              ///< one call per coordinate, new parts only
    below,    ///< inside the compute level: a lifetime and one call per tile
    kept_between,  ///< the tensor lives as long as the nest's own output (retention), one call per
                   ///< coordinate
    kept_below,    ///< the same, one call per call of the nest
};

class AxisPatterns {
public:
    using Id = int32_t;

    /// What the pattern of a tensor A_k costs the layers up to k, along this axis.
    struct Facts {
        int64_t brought = 0;  ///< sum of call extents
        int64_t taps = 0;  ///< the same, each coordinate weighted with the kernel taps of layer k
        int64_t scopes = 0;
        int64_t largest = 0;     ///< call
        int64_t most_calls = 0;  ///< in a scope
        int levels = 0;          ///< loops of this axis around a call, inside the scope
        int64_t size = 0;  ///< calls that are told apart: what it takes to look at the pattern
        /// Lower bounds when everything is kept as long as the scope: taps of the layers 1 .. k,
        /// and coordinates of the group's input.
        std::vector<int64_t> least_taps;
        int64_t least_input = 0;
    };

    /// How layer k with tiles T reads A_{k-1}.
    struct Step {
        Id pattern = 0;  ///< of A_{k-1}
        /// Coordinates held by a buffer of A_{k-1} that does not fold along the axis ([0]), or
        /// folds at its loop number n.
        std::vector<int64_t> held;
        bool overlaps =
            false;  ///< some coordinate needs what an earlier one of the same tile needed
    };

    /// `windows` of the layers 1 .. n along this axis.
    explicit AxisPatterns(std::vector<AxisWindow> windows);

    /// The one call for the whole output of the last layer.
    [[nodiscard]] Id whole() const { return whole_; }
    /// `layer` counts from 1; `id` is a pattern of its output.
    [[nodiscard]] const Facts& facts(int layer, Id id) const { return entry(layer, id).facts; }
    [[nodiscard]] const Step& step(int layer, Id id, Kind kind, int64_t tile);
    /// The first layer reads the group's input, of which nobody needs the pattern: what it brings,
    /// and what the buffer holds.
    struct InputStep {
        int64_t brought = 0;
        int64_t whole = 0;   ///< as Step::held[0]
        int64_t folded = 0;  ///< Step::held[1]
        bool overlaps = false;
    };
    /// For the kinds above, between and below.
    [[nodiscard]] InputStep input_step(Id id, Kind kind, int64_t tile) const;
    /// Tiles of all calls; with `tile` not below the largest call that is the number of calls.
    [[nodiscard]] int64_t tiles(int layer, Id id, int64_t tile) const;
    /// Smallest number of input coordinates that one output coordinate of the layer reads.
    [[nodiscard]] int64_t least_window(int layer) const {
        return least_windows_[static_cast<size_t>(layer - 1)];
    }
    [[nodiscard]] const AxisWindow& window(int layer) const {
        return windows_[static_cast<size_t>(layer - 1)];
    }

    /// What is stored, about.
    [[nodiscard]] size_t bytes() const { return bytes_; }

private:
    struct Call {
        int64_t begin = 0;
        int64_t end = 0;
        int level = 0;  ///< outermost loop (1 ...) that starts a new iteration with this call; of a
                        ///< scope's first call all do
        friend auto operator<=>(const Call&, const Call&) = default;
    };
    using Scope = std::vector<Call>;
    struct Entry {
        std::vector<std::pair<Scope, int64_t>> scopes;     ///< with how many there are
        std::vector<std::pair<int64_t, int64_t>> extents;  ///< of calls, with how many there are
        std::vector<std::pair<Range, int64_t>> calls;      ///< the same with their places
        Facts facts;
        std::map<std::pair<Kind, int64_t>, Step> steps;
    };
    using Scopes = std::map<Scope, int64_t>;

    [[nodiscard]] const Entry& entry(int layer, Id id) const {
        return entries_[static_cast<size_t>(layer)][static_cast<size_t>(id)];
    }
    Id intern(int layer, const Scopes& scopes, int levels);
    void find_facts(int layer, int levels, Entry& entry) const;
    [[nodiscard]] Step own_step(int layer, const Entry& entry, Kind kind, int64_t tile,
                                Scopes& scopes) const;
    [[nodiscard]] Step kept_step(int layer, const Entry& entry, Kind kind, Scopes& scopes) const;

    std::vector<AxisWindow> windows_;
    [[nodiscard]] bool is_inner(int layer, Range part) const {
        const auto [low, high] = inner_[static_cast<size_t>(layer)];
        return part.begin >= low && part.end <= high;
    }

    std::vector<int64_t> least_windows_;
    std::vector<std::pair<int64_t, int64_t>> inner_;  ///< by layer (0: the input): coordinates of
                                                      ///< A_k that no border touches further down
    std::vector<std::deque<Entry>> entries_;          ///< by layer of the tensor
    std::vector<std::unordered_map<std::vector<int64_t>, Id, SequenceHash>>
        ids_;  ///< by everything that makes a pattern, as numbers
    Id whole_ = 0;
    size_t bytes_ = 0;
};

}  // namespace laminate::search
