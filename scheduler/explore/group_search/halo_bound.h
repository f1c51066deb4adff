// Lower bound on what a fused group reads of its input, by the memory of its input and intermediate
// tensors. Small pieces have large halos; large pieces need memory.
//
// It holds for chains 1 .. n in which every call makes all channels (*wide* calls, call_bound.h),
// so that one channel of the output reads its halos only once. It also holds for what one channel
// of each narrow layer reads, of which a call makes and a buffer holds at least one: the loops
// around are the same. Symbols: A_k the output of layer k, C_j the channels of A_j in a call, B_j
// its buffer. Coordinates are *inner* if no border clips anything on
// their way down to A_0; along an axis, d of the last layer's are.
//
// 1. Layer k either keeps its input as long as its output (*kept*), or cuts its calls into pieces,
//    each with its own lifetime of A_{k-1} (*cut*). Layer n cuts. Between two cuts, at m and
//    m' < m, the tensors A_{m-1} .. A_{m'} have the same lifetimes, and each brings at least the
//    hull of what its piece reads. For p neighbouring inner coordinates of A_m the hull in A_j is
//    alpha p + beta, a composition of the windows stride p + span - stride.
// 2. If c inner coordinates of A_m come in pieces of p on average, those of A_{m'} are at least
//    c (alpha + beta / p). These factors multiply over all cuts, down to A_0, and over both axes.
// 3. The largest piece is no smaller than the average, and its sides are integers. A buffer folds
//    along at most one axis, where neighbours share what they read (docs/counting.md section 5).
//    So it holds a window along one axis and the hull of the piece along the other: B_j >=
//    C_j * window * (alpha min(p_y, p_x) + beta).
// 4. A cut at m' cuts calls, and a call fits in its buffer: C_m' p_y p_x <= B_m' for the pieces of
//    m'.
// 5. All of B_1 .. B_{n-1} are held at the same time. So is B_0, that of X, if X is kept as long as
//    A_1. Where each lifetime of A_1 then has one call, X may as well live as long as the call, so
//    layer 1 counts as cut, and B_0 as nothing. Where one has several calls, the loops around them
//    are over rows and columns. So 3 holds for B_0 with all channels. Only where neighbours share
//    nothing do these loops fold both axes, and the loop over channels too.
// 6. Along an axis, a lifetime of A_{m-1} .. A_m' has one call of A_m' (*whole*), or one for each
//    inner coordinate of some A_l between, since a layer that keeps its input is called once per
//    coordinate of its output or once per call. Where no layer from m to m' + 1 is transposed, each
//    such coordinate reads something new, and A_l has no fewer of them than A_m. So there are at
//    least as many pieces of A_m' as lifetimes (whole), or as inner coordinates of A_m (*moving*),
//    and the average p of 2 is at most alpha p + beta or alpha + beta / p, with p of m. Where both
//    axes are whole, a call makes the hull of the piece along both, and so do the calls of the
//    layers between: B_j holds C_j times that. Where one is, B_j holds the hull along that axis,
//    be it the longer one. The least traffic has no more pieces than inner coordinates, so p >= 1.
//    Pieces of A_m' are no longer than its calls along either axis, on average, and each reads its hull
//    of A_0, whatever layers before cut.
// 7. Weights that live as long as A_{n-1} come once per piece of layer n. There are at least d / p
//    pieces along an axis, so what they bring and the halos of 2 rise together as p falls.
//
// 8. Weights of layer n that are held as a part come with each of its tiles, because the loops over
//    tiles are around all levels of its nest. Along an axis, each tile is a piece, unless each
//    coordinate is. So if the pieces have more than one coordinate along both axes, all weights of
//    layer n come with each piece. And if there is no other cut, all buffers live while layer n
//    runs, and one element of Y with them; if some buffers are free, it may count as one of them.
// 9. Weights of the last two layers may come with each call of layer n - 1. By 6, with m' = n - 1, there
//    is along an axis one such call in each piece of layer n (whole), or one for each coordinate
//    (moving). So where the longer axis is moving, there are at least d calls along it, and d / p along
//    the other. Where both are whole, there are at least as many as pieces, and B_{n-1} holds the hull
//    along both; other buffers may still hold that of the shorter one, since layer n - 1 may go along
//    the longer one in its call. Where only the longer axis is whole, there are at least d calls along
//    the shorter one. Loops along that one are around the calls and inside the lifetimes. A buffer that
//    folds along one axis folds along theirs, the outermost, so B_{n-1} and all buffers down to the next
//    cut hold the hull along the longer axis. If layer n is transposed, there are at least as many
//    calls as pieces.
//
// 10. Let calls of layer k < n - 1 be narrow, so the loop of layer k + 1 over its inputs is around them
//    (13 is about layer n - 1). If it is around the lifetime of A_k too, layer k + 1 does not keep its input:
//    what it keeps is stored outside its nest. Else it is between the levels of A_k, and layer k does not
//    keep its input, because retention must not cross a loop over channels. If layer k + 1 then keeps A_k,
//    loops over rows or columns of later layers are between the levels too, outside that over channels.
//    Where neighbours share what they read along both axes, the buffer folds along one of these loops, and
//    holds D_k channels. So either layer k + 1 cuts, or layer k does and C_k = D_k. (Loops with one trip are
//    as if inside all others: if A_{k+1} has one call per lifetime, layer k + 1 counts as cut, as in 5.)
//
// 11. Whatever layers before cut, each piece of A_n reads its hull of A_0, and at the borders less.
//    halo_borders.h has what all pieces read then, with those that 2 does not count. No piece is longer
//    than the largest along the axis along which that is shorter. Tiles of layer n are equal, but for the
//    last one of an axis.
// 12. In 9, all pieces count, with those that 2 does not; but where calls move, one along the border may
//    need nothing new, so only inner coordinates count along that axis. Pieces are equal tiles, so along an
//    axis there are as many as are needed for all coordinates. Let P be their size along an axis, of whose
//    coordinates d are inner. If 2 P - 1 <= d, some piece has P inner ones. Else so few pieces have some
//    that one has most; all sizes from P on are tried. At most d / P + 2 pieces have inner coordinates.
//
// 13. Let calls of layer n - 1 be narrow, so the loop of layer n over its inputs is around them, and let
//    that loop have t > 1 trips. Y lives just outside it, so Y's buffer holds the sums of all that the
//    loops inside make: of Z channels, where Z is the tile of layer n if its loop over outputs is among
//    them. Otherwise everything is computed anew for each output, and Z = 1. If no loop over rows or
//    columns with several trips lies between the store level of A_{n-1} and the loop over inputs, a whole
//    piece of A_n is made inside that loop, and Y's buffer holds Z p_y p_x. A_{n-1} may have one channel.
//    Otherwise the loop over inputs is between the levels of A_{n-1}, so layer n - 1 does not keep its
//    input, as in 10. The buffer of A_{n-1} folds along the loop over rows or columns first. Where
//    neighbours share what they read along both axes, it holds all t channels. Y's buffer does not count
//    where others are free, because 9 of call_bound.h may need it for calls.
//
// The bound is the least factor over all cuts, pieces and divisions of the memory. Dynamic
// programming from the first layer to the last finds it, on grids of memory and area that are
// always rounded towards less traffic. Where axes differ, the smaller alpha, beta and window stand
// for both, and in 6 the larger alpha and beta.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/explore/group_search/halo_tables.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

