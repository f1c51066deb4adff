#include "generators/compile/check_group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/aligned.h"
#include "base/rng.h"
#include "generators/compile/error_bounds.h"
#include "generators/compile/group_reference.h"
#include "generators/kernels/group_kernels.h"
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
    [[nodiscard]] static bool is_poison(float value) {
        return std::memcmp(&value, &poison, sizeof poison) == 0;
    }
    [[nodiscard]] bool is_margin_untouched() const {
        const float* all = all_.data();
        return std::all_of(all, all + shift_, is_poison) &&
               std::all_of(all + shift_ + count_, all + all_.size(), is_poison);
    }

private:
    static constexpr size_t margin = 256;
    /// A NaN that no operation makes of numbers.
    static constexpr float poison = std::bit_cast<float>(0x7fc5a5a5U);
    size_t shift_;
    size_t count_;
    AlignedFloats all_;
};

using Inputs = std::vector<std::vector<float>>;

class Check {
public:
    Check(const Network& network, const GroupSchedule& group, const GroupCode& code,
          laminate_group_function function, const CheckOptions& options)
        : network_(network),
          problems_(group_problems(network, group)),
          code_(code),
          function_(function),
          options_(options),
          sink_(problems_.back()) {}

    [[nodiscard]] std::string with_whole_numbers() const;
    /// Elements of 3e37 and 1e8 among ones. Each output is judged by its own sum of |w x|.
    [[nodiscard]] std::string with_large_values() const {
        return with_values_among_ones({3e37F, 1e8F, -3e37F, -1e8F}, "large values");
    }
    [[nodiscard]] std::string with_specials() const {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return with_values_among_ones(
            {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}, "NaN and infinities");
    }

private:
    /// Rows [first, last) of the output that the reference operators compute as well.
    using Band = std::pair<int64_t, int64_t>;

    [[nodiscard]] std::string with_values_among_ones(const std::vector<float>& values,
                                                     const std::string& name) const;
    /// What is wrong with the run itself, or empty.
    [[nodiscard]] std::string run(const Inputs& inputs, PoisonedArray& output) const;
    [[nodiscard]] std::vector<Band> bands() const;
    /// The first element of a band that is wrong, or empty.
    [[nodiscard]] std::string judged(const float* out, Band band, const BoundedRows& rows) const;
    [[nodiscard]] std::string position(int64_t c, int64_t y, int64_t x) const {
        return "channel " + std::to_string(c) + ", row " + std::to_string(y) + ", column " +
               std::to_string(x);
    }
    [[nodiscard]] PoisonedArray output_array() const {
        return {static_cast<size_t>(sink_.output_elements().value()), misalignment};
    }

    static constexpr size_t misalignment = 1;
    const Network& network_;
    std::vector<LayerProblem> problems_;
    const GroupCode& code_;
    laminate_group_function function_;
    const CheckOptions& options_;
    const LayerProblem& sink_;
};

std::string Check::run(const Inputs& inputs, PoisonedArray& output) const {
    std::vector<PoisonedArray> shifted;
    shifted.reserve(inputs.size());
    std::vector<const float*> in;
    for (const std::vector<float>& values : inputs) {
        shifted.emplace_back(values.size(), misalignment);
        std::copy(values.begin(), values.end(), shifted.back().data());
    }
    for (PoisonedArray& array : shifted) in.push_back(array.data());
    const auto sizes = size_arguments(code_.size);
    if (code_.open_scratch_bytes) in.push_back(reinterpret_cast<const float*>(sizes.data()));
    PoisonedArray scratch(static_cast<size_t>(code_.scratch_bytes) / sizeof(float), 0);
    PoisonedArray constants(code_.constants.size(), 0);
    std::copy(code_.constants.begin(), code_.constants.end(), constants.data());

    float* out = output.data();
    const auto strips = static_cast<int32_t>(code_.strips);
    for (const auto& [begin, end] : {std::pair{strips / 2, strips}, std::pair{0, strips / 2}}) {
        if (begin == end) continue;
        const int result = function_(in.data(), &out, constants.data(), scratch.data(), begin, end);
        if (result != 0) return "the code returned " + std::to_string(result);
    }
    if (!output.is_margin_untouched()) return "the code wrote outside its output";
    if (!scratch.is_margin_untouched()) return "the code wrote outside its scratch memory";
    return "";
}

