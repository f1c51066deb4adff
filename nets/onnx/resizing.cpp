// Pad, Resize, Upsample, GridSample, Gather, GatherND, ScatterND and Tile. Each axis of the result reads
// known coordinates of the same axis of the input, or weighted sums of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

/// Coordinates that one operator may list (512 MiB). Without a limit, a small file could ask for
/// any number.
constexpr size_t most_sources = size_t{1} << 26;

/// What one axis of a result reads: `taps` input coordinates for each output coordinate.
struct AxisSources {
    int64_t taps = 1;
    std::vector<int64_t> at{};     ///< -1: outside
    std::vector<float> factors{};  ///< empty: all 1
};

AxisSources same_axis(int64_t extent) {
    AxisSources axis;
    if (static_cast<size_t>(extent) <= most_sources) {
        for (int64_t k = 0; k < extent; ++k) axis.at.push_back(k);
    }
    return axis;
}

/// A resampling of x. Elements that read beyond the input are `outside`.
GeneralOperator resampling(const Node& node, const std::vector<AxisSources>& axes, float outside) {
    GeneralOperator op{.kind = GeneralKind::resample, .alpha = outside};
    const bool weighted = std::any_of(
        axes.begin(), axes.end(), [](const AxisSources& axis) { return !axis.factors.empty(); });
    for (const AxisSources& axis : axes) {
        if (op.sources.size() + axis.at.size() > most_sources || axis.at.empty())
            node.fail("makes axes of more than " + std::to_string(most_sources) + " elements");
        op.dims.push_back(std::ssize(axis.at) / axis.taps);
        op.tap_counts.push_back(axis.taps);
        op.sources.insert(op.sources.end(), axis.at.begin(), axis.at.end());
        if (!weighted) continue;
        op.factors.insert(op.factors.end(), axis.factors.begin(), axis.factors.end());
        op.factors.resize(op.sources.size(), 1.0f);
    }
    return op;
}

int64_t wrapped(int64_t at, int64_t extent) { return (at % extent + extent) % extent; }

// ---- Pad

int64_t padded_source(const std::string& mode, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent) return at;
    if (mode == "constant") return -1;
    if (mode == "edge") return at < 0 ? 0 : extent - 1;
    if (mode == "wrap") return wrapped(at, extent);
    if (extent == 1) return 0;
    const int64_t inside =
        wrapped(at, 2 * (extent - 1));  // reflect: the border element is not repeated
    return inside < extent ? inside : 2 * (extent - 1) - inside;
}

void pad(Importer& importer, Node& node) {
    node.expect_inputs(1, 4);
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    const std::string mode = node.text("mode", "constant");
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
        node.fail("mode is " + in_quotes(mode));
    const auto pads = importer.integers_of(node, "pads", 1);
    if (!pads) node.fail("has no pads");
    const float value = node.real("value", importer.scalar(node, 2, 0.0f));
    Dims axes;
    for (size_t d = 0; d < from.size(); ++d) axes.push_back(static_cast<int64_t>(d));
    if (node.has_input(3)) axes = importer.integers(node, 3).values;
    if (pads->size() != 2 * axes.size())
        node.fail("pads has " + std::to_string(pads->size()) + " values for " +
                  std::to_string(axes.size()) + " axes");
    std::vector<AxisSources> sources;
    for (const int64_t extent : from) sources.push_back(same_axis(extent));
    for (size_t k = 0; k < axes.size(); ++k) {
        const auto axis =
            static_cast<size_t>(Importer::checked_axis(node, axes[k], from.size(), "axis"));
        const int64_t begin = (*pads)[k], end = (*pads)[k + axes.size()];
        for (const int64_t p : {begin, end}) {
            if (p < -largest_parameter || p > static_cast<int64_t>(most_sources))
                node.fail("pads contains " + std::to_string(p));
        }
        sources[axis].at.clear();
        for (int64_t at = -begin; at < from[axis] + end && sources[axis].at.size() <= most_sources;
             ++at) {
            sources[axis].at.push_back(padded_source(mode, at, from[axis]));
        }
        if (sources[axis].at.empty())
            node.fail("leaves nothing of axis " + std::to_string(axis) + " of " + dims_text(from));
    }
    if (std::all_of(pads->begin(), pads->end(), [](int64_t p) { return p == 0; }))
        return importer.alias(node, x);
    importer.append(node, resampling(node, sources, value), {x});
}