class HaloBound {
public:
    /// How the last layer reads.
    struct End {
        double channels = 1;   ///< of A_{n-1} that layer n reads at a time, at least
        double per_piece = 0;  ///< what each lifetime of A_{n-1} after the first brings besides (7)
        double per_tile = 0;   ///< what each tile of layer n after the first brings besides (8)
        double per_call = 0;   ///< what each call of layer n - 1 after the first brings besides (9)
        /// Z of 13 at least, if each call of layer n - 1 makes one channel of several; else 0.
        double sums = 0;
        friend auto operator<=>(const End&, const End&) = default;
    };
    /// A bound by memory. Its steps are found when they are asked for, because most bounds of
    /// groups need few of them.
    class Staircase {
    public:
        /// A factor of the bound within `memory`, or `most` if that is less.
        using Find = std::function<double(double memory, double most)>;

        Staircase() = default;
        /// `memories` rise, and what `find` finds does not. The bound is `scale` times that, and 0
        /// beyond the last memory.
        Staircase(std::vector<double> memories, double scale, Find find)
            : memories_(std::move(memories)),
              scale_(scale),
              find_(std::move(find)),
              factors_(memories_.size(), unknown) {}

        [[nodiscard]] double input(double memory) const;
        [[nodiscard]] size_t size() const { return memories_.size(); }
        /// Where the bound changes. Step n stands for what is more than step n - 1, up to this.
        [[nodiscard]] const std::vector<double>& memories() const { return memories_; }
        /// What the bound is there.
        [[nodiscard]] double step(size_t n) const;

    private:
        static constexpr double unknown = -1;

        std::vector<double> memories_;
        double scale_ = 1;
        Find find_;
        mutable std::vector<double> factors_;
    };

    /// `tables` are for these layers too. `narrow`: bit k says that calls of layer k < n - 1 make one
    /// channel; the others make all. `free`: bit k says that the buffer of A_k does not count as
    /// memory, and that its calls have any size. `of_parts`: for layers 1 .. t with any t too; all
    /// layers are wide then. Chains of one layer, with gaps between windows, or without inner
    /// coordinates have no bound. A bound is for one thread.
    HaloBound(std::shared_ptr<HaloTables> tables, const std::vector<LayerProblem>& problems,
              uint32_t narrow = 0, uint32_t free = 0, bool of_parts = false);

    /// Least elements of A_0 that are read, and of what pieces bring besides, if the buffers of
    /// A_0 .. A_{n-1} that count, and the element of Y of 8, together hold at most so much memory;
    /// infinite if they do not fit.
    [[nodiscard]] const Staircase& all(const End& end) const;
    /// Least elements of A_0 that are read for what layers 1 .. t < n make of it, whatever calls of
    /// layer t are like, by the memory of A_0 .. A_{t-1}. For `of_parts` only.
    [[nodiscard]] const Staircase& part(size_t t) const { return parts_[t]; }

private:
    struct Found;
    /// all() for one entry of `found_`, where `end` has the channels of A_{n-1} in its buffer.
    /// `cuts`: layer n - 1 does not keep its input.
    [[nodiscard]] const Staircase& of_way(size_t way, const End& end, bool cuts) const;

    /// One entry tells of each way of 10; there are none if there is no bound.
    std::vector<std::shared_ptr<Found>> found_;
    mutable std::map<End, Staircase> all_;  ///< where there are several ways
    mutable std::map<std::tuple<size_t, bool, End>, Staircase> of_ways_;
    std::vector<Staircase> parts_;  ///< [t]
};

/// Elements per channel of A_0 .. A_n that the coordinates of A_n need which meet no border; 0 where
/// there are none.
[[nodiscard]] std::vector<double> inner_pixels(const std::vector<LayerProblem>& problems);

}  // namespace laminate::search
