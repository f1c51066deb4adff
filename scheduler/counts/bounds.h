// Lower bounds on external accesses, in elements of one image, printed beside every answer as
// achieved / bound. They hold for the semantics of docs/counting.md: padding is a tap that
// multiplies but is never moved, so only taps on real elements count. Rows that a stride skips may
// or may not be moved, so they do not count.
//
// Compulsory traffic of a group: every element of its input that some needed output multiplies,
// every weight and every element of its output crosses at least once. Need is traced back from the
// whole output of the sink, so rows between strides do not count. A weight's kernel moves whole,
// even if parts of it fall on padding (counting.md 4.5).
//
// Phases (Hong and Kung, STOC 1981; the constant 2 after Smith, Lowery, Langou, van de Geijn, "A
// tight I/O lower bound for matrix multiplication", arXiv:1702.02017). For one layer Q >= 2 MACs /
// sqrt(R S) - 2 S, S = internal memory in elements (live_total), R = taps that one input element
// serves at most, ceil(D_m / S_x) * ceil(D_n / S_y) for a dilation of 1.
//   Let the schedule read Y's partial sum at the beginning of each visit instead of writing it at
// the end. Then v visits are v reads instead of 2v - 1 accesses, in the same memory, so Q does not
// grow. Cut the execution into phases of T reads. A phase touches a inputs, b weights and c
// outputs, each in memory when it begins or read in it: a + b + c <= S + T (in the first phase, T).
// A MAC is a point (output pixel, output channel, tap). Its three shadows are at most R a pairs of
// pixel and tap, b weights and c outputs, so by Loomis and Whitney a phase does at most sqrt(R a b
// c) <= sqrt(R) ((S + T) / 3)^1.5 MACs. With p phases, Q >= T (p - 1); T = 2 S gives the theorem.
// We take the best of several T and treat the first phase separately.
//
// Groups of several layers keep intermediates inside and may compute them again, so phases bound
// less there (our own extension of the argument). Count the first execution of each needed MAC. In
// a phase, layer k touches a_k inputs, b_k weights and d_k outputs. Weights, X and Y are in memory
// when the phase begins, or are read in it. An intermediate element is in memory when the phase
// begins, or is computed whole in it; let c_k be the elements of layer k's output that are computed
// whole. A touched output is one of these, or it is unfinished and hence in memory when the phase
// begins or ends. An element that is unfinished at the beginning may be an output of one layer and
// an input of the next, so
//   sum over k of (a_k + b_k + d_k) <= 2 S + S + T + 2 sum c_k.
// An element of c_k takes at least m_k MACs, so m_k c_k <= sqrt(R_k a_k b_k c_k) and c_k <= R_k a_k
// b_k / m_k^2, which is little if the kernels are large against the memory. u^1.5 is superadditive,
// so a phase does sum MACs_k / sqrt(R_k) <= ((3 S + T + 2 sum c_k) / 3)^1.5, and Q >= T (p - 1).
//
// The bound of a network is the least sum over all ways to cut its chains (schedulable_chains) into
// groups. If groups may hold forks and joins, it is the compulsory traffic of the whole network.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// R, the most taps that one input element serves for one output channel.
[[nodiscard]] int64_t reuse_per_input(const LayerProblem& problem);

/// Compulsory traffic of a group, for any memory. `group` has the layers in schedule order
/// (producers first; forks and joins allowed).
[[nodiscard]] Elements compulsory_accesses(const std::vector<LayerProblem>& group);

/// Compulsory traffic of any schedule of the network, whatever its groups: all weights, what layers
/// with weights read of tensors that no group can compute, and their outputs that are read outside
/// groups or leave the network. A tensor behind a layer without weights is left out, because that
/// layer need not be in a group.
[[nodiscard]] Elements compulsory_accesses(const Network& network);

/// The larger of compulsory traffic and the bound by phases, for schedules of the group with
/// live_total <= `memory`. Phases bound only groups that are chains of layers with weights.
[[nodiscard]] Elements group_bound(const std::vector<LayerProblem>& group, Elements memory);

struct Certificate {
    Elements bound;                  ///< no schedule in this memory has fewer accesses
    double achieved_over_bound = 0;  ///< at least 1
};

/// The kind of groups that a bound holds for.
enum class GroupShape {
    chain,  ///< runs of a chain (schedulable_chains), as in ConvFusion's spaces
    dag,    ///< every legal group
};

[[nodiscard]] GroupShape group_shape(const Network& network, const GroupSchedule& group);
[[nodiscard]] GroupShape group_shape(const Network& network, const Schedule& schedule);

/// Bounds of one network for any memory. Building it costs more than asking it.
class NetworkBound {
public:
    /// `max_depth`: most layers in a group; for chains only.
    explicit NetworkBound(const Network& network, GroupShape shape = GroupShape::chain,
                          int64_t max_depth = INT64_MAX);

    /// No schedule with live_total <= `memory` has fewer accesses.
    [[nodiscard]] Elements accesses(Elements memory) const;
    [[nodiscard]] Certificate certificate(const NetworkCounts& achieved) const;

    /// What the phase bound of a group depends on, for one layer.
    struct Layer {
        double macs_over_root_reuse = 0;  ///< MACs of needed outputs on real elements / sqrt(R)
        double reuse = 1;                 ///< R
        double macs_per_output = 1;       ///< m, of the needed output that takes the fewest
        double weights = 0;               ///< elements
        double outputs = 0;               ///< needed elements
        friend auto operator<=>(const Layer&, const Layer&) = default;
    };
    /// The groups that end with one layer of a chain.
    struct Tail {
        std::vector<Layer> layers;         ///< backwards from that layer
        std::vector<Elements> compulsory;  ///< [number of layers - 1]
    };

private:
    /// Numbers the groups, so each of several equal groups is bounded once per memory.
    void number_groups();

    std::vector<std::vector<Tail>> chains_;  ///< [chain][last layer]
    /// [chain][last layer][depth - 1], equal for equal groups
    std::vector<std::vector<std::vector<size_t>>> numbers_;
    size_t group_count_ = 0;  ///< how many numbers there are
    Elements compulsory_;     ///< of the whole network; 0 for chains
};

[[nodiscard]] Certificate certificate(const Network& network, const NetworkCounts& achieved,
                                      GroupShape shape = GroupShape::chain);

}  // namespace laminate
