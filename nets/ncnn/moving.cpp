// Layers that only move elements, and Interp.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "nets/ncnn/translate.h"

namespace laminate::ncnn {

namespace {

constexpr int64_t to_the_end = std::numeric_limits<int64_t>::max();

/// A part along one axis: elements from `begin` to before `end`, which count from the end of the
/// axis where they are negative.
struct Part {
    int64_t axis, begin, end;
};

void slice(Translator& to, const FileLayer& layer, const std::string& x,
           const std::vector<Part>& parts, const std::string& result) {
    std::vector<int64_t> axes, begins, ends;
    for (const Part& part : parts) {
        axes.push_back(part.axis);
        begins.push_back(part.begin);
        ends.push_back(part.end);
    }
    to.add(layer, "Slice",
           {x, to.integers(layer, begins), to.integers(layer, ends), to.integers(layer, axes)},
           result);
}

/// Parameters 9 to 11: begins, ends and axes, as NumPy writes them.
std::vector<Part> parts_by_axes(FileLayer& layer, const Blob& x, std::vector<int64_t> begins) {
    const std::vector<int64_t> ends = layer.integers(10);
    std::vector<int64_t> axes = layer.integers(11);
    if (axes.empty()) {
        axes.resize(begins.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    if (ends.size() != begins.size() || axes.size() != begins.size())
        layer.fail("has " + std::to_string(begins.size()) + " begins, " +
                   std::to_string(ends.size()) + " ends and " + std::to_string(axes.size()) +
                   " axes, expected as many of each");
    std::vector<Part> parts;
    for (size_t k = 0; k < begins.size(); ++k) {
        const int64_t begin = begins[k] == unset ? 0 : begins[k];
        const int64_t end = ends[k] == unset || ends[k] == 0 ? to_the_end : ends[k];
        parts.push_back({Translator::axis_of(layer, x, axes[k]), begin, end});
    }
    return parts;
}

/// The part that begins at the offset and is as large as the second blob.
void crop_like(Translator& to, FileLayer& layer, const std::vector<int64_t>& offsets) {
    const std::string& like = to.value(layer, 1);
    if (!to.input(layer, 0).is_map || !to.input(layer, 1).is_map)
        layer.fail("crops a vector by another blob, expected maps");
    const std::string extents = to.inner(layer), ends = to.inner(layer);
    const std::string begins = to.integers(layer, offsets);
    set(to.add(layer, "Shape", {like}, extents), "start", int64_t{1});
    to.add(layer, "Add", {extents, begins}, ends);
    to.add(layer, "Slice", {to.value(layer, 0), begins, ends, to.integers(layer, {1, 2, 3})},
           to.output(layer, true));
}

void crop(Translator& to, FileLayer& layer) {
    const std::vector<int64_t> begins = layer.integers(9);
    if (!begins.empty()) {
        layer.expect_blobs(1, 1);
        const Blob& x = to.input(layer, 0);
        return slice(to, layer, x.value, parts_by_axes(layer, x, begins),
                     to.output(layer, x.is_map));
    }
    const std::vector<int64_t> offsets{layer.size(2, 0), layer.size(1, 0), layer.size(0, 0)};
    layer.expect(13, 0, "the offset of depth");
    const int64_t channels = layer.size(5, 0, unset), rows = layer.size(4, 0, unset),
                  columns = layer.size(3, 0, unset);
    const std::vector<int64_t> extents{channels, rows, columns};
    const std::vector<int64_t> left_out{layer.size(8, 0), layer.size(7, 0), layer.size(6, 0)};
    if (layer.inputs().size() == 2) return crop_like(to, layer, offsets);
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    std::vector<Part> parts;
    for (size_t k = x.is_map ? 0 : 2; k < 3; ++k) {
        const int64_t axis = x.is_map ? static_cast<int64_t>(k) + 1 : 1;
        if (extents[k] != unset && left_out[k] != 0)
            layer.fail("has an extent and what it leaves out along one axis, expected one of them");
        const int64_t end = extents[k] != unset  ? offsets[k] + extents[k]
                            : left_out[k] != 0 ? -left_out[k]
                                               : to_the_end;
        parts.push_back({axis, offsets[k], end});
    }
    slice(to, layer, x.value, parts, to.output(layer, x.is_map));
}

void cut(Translator& to, FileLayer& layer) {
    const Blob x = to.input(layer, 0);
    const size_t count = layer.outputs().size();
    layer.expect_blobs(1, std::max<size_t>(count, 1));
    const std::vector<int64_t> extents = layer.integers(0), begins = layer.integers(2);
    const int64_t axis = Translator::axis_of(layer, x, layer.integer(1, 0));
    const auto result = [&](size_t k) {
        return to.output(layer, k, {.value = layer.outputs()[k], .is_map = x.is_map});
    };
    const bool is_even =
        begins.empty() && std::all_of(extents.begin(), extents.end(),
                                      [](int64_t extent) { return extent == unset; });
    if (is_even) {
        auto& node = to.add(layer, "Split", {x.value}, result(0));
        for (size_t k = 1; k < count; ++k) node.add_output(result(k));
        return set(node, "axis", axis);
    }
    if (begins.empty() ? extents.size() != count : begins.size() + 1 != count)
        layer.fail("does not say where each of its " + std::to_string(count) + " outputs ends");
    int64_t begin = 0;
    for (size_t k = 0; k < count; ++k) {
        const bool is_last = k + 1 == count;
        if (begins.empty() && (extents[k] == unset ? !is_last : extents[k] < 1))
            layer.fail("has an extent of " + std::to_string(extents[k]) + ", expected at least 1");
        const int64_t end = !begins.empty()         ? (is_last ? to_the_end : begins[k])
                            : extents[k] == unset ? to_the_end
                                                  : begin + extents[k];
        slice(to, layer, x.value, {{axis, begin, end}}, result(k));
        begin = end;
    }
}

void concat(Translator& to, FileLayer& layer) {
    if (layer.inputs().empty()) layer.fail("has no input");
    const int64_t axis = layer.integer(0, 0);
    const bool is_map = to.input(layer, 0).is_map;
    Translator::Inputs parts;
    for (size_t k = 0; k < layer.inputs().size(); ++k) {
        if (to.input(layer, k).is_map != is_map) layer.fail("joins maps and vectors");
        parts.push_back(to.value(layer, k));
    }
    auto& node = to.add(layer, "Concat", parts, to.output(layer, is_map));
    set(node, "axis", Translator::axis_of(layer, to.input(layer, 0), axis));
}

void split(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, layer.outputs().size());
    const Blob x = to.input(layer, 0);
    for (size_t k = 0; k < layer.outputs().size(); ++k) to.alias(layer, k, x);
}

void same(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    layer.expect(0, 1, "the factor");
    to.alias(layer, 0, Blob(to.input(layer, 0)));
}

void flatten(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const std::string& x = to.value(layer, 0);
    to.add(layer, "Reshape", {x, to.integers(layer, {0, -1, 1, 1})}, to.output(layer, false));
}

void reshape(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const int64_t w = layer.size(0, unset, unset), h = layer.size(1, unset, unset),
                  c = layer.size(2, unset, unset);
    layer.expect(3, 0, "the order of the elements");
    layer.expect(11, unset, "the depth");
    const bool is_map = c != unset;
    if (w == unset || is_map != (h != unset)) layer.fail("makes two dimensions, expected 1 or 3");
    const std::vector<int64_t> extents = is_map ? std::vector{c, h, w} : std::vector{w};
    for (const int64_t extent : extents) {
        if (extent < -1) layer.fail("has an extent of " + std::to_string(extent));
        if (extent == 0 && x.is_map != is_map)
            layer.fail("keeps an extent, expected as many dimensions as before");
    }
    const std::vector<int64_t> target =
        is_map ? std::vector{int64_t{0}, c, h, w} : std::vector{int64_t{0}, w, int64_t{1}, int64_t{1}};
    to.add(layer, "Reshape", {x.value, to.integers(layer, target)}, to.output(layer, is_map));
}

void pixel_shuffle(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    auto& node = to.add(layer, "DepthToSpace", {to.value(layer, 0)}, to.output(layer, true));
    set(node, "blocksize", layer.size(0, 1, 1));
    set(node, "mode", layer.integer(1, 0) == 0 ? "CRD" : "DCR");
}

/// Channels in groups, of which the first of each come first, then the second of each, ...
void shuffle_channels(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const int64_t groups = layer.size(0, 1, 1), is_reverse = layer.integer(1, 0);
    const std::string& x = to.value(layer, 0);
    const auto shaped = [&](const std::string& from, const std::vector<int64_t>& front,
                            const std::string& result) {
        const std::string sides = to.inner(layer), target = to.inner(layer);
        set(to.add(layer, "Shape", {x}, sides), "start", int64_t{2});
        auto& joined = to.add(layer, "Concat", {to.integers(layer, front), sides}, target);
        set(joined, "axis", int64_t{0});
        to.add(layer, "Reshape", {from, target}, result);
    };
    const std::string grouped = to.inner(layer), turned = to.inner(layer);
    using Front = std::vector<int64_t>;
    shaped(x, is_reverse == 0 ? Front{0, groups, -1} : Front{0, -1, groups}, grouped);
    auto& node = to.add(layer, "Transpose", {grouped}, turned);
    set(node, "perm", std::vector<int64_t>{0, 2, 1, 3, 4});
    shaped(turned, Front{0, -1}, to.output(layer, true));
}

/// Channels that are blocks of pixels.
void reorganise(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    auto& node = to.add(layer, "SpaceToDepth", {to.value(layer, 0)}, to.output(layer, true));
    set(node, "blocksize", layer.size(0, 1, 1));
    set(node, "mode", layer.integer(1, 0) == 0 ? "CRD" : "DCR");
}

void permute(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    if (!to.input(layer, 0).is_map) layer.fail("turns a vector, expected a map");
    // What become the channels, rows and columns.
    const std::vector<int64_t> orders[] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3},
                                           {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}};
    const int64_t order = layer.size(0, 0);
    if (order >= std::ssize(orders))
        layer.fail("has order " + std::to_string(order) + ", expected 0 to 5");
    auto& node = to.add(layer, "Transpose", {to.value(layer, 0)}, to.output(layer, true));
    set(node, "perm", orders[order]);
}

void padding(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob x = to.input(layer, 0);
    if (!x.is_map) layer.fail("pads a vector, expected a map");
    const int64_t top = layer.size(0, 0), bottom = layer.size(1, 0), left = layer.size(2, 0),
                  right = layer.size(3, 0), front = layer.size(7, 0), behind = layer.size(8, 0);
    constexpr const char* modes[] = {"constant", "edge", "reflect"};
    const int64_t kind = layer.size(4, 0);
    if (kind > 2) layer.fail("is of kind " + std::to_string(kind) + ", expected 0 to 2");
    layer.expect(6, 0, "the number of values");
    const std::string value = to.floats(layer, {}, {layer.real(5, 0)});
    const std::string pads =
        to.integers(layer, {0, front, top, left, 0, behind, bottom, right});
    Blob result{.value = layer.outputs()[0]};
    if (front == 0 && behind == 0) result.open_input = x.open_input;
    auto& node = to.add(layer, "Pad", {x.value, pads, value}, to.output(layer, 0, result));
    set(node, "mode", modes[kind]);
}

void interp(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob x = to.input(layer, 0);
    if (!x.is_map) layer.fail("resizes a vector, expected a map");
    const int64_t kind = layer.size(0, 0);
    if (kind < 1 || kind > 3)
        layer.fail("is of kind " + std::to_string(kind) + ", expected 1 (nearest) to 3 (bicubic)");
    const float scale_y = layer.real(1, 1), scale_x = layer.real(2, 1);
    const int64_t rows = layer.size(3, 0), columns = layer.size(4, 0);
    layer.expect(5, 0, "a size that is computed");
    const bool is_aligned = layer.integer(6, 0) != 0;
    if ((rows == 0) != (columns == 0)) layer.fail("has one side, expected two sides or none");
    Blob result{.value = layer.outputs()[0], .open_input = x.open_input};
    Translator::Inputs inputs{x.value, ""};
    if (rows == 0) {
        inputs.push_back(to.floats(layer, {4}, {1, 1, scale_y, scale_x}));
    } else {
        const std::string whole = to.inner(layer), sizes = to.inner(layer);
        set(to.add(layer, "Shape", {x.value}, whole), "end", int64_t{2});
        auto& joined =
            to.add(layer, "Concat", {whole, to.integers(layer, {rows, columns})}, sizes);
        set(joined, "axis", int64_t{0});
        inputs.insert(inputs.end(), {"", sizes});
    }
    auto& node = to.add(layer, "Resize", inputs, to.output(layer, 0, result));
    constexpr const char* modes[] = {"nearest", "linear", "cubic"};
    set(node, "mode", modes[kind - 1]);
    set(node, "nearest_mode", "floor");
    set(node, "coordinate_transformation_mode",
        kind == 1 ? "asymmetric" : is_aligned ? "align_corners" : "half_pixel");
}

}  // namespace

void add_moving(Handlers& handlers) {
    handlers["Crop"] = crop;
    handlers["Slice"] = cut;
    handlers["Concat"] = concat;
    handlers["Split"] = split;
    handlers["Dropout"] = handlers["Noop"] = same;
    handlers["Flatten"] = flatten;
    handlers["Reshape"] = reshape;
    handlers["PixelShuffle"] = pixel_shuffle;
    handlers["ShuffleChannel"] = shuffle_channels;
    handlers["Permute"] = permute;
    handlers["Reorg"] = reorganise;
    handlers["Padding"] = padding;
    handlers["Interp"] = interp;
}

}  // namespace laminate::ncnn
