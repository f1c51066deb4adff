// What a fused group brings of its input at least, by how much memory its intermediate tensors
// have: small pieces have large halos, large pieces need memory.
//
// For chains 1 .. n of which every call makes all channels (*wide* calls, call_bound.h), so that
// halos are all that one channel of the output needs again. Symbols: C_j the channels of A_j, B_j
// its buffer. Coordinates are *inner* when no border clips anything on their way down to A_0; d of
// the last layer's are, along an axis.
//
// 1. Layer k either keeps its input as long as its output (*kept*), or cuts its calls into pieces,
// each with a lifetime of
//    A_{k-1} of its own (*cut*). Layer n cuts. Between two cuts, at m and m' < m, the tensors
//    A_{m-1} .. A_{m'} have the same lifetimes, and each brings at least the hull of what its piece
//    reads. Of p neighbouring inner coordinates of A_m that is alpha p + beta in A_j, a composition
//    of windows: stride p + span - stride each.
// 2. With c inner coordinates of A_m in pieces of p on average, those of A_{m'} are c (alpha + beta
// / p) at least. These factors
//    multiply over all cuts, down to A_0, and over both axes.
// 3. The largest piece is no smaller than the average. A buffer folds along one axis at most, where
// neighbours share what they
//    read (docs/counting.md, section 5), so it holds a window along one axis, and the hull of the
//    piece along the other: B_j >= C_j * window * (alpha min(p_y, p_x) + beta).
// 4. A cut at m' cuts calls, and a call fits in its buffer: C_m' p_y p_x <= B_m' for the pieces of
// m'.
// 5. All B_1 .. B_{n-1} are held at the same time.
//
// The least factor in so much memory, over all cuts, pieces and divisions of the memory: dynamic
// programming from the first layer to the last, on grids of memory and area that are always rounded
// to the side of less traffic. Where axes differ, the lesser alpha, beta and window stand for both.
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::search {

class HaloBound {
public:
    /// `last_channels`: how many of A_{n-1} are in its buffer at least. Chains of one layer, with
    /// gaps between windows or without inner coordinates have no bound.
    HaloBound(const std::vector<LayerProblem>& problems, double last_channels);

    /// Elements of A_0 that come at least when the buffers of A_1 .. A_{n-1} together hold no more
    /// than `memory`; infinite where they do not fit.
    [[nodiscard]] double input(double memory) const;

private:
    std::vector<double> memory_;  ///< rising
    std::vector<double> input_;   ///< with memory up to memory_[n]
};

}  // namespace laminate::search
