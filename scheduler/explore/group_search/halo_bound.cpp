#include "scheduler/explore/group_search/halo_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

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
    int64_t count = 0;
    for (int64_t at = 0; at < problems.back().window[axis].out; ++at) {
        Range range{at, at + 1};
        bool is_inner = true;
        for (size_t k = problems.size(); k-- > 0 && is_inner;) {
            const AxisWindow& w = problems[k].window[axis];
            const int64_t first = w.transposed ? range.begin + w.pad_begin - (w.span() - 1)
                                               : range.begin * w.stride - w.pad_begin;
            const int64_t last = w.transposed
                                     ? (range.end - 1 + w.pad_begin) / w.stride
                                     : (range.end - 1) * w.stride + w.span() - 1 - w.pad_begin;
            is_inner = first >= 0 && last < w.in;
            range = window_of(w, range);
        }
        count += is_inner ? 1 : 0;
    }
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

/// Index of the first value that is no smaller. The last one stands for all larger values.
size_t up(const std::vector<double>& values, double value) {
    const auto at = std::lower_bound(values.begin(), values.end(), value);
    return std::min(static_cast<size_t>(at - values.begin()), values.size() - 1);
}

/// Layers 1 .. n as the recursion sees them, with square maps.
class Chain {
public:
    Chain(const std::vector<LayerProblem>& problems, const std::vector<double>& channels,
          uint32_t free)
        : n_(problems.size()),
          free_(free),
          channels_{static_cast<double>(problems.front()[Dim::i])} {
        channels_.insert(channels_.end(), channels.begin(), channels.end());
        for (size_t k = 1; k <= n_; ++k) {
            const LayerProblem& p = problems[k - 1];
            window_.push_back(std::min(std::ceil(hull_of(p.window[0]).of(1) - 1e-9),
                                       std::ceil(hull_of(p.window[1]).of(1) - 1e-9)));
            folds_once_.push_back(folds_once(problems, k - 1));
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
                moves = moves && !problems[j].window[0].transposed &&
                        !problems[j].window[1].transposed;
                moves_[m][j] = moves ? 1 : 0;
                const auto& both = hulls_[m][j];
                halos_[m][j] =
                    std::min(both[0].extra / both[0].slope, both[1].extra / both[1].slope);
                buffers_[m][j] = buffer_of(m, j);
                lines_[m][j] = m == j + 1 ? buffers_[m][j] : sum(lines_[m][j + 1], buffers_[m][j]);
                areas_[m][j] = areas_[m][j + 1];
                areas_[m][j].add(lesser(both[0], both[1]), is_free(j) ? 0 : channels_[j]);
            }
        }
    }

    [[nodiscard]] size_t layers() const { return n_; }
    /// Channels of A_j in its buffer.
    [[nodiscard]] double channels(size_t j) const { return channels_[j]; }
    [[nodiscard]] bool is_free(size_t j) const { return (free_ >> j & 1U) != 0; }
    /// The longer side of A_m.
    [[nodiscard]] double largest(size_t m) const { return largest_[m - 1]; }
    [[nodiscard]] double slope(size_t m, size_t j, size_t axis) const {
        return hulls_[m][j][axis].slope;
    }
    /// Pieces of p coordinates of A_m read 1 + halo / p times as much of A_j as one piece would.
    [[nodiscard]] double halo(size_t m, size_t j) const { return halos_[m][j]; }
    /// The buffer of A_j for pieces of p coordinates of A_m, as slope * p + extra.
    [[nodiscard]] Hull buffer(size_t m, size_t j) const { return buffers_[m][j]; }
    /// The same for all of A_{m-1} .. A_j together.
    [[nodiscard]] Hull lines(size_t m, size_t j) const { return lines_[m][j]; }
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

private:
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
    std::vector<double> window_, channels_, largest_;
    std::vector<char> folds_once_;
    std::vector<std::vector<std::array<Hull, 2>>> hulls_;  ///< [m][j]: from A_m down to A_j
    std::vector<std::vector<double>> halos_;               ///< [m][j]
    std::vector<std::vector<Hull>> buffers_;               ///< [m][j]
    std::vector<std::vector<Hull>> lines_;                 ///< [m][j]
    std::vector<std::vector<Area>> areas_;                 ///< [m][j]
    std::vector<std::vector<char>> moves_;                 ///< [m][j]
};

constexpr double step_of_memory = 1.1;
constexpr double step_of_answer = 1.02;  ///< memory of the whole group
constexpr double step_of_area = 1.25;
constexpr double step_of_pieces = 1.15;
constexpr double step_of_long_sides = 2;

/// Lengths of pieces: all integers up to some length, then by a factor.
std::vector<double> piece_lengths(double longest) {
    std::vector<double> lengths{1};
    while (lengths.back() < longest)
        lengths.push_back(
            std::max(lengths.back() + 1, std::floor(lengths.back() * step_of_pieces)));
    return lengths;
}

