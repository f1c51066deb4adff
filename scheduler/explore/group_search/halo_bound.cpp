#include "scheduler/explore/group_search/halo_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/units.h"
#include "base/vector_width.h"
#include "scheduler/explore/group_search/halo_borders.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double span(const AxisWindow& w) { return static_cast<double>(w.span()); }

/// p neighbouring coordinates read at least slope * p + extra coordinates.
struct Hull {
    double slope = 1;
    double extra = 0;
    [[nodiscard]] double of(double p) const { return slope * p + extra; }
};

Hull hull_of(const AxisWindow& w) {
    const auto stride = static_cast<double>(w.stride);
    if (w.transposed) return {1 / stride, (span(w) - stride) / stride};
    return {stride, span(w) - stride};
}

/// The hull through `after`, which is nearer to the output, and then `before`.
Hull composed(Hull after, Hull before) {
    return {before.slope * after.slope, before.slope * after.extra + before.extra};
}

Hull sum(Hull a, Hull b) { return {a.slope + b.slope, a.extra + b.extra}; }
Hull lesser(Hull a, Hull b) { return {std::min(a.slope, b.slope), std::min(a.extra, b.extra)}; }
Hull greater(Hull a, Hull b) { return {std::max(a.slope, b.slope), std::max(a.extra, b.extra)}; }

/// Number of coordinates of the last output that meet no border on the way down.
int64_t inner_coordinates(const std::vector<LayerProblem>& problems, size_t axis) {
    const std::vector<AxisWindow> windows = windows_along(problems, axis);
    int64_t count = 0;
    for (int64_t at = 0; at < windows.back().out; ++at)
        count += meets_no_border(windows, at) ? 1 : 0;
    return count;
}

/// Whether windows of neighbours always share input and no piece is read apart from the others, so
/// buffers fold along one axis only.
bool folds_once(const std::vector<LayerProblem>& problems, size_t reader) {
    for (size_t axis = 0; axis < 2; ++axis) {
        if (sharing(problems[reader].window[axis]) != Sharing::always) return false;
        // So few coordinates may come in calls that lie apart (GroupSpace::may_be_apart).
        for (size_t k = reader + 1; k < problems.size(); ++k) {
            if (static_cast<double>(problems[k].window[axis].in) <=
                2 * span(problems[k].window[axis]))
                return false;
        }
    }
    return true;
}

/// Values that rise by a factor from `first` up to `last` or beyond.
std::vector<double> grid(double first, double last, double factor) {
    std::vector<double> values{first};
    while (values.back() < last) values.push_back(values.back() * factor);
    return values;
}

/// One of the ways in which layers of narrow calls may be executed (10).
struct Way {
    std::vector<double> channels;  ///< least numbers of A_0 .. A_{n-2} in their buffers
    uint32_t cuts = 0;             ///< bit k: layer k does not keep its input
};

/// All ways, where bit k of `narrow` says that calls of layer k make one channel.
std::vector<Way> ways_of(const std::vector<LayerProblem>& problems, uint32_t narrow) {
    Way wide;
    for (size_t k = 0; k + 1 < problems.size(); ++k)
        wide.channels.push_back(static_cast<double>(problems[k][Dim::i]));
    std::vector<Way> ways{wide};
    for (size_t k = 1; k + 1 < problems.size(); ++k) {
        if ((narrow >> k & 1U) == 0) continue;
        for (size_t count = ways.size(); count-- > 0;) {
            Way read_by_pieces = ways[count];
            read_by_pieces.channels[k] = 1;
            read_by_pieces.cuts |= 1U << (k + 1);
            ways.push_back(std::move(read_by_pieces));
            ways[count].cuts |= 1U << k;
            if (!folds_once(problems, k)) ways[count].channels[k] = 1;
        }
    }
    return ways;
}

/// Layers 1 .. n as the recursion sees them, with square maps.
class Chain {
public:
    Chain(const std::vector<LayerProblem>& problems, const Way& way, uint32_t free)
        : n_(problems.size()), free_(free), cuts_(way.cuts), channels_(way.channels) {
        channels_.push_back(1);
        for (size_t k = 1; k <= n_; ++k) {
            const LayerProblem& p = problems[k - 1];
            window_.push_back(std::min(std::ceil(hull_of(p.window[0]).of(1) - 1e-9),
                                       std::ceil(hull_of(p.window[1]).of(1) - 1e-9)));
            folds_once_.push_back(laminate::search::folds_once(problems, k - 1));
            largest_.push_back(static_cast<double>(std::max(p.window[0].out, p.window[1].out)));
        }
        hulls_.assign(n_ + 1, std::vector<std::array<Hull, 2>>(n_ + 1));
        for (size_t axis = 0; axis < 2; ++axis) {
            for (size_t m = n_; m > 0; --m) {
                hulls_[m][m][axis] = {};
                for (size_t j = m; j-- > 0;)
                    hulls_[m][j][axis] =
                        composed(hulls_[m][j + 1][axis], hull_of(problems[j].window[axis]));
            }
        }
        halos_.assign(n_ + 1, std::vector<double>(n_));
        buffers_.assign(n_ + 1, std::vector<Hull>(n_));
        lines_.assign(n_ + 1, std::vector<Hull>(n_ + 1, Hull{0, 0}));
        areas_.assign(n_ + 1, std::vector<Area>(n_ + 1));
        moves_.assign(n_ + 1, std::vector<char>(n_));
        for (size_t m = 1; m <= n_; ++m) {
            bool moves = true;
            for (size_t j = m; j-- > 0;) {
                moves =
                    moves && !problems[j].window[0].transposed && !problems[j].window[1].transposed;
                moves_[m][j] = moves ? 1 : 0;
                const auto& both = hulls_[m][j];
                halos_[m][j] =
                    std::min(both[0].extra / both[0].slope, both[1].extra / both[1].slope);
            }
            find_buffers(m);
        }
    }
    /// Gives A_{n-1} so many channels in its buffer, and Y's buffer `sums` for each pixel of a
    /// piece (13). `cuts`: layer n - 1 does not keep its input.
    void set_last(double channels, double sums, bool cuts) {
        channels_[n_ - 1] = channels;
        sums_ = sums;
        if (cuts) cuts_ |= 1U << (n_ - 1);
        find_buffers(n_);
    }

