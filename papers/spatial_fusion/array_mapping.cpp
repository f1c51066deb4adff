#include "papers/spatial_fusion/array_mapping.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/units.h"
#include "scheduler/explore/options.h"

namespace laminate::spatial_fusion {

namespace {

struct Size {
    int64_t columns = 1;
    int64_t rows = 1;
    friend auto operator<=>(const Size&, const Size&) = default;
    [[nodiscard]] int64_t area() const { return columns * rows; }
};

struct Place {
    int64_t column = 0;
    int64_t row = 0;
};

/// Lays rectangles on an array. If all are pushed down and left as far as they go, each begins at a
/// sum of the widths (heights) of some others, so these sums are all the places to try.
class Packer {
public:
    /// `steps` counts down the places that may be tried in all.
    Packer(Size array, int64_t& steps) : array_(array), steps_(steps) {}

    /// Places in the order of `sizes`. nullopt if they do not fit, or if too many places were
    /// tried; gave_up() tells which.
    [[nodiscard]] std::optional<std::vector<Place>> pack(const std::vector<Size>& sizes) {
        constexpr int64_t most_places = 50'000;
        steps_of_this_ = std::min(steps_, most_places);
        gave_up_ = false;
        sizes_ = sizes;
        order_.resize(sizes.size());
        std::iota(order_.begin(), order_.end(), size_t{0});
        std::ranges::stable_sort(
            order_, [&](size_t a, size_t b) { return sizes[a].area() > sizes[b].area(); });
        columns_ = ends(&Size::columns, array_.columns);
        rows_ = ends(&Size::rows, array_.rows);
        places_.assign(sizes.size(), {});
        if (!place(0)) return {};
        return places_;
    }
    [[nodiscard]] bool gave_up() const { return gave_up_; }

private:
    [[nodiscard]] std::vector<int64_t> ends(int64_t Size::*extent, int64_t limit) const {
        std::set<int64_t> sums{0};
        for (const Size& size : sizes_) {
            std::set<int64_t> more = sums;
            for (const int64_t sum : sums)
                if (sum + size.*extent < limit) more.insert(sum + size.*extent);
            sums = std::move(more);
        }
        return {sums.begin(), sums.end()};
    }

    [[nodiscard]] bool is_free(size_t n, Place at) const {
        for (size_t m = 0; m < n; ++m) {
            const Size& other = sizes_[order_[m]];
            const Place& there = places_[order_[m]];
            if (at.column < there.column + other.columns &&
                there.column < at.column + sizes_[order_[n]].columns &&
                at.row < there.row + other.rows && there.row < at.row + sizes_[order_[n]].rows)
                return false;
        }
        return true;
    }

    bool place(size_t n) {
        if (n == order_.size()) return true;
        const Size& size = sizes_[order_[n]];
        for (const int64_t row : rows_) {
            if (row + size.rows > array_.rows) break;
            for (const int64_t column : columns_) {
                if (column + size.columns > array_.columns) break;
                --steps_;
                if (--steps_of_this_ < 0) {
                    gave_up_ = true;
                    return false;
                }
                if (!is_free(n, {column, row})) continue;
                places_[order_[n]] = {column, row};
                if (place(n + 1)) return true;
            }
        }
        return false;
    }

    Size array_;
    int64_t& steps_;
    int64_t steps_of_this_ = 0;
    bool gave_up_ = false;
    std::vector<Size> sizes_;
    std::vector<size_t> order_;
    std::vector<int64_t> columns_;
    std::vector<int64_t> rows_;
    std::vector<Place> places_;
};

/// Branch and bound over the sizes of the layers' sub-arrays.
class PartitionSearch {
public:
    PartitionSearch(const Stack& stack, const std::vector<int64_t>& tile_rows,
                    const ArrayMachine& machine, Together together, int64_t max_steps)
        : array_{machine.columns, machine.rows},
          together_(together),
          steps_(max_steps),
          packer_(array_, steps_) {
        for (size_t l = 0; l < stack.size(); ++l) {
            std::vector<Option> options;
            for (const int64_t columns : tile_sizes(machine.columns, TileSizes::divisors)) {
                for (const int64_t rows : tile_sizes(machine.rows, TileSizes::divisors)) {
                    if (const auto mapping = row_stationary(stack[l], columns, rows, tile_rows[l]))
                        options.push_back({{columns, rows}, *mapping});
                }
            }
            // A sub-array is never needed if a smaller one is no slower.
            std::vector<Option> kept;
            for (const Option& option : options) {
                const bool beaten = std::ranges::any_of(options, [&](const Option& other) {
                    return other.size != option.size && other.size.columns <= option.size.columns &&
                           other.size.rows <= option.size.rows &&
                           other.mapping.cycles <= option.mapping.cycles;
                });
                if (!beaten) kept.push_back(option);
            }
            std::ranges::stable_sort(kept, {}, [](const Option& option) {
                return std::pair(option.mapping.cycles, option.size);
            });
            options_.push_back(std::move(kept));
        }
        // The layers that remain need at least these cycles and PEs.
        least_cycles_.assign(stack.size() + 1, 0);
        least_area_.assign(stack.size() + 1, 0);
        for (size_t l = stack.size(); l-- > 0;) {
            if (options_[l].empty()) return;
            int64_t area = options_[l].front().size.area();
            for (const Option& option : options_[l]) area = std::min(area, option.size.area());
            least_area_[l] = least_area_[l + 1] + area;
            least_cycles_[l] =
                together_cycles(options_[l].front().mapping.cycles, least_cycles_[l + 1]);
        }
        chosen_.resize(stack.size());
    }

