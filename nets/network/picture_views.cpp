#include "nets/network/picture_views.h"

#include <algorithm>
#include <cmath>

#include "nets/network/network.h"

namespace laminate {

namespace {

constexpr size_t n_axis = 0, c_axis = 1, h_axis = 2, w_axis = 3, map_rank = 4;
constexpr size_t pixel_axes[] = {h_axis, w_axis};

}  // namespace

GeneralOperator part_of(const std::vector<int64_t>& map, const std::array<int64_t, 3>& first,
                        const std::array<int64_t, 3>& extent) {
    GeneralOperator op{.kind = GeneralKind::view, .dims = map, .steps = row_major_steps(map)};
    for (size_t d = 0; d < 3; ++d) {
        op.dims[c_axis + d] = extent[d];
        op.first += first[d] * op.steps[c_axis + d];
    }
    for (size_t d = 0; d < map_rank; ++d) {
        if (op.dims[d] == 1) op.steps[d] = 0;
    }
    return op;
}

std::optional<std::array<int64_t, 3>> first_of_part(const GeneralOperator& op,
                                                    const std::vector<int64_t>& map) {
    if (op.kind != GeneralKind::view || op.dims.size() != map_rank || map.size() != map_rank ||
        op.dims[n_axis] != map[n_axis])
        return {};
    const std::array<int64_t, 3> first{op.first / (map[h_axis] * map[w_axis]),
                                       op.first / map[w_axis] % map[h_axis],
                                       op.first % map[w_axis]};
    for (size_t d = 0; d < 3; ++d) {
        if (first[d] + op.dims[c_axis + d] > map[c_axis + d]) return {};
    }
    const GeneralOperator expected =
        part_of(map, first, {op.dims[c_axis], op.dims[h_axis], op.dims[w_axis]});
    for (size_t d = 0; d < map_rank; ++d) {
        if (op.dims[d] > 1 && op.steps[d] != expected.steps[d]) return {};
    }
    return first;
}

GeneralOperator repeated(const std::vector<int64_t>& map, const std::array<int64_t, 2>& times) {
    GeneralOperator op{.kind = GeneralKind::resample, .tap_counts = {1, 1, 1, 1}};
    for (size_t d = 0; d < map_rank; ++d) {
        const int64_t repeats = d == h_axis ? times[0] : d == w_axis ? times[1] : 1;
        op.dims.push_back(map[d] * repeats);
        for (int64_t at = 0; at < op.dims[d]; ++at) op.sources.push_back(at / repeats);
    }
    return op;
}

std::optional<std::array<int64_t, 2>> repetitions_of(const GeneralOperator& op,
                                                     const std::vector<int64_t>& map) {
    if (op.kind != GeneralKind::resample || op.dims.size() != map_rank || map.size() != map_rank ||
        !op.factors.empty())
        return {};
    std::array<int64_t, 2> times{};
    for (const size_t d : pixel_axes) {
        times[d - h_axis] = op.dims[d] / map[d];
        if (times[d - h_axis] < 1) return {};
    }
    const GeneralOperator expected = repeated(map, times);
    if (op.dims != expected.dims || op.tap_counts != expected.tap_counts ||
        op.sources != expected.sources)
        return {};
    return times;
}

GeneralOperator blocks_of(int64_t block, int64_t shuffle) {
    return {.kind = GeneralKind::blocks, .first = shuffle, .kernel = {block}};
}

namespace {

/// What a coordinate beyond the ends of an axis reads, -1 if nothing.
int64_t moved_inside(Padding::Mode border, int64_t at, int64_t in) {
    switch (border) {
        case Padding::Mode::constant:
            return at >= 0 && at < in ? at : -1;
        case Padding::Mode::edge:
            return std::clamp<int64_t>(at, 0, in - 1);
        case Padding::Mode::reflect:
            return at < 0 ? -at : at < in ? at : 2 * (in - 1) - at;
    }
    return -1;
}

/// What an axis of a padded map reads, by output.
std::vector<int64_t> padded_sources(Padding::Mode mode, int64_t extent, int64_t begin,
                                    int64_t end) {
    std::vector<int64_t> sources;
    for (int64_t at = -begin; at < extent + end; ++at)
        sources.push_back(moved_inside(mode, at, extent));
    return sources;
}

}  // namespace

GeneralOperator padded(const std::vector<int64_t>& map, const Padding& padding) {
    GeneralOperator op{
        .kind = GeneralKind::resample, .tap_counts = {1, 1, 1, 1}, .alpha = padding.value};
    for (size_t d = 0; d < map_rank; ++d) {
        const bool is_padded = d == h_axis || d == w_axis;
        const std::vector<int64_t> sources =
            padded_sources(padding.mode, map[d], is_padded ? padding.begin[d - h_axis] : 0,
                           is_padded ? padding.end[d - h_axis] : 0);
        op.dims.push_back(std::ssize(sources));
        op.sources.insert(op.sources.end(), sources.begin(), sources.end());
    }
    return op;
}

std::optional<Padding> padding_of(const GeneralOperator& op, const std::vector<int64_t>& map) {
    if (!samples_pixels(op, map) || !op.factors.empty()) return {};
    for (const Padding::Mode mode :
         {Padding::Mode::constant, Padding::Mode::edge, Padding::Mode::reflect}) {
        Padding padding{mode, {}, {}, op.alpha};
        for (const size_t d : pixel_axes) {
            const SampledAxis axis = sampled_axis(op, d);
            int64_t& begin = padding.begin[d - h_axis];
            int64_t& end = padding.end[d - h_axis];
            const auto reads = [&] {
                end = op.dims[d] - map[d] - begin;
                const bool fits =
                    end >= 0 && (mode != Padding::Mode::reflect || std::max(begin, end) < map[d]);
                return fits && std::ranges::equal(padded_sources(mode, map[d], begin, end),
                                                  axis.sources);
            };
            while (begin <= op.dims[d] - map[d] && !reads()) ++begin;
        }
        if (padded(map, padding) == op) return padding;
    }
    return {};
}

GeneralOperator interpolated(const std::vector<int64_t>& map,
                             const std::array<int64_t, 2>& extent) {
    GeneralOperator op{.kind = GeneralKind::resample};
    for (size_t d = 0; d < map_rank; ++d) {
        const int64_t outputs = d < h_axis ? map[d] : extent[d - h_axis];
        const bool stays = outputs == map[d];
        op.dims.push_back(outputs);
        op.tap_counts.push_back(stays ? 1 : 2);
        const double scale = static_cast<double>(outputs) / static_cast<double>(map[d]);
        for (int64_t out = 0; out < outputs; ++out) {
            if (stays) {
                op.sources.push_back(out);
                op.factors.push_back(1);
                continue;
            }
            const double at = (static_cast<double>(out) + 0.5) / scale - 0.5, below = std::floor(at);
            for (const int64_t tap : {0, 1}) {
                const int64_t source = static_cast<int64_t>(below) + tap;
                op.sources.push_back(std::clamp<int64_t>(source, 0, map[d] - 1));
                op.factors.push_back(static_cast<float>(tap == 0 ? 1 - (at - below) : at - below));
            }
        }
    }
    return op;
}

SampledAxis sampled_axis(const GeneralOperator& op, size_t axis) {
    size_t begin = 0;
    const auto size = [&](size_t d) { return static_cast<size_t>(op.tap_counts[d] * op.dims[d]); };
    for (size_t d = 0; d < axis; ++d) begin += size(d);
    const std::span<const float> factors = op.factors;
    return {op.tap_counts[axis], std::span(op.sources).subspan(begin, size(axis)),
            factors.empty() ? factors : factors.subspan(begin, size(axis))};
}

bool samples_pixels(const GeneralOperator& op, const std::vector<int64_t>& map) {
    if (op.kind != GeneralKind::resample || op.dims.size() != map_rank || map.size() != map_rank)
        return false;
    for (const size_t d : {n_axis, c_axis}) {
        const SampledAxis axis = sampled_axis(op, d);
        if (axis.taps != 1 || op.dims[d] != map[d]) return false;
        for (size_t at = 0; at < axis.sources.size(); ++at) {
            if (axis.sources[at] != static_cast<int64_t>(at) ||
                (!axis.factors.empty() && axis.factors[at] != 1))
                return false;
        }
    }
    constexpr int64_t most_taps = 8;
    return std::all_of(std::begin(pixel_axes), std::end(pixel_axes), [&](size_t d) {
        const SampledAxis axis = sampled_axis(op, d);
        const Range inside = inside_of(axis);
        const auto sources = axis.sources.subspan(static_cast<size_t>(inside.begin * axis.taps),
                                                  static_cast<size_t>(inside.size() * axis.taps));
        // Code finds coordinates by products of both extents in 32 bits.
        constexpr int64_t most_product = int64_t{1} << 30;
        return !inside.empty() && axis.taps <= most_taps && op.dims[d] * map[d] <= most_product &&
               std::all_of(sources.begin(), sources.end(),
                           [](int64_t source) { return source >= 0; });
    });
}

Range inside_of(const SampledAxis& axis) {
    const int64_t outputs = std::ssize(axis.sources) / axis.taps;
    const auto reads = [&](int64_t out) {
        const auto first = axis.sources.begin() + out * axis.taps;
        return std::none_of(first, first + axis.taps, [](int64_t source) { return source < 0; });
    };
    Range inside{0, outputs};
    while (inside.begin < outputs && !reads(inside.begin)) ++inside.begin;
    while (inside.end > inside.begin && !reads(inside.end - 1)) --inside.end;
    return inside;
}

namespace {

/// The first block of `period` outputs that read inside, and behind which the next one reads the same
/// number of coordinates further on; nullopt if there is none.
std::optional<int64_t> repeated_block(const SampledAxis& axis, int64_t period) {
    const int64_t size = period * axis.taps, blocks = std::ssize(axis.sources) / size;
    for (int64_t block = 0; block + 1 < blocks; ++block) {
        const auto first = axis.sources.begin() + block * size, next = first + size;
        const int64_t advance = *next - *first;
        if (advance > 0 && std::equal(first, next, next, [&](int64_t a, int64_t b) {
                return a >= 0 && b == a + advance;
            }))
            return block;
    }
    return {};
}

/// The axis with that period, if all of its outputs read so.
std::optional<PeriodicAxis> axis_of_period(const SampledAxis& axis, int64_t in, int64_t period) {
    const int64_t outputs = std::ssize(axis.sources) / axis.taps;
    const std::optional<int64_t> block = repeated_block(axis, period);
    if (!block) return {};
    const auto place = [&](int64_t out, int64_t tap) {
        return static_cast<size_t>(out * axis.taps + tap);
    };
    const auto factor = [&](size_t at) { return axis.factors.empty() ? 1 : axis.factors[at]; };
    PeriodicAxis found;
    found.period = period;
    found.advance = axis.sources[place((*block + 1) * period, 0)] -
                    axis.sources[place(*block * period, 0)];
    found.more = outputs - in * period / found.advance;
    for (int64_t phase = 0; phase < period; ++phase) {
        found.bases.emplace_back();
        found.factors.emplace_back();
        for (int64_t tap = 0; tap < axis.taps; ++tap) {
            const size_t at = place(*block * period + phase, tap);
            found.bases.back().push_back(axis.sources[at] - *block * found.advance);
            found.factors.back().push_back(factor(at));
        }
    }
    const auto explains = [&](int64_t out) {
        const auto phase = static_cast<size_t>(out % period);
        for (int64_t tap = 0; tap < axis.taps; ++tap) {
            const size_t at = place(out, tap);
            const int64_t source = found.bases[phase][static_cast<size_t>(tap)] +
                                   out / period * found.advance;
            constexpr float rounding = 1e-6F;
            if (moved_inside(found.border, source, in) != axis.sources[at] ||
                std::abs(found.factors[phase][static_cast<size_t>(tap)] - factor(at)) > rounding)
                return false;
        }
        return true;
    };
    for (const auto border :
         {Padding::Mode::edge, Padding::Mode::reflect, Padding::Mode::constant}) {
        // Where in a period the map ends would decide what is reflected there.
        if (border == Padding::Mode::reflect && found.advance > 1) continue;
        found.border = border;
        int64_t out = 0;
        while (out < outputs && explains(out)) ++out;
        if (out == outputs) return found;
    }
    return {};
}

}  // namespace

std::optional<PeriodicAxis> periodic_axis(const SampledAxis& axis, int64_t in) {
    constexpr int64_t longest = 8;
    for (int64_t period = 1; period <= longest; ++period) {
        if (std::optional<PeriodicAxis> found = axis_of_period(axis, in, period)) return found;
    }
    return {};
}

std::vector<int64_t> sources_of(const PeriodicAxis& axis, int64_t in) {
    std::vector<int64_t> sources;
    const int64_t outputs = in * axis.period / axis.advance + axis.more;
    for (int64_t out = 0; out < outputs; ++out) {
        for (const int64_t base : axis.bases[static_cast<size_t>(out % axis.period)]) {
            sources.push_back(
                moved_inside(axis.border, base + out / axis.period * axis.advance, in));
        }
    }
    return sources;
}

std::optional<std::array<OpenAxis, 2>> open_axes(const GeneralOperator& op,
                                                 const std::vector<int64_t>& map) {
    if (op.dims.size() != map_rank || map.size() != map_rank) return {};
    if (const auto times = repetitions_of(op, map))
        return std::array<OpenAxis, 2>{{{(*times)[0]}, {(*times)[1]}}};
    if (first_of_part(op, map)) {
        return std::array<OpenAxis, 2>{{{.more = op.dims[h_axis] - map[h_axis]},
                                        {.more = op.dims[w_axis] - map[w_axis]}}};
    }
    if (!samples_pixels(op, map)) return {};
    std::array<OpenAxis, 2> axes;
    for (const size_t d : pixel_axes) {
        const auto found = periodic_axis(sampled_axis(op, d), map[d]);
        if (!found) return {};
        axes[d - h_axis] = {found->period, found->advance, found->more};
    }
    return axes;
}

GeneralOperator of_another_size(const GeneralOperator& op, const std::vector<int64_t>& map,
                                const std::vector<int64_t>& other) {
    const auto axes = open_axes(op, map);
    if (!axes || other.size() != map_rank) return op;
    if (const auto times = repetitions_of(op, map)) return repeated(other, *times);
    std::array<int64_t, 2> out{};
    for (const size_t d : pixel_axes) {
        const OpenAxis& axis = (*axes)[d - h_axis];
        out[d - h_axis] = other[d] * axis.times / axis.per + axis.more;
        if (out[d - h_axis] < 1) return op;
    }
    if (const auto first = first_of_part(op, map))
        return part_of(other, *first, {op.dims[c_axis], out[0], out[1]});
    GeneralOperator at{.kind = GeneralKind::resample,
                       .dims = {other[n_axis], other[c_axis], out[0], out[1]},
                       .tap_counts = op.tap_counts,
                       .alpha = op.alpha};
    for (size_t d = 0; d < map_rank; ++d) {
        if (d < h_axis) {
            for (int64_t k = 0; k < other[d]; ++k) at.sources.push_back(k);
            if (!op.factors.empty()) at.factors.resize(at.sources.size(), 1.0F);
            continue;
        }
        const PeriodicAxis axis = *periodic_axis(sampled_axis(op, d), map[d]);
        const std::vector<int64_t> sources = sources_of(axis, other[d]);
        // A reflection has no rows of its own to reflect further ones.
        const bool is_reflected = axis.border == Padding::Mode::reflect;
        if (is_reflected && std::ranges::any_of(sources, [&](int64_t source) {
                return source < 0 || source >= other[d];
            }))
            return op;
        at.sources.insert(at.sources.end(), sources.begin(), sources.end());
        for (int64_t k = 0; !op.factors.empty() && k < at.dims[d]; ++k) {
            const auto& factors = axis.factors[static_cast<size_t>(k % axis.period)];
            at.factors.insert(at.factors.end(), factors.begin(), factors.end());
        }
    }
    return at;
}

GeneralOperator sampled_rows(const GeneralOperator& op, int64_t first_row,
                             const std::array<int64_t, 2>& out) {
    GeneralOperator rows = op;
    rows.dims[n_axis] = 1;
    rows.dims[h_axis] = out[1] - out[0];
    rows.sources.clear();
    rows.factors.clear();
    for (size_t d = 0; d < map_rank; ++d) {
        SampledAxis axis = sampled_axis(op, d);
        if (d == n_axis) {
            axis.sources = axis.sources.first(static_cast<size_t>(axis.taps));
            if (!axis.factors.empty())
                axis.factors = axis.factors.first(static_cast<size_t>(axis.taps));
        }
        if (d == h_axis) {
            const auto begin = static_cast<size_t>(out[0] * axis.taps),
                       size = static_cast<size_t>(rows.dims[h_axis] * axis.taps);
            axis.sources = axis.sources.subspan(begin, size);
            if (!axis.factors.empty()) axis.factors = axis.factors.subspan(begin, size);
        }
        for (const int64_t source : axis.sources)
            rows.sources.push_back(d == h_axis && source >= 0 ? source - first_row : source);
        rows.factors.insert(rows.factors.end(), axis.factors.begin(), axis.factors.end());
    }
    return rows;
}

std::optional<GeneralFunction> normalisation_of(const Layer& layer) {
    if (layer.kind == LayerKind::softmax && layer.axis == int64_t{c_axis})
        return GeneralFunction::softmax;
    const GeneralOperator& op = layer.general;
    const bool is_of_channels = layer.kind == LayerKind::general &&
                                op.kind == GeneralKind::normalise &&
                                op.axes == std::vector<int64_t>{c_axis};
    if (!is_of_channels) return {};
    switch (op.function) {
        case GeneralFunction::softmax:
        case GeneralFunction::log_softmax:
        case GeneralFunction::standardise:
        case GeneralFunction::root_mean_square:
            return op.function;
        default:
            return {};
    }
}

bool is_constant(const Layer& layer) {
    return layer.kind == LayerKind::general && layer.general.kind == GeneralKind::constant;
}

std::optional<GeneralFunction> extreme_of_channels(const Layer& layer) {
    const GeneralOperator& op = layer.general;
    const bool is_extreme =
        op.function == GeneralFunction::largest || op.function == GeneralFunction::smallest;
    if (layer.kind != LayerKind::general || op.kind != GeneralKind::reduce || !is_extreme ||
        op.axes != std::vector<int64_t>{c_axis})
        return {};
    return op.function;
}

}  // namespace laminate
