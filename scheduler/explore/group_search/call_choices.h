// The choices that CallBound (call_bound.h) takes the least of: where each layer's weights live and
// how many channels each call makes. Section numbers and symbols are those of call_bound.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// Sizes of a chain of layers 1 .. n, by the number of a layer; index 0 stands for its input X.
struct ChainSizes {
    explicit ChainSizes(const std::vector<LayerProblem>& problems);

    size_t layers = 0;             ///< n
    std::vector<double> pixels;    ///< S_0 .. S_n
    std::vector<double> inner;     ///< of them, those that inner ones of A_n need (10)
    std::vector<char> transposed;  ///< whether layer k is
    std::vector<double> weights;   ///< V_k
    std::vector<double> channels;  ///< D_k; D_0 are the input channels of layer 1
    double all_weights = 0;        ///< sum of V_k
    double output = 0;             ///< elements of Y
    [[nodiscard]] double input() const { return channels[0] * pixels[0]; }  ///< needed ones of X
};

/// Which halos count.
struct Halos {
    bool count = true;        ///< false: none
    double last_channels = 1; ///< least of A_{n-1} that layer n reads at a time
    uint32_t narrow = 0;      ///< bit k: calls of layer k make one channel
    /// The weights of layer n - 1 come with each lifetime of A_{n-1}, which has a part of its channels.
    bool has_parts = false;
    /// Those of layer n come with each of its tiles.
    bool has_tiles = false;
    double per_call = 0;  ///< weights that come with each call of layer n - 1 (12, 13)
    double sums = 0;      ///< as of HaloBound::End
    /// Whether there are no more of them than of `other`, in every memory. More narrow layers have more
    /// cuts (halo_bound.h, 10), so only equal sets compare.
    [[nodiscard]] bool are_fewer(const Halos& other) const {
        return !count || (other.count && last_channels <= other.last_channels &&
                          has_parts <= other.has_parts && has_tiles <= other.has_tiles &&
                          per_call <= other.per_call && sums <= other.sums &&
                          narrow == other.narrow);
    }
};

/// Stands for sets of layers that are not told apart.
inline constexpr uint32_t some_layer = ~0U;

/// Cap on `again`, which limits the number of choices. Anything above costs more than any unbeaten
/// schedule.
inline constexpr double most_again = 1e6;

/// A choice for all layers.
struct CallChoice {
    double held = 0;   ///< sum of R_k
    double roots = 0;  ///< sum of the square roots of the a_k
    uint32_t own = 0;  ///< bit k: `roots` has that of a_k; some_layer: of any layers
    /// The layer at which 10 divides the memory, if it holds; else 0.
    size_t divider = 0;
    double groups = 0;         ///< then the sum of the square roots of g_k from there on
    double groups_before = 0;  ///< and before
    double again = 1;   ///< rho_0
    Halos halos;
    double output = 0;      ///< accesses of Y

    /// All calls together bring at least its square over the memory that they have.
    [[nodiscard]] double all_roots() const { return std::max(roots, groups + groups_before); }
};

/// How much the choices tell apart: of chains of up to five layers, fine ones bound more and take
/// some ten times as long to find.
enum class Detail { coarse, fine };

/// Sums of square roots may come out a little too large.
inline constexpr double rounding_of_sums = 1 - 1e-9;

/// Choices that are asked for: those that may cost as little as `accesses` in less than `memory`.
struct ChoiceLimit {
    double memory = std::numeric_limits<double>::infinity();
    double accesses = std::numeric_limits<double>::infinity();
};

/// All choices within the limit that no other one beats in every respect, by rising `held`.
[[nodiscard]] std::vector<CallChoice> call_choices(const ChainSizes& sizes, Detail detail,
                                                   const ChoiceLimit& limit = {});

/// MACs of what is needed for the whole output, each once.
[[nodiscard]] double least_macs(const std::vector<LayerProblem>& problems);

}  // namespace laminate::search