    [[nodiscard]] size_t layers() const { return n_; }
    /// Channels of A_j in its buffer.
    [[nodiscard]] double channels(size_t j) const { return channels_[j]; }
    /// Whether the buffer of A_j folds along one axis only.
    [[nodiscard]] bool folds_once(size_t j) const { return folds_once_[j] != 0; }
    [[nodiscard]] bool is_free(size_t j) const { return (free_ >> j & 1U) != 0; }
    /// Whether layer j does not keep its input in any case.
    [[nodiscard]] bool must_cut(size_t j) const { return (cuts_ >> j & 1U) != 0; }
    /// The last layer before layer m of which that is so; 0 if there is none.
    [[nodiscard]] size_t cut_before(size_t m) const {
        while (--m > 0 && !must_cut(m)) {
        }
        return m;
    }
    /// The longer side of A_m.
    [[nodiscard]] double largest(size_t m) const { return largest_[m - 1]; }
    [[nodiscard]] double slope(size_t m, size_t j, size_t axis) const {
        return hulls_[m][j][axis].slope;
    }
    [[nodiscard]] Hull hull(size_t m, size_t j, size_t axis) const { return hulls_[m][j][axis]; }
    /// Pieces with such sides on average of A_m read this times as much of A_j as one piece would.
    [[nodiscard]] double factor(size_t m, size_t j, double short_side, double long_side) const {
        const double halo = halos_[m][j];
        return (1 + halo / short_side) * (1 + halo / long_side);
    }
    /// The buffer of A_j for pieces of p coordinates of A_m, as slope * p + extra.
    [[nodiscard]] Hull buffer(size_t m, size_t j) const { return buffers_[m][j]; }
    /// The same for all of A_{m-1} .. A_j together.
    [[nodiscard]] Hull lines(size_t m, size_t j) const { return lines_[m][j]; }
    /// Whether Y's buffer counts. It may be one of the free ones (8, 13).
    [[nodiscard]] bool counts_output() const { return free_ == 0; }
    /// Elements of Y's buffer for each pixel of a piece of A_m.
    [[nodiscard]] double sums(size_t m) const { return m == n_ && counts_output() ? sums_ : 0; }
    /// The longer side of pieces of A_m whose sums have so much memory.
    [[nodiscard]] double longest_of_sums(size_t m, double shorter, double memory) const {
        return sums(m) > 0 ? std::floor(memory / (sums(m) * shorter)) : never;
    }
    /// The same for all that layers 1 .. m hold without a cut, but for sums. The input of layer 1
    /// alone counts as nothing (5).
    [[nodiscard]] Hull line(size_t m) const {
        const bool has_output = m == n_ && counts_output() && sums_ == 0;
        return sum(lines(m, m == 1 ? 1 : 0), {0, has_output ? 1.0 : 0.0});
    }
    /// The longest pieces of A_m for which `memory` suffices without a cut, in coordinates; 0 if it
    /// suffices for none.
    [[nodiscard]] double longest_line(size_t m, double memory) const {
        const Hull all = line(m);
        if (memory < all.of(1)) return 0;
        if (all.slope == 0) return largest(m);
        double p = std::floor((memory - all.extra) / all.slope) + 1;
        while (all.of(p) > memory) --p;
        return p;
    }
    /// The buffers of A_{m-1} .. A_j for pieces of A_m of sides s and l, if one call makes all that
    /// is read.
    [[nodiscard]] double areas(size_t m, size_t j, double s, double l) const {
        const Area& a = areas_[m][j];
        return a.of_area * s * l + a.of_sides * (s + l) + a.extra;
    }
    /// At most so many coordinates of A_j are read on average by p of A_m.
    [[nodiscard]] double most_read(size_t m, size_t j, double p) const {
        return greater(hulls_[m][j][0], hulls_[m][j][1]).of(p);
    }
    /// Whether each coordinate of A_m that meets no border reads one of A_j that the one before
    /// does not.
    [[nodiscard]] bool moves(size_t m, size_t j) const { return moves_[m][j] != 0; }
    /// All that is asked about layers 1 .. m and the buffers of their inputs.
    [[nodiscard]] std::vector<double> key(size_t m) const {
        std::vector<double> key;
        for (size_t j = 0; j < m; ++j) {
            for (const Hull& h : hulls_[j + 1][j]) key.insert(key.end(), {h.slope, h.extra});
            key.insert(key.end(),
                       {window_[j], channels_[j], largest_[j], static_cast<double>(folds_once_[j]),
                        static_cast<double>(moves_[j + 1][j]), is_free(j) ? 1.0 : 0.0,
                        must_cut(j) ? 1.0 : 0.0});
        }
        return key;
    }

private:
    /// Finds buffers_, lines_ and areas_ of all arrays before A_m.
    void find_buffers(size_t m) {
        for (size_t j = m; j-- > 0;) {
            const auto& both = hulls_[m][j];
            buffers_[m][j] = buffer_of(m, j);
            lines_[m][j] = m == j + 1 ? buffers_[m][j] : sum(lines_[m][j + 1], buffers_[m][j]);
            areas_[m][j] = areas_[m][j + 1];
            areas_[m][j].add(lesser(both[0], both[1]), is_free(j) ? 0 : channels_[j]);
        }
    }
    [[nodiscard]] Hull buffer_of(size_t m, size_t j) const {
        if (is_free(j)) return {0, 0};
        const double window = window_[j];  // of layer j + 1
        // X folds to one channel where neighbours share nothing (5).
        if (!folds_once_[j]) return {0, (j == 0 ? 1 : channels_[j]) * window * window};
        const Hull h = lesser(hulls_[m][j][0], hulls_[m][j][1]);
        return {channels_[j] * window * h.slope, channels_[j] * window * h.extra};
    }

