#include "generators/compile/check_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/aligned.h"
#include "generators/compile/group_reference.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

namespace {

/// An array with a margin on both sides, everything NaN of one bit pattern.
class PoisonedArray {
public:
    /// `shift`: elements between a 64-byte boundary and the first element.
    PoisonedArray(size_t count, size_t shift)
        : shift_(margin + shift), count_(count), all_(2 * margin + shift + count, poison) {}
    [[nodiscard]] float* data() { return all_.data() + shift_; }
    [[nodiscard]] bool is_margin_untouched() const {
        const auto is_poison = [](float value) {
            return std::memcmp(&value, &poison, sizeof poison) == 0;
        };
        const float* all = all_.data();
        return std::all_of(all, all + shift_, is_poison) &&
               std::all_of(all + shift_ + count_, all + all_.size(), is_poison);
    }

private:
    static constexpr size_t margin = 256;
    static constexpr float poison = std::numeric_limits<float>::quiet_NaN();
    size_t shift_;
    size_t count_;
    AlignedFloats all_;
};

}  // namespace

Bytes check_bytes(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    Elements elements = problems.back().output_elements();
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (tensor.is_external())
            elements +=
                Elements(checked_multiply(2, element_count(image_dims(network, tensor.tensor))));
    }
    return to_bytes(elements);
}

std::string wrong_result(const Network& network, const GroupSchedule& group, const GroupCode& code,
                         laminate_group_function function, const CheckOptions& options) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const LayerProblem& sink = problems.back();
    Macs work;  // the reference operators' own, also where nothing is multiplied
    for (const LayerProblem& p : problems) {
        work += Macs((p.output_elements() * p.y().kernel * p.x().kernel * p[Dim::i]).value() *
                     std::ssize(p.inputs));
    }

    const std::vector<std::vector<float>> inputs =
        random_group_inputs(network, problems, options.seed);
    constexpr size_t misalignment = 1;
    std::vector<PoisonedArray> shifted;
    std::vector<const float*> in;
    for (const std::vector<float>& values : inputs) {
        shifted.emplace_back(values.size(), misalignment);
        std::copy(values.begin(), values.end(), shifted.back().data());
    }
    for (PoisonedArray& array : shifted) in.push_back(array.data());
    PoisonedArray output(static_cast<size_t>(sink.output_elements().value()), misalignment);
    PoisonedArray scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float), 0);
    PoisonedArray constants(code.constants.size(), 0);
    std::copy(code.constants.begin(), code.constants.end(), constants.data());

    float* out = output.data();
    const auto middle = static_cast<int32_t>(code.strips / 2);
    for (const auto& [begin, end] :
         {std::pair{middle, static_cast<int32_t>(code.strips)}, std::pair{0, middle}}) {
        if (begin == end) continue;
        const int result = function(in.data(), &out, constants.data(), scratch.data(), begin, end);
        if (result != 0) return "the code returned " + std::to_string(result);
    }
    if (!output.is_margin_untouched()) return "the code wrote outside its output";
    if (!scratch.is_margin_untouched()) return "the code wrote outside its scratch memory";

    const int64_t height = sink[Dim::y], width = sink[Dim::x], channels = sink[Dim::z];
    const auto position = [&](int64_t c, int64_t y, int64_t x) {
        return "channel " + std::to_string(c) + ", row " + std::to_string(y) + ", column " +
               std::to_string(x);
    };
    for (int64_t n = 0; n < channels * height * width; ++n) {
        if (!std::isfinite(out[n])) {
            return position(n / width / height, n / width % height, n % width) +
                   " was not written, or is not finite";
        }
    }
    const int64_t affordable = std::max<int64_t>(
        1, options.reference_macs.value() / std::max<int64_t>(1, work.value() / height) / 3);
    std::vector<std::pair<int64_t, int64_t>> bands{{0, height}};
    if (3 * affordable < height) {
        const int64_t around = (height - affordable) / 2;
        bands = {{0, affordable}, {around, around + affordable}, {height - affordable, height}};
    }
    for (const auto& [first, last] : bands) {
        const std::vector<float> expected = reference_rows(network, problems, inputs, first, last);
        const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
        const float allowed = 1e-4F * std::max({*high - *low, std::abs(*high), std::abs(*low)});
        const int64_t rows = last - first;
        for (int64_t n = 0; n < channels * rows * width; ++n) {
            const int64_t c = n / width / rows, y = first + n / width % rows, x = n % width;
            const float found = out[(c * height + y) * width + x];
            if (std::abs(found - expected[static_cast<size_t>(n)]) > allowed) {
                return position(c, y, x) + " is " + std::to_string(found) + ", expected " +
                       std::to_string(expected[static_cast<size_t>(n)]);
            }
        }
    }
    return "";
}

}  // namespace laminate
