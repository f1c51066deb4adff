// MaxPool, AveragePool, LpPool and the global ones.
#include <algorithm>

#include "base/units.h"
#include "nets/onnx/importer.h"
#include "nets/onnx/window.h"

namespace laminate::onnx {

namespace {

/// Expresses ceil_mode as trailing padding: room for a last, partial window, unless the window
/// would start in the padding. Returns whether it added any.
bool extend_for_ceil(SpatialWindow& w, const Dims& in) {
    bool extended = false;
    for (size_t axis = 0; axis < in.size(); ++axis) {
        const int64_t padded = in[axis] + w.pad_begin[axis] + w.pad_end[axis];
        if (padded - w.span(axis) <= -w.stride[axis]) continue;  // no window; refused later
        // A window larger than the padded map counts where it misses less than a stride.
        int64_t last =
            ceil_div(std::max<int64_t>(0, padded - w.span(axis)), w.stride[axis]) * w.stride[axis];
        if (last >= in[axis] + w.pad_begin[axis]) last -= w.stride[axis];
        const int64_t missing = last + w.span(axis) - padded;
        if (missing <= 0) continue;
        w.pad_end[axis] += missing;
        extended = true;
    }
    return extended;
}

void pool(Importer& importer, Node& node, GeneralKind kind) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const Dims extents = spatial_dims(node, importer.dims(x));
    SpatialWindow window = read_window(node, extents, std::nullopt);
    if (window.auto_pad.starts_with("SAME")) pad_same(window, extents);
    const bool ceil_mode =
        node.integer("ceil_mode", 0) != 0 && !window.auto_pad.starts_with("SAME");
    const bool count_pads = kind == GeneralKind::average_pool &&
                            node.integer("count_include_pad", 0) != 0 && window.is_padded();
    const SpatialWindow given = window;
    const bool is_extended = ceil_mode && extend_for_ceil(window, extents);
    // A picture layer's divisor cannot count the given padding without counting the extension.
    const bool is_picture =
        window.fits_picture() && kind != GeneralKind::power_pool && !(is_extended && count_pads);
    Layer layer;
    if (is_picture) {
        layer.kind = kind == GeneralKind::max_pool ? LayerKind::max_pool : LayerKind::average_pool;
        layer.inputs = {importer.picture(node, x)};
        layer.window = picture_window(window);
        layer.count_include_pad = count_pads;
    } else {
        layer.kind = LayerKind::general;
        layer.inputs = {x};
        layer.general = {.kind = kind, .ceil_mode = ceil_mode, .count_include_pad = count_pads};
        if (kind == GeneralKind::power_pool)
            layer.general.alpha = static_cast<float>(node.integer("p", 2));
        set_window(layer.general, given);
    }
    importer.append_like(node, x, std::move(layer));
}

void max_pool(Importer& importer, Node& node) {
    node.ignore(
        "storage_order");  // concerns only the indices, which are refused when anything reads them
    pool(importer, node, GeneralKind::max_pool);
}

Dims spatial_axes(const Dims& dims) {
    Dims axes;
    for (size_t axis = 2; axis < dims.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
    return axes;
}

void global_pool(Importer& importer, Node& node, GeneralFunction function) {
    node.expect_inputs(1, 1);
    const TensorId x = importer.tensor(node, 0);
    const Dims extents = spatial_dims(node, importer.dims(x));
    if (extents.size() <= 2 && function == GeneralFunction::mean)
        return importer.append_like(
            node, x,
            {.kind = LayerKind::global_average_pool, .inputs = {importer.picture(node, x)}});
    if (extents.size() <= 2 && function == GeneralFunction::largest) {
        Layer layer{.kind = LayerKind::max_pool, .inputs = {importer.picture(node, x)}};
        const Dims& whole = importer.dims(layer.inputs[0]);
        layer.window.kernel = {whole[2], whole[3]};
        return importer.append_like(node, x, std::move(layer));
    }
    importer.append(
        node,
        {.kind = GeneralKind::reduce, .function = function, .axes = spatial_axes(importer.dims(x))},
        {x});
}

void global_power_pool(Importer& importer, Node& node) {
    const int64_t p = node.integer("p", 2);
    if (p == 1 || p == 2)
        return global_pool(importer, node,
                           p == 1 ? GeneralFunction::norm_1 : GeneralFunction::norm_2);
    const TensorId x = importer.tensor(node, 0);
    const Dims extents = spatial_dims(node, importer.dims(x));
    GeneralOperator op{
        .kind = GeneralKind::power_pool, .kernel = extents, .alpha = static_cast<float>(p)};
    op.stride = op.dilation = Dims(extents.size(), 1);
    op.pad_begin = op.pad_end = Dims(extents.size(), 0);
    importer.append(node, std::move(op), {x});
}

}  // namespace

void add_pooling(Handlers& handlers) {
    handlers["MaxPool"] = max_pool;
    handlers["AveragePool"] = [](Importer& i, Node& n) { pool(i, n, GeneralKind::average_pool); };
    handlers["LpPool"] = [](Importer& i, Node& n) { pool(i, n, GeneralKind::power_pool); };
    handlers["GlobalAveragePool"] = [](Importer& i, Node& n) {
        global_pool(i, n, GeneralFunction::mean);
    };
    handlers["GlobalMaxPool"] = [](Importer& i, Node& n) {
        global_pool(i, n, GeneralFunction::largest);
    };
    handlers["GlobalLpPool"] = global_power_pool;
}

}  // namespace laminate::onnx
