// What a fused group moves at least, by how much memory it has: fetching weights for small pieces
// of a tensor is dear, large pieces need memory.
//
// For groups of ConvFusion's spaces (docs/search.md): chains of ungrouped layers 1 .. n, layer k
// calls layer k - 1. Symbols: V_k the weights of layer k, D_k its output channels, S_k the pixels
// of its output A_k that are needed at all, B_k the elements of A_k's buffer, M the memory.
//
// 1. While layer 1 runs, all loops around it are in progress, so the buffers of A_1 .. A_{n-1} and
// all weights that live longer than a call are held
//    together: sum B_k + sum R_k <= M, where R_k = V_k for weights that live at the root, or as
//    long as an A_k that keeps all of its channels.
// 2. Weights in the layer's own nest come anew with each call. A call that makes s pixels of c
// channels fits in the buffer, s c <= B_k, and brings the weights of c channels: V_k c / D_k.
//    So W_k moves at least V_k c rho_k S_k / B_k elements, where rho_k is how often A_k is
//    computed.
// 3. c is all D_k (*wide*: the reader's loop over its inputs is inside the call), or one. With one
// channel at a time (*narrow*), everything that layer k reads is
//    computed again for each of its channels, since what is kept beyond a call never has a channel
//    loop around it: each channel has lifetimes of A_{k-1} of its own, and all that is read comes
//    to be in those of every channel. Lifetimes of A_{k-2} lie inside those of A_{k-1}, so the
//    factors multiply: rho_{k-1} >= D_k rho_k, down to X. The same holds for 5 and 6.
// 4. Narrow, with a lifetime of A_k for each channel: then weights as long as A_k's buffer hold one
// channel, R_k = V_k / D_k, and come again in each lifetime, of which each call of layer k + 1 has
// D_k;
//    it makes B_{k+1} elements at most. So W_k moves at least V_k rho_{k+1} D_{k+1} S_{k+1} /
//    B_{k+1}.
// 5. The last layer may tile its inputs by t: then c of layer n - 1 is t (wide), or one; rho_{n-2}
// >= ceil(D_{n-1} / t) rho_{n-1}, or D_{n-1} rho_{n-1}; and Y costs 2 ceil(D_{n-1} / t) - 1 of
// itself.
// 6. Its weights, with tiles T_z of its outputs (rho_{n-1} >= ceil(D_n / T_z), since tile loops are
// outside all levels; D_n where z is above the store level of A_{n-1}, as with T_z = 1) come again
//    after s pixels: the tiles of the loops over y and x inside their store level. At the root they
//    are whole. Else: are all these loops inside ii, and z too, Y's buffer holds s T_z: V_n S_n T_z
//    / M at least. Is one outside ii and z, they hold a kernel for each of t T_z. Is z outside of
//    them (and of ii, or of one that is outside ii) and below the compute level of A_{n-1}, a call
//    of layer n - 1 makes s pixels of t channels: V_n S_n t / B_{n-1}.
// 7. The least sum of a_k / B_k over buffers with sum B_k <= M' is (sum sqrt(a_k))^2 / M' (Cauchy
// and Schwarz).
// 8. Where all calls are wide, what the halos of pieces that fit in M' bring again, rho_0 times:
// halo_bound.h.
//
// Over all choices of 2 to 6 the least, with 7 and 8, by dynamic programming from the last layer to
// the first. Holds for both footprints: the live one is the smaller.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/halo_bound.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

class CallBound {
public:
    /// Two layers or more, all of them may_fuse().
    explicit CallBound(const std::vector<LayerProblem>& problems);

    /// No schedule with at most so many elements of memory moves fewer; infinite where none fits.
    [[nodiscard]] double accesses(double memory) const;
    /// The same as a staircase of costs: every schedule costs at least one of these. MACs: of what
    /// is needed, once. Memories rise by 2 % from step to step, or by less where the bound falls by
    /// more than 3 % meanwhile.
    [[nodiscard]] const std::vector<Cost>& steps() const { return steps_; }

private:
    /// Which halos count: calls of the last layer may take part of its inputs.
    enum class Halos : uint8_t { none, of_parts, of_whole };
    /// A choice for all layers.
    struct Choice {
        double held = 0;   ///< sum of R_k
        double roots = 0;  ///< sum of the square roots of the a_k
        double again = 1;  ///< rho_0
        Halos halos = Halos::none;
        double output = 0;      ///< accesses of Y
        double per_memory = 0;  ///< V_n S_n T_z of 6
        double needs = 0;       ///< memory
    };

    std::vector<Choice> choices_;
    HaloBound halos_of_parts_;
    HaloBound halos_of_whole_;
    double input_ = 0;    ///< elements of X that are needed
    double weights_ = 0;  ///< sum of V_k
    std::vector<Cost> steps_;
};

/// `open` (all that is left out costs no less than one of them) and the bound together.
[[nodiscard]] std::vector<Cost> at_least_both(const std::vector<Cost>& open,
                                              const CallBound& bound);

}  // namespace laminate::search
