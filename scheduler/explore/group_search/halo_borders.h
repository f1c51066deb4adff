// What pieces of a map read of the input of a chain, with those at its borders, along one axis.
// Bounds of halos (halo_bound.h) count inner coordinates alone; in long chains a tenth of a map and
// more is none.
//
// Let pieces of at most p coordinates cover all coordinates of A_t that are needed. Each piece of q of
// them reads its hull of A_0, of which each of its coordinates gets a q-th. So what all pieces read is
// at least the sum, over all coordinates, of the least that a coordinate gets of any piece of at most p
// that holds it. If all of a piece is inner, that is at least alpha + beta / p (halo_bound.h, 1). Other
// pieces are tried one by one; there are few, since they reach up to p behind the coordinates that are
// not inner.
//
// Memory limits the inner coordinates of a piece. Let no piece have more than p of them, and let all
// pieces but the last have the same size P. If P is more than p, none is all inner, so there are at most
// 2 P - 2 inner coordinates. They lie in at most three pieces, and are no more than 3 p. So with more
// than 3 p inner coordinates, no piece is longer than p.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

[[nodiscard]] std::vector<AxisWindow> windows_along(const std::vector<LayerProblem>& problems,
                                                    size_t axis);
/// Whether no border clips what output `at` of the last of these layers reads of their input.
[[nodiscard]] bool meets_no_border(std::span<const AxisWindow> layers, int64_t at);

/// One thread may use it.
class PieceReads {
public:
    /// Describes layers 1 .. t of a chain whose windows have no gaps between them. `slope` and `extra`
    /// are alpha and beta from A_t down to A_0.
    PieceReads(const std::vector<AxisWindow>& chain, size_t t, double slope, double extra);

    /// Coordinates of A_0 that are needed.
    [[nodiscard]] double needed() const { return needed_; }
    /// Coordinates of A_t that are needed and read something, and those of them that meet no border.
    [[nodiscard]] double outputs() const { return static_cast<double>(readers_); }
    [[nodiscard]] double inner() const { return static_cast<double>(end_of_inner_ - first_inner_); }
    /// Inner coordinates that one of equal pieces of so many or more has at least. The last one may be
    /// shorter than the others.
    [[nodiscard]] double inner_of(double piece) const;
    /// Equal pieces that are there at least, if none has more inner coordinates than so many.
    [[nodiscard]] double pieces(int64_t longest) const;
    /// Coordinates of A_0 that they read at least, those of each piece counted for it.
    [[nodiscard]] double read_by(int64_t longest) const;

private:
    /// Whether no piece can be longer than that.
    [[nodiscard]] bool limits(int64_t longest) const {
        return end_of_inner_ - first_inner_ > 3 * longest;
    }
    [[nodiscard]] double hull_of(Range piece) const;
    [[nodiscard]] double least_read(int64_t longest) const;

    std::vector<AxisWindow> layers_;
    double slope_, extra_;
    Range outputs_;  ///< of A_t, that are needed
    double needed_;
    int64_t readers_ = 0;
    int64_t first_inner_, end_of_inner_;
    /// Halos of longer pieces are small beside them. To try all pieces takes time that grows with the
    /// square of their length.
    static constexpr int64_t longest_piece = 64;
    mutable std::array<double, longest_piece + 1> known_{};  ///< read_by(), or 0
    mutable IndexVector<int64_t, int64_t> inner_of_;  ///< by the size of pieces
};

}  // namespace laminate::search
