#include "instrumentation/read_rounds.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace laminate {

namespace {

/// Deep inside, variables share a bit: boxes then pass for moving that may not move.
uint64_t bit_of(int32_t variable) { return uint64_t{1} << std::min(variable, 63); }

}  // namespace

void ReadRounds::begin_rounds(int32_t variable) {
    open_.emplace_back().variable = variable;
    if (values_.size() <= static_cast<size_t>(variable))
        values_.resize(static_cast<size_t>(variable) + 1);
}

void ReadRounds::end_rounds(int64_t rounds) {
    Rounds ended = std::move(open_.back());
    open_.pop_back();
    ended.rounds = rounds;
    if (open_.empty()) {
        words_ += run(ended);
        return;
    }
    Rounds& outer = open_.back();
    outer.variables |= ended.variables;
    outer.begins_lifetime |= ended.begins_lifetime;
    outer.inside.emplace_back(std::move(ended));
}

void ReadRounds::add(const Box& box, int64_t words) {
    Event event{words, {}, {}};
    uint64_t variables = 0;
    for (size_t place = 0; place < box.size(); ++place) {
        event.box[place] = box[place].constant;
        for (size_t n = 0; n < box[place].size; ++n) {
            event.terms.push_back({place, box[place].terms[n]});
            variables |= bit_of(box[place].terms[n].variable);
        }
    }
    if (open_.empty()) {
        words_ += run(event);
        return;
    }
    open_.back().variables |= variables;
    open_.back().begins_lifetime |= words == 0;
    open_.back().inside.emplace_back(std::move(event));
}

/// Where no box moves, the second round finds what the first one has left, and leaves the same.
int64_t ReadRounds::run(const Rounds& rounds) {
    if ((rounds.variables & bit_of(rounds.variable)) == 0) {
        const int64_t first = once(rounds);
        if (rounds.rounds == 1 || !rounds.begins_lifetime) return first;
        return first + once(rounds) * (rounds.rounds - 1);
    }
    int64_t words = 0;
    int64_t& value = values_[static_cast<size_t>(rounds.variable)];
    for (value = 0; value < rounds.rounds; ++value) words += once(rounds);
    value = 0;
    return words;
}

int64_t ReadRounds::once(const Rounds& rounds) {
    int64_t words = 0;
    for (const auto& one : rounds.inside)
        words += std::visit([&](const auto& inner) { return run(inner); }, one);
    return words;
}

int64_t ReadRounds::run(const Event& event) {
    std::array<int64_t, 6> box = event.box;
    for (const Term& term : event.terms)
        box[term.place] += term.of.coefficient * values_[static_cast<size_t>(term.of.variable)];
    if (event.words > 0) {
        if (!memory_) throw std::logic_error("a kernel reads what has no lifetime");
        return memory_->read(box) * event.words;
    }
    if (!memory_) memory_.emplace(box[3], box[5]);
    memory_->begin_lifetime();
    return 0;
}

}  // namespace laminate