// ---- Resize

/// The attributes of ONNX's Resize. The defaults are the rules of Upsample.
struct ResizeRule {
    std::string mode = "nearest";
    std::string coordinates = "asymmetric";
    std::string nearest = "floor";
    double cubic_coefficient = -0.75;
    bool antialias = false;
    bool exclude_outside = false;
};

/// The input coordinate, a fraction, under output coordinate `out` (ONNX, Resize). `scale` * extent
/// need not be whole. Where ONNX says length_resized, PyTorch and onnxruntime take the length of
/// the output, which is whole; so does this function.
///
/// Number is float for nearest: a scale such as 0.6 is a little more than that in 32 bits, and only
/// the division in 32 bits rounds 3 / 0.6 to 5 as exporters and onnxruntime do.
template <class Number>
Number source_of(const ResizeRule& rule, int64_t out, int64_t extent, int64_t out_extent,
                 double exact_scale, double roi_begin, double roi_end) {
    const auto x = static_cast<Number>(out), scale = static_cast<Number>(exact_scale);
    const auto in = static_cast<Number>(extent), length = static_cast<Number>(out_extent);
    const Number half = Number{1} / 2;
    if (rule.coordinates == "align_corners")
        return out_extent == 1 ? 0 : x * (in - 1) / (length - 1);
    if (rule.coordinates == "asymmetric") return x / scale;
    if (rule.coordinates == "tf_crop_and_resize") {
        const auto begin = static_cast<Number>(roi_begin), end = static_cast<Number>(roi_end);
        return out_extent == 1 ? half * (begin + end) * (in - 1)
                               : begin * (in - 1) + x * (end - begin) * (in - 1) / (length - 1);
    }
    if (rule.coordinates == "pytorch_half_pixel" && out_extent == 1) return 0;
    const Number half_pixel = (x + half) / scale - half;
    if (rule.coordinates != "half_pixel_symmetric") return half_pixel;
    return half_pixel + in / 2 * (1 - length / (scale * in));
}

