#include "scheduler/explore/group_search/cost_plan.h"

#include <algorithm>
#include <bit>

#include "base/vector_width.h"

namespace laminate::search {

namespace {

// Sums have the same order at every vector width, so costs do not depend on the machine.

/// result[j] = fixed + sum over t of factors[t] * columns[t][j]
LAMINATE_FOR_EACH_VECTOR_WIDTH
void weighted_sums(double fixed, const double* factors, const double* const* columns, size_t terms,
                   size_t size, double* __restrict result) {
    for (size_t j = 0; j < size; ++j) result[j] = fixed;
    for (size_t t = 0; t < terms; ++t) {
        const double* column = columns[t];
        const double factor = factors[t];
        for (size_t j = 0; j < size; ++j) result[j] += factor * column[j];
    }
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void take_larger(const double* values, size_t size, double* __restrict result) {
    for (size_t j = 0; j < size; ++j) result[j] = std::max(result[j], values[j]);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void add(const double* values, size_t size, double* __restrict result) {
    for (size_t j = 0; j < size; ++j) result[j] += values[j];
}

/// The place of a memory's range: how many sixteenths of an octave it lies above 1. `memory` is at
/// least 1.
constexpr int part_bits = 4;
int64_t place_of(double memory, int64_t last) {
    // The bits of positive numbers, exponent then mantissa, rise with their values.
    constexpr int64_t place_of_one = int64_t{1023} << part_bits;
    const auto place =
        static_cast<int64_t>(std::bit_cast<uint64_t>(memory) >> (52 - part_bits)) - place_of_one;
    return std::clamp<int64_t>(place, 0, last);
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
void compare_with(const double* fewest, int64_t last, const double* accesses, const double* memory,
                  size_t size, double most, unsigned char* __restrict may_matter) {
    for (size_t j = 0; j < size; ++j) {
        const double known = fewest[place_of(memory[j], last)];
        may_matter[j] = accesses[j] <= known && accesses[j] <= most ? 1 : 0;
    }
}

}  // namespace

LAMINATE_FOR_EACH_VECTOR_WIDTH
double least(const double* values, size_t size) {
    constexpr size_t width = 8;  // neighbours that are compared at a time
    double lanes[width];
    std::fill(lanes, lanes + width, std::numeric_limits<double>::infinity());
    size_t j = 0;
    for (; j + width <= size; j += width) {
        for (size_t lane = 0; lane < width; ++lane)
            lanes[lane] = std::min(lanes[lane], values[j + lane]);
    }
    for (; j < size; ++j) lanes[0] = std::min(lanes[0], values[j]);
    return *std::min_element(lanes, lanes + width);
}

void KnownAccesses::add(const Cost& known) {
    static_assert(parts_of_an_octave == size_t{1} << part_bits);
    auto range = static_cast<size_t>(place_of(known.memory, ranges - 1));
    const uint64_t begin = (static_cast<uint64_t>(range) + (uint64_t{1023} << part_bits))
                           << (52 - part_bits);
    if (known.memory > (range == 0 ? 0 : std::bit_cast<double>(begin))) ++range;
    for (; range < ranges && fewest_[range] > known.accesses; ++range)
        fewest_[range] = known.accesses;
}

void KnownAccesses::compare(const CostRow& row, size_t size, double most, Flags& may_matter) const {
    compare_with(fewest_.data(), ranges - 1, row.accesses.data(), row.memory.data(), size, most,
                 may_matter.data());
}

Cost CostPlan::cost(const double* product) const {
    Cost cost;
    for (size_t t = 0; t <= terms_.visits(); ++t) cost.accesses += product[t];
    for (int k = 1; k <= terms_.n; ++k) cost.macs += product[terms_.macs(k)];
    double held[most_layers + 1] = {};
    double below[most_layers + 1] = {};
    for (const BufferPlace& place : places_)
        (place.is_below ? below : held)[place.nest] += product[place.term];
    double inside = 0;
    for (int k = 1; k <= terms_.n; ++k) inside = held[k] + std::max(below[k], inside);
    cost.memory = held[0] + inside;
    return cost;
}

CostPlan::Row::Row(const CostPlan& plan, const AxisTree& axis) : axis_(&axis) {
    const auto varies = [&](size_t term) { return axis.varies()[term] != 0; };
    for (size_t t = 0; t <= plan.terms_.visits(); ++t) accesses_.add(t, varies(t));
    for (int k = 1; k <= plan.terms_.n; ++k)
        macs_.add(plan.terms_.macs(k), varies(plan.terms_.macs(k)));
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

void CostPlan::Row::evaluate(const Sum& sum, const double* product, uint32_t first, size_t size,
                             double* result) const {
    double fixed = 0;
    for (const size_t t : sum.fixed) fixed += product[t];
    std::array<double, Terms(most_layers).count()> factors;
    std::array<const double*, Terms(most_layers).count()> columns;
    size_t count = 0;
    for (const size_t t : sum.varying) {
        factors[count] = product[t];
        columns[count++] = axis_->column(t) + first;
    }
    weighted_sums(fixed, factors.data(), columns.data(), count, size, result);
}

void CostPlan::Row::costs(const double* product, uint32_t first, size_t size, bool with_macs,
                          CostRow& row) const {
    evaluate(accesses_, product, first, size, row.accesses.data());
    if (with_macs) evaluate(macs_, product, first, size, row.macs.data());
    std::array<double, CostRow::most> inside;
    std::array<double, CostRow::most> sum;
    std::fill(inside.begin(), inside.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
    for (const Nest& nest : nests_) {
        if (!nest.below.is_nothing()) {
            evaluate(nest.below, product, first, size, sum.data());
            take_larger(sum.data(), size, inside.data());
        }
        evaluate(nest.held, product, first, size, sum.data());
        add(sum.data(), size, inside.data());
    }
    evaluate(held_always_, product, first, size, row.memory.data());
    add(inside.data(), size, row.memory.data());
}

}  // namespace laminate::search
