#include "generators/compile/check_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/aligned.h"
#include "base/rng.h"
#include "generators/compile/group_reference.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/picture_views.h"
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

using Inputs = std::vector<std::vector<float>>;

/// The most by which an activation enlarges a difference of its arguments.
float steepness(const Activation& a) {
    float slope = 1;
    if (a.kind == ActivationKind::leaky_relu) slope = std::abs(a.alpha);
    if (a.kind == ActivationKind::prelu) {
        for (const float value : a.slope->values) slope = std::max(slope, std::abs(value));
    }
    if (a.kind == ActivationKind::unary)  // 1.5 is HardSwish's
        slope = 1.5F * std::max(1.0F, std::abs(a.alpha)) * std::max(1.0F, std::abs(a.beta));
    return std::max(1.0F, slope);
}

/// The most that an activation makes of a sum that says nothing about it: of an infinite one, or of
/// zero.
float largest_constant(const Activation& a) {
    float most = std::max(1.0F, std::abs(a.alpha)) * std::max(1.0F, std::abs(a.beta));
    for (const float bound : {a.low, a.high}) {
        if (std::isfinite(bound)) most = std::max(most, std::abs(bound));
    }
    return most;
}

/// A 1x1 convolution that bounds what a normalisation makes of the error of each channel. Softmax
/// passes on the sum of all; the others divide those of the channel and of the mean by a standard
/// deviation of no less than sqrt(alpha), which may be 0.
Layer enlarged_errors(const Layer& layer, int64_t channels) {
    const GeneralFunction function = *normalisation_of(layer);
    const bool is_softmax = function == GeneralFunction::softmax;
    const float scale = is_softmax ? 1 : 1 / std::sqrt(std::max(layer.general.alpha, 1e-12F));
    const float of_all = is_softmax ? 1 : scale / static_cast<float>(channels);
    const auto count = static_cast<size_t>(channels);
    std::vector<float> weights(count * count, of_all);
    for (size_t c = 0; c < count; ++c) weights[c * (count + 1)] += scale;
    const auto constant = [](std::vector<int64_t> dims, std::vector<float> values) {
        return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
    };
    Layer bound = layer;
    bound.kind = LayerKind::conv;
    bound.general = {};
    bound.weights = constant({channels, channels, 1, 1}, std::move(weights));
    // No result is larger than this.
    const float most = is_softmax ? 1 : std::sqrt(static_cast<float>(channels));
    bound.bias = constant({channels}, std::vector<float>(count, most));
    return bound;
}

/// The network with weights, biases and values of its group's layers by magnitude, so that it
/// computes sums of |w x|. What an activation adds becomes a lower bound.
Network of_magnitudes(const Network& network, const std::vector<LayerProblem>& problems) {
    const auto magnitudes = [](const ConstantPtr& constant) {
        if (!constant) return constant;
        std::vector<float> values(constant->values.begin(), constant->values.end());
        for (float& value : values) value = std::abs(value);
        return std::make_shared<const Constant>(Constant{constant->dims, std::move(values)});
    };
    Network result = network;
    for (const LayerProblem& p : problems) {
        Layer& layer = result.layers[static_cast<size_t>(p.layer)];
        if (p.operation == Operation::normalise) {
            layer = enlarged_errors(layer, p[Dim::i]);
            continue;
        }
        layer.weights = magnitudes(layer.weights);
        layer.bias = magnitudes(layer.bias);
        GeneralOperator& general = layer.general;
        if (general.function == GeneralFunction::subtract) general.function = GeneralFunction::add;
        general.alpha = std::abs(general.alpha);
        for (float& factor : general.factors) factor = std::abs(factor);
        if (layer.activation.kind == ActivationKind::none) continue;
        layer.activation = {.kind = ActivationKind::clip,
                            .low = largest_constant(layer.activation),
                            .high = std::numeric_limits<float>::infinity()};
    }
    return result;
}

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
    /// The first element of a band that is wrong, or empty. `is_wrong(found, n)` judges element n of
    /// `expected`, the band.
    template <class Judge>
    [[nodiscard]] std::string judged(const float* out, Band band,
                                     const std::vector<float>& expected,
                                     const Judge& is_wrong) const;
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

