#include "scheduler/explore/group_search/halo_tables.h"

#include <algorithm>
#include <cmath>

namespace laminate::search {

namespace {

constexpr double step_of_memory = 1.03;
constexpr double step_of_area = 1.25;
constexpr double step_of_pieces = 1.15;

double span(const AxisWindow& w) { return static_cast<double>(w.span()); }

double longest_side(const std::vector<LayerProblem>& layers) {
    double longest = 1;
    for (const LayerProblem& p : layers) {
        for (const AxisWindow& w : p.window)
            longest = std::max(longest, static_cast<double>(w.out));
    }
    return longest;
}

/// More than what the buffers of any of these chains hold for the longest pieces: of each input a
/// window along one axis and all coordinates along the other.
double most_memory(const std::vector<LayerProblem>& layers) {
    double most = 1;
    for (const LayerProblem& p : layers) {
        const double window = std::max(span(p.window[0]), span(p.window[1]));
        const double side = static_cast<double>(std::max(p.window[0].in, p.window[1].in));
        most += static_cast<double>(p[Dim::i]) * window * std::max(side, window);
    }
    return most * step_of_memory;
}

std::vector<double> piece_lengths(double longest) {
    std::vector<double> lengths{1};
    while (lengths.back() < longest)
        lengths.push_back(
            std::max(lengths.back() + 1, std::floor(lengths.back() * step_of_pieces)));
    return lengths;
}

}  // namespace

Grid::Grid(double last, double factor, double least_step) : values_{1} {
    while (values_.back() < last)
        values_.push_back(std::max(values_.back() * factor, values_.back() + least_step));
    for (size_t n = 0; n < values_.size(); ++n) {
        // The value before this one is below all parts that have no entry yet.
        while (starts_.size() <= part_of(values_[n])) starts_.push_back(n);
    }
}

HaloTables::HaloTables(const std::vector<LayerProblem>& layers)
    : memory_(most_memory(layers), step_of_memory, 1),
      area_(longest_side(layers) * longest_side(layers), step_of_area),
      pieces_(piece_lengths(longest_side(layers))) {}

std::shared_ptr<const HaloTables::Table> HaloTables::table(const std::vector<double>& key,
                                                           const std::function<Table()>& make) {
    std::shared_ptr<Entry> entry;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::shared_ptr<Entry>& known = entries_[key];
        if (!known) known = std::make_shared<Entry>();
        entry = known;
    }
    std::call_once(entry->made, [&] { entry->table = std::make_shared<const Table>(make()); });
    return entry->table;
}

}  // namespace laminate::search
