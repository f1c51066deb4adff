#include "scheduler/schedule/sampled_window.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/window.h"

namespace laminate {
namespace {

/// Every source lies in the interval of its output; intervals only grow, leave no gap, and those of
/// several outputs are the union of theirs.
void expect_holds_sources(const GeneralOperator& op, const std::vector<int64_t>& map,
                          const std::string& what) {
    for (const size_t axis : {size_t{0}, size_t{1}}) {
        const AxisWindow w = sampled_window(op, axis, map[2 + axis]);
        const SampledAxis sampled = sampled_axis(op, 2 + axis);
        ASSERT_TRUE(w.is_sampled()) << what;
        EXPECT_EQ(w.out, op.dims[2 + axis]);
        int64_t widest = 0;
        for (int64_t out = 0; out < w.out; ++out) {
            const Range read = window_of(w, {out, out + 1});
            widest = std::max(widest, read.size());
            ASSERT_FALSE(read.empty()) << what;
            ASSERT_TRUE(read.begin >= 0 && read.end <= map[2 + axis]) << what;
            for (int64_t tap = 0; tap < sampled.taps; ++tap) {
                const int64_t source =
                    sampled.sources[static_cast<size_t>(out * sampled.taps + tap)];
                if (source >= 0) {
                    EXPECT_TRUE(read.begin <= source && source < read.end)
                        << what << ": output " << out << " reads " << source;
                }
            }
            if (out == 0) continue;
            const Range before = window_of(w, {out - 1, out}), both = window_of(w, {out - 1, out + 1});
            EXPECT_TRUE(before.begin <= read.begin && before.end <= read.end) << what;
            EXPECT_LE(read.begin, before.end) << what;
            EXPECT_EQ(both, (Range{before.begin, read.end})) << what;
        }
        EXPECT_EQ(w.kernel, widest);
    }
}

TEST(SampledWindow, HoldsWhatPaddingReads) {
    Rng rng(1);
    for (int n = 0; n < 300; ++n) {
        const std::vector<int64_t> map{1, 1, rng.between(1, 9), rng.between(1, 9)};
        Padding padding{static_cast<Padding::Mode>(rng.below(3)), {}, {}, 1};
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t most = padding.mode == Padding::Mode::reflect ? map[2 + axis] - 1 : 6;
            padding.begin[axis] = rng.between(0, most);
            padding.end[axis] = rng.between(0, most);
        }
        expect_holds_sources(padded(map, padding), map, "padding " + std::to_string(n));
    }
}

TEST(SampledWindow, HoldsWhatInterpolationReads) {
    for (int64_t in = 1; in <= 12; ++in) {
        for (int64_t out = 1; out <= 30; ++out) {
            const std::vector<int64_t> map{1, 1, in, 1};
            expect_holds_sources(interpolated(map, {out, 1}), map,
                                 std::to_string(in) + " to " + std::to_string(out));
        }
    }
}

/// Away from the borders an output that lies between two elements needs these two.
TEST(SampledWindow, IsTightAtTheUsualRates) {
    for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{8, 16}, {8, 24}, {8, 32},
                                                                          {16, 8}, {12, 18}}) {
        const AxisWindow w = sampled_window(interpolated({1, 1, in, 1}, {out, 1}), 0, in);
        EXPECT_EQ(w.kernel, 2) << in << " to " << out;
    }
}

}  // namespace
}  // namespace laminate