/// Keys' cubic convolution kernel at distance x.
double cubic_kernel(double x, double a) {
    x = std::abs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

int64_t nearest_source(const ResizeRule& rule, float x) {
    const float below = std::floor(x), ratio = x - below;
    const auto low = static_cast<int64_t>(below);
    if (ratio == 0) return low;
    if (rule.nearest == "floor") return low;
    if (rule.nearest == "ceil") return low + 1;
    if (rule.nearest == "round_prefer_ceil") return ratio < 0.5 ? low : low + 1;
    return ratio <= 0.5 ? low : low + 1;
}

AxisSources resized_axis(const Node& node, const ResizeRule& rule, int64_t extent,
                         int64_t out_extent, double scale, double roi_begin, double roi_end) {
    AxisSources axis;
    const double shrink = rule.antialias ? std::min(scale, 1.0) : 1.0;  // widens the filter
    const int64_t reach = rule.mode == "linear" ? 1 : 2;
    const auto first_tap =
        static_cast<int64_t>(std::floor(-static_cast<double>(reach) / shrink)) + 1;
    axis.taps = rule.mode == "nearest" ? 1 : 2 - 2 * first_tap;
    if (out_extent < 1 || axis.taps > static_cast<int64_t>(most_sources) / out_extent) {
        node.fail("makes " + std::to_string(out_extent) + " of an axis of " +
                  std::to_string(extent) + ", expected 1 to " + std::to_string(most_sources) +
                  " (times the taps of its filter)");
    }
    for (int64_t out = 0; out < out_extent; ++out) {
        const auto x = source_of<double>(rule, out, extent, out_extent, scale, roi_begin, roi_end);
        if (!(std::abs(x) < 1e15))
            node.fail("reads coordinate " + std::to_string(x) + " of an axis of " +
                      std::to_string(extent));
        const bool extrapolates = rule.coordinates == "tf_crop_and_resize" &&
                                  (x < 0 || x > static_cast<double>(extent - 1));
        if (extrapolates) {
            axis.at.insert(axis.at.end(), static_cast<size_t>(axis.taps), -1);
            if (rule.mode != "nearest")
                axis.factors.insert(axis.factors.end(), static_cast<size_t>(axis.taps), 0.0f);
            continue;
        }
        if (rule.mode == "nearest") {
            const int64_t nearest = nearest_source(
                rule, source_of<float>(rule, out, extent, out_extent, scale, roi_begin, roi_end));
            axis.at.push_back(std::clamp<int64_t>(nearest, 0, extent - 1));
            continue;
        }
        const auto base = static_cast<int64_t>(std::floor(x));
        const double ratio = x - static_cast<double>(base);
        std::vector<double> weights;
        double total = 0;
        for (int64_t k = first_tap; k < first_tap + axis.taps; ++k) {
            const double distance = (static_cast<double>(k) - ratio) * shrink;
            double weight = rule.mode == "linear" ? std::max(0.0, 1 - std::abs(distance))
                                                  : cubic_kernel(distance, rule.cubic_coefficient);
            if (rule.exclude_outside && (base + k < 0 || base + k >= extent)) weight = 0;
            weights.push_back(weight);
            total += weight;
            axis.at.push_back(std::clamp<int64_t>(base + k, 0, extent - 1));
        }
        for (const double weight : weights)
            axis.factors.push_back(static_cast<float>(weight / total));
    }
    return axis;
}

/// Resamples the named axes; the other axes keep their extent.
void resize_axes(Importer& importer, Node& node, const ResizeRule& rule, const Dims& axes,
                 const std::vector<double>& scales, const Dims& extents,
                 const std::vector<double>& roi, float outside) {
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x);
    std::vector<AxisSources> sources;
    for (const int64_t extent : from) sources.push_back(same_axis(extent));
    const bool crops = rule.coordinates == "tf_crop_and_resize";
    // PyTorch and onnxruntime copy a tensor whose shape stays, whatever the scales.
    bool keeps_shape = !crops;
    for (size_t k = 0; k < axes.size(); ++k)
        keeps_shape = keeps_shape && extents[k] == from[static_cast<size_t>(axes[k])];
    if (keeps_shape) return importer.alias(node, x);
    for (size_t k = 0; k < axes.size(); ++k) {
        const auto axis = static_cast<size_t>(axes[k]);
        if (!(scales[k] > 0) || !std::isfinite(scales[k]))
            node.fail("scales axis " + std::to_string(axis) + " by " + std::to_string(scales[k]));
        const bool takes_all = !crops || (roi[k] == 0 && roi[k + axes.size()] == 1);
        if (scales[k] == 1 && extents[k] == from[axis] && takes_all) continue;
        sources[axis] = resized_axis(node, rule, from[axis], extents[k], scales[k],
                                     crops ? roi[k] : 0, crops ? roi[k + axes.size()] : 1);
    }
    importer.append(node, resampling(node, sources, outside), {x});
}

/// In 32 bits, as in onnx's shape inference and onnxruntime: 10 * 0.7 is 7, though the float 0.7 is
/// a little less than that.
int64_t scaled_extent(const Node& node, int64_t extent, double scale) {
    const float scaled = std::floor(static_cast<float>(extent) * static_cast<float>(scale));
    if (!(scaled >= 1) || scaled > static_cast<float>(largest_parameter))
        node.fail("scales " + std::to_string(extent) + " by " + std::to_string(scale));
    return static_cast<int64_t>(scaled);
}

std::vector<double> as_doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
}

/// Upsample, and Resize of opset 10: scales only, coordinates from the corner. ONNX leaves the
/// rounding of nearest open. PyTorch, which exports such nodes, rounds down, and so does
/// onnxruntime except where opset 10 shrinks: there it rounds up.
void upsample(Importer& importer, Node& node) {
    node.expect_inputs(1, 2);
    ResizeRule rule;
    rule.mode = node.text("mode", "nearest");
    if (rule.mode == "bilinear") rule.mode = "linear";
    if (rule.mode != "nearest" && rule.mode != "linear")
        node.fail("mode is " + in_quotes(rule.mode) + ", expected nearest or linear");
    auto given = node.reals("scales");
    if (!given && node.has_input(1)) given = importer.constant(node, 1)->values;
    const Dims from = importer.dims(importer.tensor(node, 0));
    if (!given || given->size() != from.size())
        node.fail("has no scale for each dimension of " + dims_text(from));
    Dims axes, extents;
    for (size_t d = 0; d < from.size(); ++d) {
        axes.push_back(static_cast<int64_t>(d));
        extents.push_back(scaled_extent(node, from[d], static_cast<double>((*given)[d])));
    }
    resize_axes(importer, node, rule, axes, as_doubles(*given), extents, {}, 0);
}

