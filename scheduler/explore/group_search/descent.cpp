#include "scheduler/explore/group_search/descent.h"

#include <algorithm>

namespace laminate::search {

bool Descent::start(const std::vector<AxisTree*>& axes, const std::vector<double>& coefficients,
                    const CostPlan& plan) {
    axes_ = axes;
    coefficients_ = coefficients;
    plan_ = &plan;
    rows_of_.clear();
    rows_of_.resize(axes_.size());
    at_.assign(axes_.size(), 0);
    return std::none_of(axes_.begin(), axes_.end(),
                        [](const AxisTree* axis) { return axis->empty(); });
}

void Descent::search(const PartialChoice& choice) {
    choice_ = &choice;
    descend();
    choice_ = nullptr;
}

bool Descent::mark() {
    any_ = false;
    descend();
    return any_;
}

void Descent::note_open(int depth, Archive<Nothing>& open) {
    const Cost cost = bound();
    if (!incumbents_.is_wanted(cost)) return;
    const size_t widest = widest_axis();
    if (depth == 0 || widest == axes_.size()) {
        open.offer(cost, {});
        return;
    }
    const uint32_t before = at_[widest];
    const AxisTree::Node& node = axes_[widest]->node(before);
    for (const uint32_t half : {node.left, node.right}) {
        at_[widest] = half;
        note_open(depth - 1, open);
    }
    at_[widest] = before;
}

Cost Descent::bound() const {
    double product[max_terms];
    std::copy(coefficients_.begin(), coefficients_.end(), product);
    for (size_t a = 0; a < axes_.size(); ++a)
        axes_[a]->multiply(at_[a], product);
    return plan_->cost(product);
}

void Descent::descend() {
    if (choice_ == nullptr && any_ && is_marked()) return;
    const Cost cost = bound();
    ++work_.steps;
    if (!incumbents_.is_wanted(cost)) return;
    const size_t widest = widest_axis();
    if (widest == axes_.size()) {
        work_.evaluated += choice_ != nullptr ? 1 : 0;
        take(cost);
        return;
    }
    if (is_small()) {
        scan();
        return;
    }
    const uint32_t before = at_[widest];
    const AxisTree::Node node = axes_[widest]->node(before);
    for (const uint32_t half : {node.left, node.right}) {
        at_[widest] = half;
        descend();
    }
    at_[widest] = before;
}

/// The axis to halve next, or the number of axes if each is down to one option.
size_t Descent::widest_axis() const {
    size_t widest = axes_.size();
    double spread = 0;
    for (size_t a = 0; a < axes_.size(); ++a) {
        const double s = axes_[a]->node(at_[a]).spread;
        if (s > spread) {
            widest = a;
            spread = s;
        }
    }
    return widest;
}

/// Takes the one combination that is left, which no incumbent beats.
void Descent::take(const Cost& cost) {
    any_ = true;
    if (choice_ != nullptr) {
        incumbents_.offer(cost, taken());
    } else {
        axes_[0]->mark(at_[0]);
        axes_[1]->mark(at_[1]);
    }
}

GroupChoice Descent::taken() const {
    GroupChoice taken;
    const int layers = space_.layers();
    for (int k = 1; k <= layers; ++k) {
        taken.structures.push_back(choice_->structure(k));
        const LayerProblem& p = space_.problem(k);
        const auto from_last = static_cast<size_t>(layers - k);
        PerDim<int64_t> tiles;
        tiles[Dim::y] = axes_[0]->tiles(at_[0])[from_last];
        tiles[Dim::x] = axes_[1]->tiles(at_[1])[from_last];
        // Axis 2 + n - j has the channels of A_j: T_i of the reader and T_z of the producer.
        const size_t outputs = 2 + from_last;
        const size_t inputs = outputs + 1;
        tiles[Dim::z] = axes_[outputs]->tiles(at_[outputs])[1];
        tiles[Dim::i] = p.groups > 1 ? p[Dim::i] : axes_[inputs]->tiles(at_[inputs])[0];
        taken.tiles.push_back(tiles);
    }
    return taken;
}

// Below GroupSearchOptions::most_in_a_grid combinations, evaluating each is cheaper than bounding
// sets of them. They are evaluated in rows along the axis with the most options.

bool Descent::is_small() const {
    double combinations = 1;
    for (size_t a = 0; a < axes_.size(); ++a)
        combinations *= static_cast<double>(axes_[a]->node(at_[a]).count);
    return combinations <= static_cast<double>(options_.most_in_a_grid);
}

void Descent::scan() {
    grid_axes_.clear();
    for (size_t a = 0; a < axes_.size(); ++a) {
        if (axes_[a]->node(at_[a]).count > 1) grid_axes_.push_back(a);
    }
    std::sort(grid_axes_.begin(), grid_axes_.end(), [&](size_t a, size_t b) {
        return axes_[a]->node(at_[a]).count < axes_[b]->node(at_[b]).count;
    });
    const size_t row_axis = grid_axes_.back();
    const size_t count = coefficients_.size();
    grid_products_.resize(grid_axes_.size() * count);
    double* product = grid_products_.data();
    std::copy(coefficients_.begin(), coefficients_.end(), product);
    for (size_t a = 0; a < axes_.size(); ++a) {
        const AxisTree& axis = *axes_[a];
        if (axis.node(at_[a]).count == 1) axis.multiply(at_[a], product);
    }
    axes_[row_axis]->multiply_fixed(product);
    if (!rows_of_[row_axis]) rows_of_[row_axis].emplace(*plan_, *axes_[row_axis]);
    scan_from(0, product);
}

/// Scans the grid axes from `depth` on.
void Descent::scan_from(size_t depth, double* product) {
    const size_t a = grid_axes_[depth];
    if (depth + 1 == grid_axes_.size()) return scan_row(a, product);
    const AxisTree& axis = *axes_[a];
    const uint32_t before = at_[a];
    const AxisTree::Node node = axis.node(before);
    const size_t count = coefficients_.size();
    for (uint32_t place = node.first; place < node.first + node.count; ++place) {
        at_[a] = axis.leaf_at(place);
        double* next = product + count;
        std::copy_n(product, count, next);
        axis.multiply(at_[a], next);
        scan_from(depth + 1, next);
    }
    at_[a] = before;
}

void Descent::scan_row(size_t a, const double* product) {
    const AxisTree& axis = *axes_[a];
    const uint32_t before = at_[a];
    const AxisTree::Node node = axis.node(before);
    const bool with_macs = options_.macs_is_axis;
    CostRow row;
    KnownAccesses::Flags may_matter;
    for (uint32_t begin = 0; begin < node.count; begin += CostRow::most) {
        const size_t size = std::min<size_t>(CostRow::most, node.count - begin);
        rows_of_[a]->costs(product, node.first + begin, size, with_macs, row);
        ++work_.steps;
        work_.evaluated += choice_ != nullptr ? static_cast<int64_t>(size) : 0;
        incumbents_.compare(row, size, may_matter);
        for (size_t j = 0; j < size; ++j) {
            if (may_matter[j] == 0) continue;
            if (!incumbents_.is_wanted(
                    {row.accesses[j], row.memory[j], with_macs ? row.macs[j] : 0}))
                continue;
            at_[a] = axis.leaf_at(node.first + begin + static_cast<uint32_t>(j));
            const Cost cost = bound();
            if (incumbents_.is_wanted(cost)) take(cost);
        }
    }
    at_[a] = before;
}

}  // namespace laminate::search
