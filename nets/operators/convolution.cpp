#include "nets/operators/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/range.h"
#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/box.h"
#include "nets/operators/matrix_product.h"

namespace laminate {
namespace {

constexpr size_t most_spatial_axes = most_axes - 2;
/// Rows of a panel: input channels times kernel elements.
constexpr int64_t most_depth = 1024;

/// A kernel element along one axis, and the outputs [first, end) that read an input element by it:
/// output j reads element j * step + shift.
struct AxisTap {
    int64_t tap = 0, shift = 0, first = 0, end = 0;
};

/// The outputs of one axis that read through the same kernel elements: all of a convolution's, every
/// stride-th of a transposed one's.
struct AxisPhase {
    int64_t first_output = 0, output_step = 1, outputs = 0, step = 1;
    std::vector<AxisTap> taps{};
};

AxisPhase axis_phase(const ConvolutionProblem& p, size_t axis, int64_t phase) {
    const int64_t stride = p.stride[axis], in = p.in[axis + 2], out = p.out[axis + 2];
    AxisPhase result{.outputs = out, .step = stride};
    if (p.transposed)
        result = {.first_output = phase, .output_step = stride, .outputs = ceil_div(out - phase, stride)};
    for (int64_t tap = 0; tap < p.kernel[axis]; ++tap) {
        const int64_t reach = tap * p.dilation[axis] - p.pad_begin[axis];
        if (p.transposed && (phase - reach) % stride != 0) continue;
        const int64_t shift = p.transposed ? (phase - reach) / stride : reach;
        const int64_t first = shift >= 0 ? 0 : ceil_div(-shift, result.step);
        const int64_t end = shift >= in ? 0 : (in - 1 - shift) / result.step + 1;
        result.taps.push_back({tap, shift, first, std::min(end, result.outputs)});
    }
    return result;
}

/// A kernel element of all axes: its place in the kernel and what it adds to the place of an input.
struct KernelTap {
    int64_t place = 0, offset = 0;
    std::array<const AxisTap*, most_spatial_axes> axes{};
};

/// Outputs that read through the same kernel elements. The phases of the last axis have equally
/// many: those of the last phases may end with one that is not there.
struct Phase {
    std::vector<AxisPhase> axes;
    std::vector<KernelTap> taps;
    int64_t outputs = 1;