    /// Buffers as of_area * s * l + of_sides * (s + l) + extra.
    struct Area {
        double of_area = 0, of_sides = 0, extra = 0;
        void add(Hull h, double channels) {
            of_area += channels * h.slope * h.slope;
            of_sides += channels * h.slope * h.extra;
            extra += channels * h.extra * h.extra;
        }
    };

    size_t n_;
    uint32_t free_;  ///< bit j: the buffer of A_j
    uint32_t cuts_;  ///< bit j: layer j
    double sums_ = 0;
    std::vector<double> window_, channels_, largest_;
    std::vector<char> folds_once_;
    std::vector<std::vector<std::array<Hull, 2>>> hulls_;  ///< [m][j]: from A_m down to A_j
    std::vector<std::vector<double>> halos_;               ///< [m][j]
    std::vector<std::vector<Hull>> buffers_;               ///< [m][j]
    std::vector<std::vector<Hull>> lines_;                 ///< [m][j]
    std::vector<std::vector<Area>> areas_;                 ///< [m][j]
    std::vector<std::vector<char>> moves_;                 ///< [m][j]
};

/// Quotients may come out a little too large.
constexpr double rounding = 1 - 1e-9;

constexpr double step_of_answer = 1.02;  ///< memory of the whole group
constexpr double step_of_long_sides = 2;
/// Sides of pieces are alike up to this factor, where calls cost something.
constexpr double alike = 1.015;

/// What comes with pieces besides the input, in parts of it.
struct Besides {
    double per_piece = 0;  ///< with each one after the first
    double per_tile = 0;   ///< the same, if all have more than one coordinate along both axes (8)
    double per_call = 0;   ///< with each call of the layer before, after the first (9)
    /// What each of them brings.
    [[nodiscard]] double each(double short_side) const {
        return per_piece + (short_side > 1 ? per_tile : 0);
    }
    /// What all pieces bring if they cover this area and have such sides on average.
    [[nodiscard]] double with_pieces(double area, double short_side, double long_side) const {
        const double one = each(short_side);
        return one == 0 ? 0 : one * std::max(0.0, area / (short_side * long_side) - 1);
    }
};

/// What pieces of the whole map of A_m read of A_0, without a cut between.
class WholeMap {
public:
    /// `whole`: elements of a channel of A_0 of which factors are told.
    WholeMap(const Chain& chain, const std::array<std::vector<AxisWindow>, 2>& windows, size_t m,
             double whole)
        : whole_(whole) {
        for (size_t axis = 0; axis < 2; ++axis) {
            const Hull hull = chain.hull(m, 0, axis);
            axes_.emplace_back(windows[axis], m, hull.slope, hull.extra);
        }
    }
    /// The factor, and what pieces bring besides, if the shorter side of the largest piece is this.
    [[nodiscard]] double least(double shorter, double per_piece) const {
        // Pieces are no longer along one of the axes. Along the other they may be as long as the
        // map.
        const auto along = [&](const PieceReads& axis, const PieceReads& other) {
            const auto longest = static_cast<int64_t>(shorter);
            return axis.read_by(longest) * other.needed() / whole_ * rounding +
                   per_piece * (axis.pieces(longest) - 1);
        };
        return std::min(along(axes_[0], axes_[1]), along(axes_[1], axes_[0]));
    }

    /// The factor, if these are the largest pieces.
    [[nodiscard]] double least_of_pieces(double shorter, double longer) const {
        const auto a = static_cast<int64_t>(shorter), b = static_cast<int64_t>(longer);
        return std::min(axes_[0].read_by(a) * axes_[1].read_by(b),
                        axes_[0].read_by(b) * axes_[1].read_by(a)) /
               whole_ * rounding;
    }
    /// Pixels of A_m, and its longer side.
    [[nodiscard]] double area() const { return axes_[0].outputs() * axes_[1].outputs(); }
    /// Pieces of such sides at least.
    [[nodiscard]] double pieces(double shorter, double longer) const {
        return std::min(along(0, shorter) * along(1, longer), along(0, longer) * along(1, shorter));
    }
    /// Calls at least, if pieces have such a side along one axis, and one call for each inner
    /// coordinate along the other.
    [[nodiscard]] double moving_calls(double side) const {
        return std::min(axes_[0].inner() * along(1, side), along(0, side) * axes_[1].inner());
    }
    [[nodiscard]] double longest() const {
        return std::max(axes_[0].outputs(), axes_[1].outputs());
    }
    /// What inner coordinates come in at least, on average: the first and the last piece that have
    /// some may have fewer.
    [[nodiscard]] double average_of(double piece) const {
        const double inner = std::min(axes_[0].inner(), axes_[1].inner());
        return std::max(1.0, piece / (1 + 2 * piece / inner));
    }
    /// Inner coordinates in one of the pieces, at least (12). No axis is shorter than a piece.
    [[nodiscard]] double inner_of(double piece) const {
        double least = never;
        for (const PieceReads& axis : axes_) {
            if (piece <= axis.outputs()) least = std::min(least, axis.inner_of(piece));
        }
        return std::max(1.0, std::min(least, piece));
    }

private:
    /// Pieces along an axis. Sides are integers.
    [[nodiscard]] double along(size_t axis, double side) const {
        return static_cast<double>(
            ceil_div(static_cast<int64_t>(axes_[axis].outputs()), static_cast<int64_t>(side)));
    }

    std::vector<PieceReads> axes_;
    double whole_;
};

/// Areas of calls of A_m, on average, for which factors are found together.
struct Areas {
    std::vector<double> area;
    std::vector<double> longest;  ///< no piece is longer than that
    std::vector<double> square;   ///< the longest that a shorter side may be
    /// [m2][piece][area]: factors of such pieces of A_m before a cut at m2, infinite where
    /// there are none.
    std::vector<double> factors;
    [[nodiscard]] size_t size() const { return area.size(); }
};