    [[nodiscard]] std::optional<SpatialPartition> run() {
        for (const auto& options : options_)
            if (options.empty()) return {};
        begin_small();
        choose(0, 0, 0);
        if (best_) best_->least_cycles = steps_ < 0 || gave_up_ ? least_cycles_[0] : best_->cycles;
        return best_;
    }

private:
    struct Option {
        Size size;
        RowStationary mapping;
    };

    [[nodiscard]] int64_t together_cycles(int64_t a, int64_t b) const {
        return together_ == Together::serial ? a + b : std::max(a, b);
    }

    [[nodiscard]] int64_t chosen_cycles() const {
        int64_t cycles = 0;
        for (const Option* option : chosen_)
            cycles = together_cycles(cycles, option->mapping.cycles);
        return cycles;
    }

    /// Finds a first partition: begins with the smallest sub-arrays and enlarges, one at a time,
    /// the one that gains most.
    void begin_small() {
        for (size_t l = 0; l < options_.size(); ++l)
            chosen_[l] = &*std::ranges::min_element(options_[l], {}, [](const Option& option) {
                return std::pair(option.size.area(), option.mapping.cycles);
            });
        keep_if_it_fits(chosen_cycles());
        for (bool better = best_.has_value(); better;) {
            better = false;
            std::vector<const Option*> next = chosen_;
            const std::vector<const Option*> now = chosen_;
            for (size_t l = 0; l < options_.size(); ++l) {
                for (const Option& option : options_[l]) {
                    chosen_ = now;
                    chosen_[l] = &option;
                    int64_t area = 0;
                    for (const Option* chosen : chosen_) area += chosen->size.area();
                    if (chosen_cycles() >= best_->cycles || area > array_.area()) continue;
                    keep_if_it_fits(chosen_cycles());
                    if (best_->cycles != chosen_cycles()) continue;
                    next = chosen_;
                    better = true;
                }
            }
            chosen_ = next;
        }
    }

    void choose(size_t l, int64_t cycles, int64_t area) {
        if (steps_ < 0 || (best_ && together_cycles(cycles, least_cycles_[l]) >= best_->cycles))
            return;
        if (l == options_.size()) {
            keep_if_it_fits(cycles);
            return;
        }
        for (const Option& option : options_[l]) {
            if (--steps_ < 0) return;
            if (area + option.size.area() + least_area_[l + 1] > array_.area()) continue;
            chosen_[l] = &option;
            choose(l + 1, together_cycles(cycles, option.mapping.cycles),
                   area + option.size.area());
        }
    }

    void keep_if_it_fits(int64_t cycles) {
        std::vector<Size> sizes;
        for (const Option* option : chosen_) sizes.push_back(option->size);
        std::vector<Size> multiset = sizes;
        std::ranges::sort(multiset);
        if (does_not_fit_.contains(multiset)) return;
        const auto places = packer_.pack(sizes);
        if (!places) {
            gave_up_ = gave_up_ || packer_.gave_up();
            does_not_fit_.insert(std::move(multiset));  // or the packer gave up
            return;
        }
        best_.emplace();
        best_->cycles = cycles;
        for (size_t l = 0; l < sizes.size(); ++l)
            best_->layers.push_back({sizes[l].columns, sizes[l].rows, (*places)[l].column,
                                     (*places)[l].row, chosen_[l]->mapping});
    }

