// First reads in rounds of loops against the same reads one after the other.
#include "instrumentation/read_rounds.h"

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "base/rng.h"

namespace laminate {
namespace {

using counting::Affine;

constexpr int64_t planes = 3, rows = 12, columns = 10;

ReadRounds::Box whole_array() { return {0, planes, 0, rows, 0, columns}; }

/// begin, begin + step, ... as the variable counts.
Affine moving(int64_t begin, int32_t variable, int64_t step) {
    Affine place(step), result(begin);
    place.constant = 0;
    place.size = 1;
    place.terms[0] = {variable, step};
    EXPECT_TRUE(result.add(place, 1));
    return result;
}

TEST(ReadRounds, WhatStaysWhereItIsIsReadOnceInALifetime) {
    ReadRounds reads;
    reads.begin_lifetime(whole_array());
    reads.begin_rounds(0);
    reads.read({0, 2, 0, 3, 0, 4}, 9);
    reads.end_rounds(1'000'000'000'000);
    EXPECT_EQ(reads.words(), 2 * 3 * 4 * 9);
}

TEST(ReadRounds, EachLifetimeReadsAgain) {
    // 12 + 12 in the first round. In each of the others the box is present from the round before until
    // the lifetime ends: 0 + 12.
    ReadRounds reads;
    reads.begin_lifetime(whole_array());
    reads.begin_rounds(0);
    reads.read({0, 1, 0, 3, 0, 4}, 1);
    reads.begin_lifetime(whole_array());
    reads.read({0, 1, 0, 3, 0, 4}, 1);
    reads.end_rounds(1'000'000'000);
    EXPECT_EQ(reads.words(), 12 + 12 * 1'000'000'000LL);
}

TEST(ReadRounds, RowsThatMoveAreNewAsFarAsTheyDoNotOverlap) {
    // Rows r .. r + 3 for r = 0 .. 7: ten rows of 4; the rounds of another loop around add none.
    ReadRounds reads;
    reads.begin_lifetime(whole_array());
    reads.begin_rounds(0);
    reads.begin_rounds(1);
    reads.read({0, 1, moving(0, 1, 1), moving(3, 1, 1), 0, 4}, 1);
    reads.end_rounds(8);
    reads.end_rounds(5);
    EXPECT_EQ(reads.words(), 10 * 4);
}

/// Loops at random, told in rounds and executed plainly.
class RandomLoops {
public:
    explicit RandomLoops(uint64_t seed) : rng_(seed) {
        root_.inside.emplace_back(Event{true, whole_array()});
        add_inside(root_, 0);
    }
    int64_t in_rounds() {
        ReadRounds reads;
        tell(root_, reads);
        return reads.words();
    }
    int64_t one_by_one() {
        FirstReads memory(rows, columns);
        int64_t words = 0;
        execute(root_, memory, words);
        return words;
    }

private:
    struct Event {
        bool begins_lifetime = false;
        ReadRounds::Box box;
    };
    struct Loop {
        int64_t rounds = 1;
        std::vector<std::variant<Event, Loop>> inside;
    };

    void add_inside(Loop& loop, int32_t depth) {
        const int64_t count = rng_.between(1, 3);
        for (int64_t n = 0; n < count; ++n) {
            if (depth < 4 && rng_.chance(1, 2)) {
                Loop inner{rng_.between(1, 4), {}};
                add_inside(inner, depth + 1);
                loop.inside.emplace_back(std::move(inner));
            } else if (rng_.chance(1, 4)) {
                loop.inside.emplace_back(Event{true, whole_array()});
            } else {
                loop.inside.emplace_back(Event{false, random_box(depth)});
            }
        }
    }
    /// A box that at most two loops around move, each by up to 3 places.
    ReadRounds::Box random_box(int32_t depth) {
        const auto range = [&](int64_t extent) {
            const int64_t begin = rng_.below(extent - 7);
            return std::pair{begin, rng_.between(begin + 1, begin + 2)};
        };
        const auto [y, y_end] = range(rows);
        const auto [x, x_end] = range(columns);
        const int64_t z = rng_.below(planes);
        ReadRounds::Box box{z, z + 1, y, y_end, x, x_end};
        for (const size_t place : {2U, 4U}) {
            if (depth == 0 || rng_.chance(1, 2)) continue;
            const Affine by = moving(0, static_cast<int32_t>(rng_.below(depth)), 1);
            EXPECT_TRUE(box[place].add(by, 1) && box[place + 1].add(by, 1));
        }
        return box;
    }

    void tell(const Loop& loop, ReadRounds& reads) {
        for (const auto& one : loop.inside) {
            if (const auto* event = std::get_if<Event>(&one)) {
                event->begins_lifetime ? reads.begin_lifetime(event->box) : reads.read(event->box, 2);
                continue;
            }
            const Loop& inner = std::get<Loop>(one);
            reads.begin_rounds(depth_++);
            tell(inner, reads);
            --depth_;
            reads.end_rounds(inner.rounds);
        }
    }
    void execute(const Loop& loop, FirstReads& memory, int64_t& words) {
        for (const auto& one : loop.inside) {
            if (const auto* event = std::get_if<Event>(&one)) {
                if (event->begins_lifetime)
                    memory.begin_lifetime();
                else
                    words += 2 * memory.read(place_of(event->box));
                continue;
            }
            const Loop& inner = std::get<Loop>(one);
            values_.push_back(0);
            for (; values_.back() < inner.rounds; ++values_.back()) execute(inner, memory, words);
            values_.pop_back();
        }
    }
    [[nodiscard]] std::array<int64_t, 6> place_of(const ReadRounds::Box& box) const {
        std::array<int64_t, 6> place{};
        for (size_t d = 0; d < 6; ++d) {
            place[d] = box[d].constant;
            for (size_t n = 0; n < box[d].size; ++n)
                place[d] += box[d].terms[n].coefficient *
                            values_[static_cast<size_t>(box[d].terms[n].variable)];
        }
        return place;
    }

    Rng rng_;
    Loop root_;
    int32_t depth_ = 0;
    std::vector<int64_t> values_;
};

TEST(ReadRounds, RandomLoopsReadAsTheyDoOneByOne) {
    for (uint64_t seed = 1; seed <= 3000; ++seed) {
        RandomLoops loops(seed);
        ASSERT_EQ(loops.in_rounds(), loops.one_by_one()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace laminate
