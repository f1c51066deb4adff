#include "scheduler/explore/group_search/halo_borders.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

/// What `range` of the last layer's outputs reads; of tensors between, what their borders leave.
Range read_by_all(std::span<const AxisWindow> layers, Range range) {
    for (size_t k = layers.size(); k-- > 0 && range.size() > 0;)
        range = window_of(layers[k], range);
    return range;
}

}  // namespace

std::vector<AxisWindow> windows_along(const std::vector<LayerProblem>& problems, size_t axis) {
    std::vector<AxisWindow> windows;
    for (const LayerProblem& p : problems) windows.push_back(p.window[axis]);
    return windows;
}

bool meets_no_border(std::span<const AxisWindow> layers, int64_t at) {
    Range range{at, at + 1};
    for (size_t k = layers.size(); k-- > 0;) {
        const AxisWindow& w = layers[k];
        const int64_t first = w.transposed ? range.begin + w.pad_begin - (w.span() - 1)
                                           : range.begin * w.stride - w.pad_begin;
        const int64_t last = w.transposed ? (range.end - 1 + w.pad_begin) / w.stride
                                          : (range.end - 1) * w.stride + w.span() - 1 - w.pad_begin;
        if (first < 0 || last >= w.in) return false;
        range = window_of(w, range);
    }
    return true;
}

PieceReads::PieceReads(const std::vector<AxisWindow>& chain, size_t t, double slope, double extra)
    : layers_(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(t)),
      slope_(slope),
      extra_(extra),
      outputs_(read_by_all(std::span(chain).subspan(t), {0, chain.back().out})),
      needed_(hull_of(outputs_)),
      first_inner_(outputs_.begin),
      end_of_inner_(outputs_.end) {
    for (int64_t at = outputs_.begin; at < outputs_.end; ++at)
        readers_ += hull_of({at, at + 1}) > 0 ? 1 : 0;
    while (first_inner_ < outputs_.end && !meets_no_border(layers_, first_inner_)) ++first_inner_;
    while (end_of_inner_ > first_inner_ && !meets_no_border(layers_, end_of_inner_ - 1))
        --end_of_inner_;
}

double PieceReads::inner_of(double piece) const {
    if (2 * piece - 1 <= inner()) return piece;
    if (inner_of_.empty()) {
        // Of pieces of `size`, one has most inner coordinates; longer ones may have fewer.
        inner_of_.resize(outputs_.size() + 1);
        auto least = static_cast<int64_t>(inner());
        for (int64_t size = outputs_.size(); size > 0; --size) {
            int64_t most = 0;
            for (int64_t first = outputs_.begin; first < end_of_inner_; first += size)
                most = std::max(
                    most, std::min(first + size, end_of_inner_) - std::max(first, first_inner_));
            inner_of_[size] = least = std::min(least, most);
        }
    }
    const auto size = static_cast<int64_t>(std::ceil(piece));
    return static_cast<double>(inner_of_[std::min(size, outputs_.size())]);
}

double PieceReads::pieces(int64_t longest) const {
    return limits(longest) ? static_cast<double>(ceil_div(readers_, longest)) : 1;
}

double PieceReads::read_by(int64_t longest) const {
    if (longest > longest_piece || !limits(longest)) return needed_;
    double& known = known_[static_cast<size_t>(longest)];
    if (known == 0) known = least_read(longest);
    return known;
}

double PieceReads::hull_of(Range piece) const {
    return static_cast<double>(std::max<int64_t>(0, read_by_all(layers_, piece).size()));
}

double PieceReads::least_read(int64_t longest) const {
    const double inner = slope_ + extra_ / static_cast<double>(longest);
    IndexVector<double, int64_t> least(outputs_.size(), std::numeric_limits<double>::infinity());
    for (int64_t at = first_inner_; at < end_of_inner_; ++at) least[at - outputs_.begin] = inner;
    for (int64_t first = outputs_.begin; first < outputs_.end; ++first) {
        // No piece that begins here reaches a border.
        if (first == first_inner_) first = std::max(first, end_of_inner_ - longest + 1);
        const int64_t shortest = first < first_inner_ ? 1 : end_of_inner_ - first + 1;
        for (int64_t size = std::max<int64_t>(shortest, 1);
             size <= longest && first + size <= outputs_.end; ++size) {
            const Range piece{first, first + size};
            const double each = hull_of(piece) / static_cast<double>(size);
            for (int64_t at = piece.begin; at < piece.end; ++at) {
                double& own = least[at - outputs_.begin];
                own = std::min(own, each);
            }
        }
    }
    double sum = 0;
    for (const double own : least) sum += own;
    return std::max(sum, needed_);
}

}  // namespace laminate::search