/// The least factors of the first m layers, by the memory of A_1 .. A_{m-1} and the area of the
/// calls of A_m.
class Factors {
public:
    Factors(const Chain& chain, std::vector<double> memory)
        : chain_(chain), memory_(std::move(memory)) {
        double most = 0;
        for (size_t m = 1; m <= chain.layers(); ++m) most = std::max(most, chain.largest(m));
        area_ = grid(1, most * most, step_of_area);
        pieces_ = piece_lengths(most);
        find_lines();
        of_.resize(chain.layers());
        with_buffer_.resize(chain.layers());
        for (size_t m = 1; m < chain.layers(); ++m) {
            of_[m].assign(memory_.size() * area_.size(), never);
            for (size_t i = 0; i < memory_.size(); ++i) {
                for (size_t a = 0; a < area_.size(); ++a)
                    of_[m][i * area_.size() + a] = least(m, memory_[i], area_[a], never);
            }
            if (!chain_.is_free(m)) divide(m);
        }
    }

    /// `area`: of pieces of A_m, on average; none is longer than `most`.
    [[nodiscard]] double least(size_t m, double memory, double area, double most) const {
        const double longest = std::min(most, chain_.largest(m));
        const double square = std::min(std::sqrt(area), longest);
        double best = never;
        // No cut after this one.
        const double piece = longest_piece(m, memory, square);
        if (piece > 0) best = factor(m, 0, piece, std::min(area / piece, longest));
        // The next cut is at m2. Pieces between two values of the grid stand for each other.
        for (size_t m2 = m; m2-- > 1;) {
            for (size_t p = 0; p < pieces_.size() && pieces_[p] - 1 < square; ++p) {
                const double side = pieces_[p];
                const double rest = memory - lines(m, m2 + 1)[p];
                const double own = chain_.buffer(m, m2).of(side);
                if (rest < own) break;
                const double most_short = longest_at(p, square);
                const double any_calls = with_buffer(m2, rest, own);
                const double most_long = std::min(area / most_short, longest);
                if (factor(m, m2, most_short, most_long) * any_calls >= best) continue;
                if (!chain_.moves(m, m2)) {
                    best = factor(m, m2, most_short, most_long) * any_calls;
                    continue;
                }
                Piece at{side, std::max(1.0, side - 1), most_short, 0, 0};
                for (double l = at.least_short; l * at.least_short <= area && l <= longest;
                     l *= step_of_long_sides) {
                    at.least_long = l;
                    // Calls of narrower pieces may be longer, but no piece is better than the squarest.
                    at.most_long =
                        std::min({l * step_of_long_sides, area / at.least_short, longest});
                    const double pieces =
                        factor(m, m2, most_short, std::min(at.most_long, most_long));
                    if (pieces * any_calls < best)
                        best = std::min(best, pieces * std::max(any_calls,
                                                                with_calls(m, m2, memory, at)));
                }
            }
        }
        return best;
    }

private:
    /// Pieces whose average sides lie within bounds.
    struct Piece {
        double side = 1;  ///< the shorter one of the largest piece, at least
        double least_short = 1, most_short = 1;
        double least_long = 1, most_long = 1;
    };

    [[nodiscard]] double factor(size_t m, size_t j, double short_side, double long_side) const {
        const double halo = chain_.halo(m, j);
        return (1 + halo / short_side) * (1 + halo / long_side);
    }

    /// The factor of layers 1 .. m2 after a cut into such pieces of A_m, by the axes along which
    /// the calls of A_m2 are whole (6).
    [[nodiscard]] double with_calls(size_t m, size_t m2, double memory, const Piece& at) const {
        const auto whole = [&](double side) { return chain_.most_read(m, m2, side); };
        const auto moving = [&](double side) { return chain_.most_read(m, m2, side) / side; };
        const double longer = std::max(at.side, at.least_long);
        // Along the shorter side, or none; along the longer one; along both.
        const double one = with_area(m2, memory - chain_.lines(m, m2).of(at.side),
                                     whole(at.most_short) * moving(at.least_long));
        const double other = with_area(m2, memory - chain_.lines(m, m2).of(longer),
                                       whole(at.most_long) * moving(at.least_short));
        const double both = with_area(m2, memory - chain_.areas(m, m2, at.side, longer),
                                      whole(at.most_short) * whole(at.most_long));
        return std::min({one, other, both});
    }

    /// The factor of layers 1 .. m if `memory` is left beside A_m, whose calls have at most `area`
    /// on average.
    [[nodiscard]] double with_area(size_t m, double memory, double area) const {
        if (memory < 0) return never;
        return of_[m][up(memory_, memory) * area_.size() + up(area_, area)];
    }

