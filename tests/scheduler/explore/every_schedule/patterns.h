// How the nests of a chain ask for the outputs of the nests before them, axis by axis.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "tests/scheduler/explore/every_schedule/lifetimes.h"
#include "tests/scheduler/explore/every_schedule/shapes.h"

namespace laminate::every {

/// Numbers different values 0, 1, ...
template <class T>
class Numbered {
public:
    size_t number(const T& value) {
        const auto [at, is_new] = numbers_.emplace(value, values_.size());
        if (is_new) values_.push_back(value);
        return at->second;
    }
    [[nodiscard]] const T& operator[](size_t n) const { return values_[n]; }

private:
    std::map<T, size_t> numbers_;
    std::deque<T> values_;
};

/// What the nests after a nest ask of its output.
struct State {
    std::array<size_t, 2> pattern{};  ///< rows, columns
    size_t channels = 0;
    std::vector<Axis> walk;  ///< loops between the levels of the output
    friend auto operator<=>(const State&, const State&) = default;
};

/// Taps of one output. Taps on padding count; in a transposed convolution, taps that fall between
/// inputs do not.
[[nodiscard]] int64_t taps_of(const AxisWindow& w, int64_t out);

/// The patterns of all layers, each computed once.
class Patterns {
public:
    /// One spatial axis, for one place and tile of the loop over the layer's output.
    struct Spatial {
        size_t pattern = 0;
        int64_t brought = 0;
        BodiesOfLifetimes lifetimes;
    };
    /// Tiles of the layer's output along an axis.
    struct Tiling {
        int64_t tiles = 0;
        int64_t coordinates = 0;
        BodiesOfLifetimes lifetimes;  ///< one per tile, all different
    };
    /// The layer's z and i (the channels of its input), for one place and tile of each.
    struct Channels {
        size_t asked = 0;  ///< channel pattern
        int64_t runs = 0;  ///< how often all of i comes
        BodiesOfLifetimes of_i;
        BodiesOfLifetimes of_weights_i;
        BodiesOfLifetimes of_z;
    };
    struct Tables {
        const State* state = nullptr;
        std::array<int64_t, 2> scopes{};
        std::array<int64_t, 2> largest{};
        int64_t largest_channels = 0;
        int64_t channels = 0;         ///< of all calls together
        int64_t most_in_a_scope = 0;  ///< channels
    };
    explicit Patterns(const std::vector<LayerProblem>& problems) : problems_(problems) {}

    [[nodiscard]] const LayerProblem& problem(size_t k) const { return problems_[k]; }
    [[nodiscard]] bool is_last(size_t k) const { return k + 1 == problems_.size(); }
    /// Elements of a kernel of layer k for one input and one output channel.
    [[nodiscard]] int64_t kernel(size_t k) const {
        return problem(k).y().kernel * problem(k).x().kernel;
    }

    /// The last layer's output, asked for as a whole.
    State whole_output();
    const Spatial& spatial(size_t k, size_t axis, size_t pattern, Place place, int64_t tile);
    const Tiling& tiling(size_t pattern, int64_t tile);
    /// The nest runs over all of i for each z, or each tile of z, for which its input comes anew.
    const Channels& channels(size_t k, size_t pattern, const Shape& s, int64_t tile_z,
                             int64_t tile_i);
    [[nodiscard]] int64_t macs(size_t k, const State& state);
    [[nodiscard]] Tables tables(const State& state) const;

private:
    /// The box around all taps of `out`, those on padding too, clipped to the input.
    [[nodiscard]] Range window(size_t k, size_t axis, Range out) const;
    /// What the calls of one lifetime of the output need of the input: one Lifetime for each
    /// lifetime of the input.
    [[nodiscard]] std::vector<Lifetime> needs_of(size_t k, size_t axis, const Lifetime& calls,
                                                 Place place, int64_t tile) const;
    [[nodiscard]] int64_t taps(size_t k, size_t axis, size_t pattern) const;

    const std::vector<LayerProblem>& problems_;
    Numbered<Pattern> patterns_;
    Numbered<ChannelPattern> channel_patterns_;
    std::map<std::tuple<size_t, size_t, size_t, Place, int64_t>, Spatial> spatial_;
    std::map<std::pair<size_t, int64_t>, Tiling> tilings_;
    std::map<std::tuple<size_t, size_t, Place, Place, int64_t, int64_t>, Channels> channels_;
    std::map<std::pair<size_t, std::tuple<size_t, size_t, size_t>>, int64_t> macs_;
};

}  // namespace laminate::every
