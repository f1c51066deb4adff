#include "scheduler/schedule/sampled_window.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/units.h"
#include "nets/network/picture_views.h"

namespace laminate {

namespace {

/// What each output must have: all that it or a later one reads from `begin` on, and all up to
/// `last` that it or an earlier one reads. Both only grow.
struct Reads {
    std::vector<int64_t> begin, last;
};

Reads reads_of(const SampledAxis& axis, int64_t outputs) {
    const auto sources_of = [&](int64_t out) {
        return axis.sources.subspan(static_cast<size_t>(out * axis.taps),
                                    static_cast<size_t>(axis.taps));
    };
    int64_t least = INT64_MAX, most = -1;
    for (const int64_t source : axis.sources) {
        if (source >= 0) least = std::min(least, source);
        most = std::max(most, source);
    }
    Reads reads{std::vector<int64_t>(static_cast<size_t>(outputs)),
                std::vector<int64_t>(static_cast<size_t>(outputs))};
    int64_t last = least, begin = most;
    for (int64_t out = 0; out < outputs; ++out) {
        for (const int64_t source : sources_of(out)) last = std::max(last, source);
        reads.last[static_cast<size_t>(out)] = last;
    }
    for (int64_t out = outputs; out-- > 0;) {
        for (const int64_t source : sources_of(out)) {
            if (source >= 0) begin = std::min(begin, source);
        }
        reads.begin[static_cast<size_t>(out)] = begin;
    }
    return reads;
}

/// The tightest sampling at the rate of n / d inputs per output.
Sampling fitted(const Reads& reads, int64_t in, int64_t n, int64_t d) {
    const auto outputs = std::ssize(reads.begin);
    Sampling s{n, d, d * in, -outputs * n, reads.last.front(), in - 1 - reads.begin.back()};
    for (int64_t out = 0; out < outputs; ++out) {
        const int64_t begin = reads.begin[static_cast<size_t>(out)],
                      last = reads.last[static_cast<size_t>(out)];
        // What no output after this one lacks either is held by `whole_end` and `whole_begin`.
        if (begin < reads.begin.back()) s.first = std::min(s.first, d * begin + d - 1 - out * n);
        if (last > reads.last.front()) s.last = std::max(s.last, d * last - out * n);
    }
    // No interval is empty, and those of neighbours leave no gap.
    s.first = std::min({s.first, s.last, s.last + d - n});
    return s;
}

}  // namespace

AxisWindow sampled_window(const GeneralOperator& op, size_t axis, int64_t in) {
    AxisWindow w;
    w.in = in;
    w.out = op.dims[2 + axis];
    const SampledAxis sampled = sampled_axis(op, 2 + axis);
    // What repeats itself has its own rate, whatever the size; else padding moves, and corners lie
    // on corners, or edges on edges.
    if (const auto periodic = periodic_axis(sampled, in)) {
        // Only whole periods count, lest the last outputs say something else at every size.
        const int64_t whole = std::max(periodic->advance, in - in % periodic->advance);
        const std::vector<int64_t> sources = sources_of(*periodic, whole);
        const SampledAxis axis_of_periods{sampled.taps, sources, {}};
        w.sampling = fitted(reads_of(axis_of_periods, std::ssize(sources) / sampled.taps), whole,
                            periodic->advance, periodic->period);
    } else {
        const Reads reads = reads_of(sampled, w.out);
        const auto width = [](const Sampling& s) {
            return static_cast<double>(s.last - s.first) / static_cast<double>(s.denominator);
        };
        for (const auto& [inputs, outputs] :
             {std::pair<int64_t, int64_t>{1, 1}, {in, w.out}, {in - 1, w.out - 1}}) {
            if (inputs < 1 || outputs < 1) continue;
            const int64_t common = std::gcd(inputs, outputs);
            const Sampling s = fitted(reads, in, inputs / common, outputs / common);
            if (!w.is_sampled() || width(s) < width(w.sampling)) w.sampling = s;
        }
    }
    for (int64_t out = 0; out < w.out; ++out)
        w.kernel = std::max(w.kernel, w.sampled_end(out + 1) - w.sampled_begin(out));
    w.stride = std::min(ceil_div(w.sampling.numerator, w.sampling.denominator), w.kernel);
    return w;
}

bool same_samplings(const LayerProblem& a, const LayerProblem& b) {
    return a.y().sampling == b.y().sampling && a.x().sampling == b.x().sampling;
}

}  // namespace laminate
