// What bounds of halos (halo_bound.h) find for the first layers of a chain. It depends on nothing
// behind these layers, so all chains of a network that begin alike share it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// Values that rise by a factor from 1 on.
class Grid {
public:
    /// Up to `last`, or beyond it. Neighbours differ by no less than `least_step`.
    Grid(double last, double factor, double least_step = 0);

    [[nodiscard]] size_t size() const { return values_.size(); }
    [[nodiscard]] double operator[](size_t n) const { return values_[n]; }
    /// Index of the first value that is no smaller. The last one stands for all larger values.
    [[nodiscard]] size_t up(double value) const {
        if (!(value > 1)) return 0;
        size_t n = starts_[std::min(part_of(value), starts_.size() - 1)];
        while (n + 1 < values_.size() && values_[n] < value) ++n;
        return n;
    }
    /// Index of the last value that is no larger; 0 if there is none.
    [[nodiscard]] size_t down(double value) const {
        const size_t n = up(value);
        return n > 0 && values_[n] > value ? n - 1 : n;
    }

private:
    /// An octave has 16 parts, told apart by the exponent and the first bits of the mantissa.
    static size_t part_of(double value) {
        constexpr int bits = 48;
        return static_cast<size_t>((std::bit_cast<uint64_t>(value) >> bits) -
                                   (std::bit_cast<uint64_t>(1.0) >> bits));
    }

    std::vector<double> values_;
    std::vector<size_t> starts_;  ///< by part: index of the first value that is not below it
};

/// Several threads may use it at the same time.
class HaloTables {
public:
    /// The tables serve all chains of these layers.
    explicit HaloTables(const std::vector<LayerProblem>& layers);

    [[nodiscard]] const Grid& memory() const { return memory_; }
    [[nodiscard]] const Grid& area() const { return area_; }
    /// Lengths of pieces: all integers up to some length, then by a factor.
    [[nodiscard]] const std::vector<double>& pieces() const { return pieces_; }

    /// Bounds, rounded down: tables are most of what a search keeps.
    using Table = std::vector<float>;
    [[nodiscard]] static float rounded_down(double value) {
        const auto nearest = static_cast<float>(value);
        return nearest > value ? std::nextafter(nearest, 0.0F) : nearest;
    }
    /// The table of a key, which `make` makes if nobody did before.
    [[nodiscard]] std::shared_ptr<const Table> table(const std::vector<double>& key,
                                                     const std::function<Table()>& make);

private:
    struct Entry {
        std::once_flag made;
        std::shared_ptr<const Table> table;
    };

    Grid memory_, area_;
    std::vector<double> pieces_;
    std::mutex mutex_;  ///< guards `entries_`
    std::map<std::vector<double>, std::shared_ptr<Entry>> entries_;
};

}  // namespace laminate::search