    Phase(const ConvolutionProblem& p, int64_t index) {
        const size_t rank = p.kernel.size();
        int64_t count = 1;
        for (size_t d = rank; d-- > 0;) {
            const int64_t phases = phases_of(p, d);
            axes.insert(axes.begin(), axis_phase(p, d, index % phases));
            index /= phases;
        }
        axes.back().outputs = ceil_div(p.out.back(), phases_of(p, rank - 1));
        for (const AxisPhase& axis : axes) {
            outputs *= axis.outputs;
            count *= std::ssize(axis.taps);
        }
        for (int64_t k = 0; k < count; ++k) {
            KernelTap& tap = taps.emplace_back();
            int64_t rest = k, kernel_step = 1, input_step = 1;
            for (size_t d = rank; d-- > 0;) {
                const auto& of_axis = axes[d].taps;
                tap.axes[d] = &of_axis[static_cast<size_t>(rest % std::ssize(of_axis))];
                rest /= std::ssize(of_axis);
                tap.place += tap.axes[d]->tap * kernel_step;
                tap.offset += tap.axes[d]->shift * input_step;
                kernel_step *= p.kernel[d];
                input_step *= p.in[d + 2];
            }
        }
    }
    static int64_t phases_of(const ConvolutionProblem& p, size_t axis) {
        return p.transposed ? std::min(p.stride[axis], p.out[axis + 2]) : 1;
    }
};

/// Neighbouring outputs of a panel along the last axis.
struct Run {
    std::array<int64_t, most_spatial_axes> at{};  ///< of the first, in outputs of the phase
    int64_t column = 0, count = 0;        ///< in the panel
    int64_t input = 0, output = 0;        ///< places of the first within a channel
};
/// Columns of a run whose outputs read an input element by some kernel element, and the place of the
/// first of these inputs within a channel.
struct Inside {
    int64_t begin = 0, end = 0, input = 0;
    friend bool operator==(const Inside&, const Inside&) = default;
};

/// These two do the same as std::fill_n and std::copy_n, faster where runs are short.
[[gnu::always_inline]] inline void clear_run(float* to, int64_t count) {
    if (count <= 2) {
        if (count > 0) to[0] = 0;
        if (count > 1) to[1] = 0;
    } else {
        std::fill_n(to, count, 0.0F);
    }
}
[[gnu::always_inline]] inline void copy_run(const float* from, float* to, int64_t count) {
    const auto ends = [&]<size_t part>(std::integral_constant<size_t, part>) {
        std::array<float, part> first, last;
        std::memcpy(&first, from, sizeof first);
        std::memcpy(&last, from + count - part, sizeof last);
        std::memcpy(to, &first, sizeof first);
        std::memcpy(to + count - part, &last, sizeof last);
    };
    if (count > 32) {
        std::copy_n(from, count, to);
    } else if (count >= 16) {
        ends(std::integral_constant<size_t, 16>());
    } else if (count >= 8) {
        ends(std::integral_constant<size_t, 8>());
    } else if (count >= 4) {
        ends(std::integral_constant<size_t, 4>());
    } else {
        for (int64_t k = 0; k < count; ++k) to[k] = from[k];
    }
}

void gather_run(const float* from, int64_t step, float* to, int64_t count) {
    int64_t x = 0;
    if (step == 2) {
        constexpr int64_t lanes = 4;
        using Lanes [[gnu::vector_size(lanes * sizeof(float))]] = float;
        for (; x + lanes < count; x += lanes) {  // the last one would read one element too many
            Lanes low, high;
            std::memcpy(&low, from + 2 * x, sizeof low);
            std::memcpy(&high, from + 2 * x + lanes, sizeof high);
            const Lanes even = __builtin_shufflevector(low, high, 0, 2, 4, 6);
            std::memcpy(to + x, &even, sizeof even);
        }
    }
    for (; x < count; ++x) to[x] = from[x * step];
}

/// Some outputs of the phases of the last axis in one phase of the others, in one image, some
/// groups and channels. These phases are computed together because their outputs alternate along a
/// row.
class Part {
public:
    Part(const ConvolutionProblem& problem, int64_t phase_of_others, int64_t width)
        : p_(problem), width_(width), last_(problem.kernel.size() - 1) {
        const int64_t phases = Phase::phases_of(p_, last_);
        phases_.reserve(static_cast<size_t>(phases));  // taps point into their phase
        for (int64_t k = 0; k < phases; ++k) phases_.emplace_back(p_, phase_of_others * phases + k);
        insides_.resize(phases_.size());
        for (size_t d = 0; d <= last_; ++d) {
            plane_in_ *= p_.in[d + 2];
            plane_out_ *= p_.out[d + 2];
            kernel_ *= p_.kernel[d];
        }
        group_in_ = p_.in[1] / p_.groups;
        group_out_ = p_.out[1] / p_.groups;
    }

    /// Outputs of each phase.
    [[nodiscard]] int64_t outputs() const { return phases_.front().outputs; }

    /// Outputs [begin, end) of channels [first, first + channels) of each of some groups, a panel of
    /// `most` outputs at a time.
    void run(const float* input, float* output, Range groups, int64_t first, int64_t channels,
             Range outputs, int64_t most) {
        sums_.resize(phases_.size() * static_cast<size_t>(channels * width_));
        for (int64_t at = outputs.begin; at < outputs.end; at += most) {
            const int64_t count = std::min(most, outputs.end - at);
            set_runs(at, count);
            for (size_t phase = 0; phase < phases_.size(); ++phase) {
                if (taps(phase) <= most_depth) set_insides(phase, 0, taps(phase));
            }
            for (int64_t group = groups.begin; group < groups.end; ++group) {
                for (size_t phase = 0; phase < phases_.size(); ++phase)
                    sum(phase, input, group, first, channels, count);
                store(output, group * group_out_ + first, channels, count);
            }
        }
    }

private:
    [[nodiscard]] int64_t taps(size_t phase) const { return std::ssize(phases_[phase].taps); }
    /// The sums of a phase, indexed channel, column.
    [[nodiscard]] float* sums(size_t phase, int64_t channels) {
        return sums_.data() + static_cast<int64_t>(phase) * channels * width_;
    }

