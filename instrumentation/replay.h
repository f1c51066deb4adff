// Steps through code, one iteration after the other, and says what happens in order: the events
// that the code was made with (generators/lowering/events.h) and, if wanted, every element that it
// loads and stores. Nothing is compiled and no float is computed: data steers no loop.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "instrumentation/affine.h"

namespace laminate {

struct HappenedEvent {
    EventKind kind = EventKind::lifetime;
    size_t array = 0;
    std::array<int64_t, 6> box{};  ///< begin and end along z, y and x
};

/// Lanes first, first + stride, ... of a load or a store; `array` is an index into
/// Watch::accesses. Lanes that a predicate leaves out are none.
struct Access {
    size_t array = 0;
    bool is_store = false;
    bool is_at_border = false;  ///< a store of constant zeros outside of kernels, beside what they store
    int64_t first = 0;
    int64_t stride = 1;
    int64_t lanes = 1;
};

/// What to tell of.
struct Watch {
    std::set<EventKind> events;
    std::vector<std::string> accesses{};  ///< names of arrays of floats in the code
    /// Of accesses, those whose loads are not told of: their places may depend on floats.
    std::set<std::string> stores_alone{};
};

struct Listener {
    std::function<void(const HappenedEvent&)> event;
    std::function<void(const Access&)> access;
};

/// Strips [0, code.strips), from first to last. Moves within an array are not told of.
void replay(const GroupCode& code, const Watch& watch, const Listener& listener);

/// Events as rounds of loops tell of them (RoundsListener in loop_sums.h): the variables in a box
/// count the rounds.
class EventRounds {
public:
    virtual ~EventRounds() = default;
    virtual void begin_rounds(int32_t variable) = 0;
    virtual void end_rounds(int64_t rounds) = 0;
    virtual void happened(EventKind kind, size_t array,
                          const std::array<counting::Affine, 6>& box) = 0;
};
/// The events of replay(), in time that grows with the number of different loop bodies.
void replay_in_rounds(const GroupCode& code, const std::set<EventKind>& events,
                      EventRounds& listener);

}  // namespace laminate