/// Whether one of the products of `factors` and `times` is below its limit.
LAMINATE_FOR_EACH_VECTOR_WIDTH
bool any_below(const double* factors, double times, const double* limits, size_t size) {
    int below = 0;
    for (size_t n = 0; n < size; ++n) below |= factors[n] * times < limits[n] ? 1 : 0;
    return below != 0;
}

/// Pieces whose sides lie within bounds: those of the largest one, or those on average.
struct Piece {
    double side = 1;  ///< the shorter one of the largest piece, at least
    double least_short = 1, most_short = 1;
    double least_long = 1, most_long = 1;
    double long_average = 1;  ///< at least; `least_short` is an average in any case
};

/// By the axes of a piece along which its calls of the layer before are whole (6).
enum class Calls {
    any,
    moving,  ///< not along the longer one
    whole_along_longer,
    whole,  ///< along both
};
/// For pieces of A_m of some length and the next cut at m2: the least memory of A_{m-1} .. A_{m2+1}
/// and that of A_m2, with its place in the grid.
struct Cut {
    double later = 0, own = 0;
    size_t place = 0;
};
/// The calls of layer m - 1 for pieces of A_m.
struct LastCalls {
    Calls kind = Calls::any;
    double line = 1;     ///< lines of A_{m-1} and the layers before are for so many coordinates
    double more = 0;     ///< elements that the buffer of A_{m-1} holds beside a line
    double besides = 0;  ///< what they and pieces bring
};

/// The longest piece that the p-th stands for, but no longer than `most`. Sides of pieces are
/// integers.
double longest_at(const std::vector<double>& pieces, size_t p, double most) {
    return p + 1 < pieces.size() ? std::min(most, pieces[p + 1] - 1) : most;
}

/// Where a table of memories and buffers has the i-th memory, of which a buffer has the b-th or
/// more.
size_t place(size_t i, size_t b) { return i * (i + 1) / 2 + b; }

/// The least factors of the first m layers, by the memory of A_1 .. A_{m-1} and the area of the
/// calls of A_m.
class Factors {
public:
    Factors(const Chain& chain, HaloTables& tables)
        : chain_(chain),
          tables_(tables),
          memory_(tables.memory()),
          area_(tables.area()),
          pieces_(tables.pieces()),
          of_(chain.layers()),
          with_buffer_(chain.layers()) {
        for (size_t m = 1; m < chain.layers(); ++m) {
            of_[m] = tables.table(chain.key(m), [&] { return all_of(m); });
            if (m + 1 < chain.layers()) divide(m);
        }
    }
    /// The same for a copy of the chain that has other last channels.
    Factors(const Chain& chain, const Factors& other)
        : chain_(chain),
          tables_(other.tables_),
          memory_(other.memory_),
          area_(other.area_),
          pieces_(other.pieces_),
          of_(other.of_),
          with_buffer_(other.with_buffer_) {}
    /// Finds what least() of layers 1 .. m needs. For all layers it depends on the last channels of
    /// the chain.
    void prepare(size_t m) {
        if (m == chain_.layers()) divide(m - 1);
        find_cuts(m);
    }

    /// No piece is longer than `most`.
    [[nodiscard]] Areas areas_of(size_t m, std::vector<double> areas, double most) const {
        Areas of{std::move(areas), {}, {}, {}};
        for (const double area : of.area) {
            of.longest.push_back(std::min(most, chain_.largest(m)));
            of.square.push_back(std::min(std::sqrt(area), of.longest.back()));
        }
        for (size_t m2 = 0; m2 < m; ++m2) {
            for (size_t p = 0; p < pieces_.size(); ++p) {
                for (size_t n = 0; n < of.size(); ++n) {
                    const double most_short = longest_at(pieces_, p, of.square[n]);
                    of.factors.push_back(
                        pieces_[p] - 1 < of.square[n]
                            ? chain_.factor(m, m2, most_short,
                                            std::min(of.area[n] / most_short, of.longest[n]))
                            : never);
                }
            }
        }
        return of;
    }

    /// Takes the factors within `memory`, by area, if they are below those in `best`. Needs
    /// prepare(m). `map`: of A_m, if all of it is meant.
    void least(size_t m, double memory, const Areas& of, std::vector<double>& best,
               const Besides& besides = {}, const WholeMap* map = nullptr) const {
        // No cut after this one.
        const size_t last_cut = chain_.cut_before(m);
        const double line = chain_.longest_line(m, memory);
        const double sums = chain_.sums(m);
        for (size_t n = 0; n < of.size(); ++n) {
            const double piece = std::min(of.square[n], line);
            for (size_t p = 0; sums > 0 && p < pieces_.size() && pieces_[p] <= piece; ++p) {
                const double side = pieces_[p];
                const double most_long =
                    std::min(of.longest[n],
                             chain_.longest_of_sums(m, side, memory - chain_.line(m).of(side)));
                if (most_long < side || last_cut > 0) break;
                const double most_short = std::min(longest_at(pieces_, p, piece), most_long);
                double own = chain_.factor(m, 0, most_short, most_long) +
                             besides.with_pieces(of.area[n], most_short, most_long);
                if (map != nullptr && own < best[n])
                    own = std::max(own, map->least_of_pieces(most_short, most_long));
                best[n] = std::min(best[n], own);
            }
            for (const double side : {std::min(piece, 1.0), piece}) {
                if (sums > 0 || side <= 0 || last_cut > 0) break;
                const double most_long = std::min(of.area[n] / side, of.longest[n]);
                double own = chain_.factor(m, 0, side, most_long) +
                             besides.with_pieces(of.area[n], side, most_long);
                if (map != nullptr && own < best[n])
                    own = std::max(own, map->least(std::ceil(side), besides.each(side)));
                best[n] = std::min(best[n], own);
            }
        }
        // The next cut is at m2. Pieces between two values of the grid stand for each other.
        const double largest_square = std::ranges::max(of.square);
        for (size_t m2 = m; m2-- > std::max<size_t>(1, last_cut);) {
            for (size_t p = 0; p < pieces_.size() && pieces_[p] - 1 < largest_square; ++p) {
                const Cut& cut = cuts_[m2][p];
                const double rest = memory - cut.later - sums * pieces_[p] * pieces_[p];
                if (rest < cut.own) break;
                const double any_calls = with_buffer(m2, rest, cut);
                const double* factors = of.factors.data() + (m2 * pieces_.size() + p) * of.size();
                if (any_below(factors, any_calls, best.data(), of.size()))
                    least_with_cut(m, m2, p, memory, any_calls, of, factors, best, besides, map);
            }
        }
    }

