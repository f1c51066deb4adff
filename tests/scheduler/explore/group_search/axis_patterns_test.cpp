// Calls of a tensor along one axis, where thousands of equal ones are stored as one.
#include "scheduler/explore/group_search/axis_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {
namespace {

AxisWindow window(int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
    AxisWindow w;
    w.in = in;
    w.kernel = kernel;
    w.stride = stride;
    w.pad_begin = pad;
    w.out = (in + 2 * pad - kernel) / stride + 1;
    return w;
}

/// The new parts of A_1 that tiles of layer 2 ask for, coordinate by coordinate: one sequence of
/// calls per tile.
std::vector<std::vector<Range>> calls_of(const AxisWindow& w, int64_t tile) {
    std::vector<std::vector<Range>> scopes;
    for (int64_t begin = 0; begin < w.out; begin += tile) {
        scopes.emplace_back();
        int64_t frontier = 0;
        for (int64_t at = begin; at < std::min(begin + tile, w.out); ++at) {
            const Range need = window_of(w, {at, at + 1});
            const Range fresh{std::max(need.begin, frontier), need.end};
            frontier = std::max(frontier, need.end);
            if (!fresh.empty()) scopes.back().push_back(fresh);
        }
    }
    return scopes;
}

/// Facts are those of the calls one by one, with and without borders, and with gaps between calls.
TEST(AxisPatterns, JoinedCallsCountOneByOne) {
    for (const int64_t in : {9, 40, 211}) {
        for (const int64_t kernel : {1, 3, 5}) {
            for (const int64_t stride : {1, 2, 3}) {
                for (const int64_t pad : {int64_t{0}, kernel / 2}) {
                    const AxisWindow first = window(in, 3, 1, 1);
                    const AxisWindow last = window(first.out, kernel, stride, pad);
                    AxisPatterns patterns({first, last});
                    for (int64_t tile = 1; tile <= last.out; tile = tile * 3 / 2 + 1) {
                        const auto id =
                            patterns.step(2, patterns.whole(), Kind::between, tile).pattern;
                        const AxisPatterns::Facts& facts = patterns.facts(1, id);
                        AxisPatterns::Facts expected;
                        std::map<int64_t, int64_t> tiles;  // of two and of seven coordinates
                        for (const auto& scope : calls_of(last, tile)) {
                            ++expected.scopes;
                            expected.most_calls =
                                std::max(expected.most_calls, static_cast<int64_t>(scope.size()));
                            for (const Range& call : scope) {
                                expected.brought += call.size();
                                expected.taps += taps_of(first, call);
                                expected.largest = std::max(expected.largest, call.size());
                                for (const int64_t t : {2, 7}) tiles[t] += ceil_div(call.size(), t);
                            }
                        }
                        SCOPED_TRACE(testing::Message()
                                     << in << ", kernel " << kernel << ", stride " << stride
                                     << ", pad " << pad << ", tile " << tile);
                        EXPECT_EQ(facts.scopes, expected.scopes);
                        EXPECT_EQ(facts.most_calls, expected.most_calls);
                        EXPECT_EQ(facts.brought, expected.brought);
                        EXPECT_EQ(facts.taps, expected.taps);
                        EXPECT_EQ(facts.least_taps.front(), expected.taps);
                        EXPECT_EQ(facts.largest, expected.largest);
                        for (const auto& [t, count] : tiles)
                            EXPECT_EQ(patterns.tiles(1, id, t), count) << t;
                    }
                }
            }
        }
    }
}

/// A call with the outermost loop that starts a new iteration with it.
using LevelCall = std::pair<Range, int>;
using Lifetime = std::vector<LevelCall>;

/// What a layer that keeps its input as long as its output (Kind::kept_between, kept_below) asks
/// for in one lifetime, one window after the other; and what its buffer holds, by loop at which it
/// folds.
Lifetime kept_calls(const AxisWindow& w, const Lifetime& calls, bool by_coordinate, int levels,
                    std::vector<int64_t>& held) {
    std::vector<LevelCall> windows;
    for (const auto& [part, level] : calls) {
        if (!by_coordinate) windows.emplace_back(window_of(w, part), level);
        for (int64_t at = part.begin; by_coordinate && at < part.end; ++at)
            windows.emplace_back(window_of(w, {at, at + 1}), at == part.begin ? level : levels);
    }
    for (int level = 0; level <= levels; ++level) {
        // A body of the loop has the windows up to the next one that starts a new iteration.
        for (size_t n = 0; n < windows.size();) {
            int64_t before = 0;
            for (size_t m = 0; m < n; ++m) before = std::max(before, windows[m].first.end);
            Range hull = windows[n].first;
            for (bool is_first = true;
                 n < windows.size() && (is_first || windows[n].second > level); ++n) {
                is_first = false;
                hull = {std::min(hull.begin, windows[n].first.begin),
                        std::max(hull.end, windows[n].first.end)};
                int64_t& most = held[static_cast<size_t>(level)];
                most = std::max(most, std::max(before, hull.end) - hull.begin);
            }
        }
    }
    Lifetime fresh;
    int64_t frontier = 0;
    int fresh_level = 0;
    for (const auto& [need, level] : windows) {
        fresh_level = std::min(fresh_level, level);
        const Range own{std::max(need.begin, frontier), need.end};
        frontier = std::max(frontier, need.end);
        if (own.empty()) continue;
        fresh.emplace_back(own, fresh_level);
        fresh_level = levels + 1;
    }
    return fresh;
}

/// Lines that are kept, whose windows are looked at many at a time, are those of the windows one by
/// one: layers 3 and 2 keep their inputs, which tiles of layer 4 ask for.
TEST(AxisPatterns, KeptLinesAreThoseOfTheirWindowsOneByOne) {
    for (const int64_t in : {9, 40, 97}) {
        for (const int64_t kernel : {1, 2, 3, 5}) {
            for (const int64_t stride : {1, 2, 3}) {
                for (const int64_t pad : {int64_t{0}, kernel / 2}) {
                    const AxisWindow first = window(in, 3, 1, 1);
                    const AxisWindow second = window(first.out, kernel, stride, pad);
                    const AxisWindow third = window(second.out, 3, 1, 1);
                    const AxisWindow last = window(third.out, 3, 1, 1);
                    for (int64_t tile = 1; tile <= last.out; tile = tile * 3 / 2 + 1) {
                        for (const bool by_coordinate : {false, true}) {
                            AxisPatterns patterns({first, second, third, last});
                            const Kind kind = by_coordinate ? Kind::kept_between : Kind::kept_below;
                            SCOPED_TRACE(testing::Message()
                                         << in << ", kernel " << kernel << ", stride " << stride
                                         << ", pad " << pad << ", tile " << tile << ", "
                                         << (by_coordinate ? "by coordinate" : "by call"));
                            std::vector<Lifetime> lifetimes;
                            for (const auto& scope : calls_of(last, tile)) {
                                lifetimes.emplace_back();
                                for (const Range& call : scope)
                                    lifetimes.back().emplace_back(call,
                                                                  lifetimes.back().empty() ? 0 : 1);
                            }
                            auto id =
                                patterns.step(4, patterns.whole(), Kind::between, tile).pattern;
                            int levels = 1;
                            for (const int layer : {3, 2}) {
                                levels += by_coordinate ? 1 : 0;
                                std::vector<int64_t> held(static_cast<size_t>(levels) + 1, 0);
                                AxisPatterns::Facts expected;
                                for (Lifetime& calls : lifetimes) {
                                    calls = kept_calls(patterns.window(layer), calls, by_coordinate,
                                                       levels, held);
                                    ++expected.scopes;
                                    expected.most_calls =
                                        std::max(expected.most_calls, std::ssize(calls));
                                    for (const auto& [call, level] : calls) {
                                        expected.brought += call.size();
                                        expected.largest = std::max(expected.largest, call.size());
                                    }
                                }
                                const AxisPatterns::Step step = patterns.step(layer, id, kind, 1);
                                EXPECT_EQ(step.held, held) << "layer " << layer;
                                const auto& facts = patterns.facts(layer - 1, step.pattern);
                                EXPECT_EQ(facts.scopes, expected.scopes);
                                EXPECT_EQ(facts.most_calls, expected.most_calls);
                                EXPECT_EQ(facts.brought, expected.brought);
                                EXPECT_EQ(facts.largest, expected.largest);
                                id = step.pattern;
                            }
                        }
                    }
                }
            }
        }
    }
}

/// No tile that next_input_tile() passes over brings, holds or is less in any respect.
TEST(AxisPatterns, TilesThatArePassedOverAreNoBetter) {
    int64_t passed = 0, tried = 0;
    for (const int64_t in : {5, 12, 47, 130}) {
        for (const int64_t kernel : {1, 2, 3, 5, 9}) {
            for (const int64_t stride : {1, 2, 3, 4}) {
                for (const int64_t pad : {int64_t{0}, kernel / 2, kernel - 1}) {
                    if (in + 2 * pad < kernel) continue;
                    const AxisWindow first = window(in, kernel, stride, pad);
                    const int64_t kernel_of_last = first.out < 3 ? 1 : 3;
                    const AxisWindow last =
                        window(first.out, kernel_of_last, 1, kernel_of_last / 2);
                    AxisPatterns patterns({first, last});
                    std::vector<AxisPatterns::Id> calls;
                    for (const Kind kind : {Kind::above, Kind::between, Kind::below}) {
                        for (int64_t tile = 1; tile <= last.out; tile = tile * 4 / 3 + 1)
                            calls.push_back(patterns.step(2, patterns.whole(), kind, tile).pattern);
                    }
                    for (const AxisPatterns::Id id : calls) {
                        const int64_t largest = patterns.facts(1, id).largest;
                        for (int64_t tile = 1; tile <= largest; ++tile) {
                            const int64_t next = patterns.next_input_tile(id, tile);
                            ++tried;
                            for (int64_t other = tile + 1; other < std::min(next, largest + 1);
                                 ++other) {
                                ++passed;
                                EXPECT_GE(patterns.tiles(1, id, other),
                                          patterns.tiles(1, id, tile));
                                for (const Kind kind : {Kind::above, Kind::between, Kind::below}) {
                                    const auto own = patterns.input_step(id, kind, other);
                                    const auto base = patterns.input_step(id, kind, tile);
                                    ASSERT_TRUE(own.brought >= base.brought &&
                                                own.whole >= base.whole &&
                                                own.folded >= base.folded)
                                        << in << ", kernel " << kernel << ", stride " << stride
                                        << ", pad " << pad << ", tiles " << tile << " and " << other
                                        << " up to " << next;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // Most tiles are passed over.
    EXPECT_GT(passed, tried);
}

}  // namespace
}  // namespace laminate::search
