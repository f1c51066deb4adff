#include "generators/ir/sampled_tables.h"

#include <algorithm>
#include <cmath>

#include "nets/network/picture_views.h"

namespace laminate {

SampledTables sampled_tables(const Layer& layer, const LayerProblem& problem, size_t axis,
                             int64_t behind) {
    const SampledAxis sampled = sampled_axis(layer.general, 2 + axis);
    const AxisWindow& w = problem.window[axis];
    SampledTables tables;
    tables.taps = sampled.taps;
    tables.outputs = w.out + behind;
    tables.inside = inside_of(sampled);
    for (int64_t tap = 0; tap < sampled.taps; ++tap) {
        for (int64_t at = 0; at < tables.outputs; ++at) {
            const int64_t out = std::min(at, w.out - 1);
            const auto place = static_cast<size_t>(out * sampled.taps + tap);
            const bool reads = out >= tables.inside.begin && out < tables.inside.end;
            const int64_t source = reads ? sampled.sources[place] : w.sampled_begin(out);
            tables.sources.push_back(static_cast<float>(source));
            if (!sampled.factors.empty()) tables.factors.push_back(sampled.factors[place]);
        }
    }
    if (std::all_of(tables.factors.begin(), tables.factors.end(), [](float f) { return f == 1; }))
        tables.factors.clear();
    return tables;
}

SteadyOutputs steady_outputs(const SampledTables& tables, int64_t outputs, int64_t block) {
    const auto place = [&](int64_t tap, int64_t out) {
        return static_cast<size_t>(tap * tables.outputs + out);
    };
    const int64_t blocks = outputs / block;
    const auto alike = [&](int64_t a, int64_t b) {
        for (int64_t n = 0; n < block; ++n) {
            const int64_t x = a * block + n, y = b * block + n;
            for (const int64_t out : {x, y}) {
                if (out < tables.inside.begin || out >= tables.inside.end) return false;
            }
            for (int64_t tap = 0; tap < tables.taps; ++tap) {
                const size_t s = place(tap, x), t = place(tap, y);
                const float apart = tables.sources[t] - tables.sources[s];
                if (apart != static_cast<float>(b - a)) return false;
                // Factors of equal fractions differ in how these were rounded.
                constexpr float rounding = 1e-6F;
                if (!tables.factors.empty() &&
                    std::abs(tables.factors[t] - tables.factors[s]) > rounding)
                    return false;
            }
        }
        return true;
    };
    const int64_t middle = blocks / 2;
    if (middle >= blocks || !alike(middle, middle)) return {};
    int64_t first = middle, last = middle;
    while (first > 0 && alike(middle, first - 1)) --first;
    while (last + 1 < blocks && alike(middle, last + 1)) ++last;
    SteadyOutputs steady{{first * block, (last + 1) * block}, {}};
    for (int64_t n = 0; n < block; ++n) {
        steady.offsets.emplace_back();
        for (int64_t tap = 0; tap < tables.taps; ++tap) {
            const float source = tables.sources[place(tap, middle * block + n)];
            steady.offsets.back().push_back(static_cast<int64_t>(source) - middle);
        }
    }
    return steady;
}

}  // namespace laminate
