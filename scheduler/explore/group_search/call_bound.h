// Lower bound on the traffic of a fused group by the memory it has. Small pieces of a tensor fetch
// weights again and again; large pieces need memory.
//
// It holds for groups of ConvFusion's spaces (docs/search.md): chains of ungrouped layers 1 .. n in
// which layer k calls layer k - 1, with the live and with the summed footprint (the live one is the
// smaller). Symbols: V_k the weights of layer k, D_k its output channels, A_k its output, S_k the
// pixels of A_k that are needed at all, B_k the elements of A_k's buffer, M the memory, rho_k how
// often A_k is computed.
//
// 1. While layer 1 runs, all loops around it are in progress. So the buffers of A_1 .. A_{n-1} and
//    all weights that live longer than a call are held together: sum B_k + sum R_k <= M. Here
//    R_k = V_k for weights that live at the root, or as long as an A_k that keeps all its channels.
// 2. Weights in the layer's own nest come anew with each call. A call that makes s pixels of c
//    channels fits in the buffer, s c <= B_k, and brings the weights of c channels, V_k c / D_k.
//    So W_k moves at least V_k c rho_k S_k / B_k elements.
// 3. c is either D_k (*wide*: the reader's loop over its inputs is inside the call) or 1
//    (*narrow*). A narrow layer k computes everything that it reads again for each of its channels:
//    no buffer that outlives a call has a channel loop around it, so each channel has lifetimes of
//    A_{k-1} of its own, and each of them receives everything that is read. Lifetimes of A_{k-2}
//    lie inside those of A_{k-1}, so the factors multiply, rho_{k-1} >= D_k rho_k, down to X. The
//    same holds for 5 and 6.
// 4. A narrow layer k may have a lifetime of A_k for each channel. Weights that live as long as
//    A_k's buffer then hold one channel, R_k = V_k / D_k, and come again in each lifetime. Each
//    call of layer k + 1 has D_k of them and makes at most B_{k+1} elements. So W_k moves at least
//    V_k rho_{k+1} D_{k+1} S_{k+1} / B_{k+1}.
// 5. The last layer may tile its inputs by t. Then c of layer n - 1 is t (wide) or 1;
//    rho_{n-2} >= ceil(D_{n-1} / t) rho_{n-1}, or D_{n-1} rho_{n-1}; and Y costs
//    2 ceil(D_{n-1} / t) - 1 times its elements.
// 6. The last layer may tile its outputs by T_z. Then rho_{n-1} >= ceil(D_n / T_z), since tile
//    loops are outside all levels (D_n if z is above the store level of A_{n-1}, as with T_z = 1).
//    Its weights are whole at the root. Elsewhere:
//    - If layer n - 1 is wide and their store level is inside the compute level of A_{n-1}, each call of
//      layer n - 1 brings them: a kernel for each of its t channels and each z that it serves. All
//      calls for one tile of z and i make S_{n-1} pixels or more, each call at most B_{n-1} / t of
//      them. So the weights move at least V_n S_{n-1} t / B_{n-1}.
//    - If layer n - 1 is wide and that level is outside, it is outside ii too, which is inside the
//      call. So they hold a kernel for each of t T_z while layer 1 runs, R_n = V_n t T_z /
//      (D_{n-1} D_n).
//    - If layer n - 1 is narrow, ii is outside the compute level of A_{n-1}. The weights come again
//      after s pixels, the tiles of the loops over y and x inside their store level. If all these
//      loops and z are inside ii, Y's buffer holds s T_z elements while layer 1 runs, like those of 1,
//      and the weights move at least V_n S_n T_z over its size. If one of them is outside ii, they
//      hold a kernel for each of t T_z, as before: a store level inside the compute level of A_{n-1}
//      has all these loops inside ii.
// 7. The least sum of a_k / B_k over buffers with sum B_k <= M' is (sum sqrt(a_k))^2 / M' (Cauchy
//    and Schwarz).
// 8. The halos of pieces that fit in M' come again rho_0 times (halo_bound.h), where the buffers of
//    narrow layers may hold one channel. If layer n - 1 is narrow, Y's buffer may have to hold sums
//    of T_z channels of a whole piece (halo_bound.h, 13), so T_z is told apart at the root too. In
//    chains of more than five layers, halos count if at most one layer is narrow; of more than
//    eight, if none is.
//
// 9. Let U be the layers whose weights come anew with each call. If the buffers of the other layers
//    hold mu, 7 has only M' - mu for those of U and for Y's. And 8 has mu for the others; buffers of
//    U are free there, and their calls have any size. The bound is the least over mu. It is used for
//    up to two layers in U, in chains of up to eight. It is used in any chain where U has no layer
//    and Y's buffer has a part (6): then mu is for all of B_0 .. B_{n-1}.
//
// 10. Where all calls are wide, let S'_j of the S_j pixels be those that inner coordinates of A_n
//    need (halo_bound.h). If layer j is not transposed, each call of it that makes an inner
//    coordinate asks for an inner one of A_{j-1} that is new in its lifetime, so it calls layer
//    j - 1. Thus layer k of U is called at least rho_j D_j S'_j / B_j times, j being any later layer
//    that no transposed one parts from k. Its *group* are the layers from k up to the next of U, as
//    far as none is transposed. If the buffers of a group hold b, W_k moves at least g_k / b with
//    g_k = V_k (rho_k D_k S_k + sum rho_j D_j S'_j), where t stands for D_k if k = n - 1, because a
//    call then brings V_k t / D_k. Where the weights of layer n come with calls of layer n - 1 (6), this
//    layer is in U too, even if its own do not: g_{n-1} has V_n S_{n-1} t more, and nothing else if its
//    own do not. The buffers of all groups fit in M', so as in 7 these weights move
//    (sum sqrt g_k)^2 / M', and X has the halos of 8 besides. Let l be any layer of U, and mu what
//    the buffers before A_l hold.
//    Then the weights of U from l on move (sum sqrt g_k)^2 / (M' - mu), those before it
//    (sum sqrt g_k)^2 / mu, and X comes rho_0 times with the halos that the layers up to l have in
//    mu. The bound is the least over mu. With the first layer of U as l there are few halos; with
//    the last one, few weights share M' - mu. So l begins at the last layer and moves on to each
//    earlier one whose sqrt g_k is at least the sum of those from l on, or half of it if that layer is in
//    the second half of the chain, where the layers before it have most of the halos.
// 11. Where layer n - 1 keeps a part of its weights as long as A_{n-1} (R_{n-1} = V_{n-1} t / D_{n-1}
//    with t < D_{n-1}, or V_{n-1} / D_{n-1} if it is narrow), they come with each lifetime of
//    A_{n-1}, so all V_{n-1} of them come with each piece of layer n, ceil(D_n / T_z) times. Small
//    pieces have large halos and are many (halo_bound.h, 7).
// 12. Where R_n of 6 is a part of V_n, the weights of layer n come with each tile of it
//    (halo_bound.h, 8). Where calls of a wide layer n - 1 bring weights of layer n (6), all tiles of z
//    and i together move at least V_n times the number of calls, and small pieces have many
//    (halo_bound.h, 9). The same holds for V_{n-1} where those of layer n - 1 are in its own nest, since
//    a call brings those of t channels. This is another bound of what 2 and 6 say, so it counts without
//    the terms of 2 to 6.
// 13. Each of these calls of layer n - 1 calls all layers before it, as far as none of them from layer
//    n - 1 on is transposed. Where calls move, it asks for a coordinate of A_{n-2} that is
//    new in its lifetime, as in 10, and so do the calls of layer n - 2 that make it. Where a piece has one
//    call, this is the first of its lifetime, and reads something. Of a narrow layer there is such a call
//    for each of its channels, with inputs of its own (3). So if weights of layer k < n - 1 are in
//    its own nest, each call of layer n - 1 brings all V_k of them besides: rho_k V_k for all tiles of z
//    and i together. With those of 12, rho_{n-1} V_{n-1} among them, let this be q for each call. What a
//    schedule reads of X and brings with calls is linear in q, so the least of all schedules is concave.
//    Between two values of q it is no less than the straight line through the bounds for these two.
//
// The bound is the least over all choices of 2 to 6 (call_choices.h), with 7 to 13.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/explore/group_search/call_choices.h"
#include "scheduler/explore/group_search/halo_bound.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