void resize(Importer& importer, Node& node) {
    if (importer.opset() < 11) return upsample(importer, node);
    node.expect_inputs(1, 4);
    const Dims from = importer.dims(importer.tensor(node, 0));
    ResizeRule rule;
    rule.mode = node.text("mode", "nearest");
    rule.coordinates = node.text("coordinate_transformation_mode", "half_pixel");
    rule.nearest = node.text("nearest_mode", "round_prefer_floor");
    rule.cubic_coefficient = static_cast<double>(node.real("cubic_coeff_a", -0.75f));
    rule.antialias = node.integer("antialias", 0) != 0;
    rule.exclude_outside = node.integer("exclude_outside", 0) != 0;
    const float outside = node.real("extrapolation_value", 0.0f);
    const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    const auto expect_one_of = [&](const std::string& found,
                                   std::initializer_list<const char*> known, const char* what) {
        if (std::find(known.begin(), known.end(), found) == known.end())
            node.fail(std::string(what) + " is " + in_quotes(found));
    };
    expect_one_of(rule.mode, {"nearest", "linear", "cubic"}, "mode");
    expect_one_of(rule.coordinates,
                  {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                   "asymmetric", "tf_crop_and_resize"},
                  "coordinate_transformation_mode");
    expect_one_of(rule.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
                  "nearest_mode");
    expect_one_of(policy, {"stretch", "not_larger", "not_smaller"}, "keep_aspect_ratio_policy");

    Dims axes;
    for (size_t d = 0; d < from.size(); ++d) axes.push_back(static_cast<int64_t>(d));
    if (auto given = node.integers("axes")) {
        for (int64_t& axis : *given) axis = Importer::checked_axis(node, axis, from.size(), "axis");
        axes = *given;
    }
    const auto extent_of = [&](size_t k) { return from[static_cast<size_t>(axes[k])]; };
    std::vector<double> scales;
    Dims extents;
    const bool has_sizes = node.has_input(3) && !importer.integers(node, 3).values.empty();
    if (has_sizes) {
        extents = importer.integers(node, 3).values;
        if (extents.size() != axes.size())
            node.fail("has " + std::to_string(extents.size()) + " sizes for " +
                      std::to_string(axes.size()) + " axes");
        for (size_t k = 0; k < axes.size(); ++k)
            scales.push_back(static_cast<double>(extents[k]) / static_cast<double>(extent_of(k)));
        if (policy != "stretch" && !scales.empty()) {
            const double common = policy == "not_larger"
                                      ? *std::min_element(scales.begin(), scales.end())
                                      : *std::max_element(scales.begin(), scales.end());
            for (size_t k = 0; k < axes.size(); ++k) {
                scales[k] = common;
                const double rounded = std::floor(common * static_cast<double>(extent_of(k)) + 0.5);
                extents[k] = static_cast<int64_t>(
                    std::clamp(rounded, 1.0, static_cast<double>(largest_parameter)));
            }
        }
    } else {
        if (!node.has_input(2)) node.fail("has neither scales nor sizes");
        scales = as_doubles(importer.constant(node, 2)->values);
        if (scales.size() != axes.size())
            node.fail("has " + std::to_string(scales.size()) + " scales for " +
                      std::to_string(axes.size()) + " axes");
        for (size_t k = 0; k < axes.size(); ++k)
            extents.push_back(scaled_extent(node, extent_of(k), scales[k]));
    }
    std::vector<double> roi;
    if (rule.coordinates == "tf_crop_and_resize") {
        roi = as_doubles(importer.constant(node, 1)->values);
        if (roi.size() != 2 * axes.size())
            node.fail("roi has " + std::to_string(roi.size()) + " values for " +
                      std::to_string(axes.size()) + " axes");
    }
    resize_axes(importer, node, rule, axes, scales, extents, roi, outside);
}

// ---- GridSample