    /// Phases in turn that read the same inputs, such as those of windows that do not overlap, find
    /// them packed.
    void sum(size_t phase, const float* input, int64_t group, int64_t first, int64_t channels,
             int64_t count) {
        const int64_t all = taps(phase), most = std::clamp<int64_t>(all, 1, most_depth);
        const int64_t together = std::clamp<int64_t>(most_depth / most, 1, group_in_);
        panel_.resize(std::max(panel_.size(), static_cast<size_t>(most * together * width_)));
        float* to = sums(phase, channels);
        for (int64_t z = 0; z < channels; ++z) {
            std::fill_n(to + z * width_, width_,
                        p_.bias == nullptr ? 0.0F : p_.bias[group * group_out_ + first + z]);
        }
        for (int64_t i = 0; i < group_in_; i += together) {
            const int64_t inputs = std::min(together, group_in_ - i);
            const float* of_inputs = input + (group * group_in_ + i) * plane_in_;
            for (int64_t tap = 0; tap < all; tap += most) {
                const int64_t block = std::min(most, all - tap);
                if (all > most) set_insides(phase, tap, block);
                const bool is_packed = phase > 0 && block == all && inputs == group_in_ &&
                                       insides_[phase] == insides_[phase - 1];
                if (!is_packed) pack(phase, of_inputs, inputs, block, count);
                multiply(phase, group, first, channels, i, inputs, tap, block, to);
            }
        }
    }

    /// The runs of the first phase of the last axis; those of the others are the same, a place
    /// further.
    void set_runs(int64_t begin, int64_t count) {
        runs_.clear();
        for (int64_t done = 0; done < count;) {
            Run run{.column = done};
            int64_t rest = begin + done, input_step = 1, output_step = 1;
            for (size_t d = last_ + 1; d-- > 0;) {
                const AxisPhase& axis = phases_.front().axes[d];
                run.at[d] = rest % axis.outputs;
                rest /= axis.outputs;
                run.input += run.at[d] * axis.step * input_step;
                run.output += (axis.first_output + run.at[d] * axis.output_step) * output_step;
                input_step *= p_.in[d + 2];
                output_step *= p_.out[d + 2];
            }
            run.count = std::min(count - done, phases_.front().axes[last_].outputs - run.at[last_]);
            done += run.count;
            runs_.push_back(run);
        }
    }

    void set_insides(size_t phase, int64_t first_tap, int64_t taps) {
        std::vector<Inside>& insides = insides_[phase];
        insides.clear();
        for (int64_t t = first_tap; t < first_tap + taps; ++t) {
            const KernelTap& tap = phases_[phase].taps[static_cast<size_t>(t)];
            for (const Run& run : runs_) {
                bool reads = true;
                for (size_t d = 0; d < last_; ++d)
                    reads = reads && run.at[d] >= tap.axes[d]->first && run.at[d] < tap.axes[d]->end;
                const AxisTap& column = *tap.axes[last_];
                const int64_t begin = std::clamp<int64_t>(column.first - run.at[last_], 0, run.count);
                const int64_t end =
                    reads ? std::clamp(column.end - run.at[last_], begin, run.count) : begin;
                insides.push_back(
                    {run.column + begin, run.column + end,
                     run.input + tap.offset + begin * phases_[phase].axes[last_].step});
            }
        }
    }

    /// Rows of the panel are channels, then kernel elements; of a transposed convolution the other way
    /// around, as its weights can be read.
    [[nodiscard]] int64_t row_of(int64_t channel, int64_t channels, int64_t tap, int64_t taps) const {
        return p_.transposed ? tap * channels + channel : channel * taps + tap;
    }

    void pack(size_t phase, const float* input, int64_t channels, int64_t taps, int64_t count) {
        const int64_t step = phases_[phase].axes[last_].step;
        for (int64_t i = 0; i < channels; ++i, input += plane_in_) {
            const Inside* inside = insides_[phase].data();
            for (int64_t t = 0; t < taps; ++t) {
                float* row = panel_.data() + row_of(i, channels, t, taps) * width_;
                int64_t done = 0;
                for (size_t run = 0; run < runs_.size(); ++run, ++inside) {
                    const float* from = input + inside->input;
                    clear_run(row + done, inside->begin - done);
                    done = inside->begin;
                    if (step == 1) {
                        copy_run(from, row + done, inside->end - done);
                    } else {
                        gather_run(from, step, row + done, inside->end - done);
                    }
                    done = inside->end;
                }
                clear_run(row + done, count - done);
            }
        }
    }

