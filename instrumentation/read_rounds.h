// First reads of an array (first_reads.h) where loops are told of in rounds (loop_sums.h): rounds
// whose boxes all stay where they are need no more than two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "instrumentation/affine.h"
#include "instrumentation/first_reads.h"

namespace laminate {

/// What is read of one array, and where its lifetimes begin, in order.
class ReadRounds {
public:
    /// Begin and end along z, y and x.
    using Box = std::array<counting::Affine, 6>;

    void begin_rounds(int32_t variable);
    void end_rounds(int64_t rounds);
    /// The box is the whole array.
    void begin_lifetime(const Box& box) { add(box, 0); }
    /// Reads so many words of each element.
    void read(const Box& box, int64_t words) { add(box, words); }

    /// Words that are read for the first time in a lifetime, once all rounds have ended.
    [[nodiscard]] int64_t words() const { return words_; }

private:
    struct Term {
        size_t place = 0;  ///< in the box
        counting::Affine::Term of;
    };
    struct Event {
        int64_t words = 0;  ///< 0: a lifetime begins
        std::array<int64_t, 6> box{};
        std::vector<Term> terms;
    };
    struct Rounds {
        int32_t variable = 0;
        int64_t rounds = 1;
        uint64_t variables = 0;        ///< that boxes inside depend on, see bit_of()
        bool begins_lifetime = false;  ///< inside
        std::vector<std::variant<Event, Rounds>> inside;
    };

    void add(const Box& box, int64_t words);
    int64_t run(const Rounds& rounds);
    int64_t run(const Event& event);
    int64_t once(const Rounds& rounds);

    std::vector<Rounds> open_;
    std::vector<int64_t> values_;  ///< of the variables; 0 outside of their rounds
    std::optional<FirstReads> memory_;
    int64_t words_ = 0;
};

}  // namespace laminate