template <class Judge>
std::string Check::judged(const float* out, Band band, const std::vector<float>& expected,
                          const Judge& is_wrong) const {
    const int64_t height = sink_[Dim::y], width = sink_[Dim::x];
    size_t n = 0;
    for (int64_t c = 0; c < sink_[Dim::z]; ++c) {
        for (int64_t y = band.first; y < band.second; ++y) {
            const float* row = out + (c * height + y) * width;
            for (int64_t x = 0; x < width; ++x, ++n) {
                if (!is_wrong(row[x], n)) continue;
                return position(c, y, x) + " is " + std::to_string(row[x]) + ", expected " +
                       std::to_string(expected[n]);
            }
        }
    }
    return "";
}

std::string Check::with_whole_numbers() const {
    const Inputs inputs = random_group_inputs(network_, problems_, options_.seed);
    PoisonedArray output = output_array();
    if (std::string wrong = run(inputs, output); !wrong.empty()) return wrong;
    const float* out = output.data();
    const int64_t height = sink_[Dim::y], width = sink_[Dim::x];
    for (int64_t n = 0; n < sink_.output_elements().value(); ++n) {
        if (!std::isfinite(out[n])) {
            return position(n / width / height, n / width % height, n % width) +
                   " was not written, or is not finite";
        }
    }
    for (const Band& band : bands()) {
        const std::vector<float> expected =
            reference_rows(network_, problems_, inputs, band.first, band.second);
        const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
        const float allowed = 1e-4F * std::max({*high - *low, std::abs(*high), std::abs(*low)});
        std::string wrong = judged(out, band, expected, [&](float found, size_t n) {
            return std::abs(found - expected[n]) > allowed;
        });
        if (!wrong.empty()) return wrong;
    }
    return "";
}

std::string Check::with_values_among_ones(const std::vector<float>& values,
                                          const std::string& name) const {
    Inputs inputs = random_group_inputs(network_, problems_, options_.seed);
    Inputs magnitudes = inputs;
    Rng rng(options_.seed);
    for (size_t k = 0; k < inputs.size(); ++k) {
        std::fill(inputs[k].begin(), inputs[k].end(), 1.0F);
        // Few, so that most windows have none of them or one.
        const size_t count = inputs[k].size() / 1024 + values.size();
        for (size_t n = 0; n < count; ++n)
            inputs[k][rng.below(inputs[k].size())] = values[n % values.size()];
        std::transform(inputs[k].begin(), inputs[k].end(), magnitudes[k].begin(),
                       [](float x) { return std::isfinite(x) ? std::abs(x) : 1.0F; });
    }
    PoisonedArray output = output_array();
    std::string wrong = run(inputs, output);

    // A sum of n products in any order is within n 2^-24 of its sum of |w x|; an activation adds
    // some units in the last place. Both sides may be as far off.
    float allowed = 0;
    for (const LayerProblem& p : problems_) {
        const int64_t terms = p.y().kernel * p.x().kernel * p[Dim::i] + std::ssize(p.inputs) + 16;
        allowed = (allowed + std::ldexp(static_cast<float>(terms), -23)) *
                  steepness(network_.layer(p.layer).activation);
    }
    const Network by_magnitude = of_magnitudes(network_, problems_);
    for (const Band& band : bands()) {
        if (!wrong.empty()) break;
        const auto rows_of = [&](const Network& network, const Inputs& in) {
            return reference_rows(network, problems_, in, band.first, band.second);
        };
        const std::vector<float> expected = rows_of(network_, inputs);
        const std::vector<float> most = rows_of(by_magnitude, magnitudes);
        wrong = judged(output.data(), band, expected, [&](float found, size_t n) {
            const bool is_equal =
                found == expected[n] || (std::isnan(found) && std::isnan(expected[n]));
            // Whether such a sum overflows depends on its order.
            const bool may_overflow = !(most[n] <= 1e38F);
            const bool is_near = std::abs(found - expected[n]) <= allowed * most[n];
            return !is_equal && !may_overflow && !is_near;
        });
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