    void multiply(size_t phase, int64_t group, int64_t first, int64_t channels, int64_t first_input,
                  int64_t inputs, int64_t first_tap, int64_t taps, float* sums) {
        if (!p_.transposed) {
            const float* weights =
                p_.weights + ((group * group_out_ + first) * group_in_ + first_input) * kernel_ + first_tap;
            return add_panel_products({weights, group_in_ * kernel_, 1}, channels, panel_.data(),
                                      width_, inputs * taps, sums);
        }
        for (int64_t t = 0; t < taps; ++t) {
            const float* weights =
                p_.weights + ((group * group_in_ + first_input) * group_out_ + first) * kernel_ +
                phases_[phase].taps[static_cast<size_t>(first_tap + t)].place;
            add_panel_products({weights, kernel_, group_out_ * kernel_}, channels,
                               panel_.data() + t * inputs * width_, width_, inputs, sums);
        }
    }

    void store(float* output, int64_t first_channel, int64_t channels, int64_t count) {
        switch (phases_.size()) {  // loops of known lengths are written out
            case 1:
                return store_phases<1>(output, first_channel, channels, count);
            case 2:
                return store_phases<2>(output, first_channel, channels, count);
            case 3:
                return store_phases<3>(output, first_channel, channels, count);
            case 4:
                return store_phases<4>(output, first_channel, channels, count);
            default:
                return store_phases<0>(output, first_channel, channels, count);
        }
    }

    /// `known`: the number of phases, or 0.
    template <int64_t known>
    void store_phases(float* output, int64_t first_channel, int64_t channels, int64_t count) {
        const int64_t phases = known > 0 ? known : std::ssize(phases_);
        for (int64_t z = 0; z < channels; ++z) {
            float* first = sums(0, 0) + z * width_;
            for (int64_t k = 0; p_.finish && k < phases; ++k)
                p_.finish(first_channel + z, first + k * channels * width_, count);
            float* plane = output + (first_channel + z) * plane_out_;
            for (const Run& run : runs_) {
                const float* from = first + run.column;
                float* to = plane + run.output;
                if constexpr (known == 1) {
                    copy_run(from, to, run.count);
                    continue;
                }
                const int64_t left = p_.out.back() - run.at[last_] * phases;
                const int64_t whole = std::min(run.count, left / phases);
                for (int64_t x = 0; x < whole; ++x) {
                    for (int64_t k = 0; k < phases; ++k)
                        to[x * phases + k] = from[k * channels * width_ + x];
                }
                for (int64_t k = 0; whole < run.count && k < left % phases; ++k)
                    to[whole * phases + k] = from[k * channels * width_ + whole];
            }
        }
    }