    /// The same for all of A_m, where each call of A_{m-1} costs `per_call`.
    [[nodiscard]] double least_with_calls(size_t m, double memory, const WholeMap& map, double best,
                                          const Besides& besides) const {
        const double area = map.area(), longest = map.longest();
        const double square = std::sqrt(area);
        for (size_t p = 0; p < pieces_.size() && pieces_[p] - 1 < square; ++p) {
            const double side = pieces_[p];
            Piece at{.side = side, .most_short = longest_at(pieces_, p, square)};
            for (double l = side; l * side <= area && l <= longest; l *= step_of_long_sides) {
                at.least_long = l;
                at.most_long = std::min({l * step_of_long_sides, area / side, longest});
                best = least_of_parts(m, memory, map, at, besides, best);
            }
        }
        return best;
    }

private:
    /// Takes the factors of pieces `p` before a cut at m2, if they are below `best`. `factors`:
    /// those of the pieces alone.
    void least_with_cut(size_t m, size_t m2, size_t p, double memory, double any_calls,
                        const Areas& of, const double* factors, std::vector<double>& best,
                        const Besides& besides, const WholeMap* map) const {
        // Where the area limits neither side, all areas have the same pieces.
        struct Known {
            double factor, calls;
        };
        constexpr size_t most_known = 64;  // doubled so often, a side is longer than any
        std::array<Known, most_known> known;
        size_t count = 0;
        const double side = pieces_[p], sums = chain_.sums(m);
        const Cut& cut = cuts_[m2][p];
        const double with_sums = chain_.longest_of_sums(m, side, memory - cut.later - cut.own);
        const double unlimited_short = longest_at(pieces_, p, never);
        Piece at{side, std::max(1.0, side - 1)};
        for (size_t n = 0; n < of.size(); ++n) {
            if (factors[n] * any_calls >= best[n]) continue;
            const double area = of.area[n], longest = std::min(of.longest[n], with_sums);
            at.most_short = std::min(longest_at(pieces_, p, of.square[n]), longest);
            const double most_long = std::min(area / at.most_short, longest);
            const double at_least = chain_.factor(m, m2, at.most_short, most_long) * any_calls +
                                    besides.with_pieces(area, at.most_short, most_long);
            if (at_least >= best[n]) continue;
            // Whatever is cut again, each piece reads all of its hull, at the borders too.
            const double hulls =
                map == nullptr ? 0 : map->least(at.most_short, besides.each(at.most_short));
            if (hulls >= best[n]) continue;
            if (!chain_.moves(m, m2)) {
                best[n] = std::max(at_least, hulls);
                continue;
            }
            size_t place = 0;
            for (double l = at.least_short; l * at.least_short <= area && l <= longest;
                 l *= step_of_long_sides, ++place) {
                at.least_long = at.long_average = l;
                // Calls of narrower pieces may be longer, but no piece is better than the squarest.
                at.most_long = std::min({l * step_of_long_sides, area / at.least_short, longest});
                const double long_side = std::min(at.most_long, most_long);
                const double more = besides.with_pieces(area, at.most_short, long_side);
                const double left = memory - sums * side * std::max(side, l);
                if (at.most_short < unlimited_short || long_side < l * step_of_long_sides) {
                    const double pieces = chain_.factor(m, m2, at.most_short, long_side);
                    if (pieces * any_calls + more < best[n])
                        best[n] = std::min(
                            best[n],
                            std::max(
                                hulls,
                                pieces * std::max(any_calls, with_calls(m, m2, left, at)) + more));
                    continue;
                }
                for (; count <= place; ++count) known[count] = {never, never};
                Known& own = known[place];
                if (own.factor == never)
                    own.factor = chain_.factor(m, m2, at.most_short, long_side);
                if (own.factor * any_calls + more >= best[n]) continue;
                if (own.calls == never)
                    own.calls = std::max(any_calls, with_calls(m, m2, left, at));
                best[n] = std::min(best[n], std::max(hulls, own.factor * own.calls + more));
            }
        }
    }

    /// The least factor where the largest piece of A_m is such a one and calls of A_{m-1} bring
    /// something, if that is below `best`. Pieces that may be below it are looked at in parts,
    /// whose sides differ little.
    [[nodiscard]] double least_of_parts(size_t m, double memory, const WholeMap& map, Piece at,
                                        const Besides& besides, double best) const {
        at.least_short = map.average_of(at.side);
        at.long_average = map.average_of(at.least_long);
        const double own = least_of_all(m, memory, map, at, besides, best);
        if (own >= best) return best;
        const bool is_long = at.most_long > at.least_long * alike;
        const bool is_short_alike = at.most_short < at.side + 1 || at.most_short <= at.side * alike;
        if (!is_long && is_short_alike) return own;
        Piece first = at, second = at;
        if (is_long) {
            first.most_long = second.least_long = std::sqrt(at.least_long * at.most_long);
        } else {
            first.most_short = std::floor((at.side + at.most_short) / 2);
            second.side = first.most_short + 1;
        }
        for (const Piece& part : {first, second})
            best = least_of_parts(m, memory, map, part, besides, best);
        return best;
    }
    [[nodiscard]] double least_of_all(size_t m, double memory, const WholeMap& map, Piece at,
                                      const Besides& besides, double best) const {
        const double area = map.area();
        const double long_side = std::min(at.most_long, area / at.side);
        const double count_of_pieces = map.pieces(at.most_short, long_side);
        const double pieces = besides.each(at.most_short) * (count_of_pieces - 1);
        const auto and_calls = [&](double count) {
            return pieces + besides.per_call * std::max(0.0, count - 1);
        };
        const double of_pieces = and_calls(count_of_pieces);
        const auto least = [&](const LastCalls& calls) {
            return least_of(m, memory, map, at, long_side, calls, best);
        };
        at.least_long = map.inner_of(std::max(at.side, at.least_long));
        at.side = map.inner_of(at.side);
        if (!chain_.moves(m, m - 1)) return least({Calls::any, at.side, 0, of_pieces});
        const double longer = std::max(at.side, at.least_long);
        const double more =
            chain_.areas(m, m - 1, at.side, longer) - chain_.buffer(m, m - 1).of(at.side);
        best = least({Calls::moving, at.side, 0, and_calls(map.moving_calls(at.most_short))});
        best =
            least({Calls::whole_along_longer, longer, 0, and_calls(map.moving_calls(long_side))});
        return least({Calls::whole, at.side, std::max(0.0, more), of_pieces});
    }