    Size array_;
    Together together_;
    int64_t steps_;
    Packer packer_;
    std::vector<std::vector<Option>> options_;
    std::vector<int64_t> least_cycles_;
    std::vector<int64_t> least_area_;
    std::vector<const Option*> chosen_;
    std::set<std::vector<Size>> does_not_fit_;
    bool gave_up_ = false;  ///< the packer did, on sub-arrays that may fit
    std::optional<SpatialPartition> best_;
};

int64_t largest_divisor(int64_t extent, int64_t limit) {
    int64_t largest = 1;
    for (const int64_t divisor : tile_sizes(extent, TileSizes::divisors))
        if (divisor <= limit) largest = divisor;
    return largest;
}

}  // namespace

std::optional<RowStationary> row_stationary(const LayerProblem& layer, int64_t columns,
                                            int64_t rows, int64_t tile_rows) {
    if (layer.y().kernel > columns) return {};
    RowStationary best;
    best.in_channels = largest_divisor(layer[Dim::i], columns / layer.y().kernel);
    for (const int64_t out_rows : tile_sizes(layer[Dim::y], TileSizes::divisors)) {
        if (out_rows > std::min(rows, tile_rows)) break;
        const int64_t out_channels = largest_divisor(layer[Dim::z], rows / out_rows);
        if (out_channels * out_rows > best.out_channels * best.out_rows)
            best.out_channels = out_channels, best.out_rows = out_rows;
    }
    best.cycles = checked_multiply(
        checked_multiply(layer[Dim::z] / best.out_channels, layer[Dim::i] / best.in_channels),
        checked_multiply(layer[Dim::y] / best.out_rows,
                         checked_multiply(layer[Dim::x], layer.x().kernel)));
    return best;
}

std::vector<int64_t> output_tile_rows(const Stack& stack, int64_t bottom_tile_rows) {
    const std::vector<int64_t> spans = tile_spans(stack, 0, bottom_tile_rows);
    std::vector<int64_t> rows;
    for (size_t l = 0; l < stack.size(); ++l)
        rows.push_back(
            std::min(stack[l][Dim::y], l + 1 < stack.size() ? spans[l + 1] : bottom_tile_rows));
    return rows;
}

std::optional<TemporalPartition> temporal_partition(const Stack& stack, int64_t bottom_tile_rows,
                                                    const ArrayMachine& machine) {
    const std::vector<int64_t> tile_rows = output_tile_rows(stack, bottom_tile_rows);
    TemporalPartition result;
    result.register_bytes = machine.register_bytes / static_cast<int64_t>(stack.size());
    result.register_sections = machine.register_sections;
    if (result.register_sections)
        for (int64_t& bytes : *result.register_sections)
            bytes /= static_cast<int64_t>(stack.size());
    for (size_t l = 0; l < stack.size(); ++l) {
        const auto mapping = row_stationary(stack[l], machine.columns, machine.rows, tile_rows[l]);
        if (!mapping) return {};
        result.layers.push_back(*mapping);
        result.cycles = checked_add(result.cycles, mapping->cycles);
    }
    return result;
}

const char* to_string(Together together) {
    return together == Together::serial ? "serial" : "parallel";
}

std::optional<SpatialPartition> spatial_partition(const Stack& stack, int64_t bottom_tile_rows,
                                                  const ArrayMachine& machine, Together together,
                                                  int64_t max_steps) {
    return PartitionSearch(stack, output_tile_rows(stack, bottom_tile_rows), machine, together,
                           max_steps)
        .run();
}

double communication_cycles(int64_t volume, const ArrayMachine& machine) {
    return static_cast<double>(checked_multiply(volume, machine.element_bytes())) /
           machine.dram_bytes_per_cycle;
}

std::optional<double> energy_pj(int64_t operations, int64_t volume, const ArrayMachine& machine) {
    if (!machine.mac_pj) return {};
    return static_cast<double>(operations) *
               (*machine.mac_pj + machine.on_chip_accesses_per_mac * machine.on_chip_pj) +
           static_cast<double>(volume) * (machine.dram_pj + machine.on_chip_pj);
}

double ctc_ratio(int64_t operations, int64_t volume, const ArrayMachine& machine) {
    return static_cast<double>(operations) / (machine.ctc_divisor * static_cast<double>(volume));
}

}  // namespace laminate::spatial_fusion