void grid_sample(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    // Names before and since opset 20.
    const std::map<std::string, GeneralFunction> modes{{"nearest", GeneralFunction::nearest},
                                                       {"bilinear", GeneralFunction::linear},
                                                       {"linear", GeneralFunction::linear},
                                                       {"bicubic", GeneralFunction::cubic},
                                                       {"cubic", GeneralFunction::cubic}};
    const std::map<std::string, GridPadding> paddings{{"zeros", GridPadding::zeros},
                                                      {"border", GridPadding::border},
                                                      {"reflection", GridPadding::reflection}};
    const std::string mode = node.text("mode", "linear"),
                      padding = node.text("padding_mode", "zeros");
    if (!modes.contains(mode)) node.fail("mode is " + in_quotes(mode));
    if (!paddings.contains(padding)) node.fail("padding_mode is " + in_quotes(padding));
    importer.append(node,
                    {.kind = GeneralKind::sample,
                     .function = modes.at(mode),
                     .alpha = static_cast<float>(static_cast<int>(paddings.at(padding))),
                     .beta = node.integer("align_corners", 0) != 0 ? 1.0f : 0.0f},
                    {importer.tensor(node, 0), importer.tensor(node, 1)});
}

// ---- Gather, GatherND, ScatterND, Tile

/// Defines the result: the coordinates `at` of an axis of the data, read as an array of dims `from`, and
/// then as one of dims `target`.
void pick(Importer& importer, Node& node, size_t axis, const Dims& at, const Dims& from,
          const Dims& target) {
    if (at.empty() && !std::holds_alternative<TensorId>(importer.value(node, 0)))
        return importer.define(node, std::make_shared<const Constant>(
                                         Constant{target, std::vector<float>{}}));
    if (at.empty()) node.fail("gathers nothing");
    if (target.size() > most_dimensions)
        node.fail("makes " + std::to_string(target.size()) + " dimensions");
    std::vector<AxisSources> sources;
    for (const int64_t extent : from) sources.push_back(same_axis(extent));
    sources[axis] = {.taps = 1, .at = at};
    const TensorId data = importer.reshaped(node, importer.tensor(node, 0), from);
    const TensorId picked = importer.add_general(node, resampling(node, sources, 0), {data});
    const TensorId result = importer.reshaped(node, picked, target.empty() ? Dims{1} : target);
    if (target.empty()) importer.mark_scalar(result);
    importer.define_like(node, result, result);
}

