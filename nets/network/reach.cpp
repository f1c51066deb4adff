#include "nets/network/reach.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace laminate {

namespace {

int64_t steps_down(const AxisReach& reach, int64_t input) {
    return input / reach.input_step * reach.input_step;
}

}  // namespace

int64_t window_for(const AxisReach& reach, int64_t picture, int64_t count) {
    if (count <= 1) return picture;
    // Every window but the last drops `after` inputs and the rest of a step at its end; every
    // window but the first drops `before` inputs at its start.
    const int64_t left = picture % reach.input_step;
    const int64_t overlap = reach.before + reach.after + left;
    const int64_t least =
        std::max(ceil_div(picture + (count - 1) * overlap, count), overlap + reach.input_step);
    const int64_t window = ceil_div(least - left, reach.input_step) * reach.input_step + left;
    return std::min(window, picture);
}

int64_t picture_output(const AxisReach& reach, const AxisSize& window, int64_t picture) {
    return window.output + (picture - window.input) / reach.input_step * reach.output_step;
}

std::vector<AxisPart> cut(const AxisReach& reach, const AxisSize& window, int64_t picture) {
    const auto fail = [&](const std::string& expected) {
        throw InputError("window of " + std::to_string(window.input) + " of " +
                         std::to_string(picture) + " elements: expected " + expected);
    };
    if (picture < window.input || (picture - window.input) % reach.input_step != 0)
        fail("a size smaller by a multiple of " + std::to_string(reach.input_step));
    const int64_t output = picture_output(reach, window, picture);
    std::vector<AxisPart> parts;
    const auto outputs_at = [&](int64_t input) {
        return input / reach.input_step * reach.output_step;
    };
    for (int64_t begin = 0, done = 0;;) {
        const bool last = begin + window.input == picture;
        const int64_t kept_inputs = steps_down(reach, begin + window.input - reach.after);
        const int64_t end = last ? output : std::min(outputs_at(kept_inputs), output);
        if (end > done) parts.push_back({begin, done, end, done - outputs_at(begin)});
        if (last) return parts;
        const int64_t next = std::min(kept_inputs - reach.before, picture - window.input);
        if (next <= begin)
            fail("more than " +
                 std::to_string(reach.before + reach.after + picture % reach.input_step));
        begin = next;
        done = std::max(done, end);
    }
}

}  // namespace laminate