class CallBound {
public:
    /// Two layers or more, all of them may_fuse(). `tables` are for these layers too; null: no other
    /// bound shares them.
    explicit CallBound(const std::vector<LayerProblem>& problems, Detail detail = Detail::fine,
                       std::shared_ptr<HaloTables> tables = nullptr);

    /// No schedule within `memory` elements moves fewer elements than this; infinite if none fits.
    [[nodiscard]] double accesses(double memory) const;
    /// The bound as a staircase: every schedule costs at least as much as one of these steps. MACs
    /// are those of what is needed, each once. Memory rises by 2 % per step, or by less where the
    /// bound would fall by more than 3 %.
    [[nodiscard]] const std::vector<Cost>& steps() const { return steps_; }

private:
    /// The choices that may cost least in some range of memory, by rising `held`.
    struct Choices {
        double last = 0;  ///< memory
        std::vector<CallChoice> all;
        /// What each choice costs where the memory is large, by index of the choice.
        std::vector<double> whole_costs;
    };

    /// What a choice costs at least within `memory` if that is below `most`, else a value that is no
    /// less than `most`.
    [[nodiscard]] double least_of(const CallChoice& choice, double memory, double most) const;
    /// Choices that may cost least within `memory`. Made when first used, for memories from `first`
    /// on, where the bound is at most `most`.
    [[nodiscard]] const Choices& choices(double memory, double first, double most) const;
    /// Made when first used. `free` as of HaloBound.
    [[nodiscard]] const HaloBound& halo_bound(uint32_t narrow, uint32_t free) const;
    [[nodiscard]] const HaloBound::Staircase& halos(const CallChoice& choice, uint32_t free) const;
    /// Elements of X, and what calls of layer n - 1 bring besides (12, 13), at least. Where that is
    /// more than `most`, a value that is no less than `most`.
    [[nodiscard]] double input_with_calls(const CallChoice& choice, double memory,
                                          double most) const;
    /// Calls bring nothing.
    [[nodiscard]] HaloBound::End end_of(const CallChoice& choice) const;
    /// The narrow layers before layer n - 1.
    [[nodiscard]] uint32_t narrow_before(const Halos& halos) const {
        return halos.narrow & ~last_but_one();
    }
    [[nodiscard]] uint32_t last_but_one() const { return 1U << (sizes_.layers - 1); }
    /// Accesses of X and Y if `input` elements of X are read for what is computed once.
    [[nodiscard]] double inputs_and_outputs(const CallChoice& choice, double input) const;
    /// The bound of 9 or 10: the least `total` over all divisions of `rest`, but no more than `most`.
    template <class Total>
    [[nodiscard]] static double divided(const HaloBound::Staircase& halos, double rest, double most,
                                        const Total& total);

    std::vector<LayerProblem> problems_;
    std::shared_ptr<HaloTables> tables_;
    ChainSizes sizes_;
    Detail detail_;
    mutable std::multimap<double, Choices> choices_;  ///< by the first memory
    struct Known {
        double accesses = 0;
        const CallChoice* cheapest = nullptr;  ///< the choice that costs so much
    };
    mutable std::map<double, Known> known_;  ///< answers of accesses(), by memory
    mutable std::map<std::pair<uint32_t, uint32_t>, HaloBound> halos_;
    double input_ = 0;    ///< elements of X that are needed
    double weights_ = 0;  ///< sum of V_k
    std::vector<Cost> steps_;
};

/// Everything that costs at least as much as one of `open` and as one of `bound` costs at least as
/// much as one of these.
[[nodiscard]] std::vector<Cost> at_least_both(const std::vector<Cost>& open,
                                              const std::vector<Cost>& bound);

}  // namespace laminate::search