    /// The least factor of layers 1 .. m and what comes besides for such pieces of A_m, if that is
    /// below `best`.
    [[nodiscard]] double least_of(size_t m, double memory, const WholeMap& map, const Piece& at,
                                  double long_side, const LastCalls& calls, double best) const {
        const double hulls = map.least_of_pieces(at.most_short, long_side);
        if (hulls + calls.besides >= best) return best;
        const size_t last_cut = chain_.cut_before(m);
        if (last_cut == 0 && chain_.line(m).of(calls.line) + calls.more <= memory) {
            const double input = std::max(chain_.factor(m, 0, at.most_short, long_side), hulls);
            best = std::min(best, input + calls.besides);
        }
        for (size_t m2 = m; m2-- > std::max<size_t>(1, last_cut);) {
            const double pieces = chain_.factor(m, m2, at.most_short, long_side);
            if (pieces + calls.besides >= best) continue;
            Cut cut{chain_.lines(m, m2 + 1).of(calls.line), chain_.buffer(m, m2).of(calls.line), 0};
            (m2 + 1 < m ? cut.later : cut.own) += calls.more;
            const double rest = memory - cut.later;
            if (rest < cut.own) continue;
            cut.place = memory_.down(cut.own);
            double before = with_buffer(m2, rest, cut);
            if (pieces * before + calls.besides >= best) continue;
            if (chain_.moves(m, m2)) {
                const Calls kind = m2 + 1 == m ? calls.kind : Calls::any;
                before = std::max(before, with_calls(m, m2, memory, at, kind));
            }
            best = std::min(best, std::max(hulls, pieces * before) + calls.besides);
        }
        return best;
    }

    /// The factors of layers 1 .. m by memory and area. They fall as memory rises, so where those
    /// of two memories are equal, those of all memories between are.
    [[nodiscard]] HaloTables::Table all_of(size_t m) {
        find_cuts(m);
        // No call of A_m has a larger area than all of it.
        std::vector<double> areas;
        const double all = chain_.largest(m) * chain_.largest(m);
        for (size_t a = 0; a < area_.size() && (a == 0 || area_[a - 1] < all); ++a)
            areas.push_back(area_[a]);
        const Areas of = areas_of(m, std::move(areas), never);
        HaloTables::Table table(memory_.size() * area_.size());
        const size_t last = memory_.size() - 1;
        find_row(m, of, 0, nullptr, nullptr, table);
        find_row(m, of, last, row(table, 0), nullptr, table);
        find_between(m, of, 0, last, table);
        return table;
    }
    [[nodiscard]] float* row(HaloTables::Table& table, size_t i) const {
        return table.data() + i * area_.size();
    }
    /// Finds the rows between two that are found.
    void find_between(size_t m, const Areas& of, size_t first, size_t last,
                      HaloTables::Table& table) const {
        const float* above = row(table, first);
        const float* below = row(table, last);
        if (last - first < 2) return;
        if (std::equal(above, above + area_.size(), below)) {
            for (size_t i = first + 1; i < last; ++i)
                std::copy(above, above + area_.size(), row(table, i));
            return;
        }
        const size_t middle = (first + last) / 2;
        find_row(m, of, middle, above, below, table);
        find_between(m, of, first, middle, table);
        find_between(m, of, middle, last, table);
    }
    /// Finds the i-th row. `above` is one of less memory, `below` one of more; or null.
    void find_row(size_t m, const Areas& of, size_t i, const float* above, const float* below,
                  HaloTables::Table& table) const {
        constexpr double found = 0;  // no factor is below that
        std::vector<double> best(of.size(), never);
        for (size_t a = 0; above != nullptr && a < of.size(); ++a)
            best[a] = below != nullptr && above[a] == below[a] ? found : above[a];
        least(m, memory_[i], of, best);
        float* const own = row(table, i);
        for (size_t a = 0; a < area_.size(); ++a) {
            if (a < of.size())
                own[a] = best[a] == found ? above[a] : HaloTables::rounded_down(best[a]);
            if (a > 0) own[a] = a < of.size() ? std::min(own[a], own[a - 1]) : own[a - 1];
        }
    }

    /// The factor of layers 1 .. m2 after a cut into such pieces of A_m, by the axes along which
    /// the calls of A_m2 are whole (6).
    [[nodiscard]] double with_calls(size_t m, size_t m2, double memory, const Piece& at,
                                    Calls kind = Calls::any) const {
        const auto whole = [&](double side) { return chain_.most_read(m, m2, side); };
        const auto moving = [&](double side) { return chain_.most_read(m, m2, side) / side; };
        const auto may_be = [&](Calls k) { return kind == Calls::any || kind == k; };
        const double longer = std::max(at.side, at.least_long);
        double least = never;
        if (may_be(Calls::moving))
            least = with_sides(m2, memory - chain_.lines(m, m2).of(at.side), whole(at.most_short),
                               moving(at.long_average));
        if (may_be(Calls::whole_along_longer))
            least = std::min(least, with_sides(m2, memory - chain_.lines(m, m2).of(longer),
                                               whole(at.most_long), moving(at.least_short)));
        if (may_be(Calls::whole))
            least = std::min(least, with_sides(m2, memory - chain_.areas(m, m2, at.side, longer),
                                               whole(at.most_short), whole(at.most_long)));
        return least;
    }