std::vector<Check::Band> Check::bands() const {
    Macs work;  // the reference operators' own, also where nothing is multiplied
    for (const LayerProblem& p : problems_) {
        work += Macs((p.output_elements() * p.y().kernel * p.x().kernel * p[Dim::i]).value() *
                     std::ssize(p.inputs));
    }
    const int64_t height = sink_[Dim::y];
    const int64_t affordable = std::max<int64_t>(
        1, options_.reference_macs.value() / std::max<int64_t>(1, work.value() / height) / 3);
    if (3 * affordable >= height) return {{0, height}};
    const int64_t around = (height - affordable) / 2;
    return {{0, affordable}, {around, around + affordable}, {height - affordable, height}};
}

std::string Check::judged(const float* out, Band band, const BoundedRows& rows) const {
    const int64_t height = sink_[Dim::y], width = sink_[Dim::x];
    size_t n = 0;
    for (int64_t c = 0; c < sink_[Dim::z]; ++c) {
        for (int64_t y = band.first; y < band.second; ++y) {
            const float* row = out + (c * height + y) * width;
            for (int64_t x = 0; x < width; ++x, ++n) {
                if (rows.holds(row[x], n)) continue;
                return position(c, y, x) + " is " + std::to_string(row[x]) + ", expected " +
                       std::to_string(rows.expected[n]);
            }
        }
    }
    return "";
}

std::string Check::with_whole_numbers() const {
    const Inputs inputs = judged_inputs(network_, problems_, options_.seed);
    PoisonedArray output = output_array();
    if (std::string wrong = run(inputs, output); !wrong.empty()) return wrong;
    const float* out = output.data();
    const int64_t height = sink_[Dim::y], width = sink_[Dim::x];
    for (int64_t n = 0; n < sink_.output_elements().value(); ++n) {
        const bool is_written =
            is_steep(network_, problems_) ? !PoisonedArray::is_poison(out[n]) : std::isfinite(out[n]);
        if (!is_written) {
            return position(n / width / height, n / width % height, n % width) +
                   " was not written, or is not finite";
        }
    }
    bool judge_nothing = true;
    for (const Band& band : bands()) {
        const BoundedRows rows =
            judged_rows(network_, problems_, inputs, band.first, band.second);
        if (std::string wrong = judged(out, band, rows); !wrong.empty()) return wrong;
        judge_nothing = judge_nothing && rows.judge_nothing();
    }
    return judge_nothing ? "every element may be anything, since a quotient or a steep function makes "
                           "rounding errors large"
                         : "";
}

std::string Check::with_values_among_ones(const std::vector<float>& values,
                                          const std::string& name) const {
    Inputs inputs = random_group_inputs(network_, problems_, options_.seed);
    Rng rng(options_.seed);
    for (size_t k = 0; k < inputs.size(); ++k) {
        std::fill(inputs[k].begin(), inputs[k].end(), 1.0F);
        // Few, so that most windows have none of them or one.
        const size_t count = inputs[k].size() / 1024 + values.size();
        for (size_t n = 0; n < count; ++n)
            inputs[k][rng.below(inputs[k].size())] = values[n % values.size()];
    }
    PoisonedArray output = output_array();
    std::string wrong = run(inputs, output);

    for (const Band& band : bands()) {
        if (!wrong.empty()) break;
        wrong = judged(output.data(), band,
                       bounded_rows(network_, problems_, inputs, band.first, band.second,
                                    Sums::by_definition));
    }
    return wrong.empty() ? "" : wrong + ", with " + name + " in the input";
}

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
    const Check check(network, group, code, function, options);
    std::string wrong = check.with_whole_numbers();
    if (wrong.empty() && options.specials) wrong = check.with_large_values();
    if (wrong.empty() && options.specials) wrong = check.with_specials();
    return wrong;
}

}  // namespace laminate
