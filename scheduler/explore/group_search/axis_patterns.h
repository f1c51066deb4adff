// Call patterns: which parts of each tensor a fused group asks for along one spatial axis.
//
// A chain is searched from its last layer to its first. The nest of layer k runs once per *call*,
// one iteration of the compute level of its output A_k. Along one axis the calls form *scopes*, the
// lifetimes of A_k's buffer, each a sequence of new intervals of A_k. A pattern is the multiset of
// its scopes. Costs of a group are products over axes of sums over patterns
// (scheduler/counts/two_level/axis.h), so along that axis layer k needs to know nothing but its
// pattern of the layers after it. Windows are clipped to the tensors, so intervals matter and not
// just lengths. Scopes that no border touches on their way down to the group's input are moved to
// one place, so equal ones are counted instead of stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// Where the loop of an axis lies in the nest that reads a tensor, relative to the tensor's store
/// and compute levels.
enum class Kind : uint8_t {
    above,  ///< around the store level; a lifetime per coordinate
    /// Inside the store level, with the compute level at or inside it; a lifetime per tile, and one
    /// call per coordinate for new parts only.
    between,
    below,  ///< inside the compute level; a lifetime and one call per tile
    /// The tensor lives as long as the nest's output (retention); one call per coordinate.
    kept_between,
    kept_below,  ///< retention, with one call per call of the nest
};

class AxisPatterns {
public:
    using Id = int32_t;

    /// What the pattern of a tensor A_k costs the layers up to k along this axis.
    struct Facts {
        int64_t brought = 0;  ///< sum of call extents
        int64_t taps = 0;  ///< the same sum, each coordinate weighted by the kernel taps of layer k
        int64_t scopes = 0;
        int64_t largest = 0;     ///< largest call
        int64_t most_calls = 0;  ///< most calls in a scope
        int levels = 0;          ///< loops of this axis inside the scope, around a call
        int64_t size = 0;        ///< calls of different scopes: the work of reading the pattern
        /// Lower bounds, if everything is kept as long as the scope: taps of the layers 1 .. k, and
        /// coordinates of the group's input.
        std::vector<int64_t> least_taps;
        int64_t least_input = 0;
    };

    /// How layer k with tiles T reads A_{k-1}.
    struct Step {
        Id pattern = 0;  ///< of A_{k-1}
        /// Coordinates held by a buffer of A_{k-1}: [0] if it does not fold along the axis, [n] if
        /// it folds at loop n of the axis.
        std::vector<int64_t> held;
        /// Whether some coordinate needs what an earlier one of the same tile needed.
        bool overlaps = false;
    };

    /// `windows`: of the layers 1 .. n along this axis.
    explicit AxisPatterns(std::vector<AxisWindow> windows);

    /// The one call for the whole output of the last layer.
    [[nodiscard]] Id whole() const { return whole_; }
    /// `layer` counts from 1, and `id` is a pattern of its output.
    [[nodiscard]] const Facts& facts(int layer, Id id) const { return entry(layer, id).facts; }
    [[nodiscard]] const Step& step(int layer, Id id, Kind kind, int64_t tile);
    /// How the first layer reads the group's input, whose pattern nobody needs.
    struct InputStep {
        int64_t brought = 0;
        int64_t whole = 0;   ///< like Step::held[0]
        int64_t folded = 0;  ///< like Step::held[1]
        bool overlaps = false;
    };
    /// For the kinds above, between and below.
    [[nodiscard]] InputStep input_step(Id id, Kind kind, int64_t tile) const;
    /// A larger tile. All tiles from `tile` up to it, without it, bring, hold and are no less than
    /// `tile` in input_step() and tiles(). If each call of E coordinates takes as many tiles,
    /// windows bring as much altogether, only less where a border clips them. Larger tiles begin
    /// later, so the first border clips less of them, and as long as all but the last one end
    /// inside, the other border clips as much. A full tile that no border clips holds the most.
    [[nodiscard]] int64_t next_input_tile(Id id, int64_t tile) const;
    /// Number of tiles of all calls. If `tile` is at least the largest call, it is the number of
    /// calls.
    [[nodiscard]] int64_t tiles(int layer, Id id, int64_t tile) const;
    /// Smallest number of input coordinates that one output coordinate of the layer reads.
    [[nodiscard]] int64_t least_window(int layer) const {
        return least_windows_[static_cast<size_t>(layer - 1)];
    }
    [[nodiscard]] const AxisWindow& window(int layer) const {
        return windows_[static_cast<size_t>(layer - 1)];
    }

    /// Approximate bytes stored.
    [[nodiscard]] size_t bytes() const { return bytes_; }
    /// The same if each call were stored: a measure of work.
    [[nodiscard]] size_t bytes_of_all_calls() const { return bytes_of_all_calls_; }

private:
    struct Call {
        Range part;
        /// Outermost loop (1 ...) that starts a new iteration with this call. With the first call
        /// of a scope all loops do.
        int level = 0;
        /// So many calls of this size and level follow each other, each from the end of the one
        /// before. Lines of large maps have thousands.
        int64_t count = 1;
        [[nodiscard]] Range at(int64_t n) const {
            return {part.begin + n * part.size(), part.end + n * part.size()};
        }
        [[nodiscard]] Range all() const { return {part.begin, at(count - 1).end}; }
        friend auto operator<=>(const Call&, const Call&) = default;
    };
    /// add() joins equal calls wherever it can, so equal sequences of calls are equal scopes.
    using Scope = std::vector<Call>;
    static void add(Scope& scope, Range part, int level, int64_t count = 1);
    struct Entry {
        std::vector<std::pair<Scope, int64_t>> scopes;     ///< with their counts
        std::vector<std::pair<int64_t, int64_t>> extents;  ///< of calls, with their counts
        std::vector<std::pair<Range, int64_t>> calls;      ///< the same with their places
        Facts facts;
        std::map<std::pair<Kind, int64_t>, Step> steps;
    };
    using Scopes = std::map<Scope, int64_t>;

    [[nodiscard]] const Entry& entry(int layer, Id id) const {
        return entries_[layer][static_cast<size_t>(id)];
    }
    Id intern(int layer, const Scopes& scopes, int levels);
    void find_facts(int layer, int levels, Entry& entry) const;
    [[nodiscard]] Step own_step(int layer, const Entry& entry, Kind kind, int64_t tile,
                                Scopes& scopes) const;
    [[nodiscard]] Step kept_step(int layer, const Entry& entry, Kind kind, Scopes& scopes) const;

    [[nodiscard]] bool is_inner(int layer, Range part) const {
        return part.begin >= inner_[layer].begin && part.end <= inner_[layer].end;
    }
    /// How many neighbouring tiles from `tile` on, up to the end of `call`, are alike: those up to
    /// the border, or up to a ragged tile.
    [[nodiscard]] int64_t alike(int layer, Range call, Range tile, int64_t size) const {
        if (!is_inner(layer, tile) || tile.size() != size) return 1;
        return (std::min(call.end, inner_[layer].end) - tile.begin) / size;
    }

    std::vector<AxisWindow> windows_;
    std::vector<int64_t> least_windows_;
    // The index is the layer of a tensor; 0 is the input.
    IndexVector<Range, int> inner_;  ///< coordinates of A_k that no border touches further down
    IndexVector<std::deque<Entry>, int> entries_;
    /// The patterns of each tensor are found by their hash.
    IndexVector<std::unordered_multimap<size_t, Id>, int> ids_;
    Id whole_ = 0;
    size_t bytes_ = 0;
    size_t bytes_of_all_calls_ = 0;
};

}  // namespace laminate::search