    /// with_area() of calls whose sides are at most these on average. Pieces of calls have no
    /// longer ones, and each reads all of its hull.
    [[nodiscard]] double with_sides(size_t m, double memory, double a, double b) const {
        return std::max(with_area(m, memory, a * b), chain_.factor(m, 0, a, b));
    }

    /// The factor of layers 1 .. m if `memory` is left beside A_m, whose calls have at most `area`
    /// on average.
    [[nodiscard]] double with_area(size_t m, double memory, double area) const {
        if (memory < 0) return never;
        return (*of_[m])[memory_.up(memory) * area_.size() + area_.up(area)];
    }

    void find_cuts(size_t m) {
        cuts_.assign(m, std::vector<Cut>(pieces_.size()));
        for (size_t p = 0; p < pieces_.size(); ++p) {
            double later = 0;
            for (size_t j = m; j-- > 0;) {
                const double own = chain_.buffer(m, j).of(pieces_[p]);
                cuts_[j][p] = {later, own, memory_.down(own)};
                later += own;
            }
        }
    }
    /// The factor of layers 1 .. m with a cut at m, if A_1 .. A_m have `memory`, of which A_m has
    /// at least what `cut` says.
    [[nodiscard]] double with_buffer(size_t m, double memory, const Cut& cut) const {
        const size_t row = memory_.up(memory);
        if (chain_.is_free(m)) return (*of_[m])[(row + 1) * area_.size() - 1];
        return (*with_buffer_[m])[place(row, cut.place)];
    }

    void divide(size_t m) {
        if (chain_.is_free(m)) return;
        std::vector<double> key = chain_.key(m);
        key.push_back(chain_.channels(m));
        with_buffer_[m] = tables_.table(key, [&] { return all_divisions(m); });
    }
    [[nodiscard]] HaloTables::Table all_divisions(size_t m) const {
        HaloTables::Table with_buffer(place(memory_.size(), 0));
        for (size_t i = 0; i < memory_.size(); ++i) {
            double best = never;
            for (size_t b = i + 1; b-- > 0;) {
                // The buffer has from memory_[b] up to the next value, but at most all memory. For
                // b == 0 it has anything up to that.
                const double most_buffer =
                    b + 1 < memory_.size() ? std::min(memory_[b + 1], memory_[i]) : memory_[i];
                const double others = b == 0 ? memory_[i] : memory_[i] - memory_[b];
                best = std::min(best, with_area(m, others, most_buffer / chain_.channels(m)));
                with_buffer[place(i, b)] = HaloTables::rounded_down(best);
            }
        }
        return with_buffer;
    }

    const Chain& chain_;
    HaloTables& tables_;
    const Grid& memory_;
    const Grid& area_;
    const std::vector<double>& pieces_;
    std::vector<std::vector<Cut>> cuts_;  ///< [m2][piece] of the layers that are prepared
    std::vector<std::shared_ptr<const HaloTables::Table>> of_;           ///< [m][memory, area]
    std::vector<std::shared_ptr<const HaloTables::Table>> with_buffer_;  ///< [m][place]
};

/// Whether all inputs between two that are read are read too.
bool has_no_gaps(const std::vector<LayerProblem>& problems) {
    return std::ranges::all_of(problems, [](const LayerProblem& p) {
        return std::ranges::all_of(
            p.window, [](const AxisWindow& w) { return span(w) >= static_cast<double>(w.stride); });
    });
}

/// Memories for which the bound of layers 1 .. t is found; each stands for what is less, down to
/// the one before. Lines grow by whole columns, so the bound falls at once where memory suffices
/// for one more, and the last memory below that is among them, with and without the input of
/// layer 1.
std::vector<double> memories_of(const Chain& chain, size_t t, double shorter_side) {
    double least = 0;
    for (size_t j = 1; j < t; ++j) least += chain.is_free(j) ? 0 : chain.channels(j);
    least = std::max(1.0, least);
    std::vector<double> memories =
        grid(least, std::max(least, chain.line(t).of(shorter_side)), step_of_answer);
    for (const Hull& line : {chain.line(t), chain.lines(t, 1)}) {
        for (double p = 1; line.slope > line.of(p) * (step_of_answer - 1); ++p) {
            if (p > shorter_side) break;
            if (line.of(p) > least) memories.push_back(std::nextafter(line.of(p), 0.0));
        }
    }
    std::ranges::sort(memories);
    return memories;
}

/// Numbers of coordinates of A_0 .. A_n along an axis that the inner ones of A_n need.
std::vector<double> inner_sides(const std::vector<LayerProblem>& problems, size_t axis) {
    std::vector<double> sides(problems.size() + 1,
                              static_cast<double>(inner_coordinates(problems, axis)));
    if (sides.back() == 0) return sides;
    for (size_t k = problems.size(); k-- > 0;)
        sides[k] = hull_of(problems[k].window[axis]).of(sides[k + 1]);
    return sides;
}

}  // namespace

std::vector<double> inner_pixels(const std::vector<LayerProblem>& problems) {
    std::vector<double> pixels = inner_sides(problems, 0);
    const std::vector<double> columns = inner_sides(problems, 1);
    for (size_t k = 0; k < pixels.size(); ++k) pixels[k] *= columns[k];
    return pixels;
}

double HaloBound::Staircase::input(double memory) const {
    const auto at = std::ranges::lower_bound(memories_, memory);
    // Beyond the grid, everything fits in one piece.
    return at == memories_.end() ? 0 : step(static_cast<size_t>(at - memories_.begin()));
}

