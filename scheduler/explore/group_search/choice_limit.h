// What choices (call_choices.h) cost at least while some of their layers are not decided. It keeps
// those out early that cost too much in any case. Section numbers and symbols are those of
// call_bound.h.
//
// Let a choice hold H elements of weights and have roots that sum up to R. Within M elements it
// moves at least H + R^2 / (M - H) elements of weights (7), which is for any l no less than the
// tangent
//
//     H + 2 l R - l^2 (M - H) = (1 + l^2) H + 2 l R - l^2 M.
//
// This is a sum over layers. A layer k that is not decided yet adds at least the lesser of (1 +
// l^2) V_k (held) and 2 l sqrt(V_k D_k rho_k S_k) (coming anew, wide); if it is narrow, at least
// the lesser of (1 + l^2) V_k / D_k and 2 l sqrt(V_k rho_k S_k), but then X comes D_k times as
// often. The bound is the least over the number of narrow layers, of which each saves at most what
// any may save. The l of the highest bound without narrow layers is found by halving the range in
// which it lies.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "scheduler/explore/group_search/call_choices.h"

namespace laminate::search {

class LimitOfChoices {
public:
    LimitOfChoices(const ChainSizes& sizes, const ChoiceLimit& limit);

    /// All that follows is asked about choices that hold at least `held` and make at least `again`
    /// times what layer n - 2 brings.
    void begin(double held, double again);
    /// Whether a choice costs more than the limit allows, where layers 1 .. `open` are not decided
    /// and the others hold `held`, have these roots and make A_open `again` times; Y costs
    /// `visits`.
    [[nodiscard]] bool is_out(size_t open, double held, double roots, double again, double visits);

private:
    /// So many narrow layers are told apart; the last number stands for all larger ones.
    static constexpr size_t most_narrow = 3;
    /// Sums over layers 1 .. k, by k.
    struct Sums {
        double again = 0;
        std::vector<double> wide;
        std::vector<std::array<double, most_narrow + 1>> saved;  ///< by so many narrow layers
    };
    [[nodiscard]] const Sums& sums(double again);
    /// What layer k adds at least if it is wide.
    [[nodiscard]] double wide(size_t k, double root_of_again, double slope) const;
    [[nodiscard]] bool has_tangents() const {
        return limit_.memory < std::numeric_limits<double>::infinity();
    }

    const ChainSizes& sizes_;
    ChoiceLimit limit_;
    std::vector<double> roots_;           ///< of V_k S_k, by k
    std::vector<double> least_channels_;  ///< of D_1 .. D_k, by k
    double slope_ = 0;                    ///< l
    std::vector<Sums> sums_;
};

}  // namespace laminate::search