    const ConvolutionProblem& p_;
    std::vector<Phase> phases_;  ///< of the last axis
    int64_t width_;
    size_t last_;
    int64_t plane_in_ = 1, plane_out_ = 1, kernel_ = 1, group_in_ = 1, group_out_ = 1;
    std::vector<Run> runs_;
    std::vector<std::vector<Inside>> insides_;  ///< of each phase, by kernel element and run
    std::vector<float> panel_, sums_;
};

/// Outputs that a panel of so many columns computes: whole rows of `row` outputs or whole parts of one
/// where these fill most of the columns, so that few runs have to be packed.
int64_t outputs_of_panel(int64_t width, int64_t row) {
    int64_t aligned = row <= width ? width / row * row : width;
    while (row > width && row % aligned != 0) --aligned;
    return 5 * aligned >= 4 * width ? aligned : width;
}

/// Neighbouring axes without windows as one, whose rows are longer.
ConvolutionProblem with_joined_axes(ConvolutionProblem p) {
    const auto has_no_window = [&](size_t d) {
        return p.kernel[d] == 1 && p.stride[d] == 1 && p.pad_begin[d] == 0 && p.in[d + 2] == p.out[d + 2];
    };
    for (size_t d = p.kernel.size(); d-- > 1;) {
        if (!has_no_window(d) || !has_no_window(d - 1)) continue;
        for (std::vector<int64_t>* dims : {&p.in, &p.out}) {
            (*dims)[d + 1] *= (*dims)[d + 2];
            dims->erase(dims->begin() + static_cast<int64_t>(d) + 2);
        }
        for (std::vector<int64_t>* window : {&p.kernel, &p.stride, &p.dilation, &p.pad_begin})
            window->erase(window->begin() + static_cast<int64_t>(d));
    }
    return p;
}

// ---- other ways

/// A convolution without windows is a product of matrices.
bool is_product(const ConvolutionProblem& p) {
    return !p.transposed && p.kernel.size() == 1 && p.kernel[0] == 1 && p.stride[0] == 1 &&
           p.pad_begin[0] == 0 && p.in[2] == p.out[2];
}

void multiply(const ConvolutionProblem& p, const float* input, float* output, int threads) {
    const int64_t rows = p.out[1] / p.groups, depth = p.in[1] / p.groups, columns = p.in[2];
    multiply_matrices({.batches = p.out[0] * p.groups,
                       .rows = rows,
                       .depth = depth,
                       .columns = columns,
                       .left_of = [&](int64_t k) { return p.weights + k % p.groups * rows * depth; },
                       .right_of = [&](int64_t k) { return input + k * depth * columns; }},
                      output, threads);
    if (p.bias == nullptr && !p.finish) return;
    parallel_for(p.out[0] * p.out[1], threads, [&](int64_t k) {
        float* plane = output + k * columns;
        const int64_t channel = k % p.out[1];
        const float bias = p.bias == nullptr ? 0.0F : p.bias[channel];
        for (int64_t x = 0; x < columns; ++x) plane[x] += bias;
        if (p.finish) p.finish(channel, plane, columns);
    });
}

/// A row of outputs of one channel: what its inputs and weights are, and where the row stands.
struct OutputRow {
    const Phase& phase;
    std::array<int64_t, most_spatial_axes> at{};  ///< in all axes but the last
    const float* input = nullptr;                 ///< of the first channel, where `at` reads
    const float* weights = nullptr;
    int64_t channels = 0, plane = 0, kernel = 0;
};

/// Adds products to the sums of a row.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void add_row_products(const OutputRow& row, float* sums) {
    const size_t last = row.phase.axes.size() - 1;
    const int64_t step = row.phase.axes[last].step;
    for (int64_t i = 0; i < row.channels; ++i) {
        for (const KernelTap& tap : row.phase.taps) {
            bool reads = true;
            for (size_t d = 0; d < last; ++d)
                reads = reads && row.at[d] >= tap.axes[d]->first && row.at[d] < tap.axes[d]->end;
            if (!reads) continue;
            const AxisTap& columns = *tap.axes[last];
            const float weight = row.weights[i * row.kernel + tap.place];
            const float* __restrict from =
                row.input + i * row.plane + tap.offset + columns.first * step;
            float* __restrict to = sums + columns.first;
            const int64_t count = columns.end - columns.first;
            if (step == 1) {
                for (int64_t x = 0; x < count; ++x) to[x] += weight * from[x];
            } else if (step == 2) {
                for (int64_t x = 0; x < count; ++x) to[x] += weight * from[2 * x];
            } else {
                for (int64_t x = 0; x < count; ++x) to[x] += weight * from[step * x];
            }
        }
    }
}

/// Row by row, where the channels of a group are fewer than a register tile has rows: a panel would be
/// packed for too few products.
void convolve_rows(const ConvolutionProblem& p, const float* input, float* output, int threads) {
    constexpr int64_t elements = 1 << 12;  // of a part
    const Phase phase(p, 0);
    const size_t last = p.kernel.size() - 1;
    int64_t rows = 1, plane_in = p.in[last + 2], kernel = p.kernel[last];
    for (size_t d = 0; d < last; ++d) {
        rows *= p.out[d + 2];
        plane_in *= p.in[d + 2];
        kernel *= p.kernel[d];
    }
    const int64_t width = p.out[last + 2];
    const int64_t group_in = p.in[1] / p.groups, group_out = p.out[1] / p.groups;
    const int64_t together = std::clamp<int64_t>(elements / width, 1, rows);
    const int64_t parts = ceil_div(rows, together);
    parallel_for(p.out[0] * p.out[1] * parts, threads, [&](int64_t k) {
        const int64_t plane = k / parts, channel = plane % p.out[1];
        const int64_t first_input = (plane / p.out[1] * p.groups + channel / group_out) * group_in;
        OutputRow row{.phase = phase,
                      .weights = p.weights + channel * group_in * kernel,
                      .channels = group_in,
                      .plane = plane_in,
                      .kernel = kernel};
        const int64_t begin = k % parts * together;
        for (int64_t r = begin; r < std::min(rows, begin + together); ++r) {
            int64_t rest = r, step = p.in[last + 2];
            row.input = input + first_input * plane_in;
            for (size_t d = last; d-- > 0; step *= p.in[d + 2]) {
                row.at[d] = rest % p.out[d + 2];
                rest /= p.out[d + 2];
                row.input += row.at[d] * p.stride[d] * step;
            }
            float* sums = output + (plane * rows + r) * width;
            std::fill_n(sums, width, p.bias == nullptr ? 0.0F : p.bias[channel]);
            add_row_products(row, sums);
            if (p.finish) p.finish(channel, sums, width);
        }
    });
}

}  // namespace