void gather(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const IntegerConstant indices = importer.integers(node, 1);
    const Dims from = importer.file_dims(importer.value(node, 0));
    if (from.empty()) node.fail("gathers from a scalar");
    const auto axis = static_cast<size_t>(
        Importer::checked_axis(node, node.integer("axis", 0), from.size(), "axis"));
    Dims at = indices.values;
    for (int64_t& index : at)
        index = Importer::checked_axis(node, index, static_cast<size_t>(from[axis]), "index");
    Dims target(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
    target.insert(target.end(), indices.dims.begin(), indices.dims.end());
    target.insert(target.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
    pick(importer, node, axis, at, from, target);
}

/// data[indices[k]], where a row of indices names the first axes of data behind the batch's.
void gather_nd(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const IntegerConstant indices = importer.integers(node, 1);
    const Dims from = importer.file_dims(importer.value(node, 0));
    const int64_t batch_dims = node.integer("batch_dims", 0);
    const int64_t named = indices.dims.empty() ? 0 : indices.dims.back(), all = batch_dims + named;
    if (batch_dims < 0 || named < 1 || all > std::ssize(from) || batch_dims >= std::ssize(indices.dims) ||
        !std::equal(from.begin(), from.begin() + batch_dims, indices.dims.begin()))
        node.fail("indices are " + dims_text(indices.dims) + " for data of " + dims_text(from) + ", " +
                  std::to_string(batch_dims) + " of whose axes are the batch's");
    // The axes that are named become one, and the batch's belong to it.
    const Dims joined(from.begin(), from.begin() + all), kept(from.begin() + all, from.end());
    Dims flat{element_count(joined)}, target(indices.dims.begin(), indices.dims.end() - 1);
    flat.insert(flat.end(), kept.begin(), kept.end());
    target.insert(target.end(), kept.begin(), kept.end());
    const int64_t rows = std::ssize(indices.values) / named;
    const int64_t batch = element_count(Dims(from.begin(), from.begin() + batch_dims));
    Dims at;
    for (int64_t row = 0; row < rows; ++row) {
        int64_t place = row / (rows / batch);
        for (int64_t k = 0; k < named; ++k) {
            const auto extent = from[static_cast<size_t>(batch_dims + k)];
            const int64_t index = indices.values[static_cast<size_t>(row * named + k)];
            place = place * extent +
                    Importer::checked_axis(node, index, static_cast<size_t>(extent), "index");
        }
        at.push_back(place);
    }
    pick(importer, node, 0, at, flat, target);
}

/// data[indices[k]] = updates[k], where a row of indices names the first axes of data.
template <class Number>
std::vector<Number> scattered(const Node& node, std::vector<Number> data, const Dims& dims,
                              const IntegerConstant& indices, const std::vector<Number>& updates) {
    const auto named = static_cast<size_t>(indices.dims.empty() ? 0 : indices.dims.back());
    if (named < 1 || named > dims.size())
        node.fail("indices are " + dims_text(indices.dims) + " for data of " + dims_text(dims));
    size_t run = 1;  // values that one row of indices names
    for (size_t d = named; d < dims.size(); ++d) run *= static_cast<size_t>(dims[d]);
    const size_t rows = indices.values.size() / named;
    if (updates.size() != rows * run)
        node.fail("has " + std::to_string(updates.size()) + " updates for indices of " +
                  dims_text(indices.dims) + " and data of " + dims_text(dims));
    for (size_t row = 0; row < rows; ++row) {
        size_t at = 0;
        for (size_t d = 0; d < named; ++d) {
            const auto extent = static_cast<size_t>(dims[d]);
            at = at * extent + static_cast<size_t>(Importer::checked_axis(
                                   node, indices.values[row * named + d], extent, "index"));
        }
        std::copy_n(updates.begin() + static_cast<std::ptrdiff_t>(row * run), run,
                    data.begin() + static_cast<std::ptrdiff_t>(at * run));
    }
    return data;
}

/// Of constants: exporters fill masks by assignment.
void scatter_nd(Importer& importer, Node& node) {
    node.expect_inputs(3, 3);
    if (node.text("reduction", "none") != "none") node.fail("reduction is supported only as none");
    const IntegerConstant indices = importer.integers(node, 1);
    if (importer.is_integer(node, 0)) {
        const IntegerConstant data = importer.integers(node, 0);
        return importer.define(
            node, IntegerConstant{data.dims, scattered(node, data.values, data.dims, indices,
                                                       importer.integers(node, 2).values)});
    }
    const ConstantPtr data = importer.constant(node, 0), updates = importer.constant(node, 2);
    importer.charge(data->values.size());
    const std::vector<float>& values = data->values;
    importer.define(
        node,
        std::make_shared<const Constant>(Constant{
            data->dims, scattered<float>(node, values, data->dims, indices, updates->values)}));
}

void tile(Importer& importer, Node& node) {
    node.expect_inputs(2, 2);
    const TensorId x = importer.tensor(node, 0);
    const Dims from = importer.dims(x), repeats = importer.integers(node, 1).values;
    if (repeats.size() != from.size())
        node.fail("has " + std::to_string(repeats.size()) + " repeats for " + dims_text(from));
    std::vector<AxisSources> sources;
    for (size_t d = 0; d < from.size(); ++d) {
        if (repeats[d] < 1 || repeats[d] > static_cast<int64_t>(most_sources) / from[d])
            node.fail("repeats axis " + std::to_string(d) + " " + std::to_string(repeats[d]) +
                      " times");
        AxisSources axis;
        for (int64_t k = 0; k < repeats[d] * from[d]; ++k) axis.at.push_back(k % from[d]);
        sources.push_back(std::move(axis));
    }
    if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; }))
        return importer.alias(node, x);
    importer.append(node, resampling(node, sources, 0), {x});
}

}  // namespace

void add_resizing(Handlers& handlers) {
    handlers["Pad"] = pad;
    handlers["Resize"] = resize;
    handlers["Upsample"] = upsample;
    handlers["GridSample"] = grid_sample;
    handlers["Gather"] = gather;
    handlers["GatherND"] = gather_nd;
    handlers["ScatterND"] = scatter_nd;
    handlers["Tile"] = tile;
}

}  // namespace laminate::onnx