double HaloBound::Staircase::step(size_t n) const {
    if (factors_[n] == unknown) {
        // What is found for less memory is no less, which saves most of the work.
        size_t known = n;
        while (known > 0 && factors_[known] == unknown) --known;
        factors_[n] = find_(memories_[n], factors_[known] == unknown ? never : factors_[known]);
    }
    return scale_ * factors_[n];
}

namespace {

/// The least of some bounds at each memory. These outlive it.
HaloBound::Staircase least_of(std::vector<const HaloBound::Staircase*> bounds) {
    std::vector<double> memories;
    for (const HaloBound::Staircase* bound : bounds)
        memories.insert(memories.end(), bound->memories().begin(), bound->memories().end());
    std::ranges::sort(memories);
    const auto [first, last] = std::ranges::unique(memories);
    memories.erase(first, last);
    return {std::move(memories), 1, [bounds = std::move(bounds)](double memory, double most) {
                for (const HaloBound::Staircase* bound : bounds)
                    most = std::min(most, bound->input(memory));
                return most;
            }};
}

}  // namespace

/// The chain, executed in one way, and what is found for it.
struct HaloBound::Found {
    Found(std::shared_ptr<HaloTables> shared, const std::vector<LayerProblem>& problems,
          const Way& way, uint32_t free)
        : tables(std::move(shared)),
          chain(problems, way, free),
          sides{inner_sides(problems, 0), inner_sides(problems, 1)},
          factors(chain, *tables),
          map(std::make_shared<WholeMap>(
              chain, std::array{windows_along(problems, 0), windows_along(problems, 1)},
              chain.layers(), inputs(chain.layers()))) {}
    /// The same with what is told of the last layers (set_last()).
    Found(const Found& other, double last_channels, double sums, bool cuts)
        : tables(other.tables),
          chain(other.chain),
          sides(other.sides),
          factors(chain, other.factors),
          map(other.map) {
        chain.set_last(last_channels, sums, cuts);
    }

    /// Elements of a channel of A_0 that inner coordinates of A_t are counted for.
    [[nodiscard]] double inputs(size_t t) const {
        return sides[0][t] * sides[1][t] * chain.slope(t, 0, 0) * chain.slope(t, 0, 1);
    }

    /// The bound of layers 1 .. t of `found`, which is for this alone.
    [[nodiscard]] static Staircase staircase(const std::shared_ptr<Found>& found, size_t t,
                                             const Besides& besides) {
        const Chain& chain = found->chain;
        const double rows = found->sides[0][t], columns = found->sides[1][t];
        const double whole = chain.channels(0) * found->inputs(t);
        found->factors.prepare(t);
        const Besides parts{besides.per_piece / whole, besides.per_tile / whole,
                            besides.per_call / whole};
        const WholeMap* map = t < chain.layers() ? nullptr : found->map.get();
        Staircase::Find find;
        if (parts.per_call > 0) {
            find = [found, t, parts, map](double memory, double most) {
                return found->factors.least_with_calls(t, memory, *map, most, parts);
            };
        } else {
            find = [found, t, parts, map,
                    area = found->factors.areas_of(t, {rows * columns}, std::max(rows, columns))](
                       double memory, double most) {
                std::vector<double> best{most};
                found->factors.least(t, memory, area, best, parts, map);
                return best.front();
            };
        }
        return {memories_of(chain, t, std::min(rows, columns)), whole, std::move(find)};
    }

    std::shared_ptr<HaloTables> tables;
    Chain chain;
    std::array<std::vector<double>, 2> sides;  ///< inner coordinates of A_0 .. A_n
    Factors factors;
    std::shared_ptr<const WholeMap> map;  ///< of A_n
};

HaloBound::HaloBound(std::shared_ptr<HaloTables> tables, const std::vector<LayerProblem>& problems,
                     uint32_t narrow, uint32_t free, bool of_parts)
    : parts_(problems.size()) {
    const size_t n = problems.size();
    if (n < 2 || !has_no_gaps(problems) || inner_pixels(problems)[n] == 0) return;
    for (const Way& way : ways_of(problems, narrow))
        found_.push_back(std::make_shared<Found>(tables, problems, way, free));
    for (size_t t = 1; of_parts && t < n; ++t) {
        const Found& first = *found_.front();
        const auto own = std::make_shared<Found>(first, first.chain.channels(n - 1), 0, false);
        parts_[t] = Found::staircase(own, t, {});
    }
}

const HaloBound::Staircase& HaloBound::all(const End& end) const {
    static const Staircase nothing;
    if (found_.empty()) return nothing;
    if (found_.size() == 1 && end.sums == 0) return of_way(0, end, false);
    const auto known = all_.find(end);
    if (known != all_.end()) return known->second;
    std::vector<const Staircase*> bounds;
    for (size_t way = 0; way < found_.size(); ++way) {
        if (end.sums == 0) {
            bounds.push_back(&of_way(way, end, false));
            continue;
        }
        // The two of 13. One does not depend on all channels, and the other one not on sums.
        const Chain& chain = found_[way]->chain;
        End of_one = end, of_all = end;
        of_one.channels = 1;
        if (!chain.counts_output()) of_one.sums = 0;
        of_all.sums = 0;
        if (!chain.folds_once(chain.layers() - 1)) of_all.channels = 1;
        bounds.push_back(&of_way(way, of_one, false));
        bounds.push_back(&of_way(way, of_all, true));
    }
    return all_.emplace(end, least_of(std::move(bounds))).first->second;
}

const HaloBound::Staircase& HaloBound::of_way(size_t way, const End& end, bool cuts) const {
    const auto known = of_ways_.find({way, cuts, end});
    if (known != of_ways_.end()) return known->second;
    const auto own = std::make_shared<Found>(*found_[way], end.channels, end.sums, cuts);
    return of_ways_
        .emplace(
            std::tuple(way, cuts, end),
            Found::staircase(own, own->chain.layers(), {end.per_piece, end.per_tile, end.per_call}))
        .first->second;
}

}  // namespace laminate::search