    /// By piece: the least memory of A_{m-1} .. A_j for pieces of A_m.
    [[nodiscard]] const std::vector<double>& lines(size_t m, size_t j) const {
        return lines_[m][j];
    }
    void find_lines() {
        lines_.resize(chain_.layers() + 1);
        for (size_t m = 1; m <= chain_.layers(); ++m) {
            lines_[m].assign(m + 1, std::vector<double>(pieces_.size(), 0));
            for (size_t j = m; j-- > 0;) {
                for (size_t p = 0; p < pieces_.size(); ++p)
                    lines_[m][j][p] = lines_[m][j + 1][p] + chain_.buffer(m, j).of(pieces_[p]);
            }
        }
    }
    /// The longest piece that the p-th stands for. Sides of pieces are integers.
    [[nodiscard]] double longest_at(size_t p, double square) const {
        return p + 1 < pieces_.size() ? std::min(square, pieces_[p + 1] - 1) : square;
    }
    /// The longest pieces of A_m, at most `square`, for which `memory` suffices without a cut; 0 if
    /// it suffices for none.
    [[nodiscard]] double longest_piece(size_t m, double memory, double square) const {
        const std::vector<double>& all = lines(m, m == 1 ? 1 : 0);
        const auto after = std::ranges::upper_bound(all, memory) - all.begin();
        return after == 0 ? 0 : longest_at(static_cast<size_t>(after - 1), square);
    }

    /// The factor of layers 1 .. m with a cut at m, if A_1 .. A_m have `memory`, of which A_m has
    /// at least `least_buffer`.
    [[nodiscard]] double with_buffer(size_t m, double memory, double least_buffer) const {
        if (chain_.is_free(m)) return of_[m][(up(memory_, memory) + 1) * area_.size() - 1];
        const auto after =
            std::upper_bound(memory_.begin(), memory_.end(), least_buffer) - memory_.begin();
        return with_buffer_[m][up(memory_, memory) * memory_.size() +
                               static_cast<size_t>(std::max<std::ptrdiff_t>(after - 1, 0))];
    }

    void divide(size_t m) {
        with_buffer_[m].assign(memory_.size() * memory_.size(), never);
        for (size_t i = 0; i < memory_.size(); ++i) {
            double best = never;
            for (size_t b = i + 1; b-- > 0;) {
                // The buffer has from memory_[b] up to the next value, but at most all memory. For
                // b == 0 it has anything up to that.
                const double most_buffer =
                    b + 1 < memory_.size() ? std::min(memory_[b + 1], memory_[i]) : memory_[i];
                const double others = b == 0 ? memory_[i] : memory_[i] - memory_[b];
                const size_t a = up(area_, most_buffer / chain_.channels(m));
                best = std::min(best, of_[m][up(memory_, others) * area_.size() + a]);
                with_buffer_[m][i * memory_.size() + b] = best;
            }
        }
    }

    const Chain& chain_;
    std::vector<double> memory_, area_, pieces_;
    std::vector<std::vector<std::vector<double>>> lines_;  ///< [m][j][piece]
    std::vector<std::vector<double>> of_;                  ///< [m][memory, area]
    std::vector<std::vector<double>> with_buffer_;         ///< [m][memory, least buffer]
};

/// Whether all inputs between two that are read are read too.
bool has_no_gaps(const std::vector<LayerProblem>& problems) {
    return std::ranges::all_of(problems, [](const LayerProblem& p) {
        return std::ranges::all_of(p.window, [](const AxisWindow& w) {
            return span(w) >= static_cast<double>(w.stride);
        });
    });
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

HaloBound::HaloBound(const std::vector<LayerProblem>& problems,
                     const std::vector<double>& channels, uint32_t free, bool of_parts)
    : layers_(problems.size()), input_(layers_ + 1) {
    const size_t n = layers_;
    if (n < 2 || !has_no_gaps(problems)) return;
    const Chain chain(problems, channels, free);
    const std::array<std::vector<double>, 2> sides{inner_sides(problems, 0),
                                                   inner_sides(problems, 1)};
    if (sides[0][n] == 0 || sides[1][n] == 0) return;
    double most_memory = 0;
    double least_memory = 0;
    for (size_t j = 0; j < n; ++j) {
        most_memory += chain.buffer(n, j).of(std::min(sides[0][n], sides[1][n]));
        if (j > 0 && !chain.is_free(j)) least_memory += chain.channels(j);
    }
    memory_ = grid(std::max(1.0, least_memory), most_memory, step_of_answer);
    const Factors factors(chain, grid(memory_.front(), memory_.back(), step_of_memory));
    for (size_t t = of_parts ? 1 : n; t <= n; ++t) {
        const double rows = sides[0][t], columns = sides[1][t];
        const double whole = chain.channels(0) * rows * columns * chain.slope(t, 0, 0) *
                             chain.slope(t, 0, 1);
        for (const double memory : memory_)
            input_[t].push_back(whole * factors.least(t, memory, rows * columns,
                                                      std::max(rows, columns)));
    }
}

double HaloBound::input(size_t t, double memory) const {
    const auto at = std::lower_bound(memory_.begin(), memory_.end(), memory);
    // Beyond the grid, everything fits in one piece.
    return at == memory_.end() ? 0 : input_[t][static_cast<size_t>(at - memory_.begin())];
}

}  // namespace laminate::search
