#include "generators/check_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/aligned.h"
#include "runtime/reference_operators.h"
#include "scheduler/problem.h"
#include "scheduler/random_schedule.h"

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
        const auto is_poison = [](float value) { return std::memcmp(&value, &poison, sizeof poison) == 0; };
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

struct Rows {
    int64_t begin = 0;
    int64_t end = 0;
};

/// Rows of the input that rows `out` of the output read, and the layer with the paddings that make it compute just these.
struct CroppedLayer {
    Layer layer;
    Rows in;
};

CroppedLayer cropped_to(const Layer& layer, const LayerProblem& p, Rows out) {
    CroppedLayer cropped{layer, {}};
    Window& w = cropped.layer.window;
    const AxisWindow& y = p.y();
    const int64_t reach = (y.kernel - 1) * y.dilation;
    if (!y.transposed) {
        const Rows wanted{out.begin * y.stride - y.pad_begin, (out.end - 1) * y.stride - y.pad_begin + reach + 1};
        cropped.in = {std::clamp<int64_t>(wanted.begin, 0, y.in - 1), std::clamp<int64_t>(wanted.end, 1, y.in)};
        w.pad_begin[0] = cropped.in.begin - wanted.begin;
        w.pad_end[0] = wanted.end - cropped.in.end;
        return cropped;
    }
    // Input row i reaches output rows i * S - pad .. i * S - pad + reach.
    const int64_t below = out.begin + y.pad_begin - reach;
    cropped.in.begin = std::clamp<int64_t>(below <= 0 ? 0 : ceil_div(below, y.stride), 0, y.in - 1);
    cropped.in.end = std::clamp<int64_t>((out.end - 1 + y.pad_begin) / y.stride + 1, cropped.in.begin + 1, y.in);
    w.pad_begin[0] = y.pad_begin + out.begin - cropped.in.begin * y.stride;
    const int64_t covered = (cropped.in.end - cropped.in.begin - 1) * y.stride + reach + 1 - w.pad_begin[0];
    w.pad_end[0] = std::max<int64_t>(0, covered - (out.end - out.begin));
    w.output_padding[0] = std::max<int64_t>(0, out.end - out.begin - covered);
    return cropped;
}

std::vector<float> rows_of(const std::vector<float>& tensor, const std::vector<int64_t>& dims, Rows rows) {
    const int64_t width = dims[3];
    std::vector<float> part;
    part.reserve(static_cast<size_t>(dims[1] * (rows.end - rows.begin) * width));
    for (int64_t c = 0; c < dims[1]; ++c) {
        const auto first = tensor.begin() + (c * dims[2] + rows.begin) * width;
        part.insert(part.end(), first, first + (rows.end - rows.begin) * width);
    }
    return part;
}

/// Dims of one image of a tensor.
std::vector<int64_t> image_dims(const Network& network, TensorId id) {
    std::vector<int64_t> dims = network.tensor(id).dims;
    dims.front() = 1;
    return dims;
}

}  // namespace

std::vector<float> reference_rows(const Network& network, const std::vector<LayerId>& chain,
                                  const std::vector<float>& input, int64_t first, int64_t last) {
    std::vector<CroppedLayer> layers(chain.size());
    Rows rows{first, last};
    for (size_t k = chain.size(); k-- > 0;) {
        layers[k] = cropped_to(network.layer(chain[k]), layer_problem(network, chain[k]), rows);
        rows = layers[k].in;
    }
    std::vector<int64_t> dims = image_dims(network, network.layer(chain.front()).inputs[0]);
    const bool is_map = dims.size() == 4;  // a Gemm has one row, which is everything
    std::vector<float> values = is_map ? rows_of(input, dims, rows) : input;
    if (is_map) dims[2] = rows.end - rows.begin;
    for (const CroppedLayer& cropped : layers) {
        const std::vector<int64_t> output_dims = infer_output_dims(cropped.layer, {dims});
        std::vector<float> output(static_cast<size_t>(element_count(output_dims)));
        run_reference_layer(cropped.layer, {dims}, {values.data()}, output_dims, output.data(), 1);
        values = std::move(output);
        dims = output_dims;
    }
    return values;
}

std::string wrong_result(const Network& network, const GroupSchedule& group, const GroupCode& code,
                         laminate_group_function function, const CheckOptions& options) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const LayerProblem& sink = problems.back();
    std::vector<LayerId> chain;
    Macs macs;
    for (const LayerProblem& p : problems) {
        chain.push_back(p.layer);
        macs += Macs(layer_macs(network, p.layer) / network.tensor(p.output).dims.front());
    }

    std::vector<float> input(static_cast<size_t>(problems.front().input_elements().value()));
    Rng rng(options.seed);
    for (float& value : input) value = static_cast<float>(rng.between(-8, 8));
    constexpr size_t misalignment = 1;
    PoisonedArray shifted(input.size(), misalignment);
    std::copy(input.begin(), input.end(), shifted.data());
    PoisonedArray output(static_cast<size_t>(sink.output_elements().value()), misalignment);
    PoisonedArray scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float), 0);
    PoisonedArray constants(code.constants.size(), 0);
    std::copy(code.constants.begin(), code.constants.end(), constants.data());

    const float* in = shifted.data();
    float* out = output.data();
    const auto middle = static_cast<int32_t>(code.strips / 2);
    for (const auto& [begin, end] : {std::pair{middle, static_cast<int32_t>(code.strips)}, std::pair{0, middle}}) {
        if (begin == end) continue;
        const int result = function(&in, &out, constants.data(), scratch.data(), begin, end);
        if (result != 0) return "the code returned " + std::to_string(result);
    }
    if (!output.is_margin_untouched()) return "the code wrote outside its output";
    if (!scratch.is_margin_untouched()) return "the code wrote outside its scratch memory";

    const int64_t height = sink[Dim::y], width = sink[Dim::x], channels = sink[Dim::z];
    const auto position = [&](int64_t c, int64_t y, int64_t x) {
        return "channel " + std::to_string(c) + ", row " + std::to_string(y) + ", column " + std::to_string(x);
    };
    for (int64_t n = 0; n < channels * height * width; ++n) {
        if (!std::isfinite(out[n])) {
            return position(n / width / height, n / width % height, n % width) + " was not written, or is not finite";
        }
    }
    const int64_t affordable =
        std::max<int64_t>(1, options.reference_macs.value() / std::max<int64_t>(1, macs.value() / height) / 3);
    std::vector<Rows> bands{{0, height}};
    if (3 * affordable < height) {
        const int64_t around = (height - affordable) / 2;
        bands = {{0, affordable}, {around, around + affordable}, {height - affordable, height}};
    }
    for (const Rows& band : bands) {
        const std::vector<float> expected = reference_rows(network, chain, input, band.begin, band.end);
        const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
        const float allowed = 1e-4F * std::max({*high - *low, std::abs(*high), std::abs(*low)});
        const int64_t rows = band.end - band.begin;
        for (int64_t n = 0; n < channels * rows * width; ++n) {
            const int64_t c = n / width / rows, y = band.begin + n / width % rows, x = n % width;
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
