#include "scheduler/search/cost_plan.h"

#include <algorithm>

namespace laminate::search {

Cost CostPlan::cost(const double* product) const {
    Cost cost;
    for (size_t t = 0; t <= terms_.visits(); ++t) cost.accesses += product[t];
    for (int k = 1; k <= terms_.n; ++k) cost.macs += product[terms_.macs(k)];
    double held[most_layers + 1] = {};
    double below[most_layers + 1] = {};
    for (const BufferPlace& place : places_) (place.is_below ? below : held)[place.nest] += product[place.term];
    double inside = 0;
    for (int k = 1; k <= terms_.n; ++k) inside = held[k] + std::max(below[k], inside);
    cost.memory = held[0] + inside;
    return cost;
}

CostPlan::Row::Row(const CostPlan& plan, const AxisTree& axis) : axis_(&axis) {
    const auto varies = [&](size_t term) { return axis.varies()[term] != 0; };
    for (size_t t = 0; t <= plan.terms_.visits(); ++t) accesses_.add(t, varies(t));
    for (int k = 1; k <= plan.terms_.n; ++k) macs_.add(plan.terms_.macs(k), varies(plan.terms_.macs(k)));
    std::vector<Nest> nests(static_cast<size_t>(plan.terms_.n) + 1);
    std::vector<char> is_used(nests.size(), 0);
    for (const BufferPlace& place : plan.places_) {
        const auto n = static_cast<size_t>(place.nest);
        is_used[n] = 1;
        Sum& sum = n == 0 ? held_always_ : place.is_below ? nests[n].below : nests[n].held;
        sum.add(place.term, varies(place.term));
    }
    for (size_t n = 1; n < nests.size(); ++n) {
        if (is_used[n] != 0) nests_.push_back(std::move(nests[n]));
    }
}

void CostPlan::Row::evaluate(const Sum& sum, const double* product, uint32_t first, size_t size, double* result) const {
    double fixed = 0;
    for (const size_t t : sum.fixed) fixed += product[t];
    std::fill(result, result + size, fixed);
    for (const size_t t : sum.varying) {
        const double* column = axis_->column(t) + first;
        const double factor = product[t];
        for (size_t j = 0; j < size; ++j) result[j] += factor * column[j];
    }
}

void CostPlan::Row::costs(const double* product, uint32_t first, size_t size, bool with_macs, CostRow& row) const {
    evaluate(accesses_, product, first, size, row.accesses.data());
    if (with_macs) evaluate(macs_, product, first, size, row.macs.data());
    std::array<double, CostRow::most> inside;
    std::array<double, CostRow::most> sum;
    std::fill(inside.begin(), inside.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
    for (const Nest& nest : nests_) {
        if (!nest.below.fixed.empty() || !nest.below.varying.empty()) {
            evaluate(nest.below, product, first, size, sum.data());
            for (size_t j = 0; j < size; ++j) inside[j] = std::max(inside[j], sum[j]);
        }
        evaluate(nest.held, product, first, size, sum.data());
        for (size_t j = 0; j < size; ++j) inside[j] += sum[j];
    }
    evaluate(held_always_, product, first, size, row.memory.data());
    for (size_t j = 0; j < size; ++j) row.memory[j] += inside[j];
}

}  // namespace laminate::search
