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
    /// `channels`: of A_1 .. A_{n-2}.
    Chain(const std::vector<LayerProblem>& problems, const std::vector<double>& channels,
          uint32_t free)
        : n_(problems.size()),
          free_(free),
          channels_{static_cast<double>(problems.front()[Dim::i])} {
        channels_.insert(channels_.end(), channels.begin(), channels.end());
        channels_.push_back(1);
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
            }
            find_buffers(m);
        }
    }
    /// Gives A_{n-1} so many channels in its buffer.
    void set_last_channels(double channels) {
        channels_[n_ - 1] = channels;
        find_buffers(n_);
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
    /// The same for all that layers 1 .. m hold. The input of layer 1 alone counts as nothing (5).
    [[nodiscard]] Hull line(size_t m) const { return lines(m, m == 1 ? 1 : 0); }
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
        lines_.resize(chain.layers() + 1);
        of_.resize(chain.layers());
        with_buffer_.resize(chain.layers());
        for (size_t m = 1; m < chain.layers(); ++m) {
            find_lines(m);
            of_[m].assign(memory_.size() * area_.size(), never);
            for (size_t i = 0; i < memory_.size(); ++i) {
                for (size_t a = 0; a < area_.size(); ++a)
                    of_[m][i * area_.size() + a] = least(m, memory_[i], area_[a], never);
            }
            if (m + 1 < chain.layers()) divide(m);
        }
    }
    /// Finds what depends on the last channels of the chain. Comes before least() of all layers.
    void end() {
        find_lines(chain_.layers());
        divide(chain_.layers() - 1);
    }

    /// `area`: of a call of A_m, on average. No piece is longer than `most`, and each one after the
    /// first costs `per_piece`.
    [[nodiscard]] double least(size_t m, double memory, double area, double most,
                               double per_piece = 0) const {
        const double longest = std::min(most, chain_.largest(m));
        const double square = std::min(std::sqrt(area), longest);
        const auto all_pieces = [&](double short_side, double long_side) {
            return per_piece * std::max(0.0, area / (short_side * long_side) - 1);
        };
        double best = never;
        // No cut after this one.
        const double piece = std::min(square, chain_.longest_line(m, memory));
        if (piece > 0) {
            const double most_long = std::min(area / piece, longest);
            best = factor(m, 0, piece, most_long) + all_pieces(piece, most_long);
        }
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
                const double at_least = factor(m, m2, most_short, most_long) * any_calls +
                                        all_pieces(most_short, most_long);
                if (at_least >= best) continue;
                if (!chain_.moves(m, m2)) {
                    best = at_least;
                    continue;
                }
                Piece at{side, std::max(1.0, side - 1), most_short, 0, 0};
                for (double l = at.least_short; l * at.least_short <= area && l <= longest;
                     l *= step_of_long_sides) {
                    at.least_long = l;
                    // Calls of narrower pieces may be longer, but no piece is better than the squarest.
                    at.most_long =
                        std::min({l * step_of_long_sides, area / at.least_short, longest});
                    const double long_side = std::min(at.most_long, most_long);
                    const double pieces = factor(m, m2, most_short, long_side);
                    const double more = all_pieces(most_short, long_side);
                    if (pieces * any_calls + more < best)
                        best = std::min(best, pieces * std::max(any_calls,
                                                                with_calls(m, m2, memory, at)) +
                                                  more);
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
    void find_lines(size_t m) {
        lines_[m].assign(m + 1, std::vector<double>(pieces_.size(), 0));
        for (size_t j = m; j-- > 0;) {
            for (size_t p = 0; p < pieces_.size(); ++p)
                lines_[m][j][p] = lines_[m][j + 1][p] + chain_.buffer(m, j).of(pieces_[p]);
        }
    }
    /// The longest piece that the p-th stands for. Sides of pieces are integers.
    [[nodiscard]] double longest_at(size_t p, double square) const {
        return p + 1 < pieces_.size() ? std::min(square, pieces_[p + 1] - 1) : square;
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
        if (chain_.is_free(m)) return;
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

/// Memories for which the bound of layers 1 .. t is found; each stands for what is less, down to the
/// one before. Lines grow by whole columns, so the bound falls at once where memory suffices for one
/// more, and the last memory below that is among them, with and without the input of layer 1.
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
    const auto at = std::ranges::lower_bound(memories, memory);
    // Beyond the grid, everything fits in one piece.
    return at == memories.end() ? 0 : inputs[static_cast<size_t>(at - memories.begin())];
}

HaloBound::HaloBound(const std::vector<LayerProblem>& problems,
                     const std::vector<double>& channels, std::vector<End> ends, uint32_t free,
                     bool of_parts)
    : ends_(std::move(ends)), all_(ends_.size()), parts_(problems.size()) {
    const size_t n = problems.size();
    if (n < 2 || !has_no_gaps(problems)) return;
    Chain chain(problems, channels, free);
    const std::array<std::vector<double>, 2> sides{inner_sides(problems, 0),
                                                   inner_sides(problems, 1)};
    if (sides[0][n] == 0 || sides[1][n] == 0) return;
    const auto find_memories = [&](size_t t, Staircase& to) {
        to.memories = memories_of(chain, t, std::min(sides[0][t], sides[1][t]));
        return to.memories.back();
    };
    double most_memory = 1;
    for (size_t e = 0; e < ends_.size(); ++e) {
        chain.set_last_channels(ends_[e].channels);
        most_memory = std::max(most_memory, find_memories(n, all_[e]));
    }
    for (size_t t = 1; of_parts && t < n; ++t)
        most_memory = std::max(most_memory, find_memories(t, parts_[t]));
    Factors factors(chain, grid(all_.front().memories.front(), most_memory, step_of_memory));
    const auto find_inputs = [&](size_t t, double per_piece, Staircase& to) {
        const double rows = sides[0][t], columns = sides[1][t];
        const double whole = chain.channels(0) * rows * columns * chain.slope(t, 0, 0) *
                             chain.slope(t, 0, 1);
        double factor = never;
        for (const double memory : to.memories) {
            factor = std::min(factor,
                              factors.least(t, memory, rows * columns, std::max(rows, columns),
                                            per_piece / whole));
            to.inputs.push_back(whole * factor);
        }
    };
    for (size_t t = 1; of_parts && t < n; ++t) find_inputs(t, 0, parts_[t]);
    for (size_t e = 0; e < ends_.size(); ++e) {
        chain.set_last_channels(ends_[e].channels);
        factors.end();
        find_inputs(n, ends_[e].per_piece, all_[e]);
    }
}

const HaloBound::Staircase& HaloBound::all(const End& end) const {
    return all_[static_cast<size_t>(std::ranges::find(ends_, end) - ends_.begin())];
}

}  // namespace laminate::search