void convolve(const ConvolutionProblem& problem, const float* input, float* output, int threads) {
    constexpr int64_t few_channels = 2;
    const ConvolutionProblem p = with_joined_axes(problem);
    if (is_product(p)) return multiply(p, input, output, threads);
    if (!p.transposed && p.out[1] / p.groups <= few_channels)
        return convolve_rows(p, input, output, threads);
    int64_t phases = 1, most_outputs = 1, plane_in = 1, plane_out = 1;
    for (size_t d = 0; d < p.kernel.size(); ++d) {
        const int64_t of_axis = Phase::phases_of(p, d);
        if (d + 1 < p.kernel.size()) phases *= of_axis;
        most_outputs *= ceil_div(p.out[d + 2], of_axis);
        plane_in *= p.in[d + 2];
        plane_out *= p.out[d + 2];
    }
    constexpr int64_t panels = 8, fewest_channels = 48, parts_per_thread = 4;
    const int64_t widest = panel_width(), width = most_outputs <= widest / 2 ? widest / 2 : widest;
    const int64_t most = outputs_of_panel(width, ceil_div(p.out.back(), Phase::phases_of(p, p.kernel.size() - 1)));
    const int64_t group_out = p.out[1] / p.groups;
    const int64_t wanted = threads == 1 ? 1 : team_size(threads) * parts_per_thread;
    // Parts have several panels and groups, and all channels of a group, if there are enough parts.
    const int64_t all_panels = ceil_div(most_outputs, most);
    int64_t parts = p.out[0] * phases;
    const int64_t across = std::max(ceil_div(all_panels, panels), std::min(all_panels, ceil_div(wanted, parts)));
    parts *= across;
    const int64_t outputs = ceil_div(all_panels, across) * most;
    const int64_t groups = std::clamp<int64_t>(
        std::min(fewest_channels / group_out, p.groups * parts / wanted), 1, p.groups);
    const int64_t deep = ceil_div(p.groups, groups);
    parts *= deep;
    const int64_t channels = std::max(fewest_channels, ceil_div(group_out, ceil_div(wanted, parts)));
    const int64_t down = ceil_div(group_out, channels);
    parallel_for(parts * down, threads, [&](int64_t k) {
        const int64_t begin = k % across * outputs, first = k / across % down * channels;
        const int64_t group = k / across / down % deep * groups;
        const int64_t image = k / across / down / deep / phases;
        Part part(p, k / across / down / deep % phases, width);
        part.run(input + image * p.in[1] * plane_in, output + image * p.out[1] * plane_out,
                 {group, std::min(p.groups, group + groups)}, first,
                 std::min(channels, group_out - first),
                 {begin, std::min(part.outputs(), begin + outputs)}, most);
    });
}

}  // namespace laminate
