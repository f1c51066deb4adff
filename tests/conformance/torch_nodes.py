"""ONNX models evaluated node by node by PyTorch: values that owe nothing to onnxruntime.

Each operator is written with the function of torch that its exporters export, or by its definition
in terms of slices (pooling). `evaluate` returns None for a model with a node that torch has no
function for.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

DTYPES = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.INT64: torch.int64,
    TensorProto.INT32: torch.int32,
    TensorProto.BOOL: torch.bool,
}
LETTERS = {1: "linear", 2: "bilinear", 3: "trilinear"}


class Unknown(Exception):
    """An operator, or attributes, that torch has no function for."""


def tensor(array):
    return torch.from_numpy(np.array(array))


def ints(value):
    return [int(v) for v in value.reshape(-1)]


def explicit_pads(a, spatial, kernel, stride, dilation):
    """(begin, end) by axis; SAME is resolved as ONNX defines it."""
    rank = len(spatial)
    way = a.get("auto_pad", "NOTSET")
    pads = a.get("pads", [0] * 2 * rank) if way == "NOTSET" else [0] * 2 * rank
    pairs = list(zip(pads[:rank], pads[rank:]))
    if way.startswith("SAME"):
        for k in range(rank):
            out = -(-spatial[k] // stride[k])
            span = (kernel[k] - 1) * dilation[k] + 1
            total = max(0, (out - 1) * stride[k] + span - spatial[k])
            small, large = total // 2, total - total // 2
            pairs[k] = (small, large) if way == "SAME_UPPER" else (large, small)
    return pairs


def padded(x, pairs, value=0.0):
    return F.pad(x, [amount for pair in reversed(pairs) for amount in pair], value=value)


def conv(node, a, x, w, bias=None):
    rank = x.dim() - 2
    stride, dilation = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    pairs = explicit_pads(a, x.shape[2:], w.shape[2:], stride, dilation)
    function = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
    return function(padded(x, pairs), w, bias, stride, 0, dilation, groups=a.get("group", 1))


def conv_transpose(node, a, x, w, bias=None):
    rank = x.dim() - 2
    if "output_shape" in a or a.get("auto_pad", "NOTSET") != "NOTSET":
        raise Unknown("padding that follows from the output")
    stride, dilation = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    extra, pads = a.get("output_padding", [0] * rank), a.get("pads", [0] * 2 * rank)
    function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
    group = a.get("group", 1)
    y = function(x, w, bias, stride, 0, 0, groups=group, dilation=dilation)
    if any(extra):  # torch refuses output padding above the stride: outputs without any tap
        filler = 0 if bias is None else bias.reshape(1, -1, *[1] * rank)
        y = padded(y - filler, [(0, n) for n in extra]) + filler
    slices = [slice(p, n - q) for p, q, n in zip(pads[:rank], pads[rank:], y.shape[2:])]
    return y[(..., *slices)]


def windows(x, a, filler, ceil_extends):
    """x unfolded: one more axis for each spatial axis, the taps of a window."""
    kernel = a["kernel_shape"]
    rank = len(kernel)
    stride, dilation = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    pairs = explicit_pads(a, x.shape[2:], kernel, stride, dilation)
    extents = x.shape[2:]
    x = padded(x, pairs, filler)
    extra = []
    for k in range(rank):
        span = (kernel[k] - 1) * dilation[k] + 1
        whole = x.shape[2 + k]
        last = (whole - span) // stride[k]
        if a.get("ceil_mode", 0) and ceil_extends:
            last = -((span - whole) // stride[k])
            if last * stride[k] >= extents[k] + pairs[k][0]:
                last -= 1
        extra.append((0, max(0, last * stride[k] + span - whole)))
    x = padded(x, extra, filler)
    for k in range(rank):
        span = (kernel[k] - 1) * dilation[k] + 1
        x = x.unfold(2 + k, span, stride[k])[..., :: dilation[k]]
    return x, tuple(range(-rank, 0)), extra, pairs


def ceil_extends(a):
    return not a.get("auto_pad", "NOTSET").startswith("SAME")


def max_pool(node, a, x):
    unfolded, axes, *_ = windows(x, a, -math.inf, ceil_extends(a))
    return unfolded.amax(axes)


def average_pool(node, a, x):
    total, axes, extra, pairs = windows(x, a, 0.0, ceil_extends(a))
    ones = torch.ones_like(x)
    if a.get("count_include_pad", 0):
        ones = padded(ones, pairs, 1.0)
        own = {**a, "auto_pad": "NOTSET", "pads": [0] * 2 * len(pairs), "ceil_mode": 0}
        ones = padded(ones, extra)
        count = windows(ones, own, 0.0, False)[0].sum(axes)
    else:
        count = windows(ones, a, 0.0, ceil_extends(a))[0].sum(axes)
    return total.sum(axes) / count


def lp_pool(node, a, x):
    unfolded, axes, *_ = windows(x, a, 0.0, ceil_extends(a))
    p = a.get("p", 2)
    return unfolded.abs().pow(p).sum(axes).pow(1 / p)


def batch_norm(node, a, x, scale, shift, mean, variance):
    return F.batch_norm(x, mean, variance, scale, shift, eps=a.get("epsilon", 1e-5))


def lrn(node, a, x):
    size = a["size"]
    squares = F.pad(
        (x * x).reshape(x.shape[0], 1, x.shape[1], -1), [0, 0, (size - 1) // 2, size // 2]
    )
    total = squares.unfold(2, size, 1).sum(-1).reshape(x.shape)
    scale = a.get("bias", 1.0) + a.get("alpha", 1e-4) / size * total
    return x / scale ** a.get("beta", 0.75)


def clip(node, a, x, low=None, high=None):
    low = a.get("min") if low is None else low.item()
    high = a.get("max") if high is None else high.item()
    return x.clamp(low, high)


def prelu(node, a, x, slope):
    return torch.where(x < 0, x * slope, x)


def softmax(function):
    def run(node, a, x):
        if a["opset"] >= 13:
            return function(x, a.get("axis", -1))
        axis = a.get("axis", 1)
        return function(x.flatten(axis), axis).reshape(x.shape)

    return run


def reduction(function):
    def run(node, a, x, axes=None):
        axes = a.get("axes") if axes is None else ints(axes)
        return function(x, tuple(axes or range(x.dim())), bool(a.get("keepdims", 1)))

    return run


def gemm(node, a, x, w, c=0.0):
    x, w = x.T if a.get("transA", 0) else x, w.T if a.get("transB", 0) else w
    return a.get("alpha", 1.0) * (x @ w) + a.get("beta", 1.0) * c


def reshape(node, a, x, shape):
    wanted = [x.shape[k] if n == 0 else n for k, n in enumerate(ints(shape))]
    return x.reshape(wanted)


def slices(node, a, x, *inputs):
    lists = [ints(value) if value is not None else None for value in inputs]
    starts, ends, axes, steps = (lists + [None] * 4)[:4]
    starts, ends = starts or a["starts"], ends or a["ends"]
    axes = axes or a.get("axes") or list(range(len(starts)))
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts)):
        places = range(x.shape[axis])[start : end if end > -(2**31) else None : step]
        x = x.index_select(axis, torch.tensor(list(places), dtype=torch.int64))
    return x


def split(node, a, x, sizes=None):
    sizes = a.get("split") if sizes is None else ints(sizes)
    return list(torch.split(x, sizes, a.get("axis", 0)))


def gather(node, a, x, indices):
    axis = a.get("axis", 0) % x.dim()
    places = indices.reshape(-1).to(torch.int64) % x.shape[axis]
    picked = x.index_select(axis, places)
    return picked.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def pad(node, a, x, pads=None, value=None):
    amounts = a["pads"] if pads is None else ints(pads)
    rank = x.dim()
    mode = a.get("mode", "constant")
    filler = a.get("value", 0.0) if value is None else value.item()
    for axis in range(rank):
        begin, end, extent = amounts[axis], amounts[axis + rank], x.shape[axis]
        if mode == "constant":
            around = [0] * 2 * (rank - 1 - axis) + [begin, end]
            x = F.pad(x, around, value=filler)
        else:
            way = "reflect" if mode == "reflect" else "edge"
            places = np.pad(np.arange(extent), (begin, end), way)
            x = x.index_select(axis, tensor(places))
    return x


def depth_to_space(node, a, x):
    n, c, h, w = x.shape
    b = a["blocksize"]
    if a.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, b)
    x = x.reshape(n, b, b, c // b**2, h, w)
    return x.permute(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


def space_to_depth(node, a, x):
    n, c, h, w = x.shape
    b = a["blocksize"]
    x = x.reshape(n, c, h // b, b, w // b, b)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


def resize(node, a, x, *inputs):
    opset = a["opset"]
    scales = inputs[0] if opset < 11 else inputs[1] if len(inputs) > 1 else None
    sizes = inputs[2] if len(inputs) > 2 else None
    if sizes is not None:
        how = {"size": ints(sizes)[2:]}
    else:
        # Exporters round the factors to 32 bits; the shortest decimal is the one that they had.
        how = {"scale_factor": [float(str(np.float32(s))) for s in scales.reshape(-1)[2:]]}
    mode = a.get("mode", "nearest")
    coordinates = a.get("coordinate_transformation_mode", "asymmetric")
    if mode == "nearest":
        return F.interpolate(x, mode="nearest", **how)
    if opset < 11 or coordinates == "asymmetric":
        raise Unknown("linear interpolation from the corner")
    mode = "bicubic" if mode == "cubic" else LETTERS[x.dim() - 2]
    return F.interpolate(x, mode=mode, align_corners=coordinates == "align_corners", **how)


def grid_sample(node, a, x, grid):
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = a.get("mode", "linear")
    return F.grid_sample(
        x,
        grid,
        names.get(mode, mode),
        a.get("padding_mode", "zeros"),
        bool(a.get("align_corners", 0)),
    )


def place_of_extreme(function):
    def run(node, a, x):
        axis, keep = a.get("axis", 0), bool(a.get("keepdims", 1))
        if not a.get("select_last_index", 0):
            return function(x, axis, keep)
        return x.shape[axis] - 1 - function(x.flip(axis), axis, keep)

    return run


def top_k(node, a, x, k=None):
    count = a["k"] if k is None else int(k)
    return list(torch.topk(x, count, a.get("axis", -1), bool(a.get("largest", 1))))


def minus_mean(x, axes):
    return x - x.mean(axes, keepdim=True)


def instance_norm(node, a, x, scale, shift):
    axes = tuple(range(2, x.dim()))
    distance = minus_mean(x, axes)
    variance = (distance * distance).mean(axes, keepdim=True)
    shape = (1, -1, *[1] * len(axes))
    y = distance / torch.sqrt(variance + a.get("epsilon", 1e-5))
    return y * scale.reshape(shape) + shift.reshape(shape)


def log_sum_exp(x, axes, keep):
    return torch.logsumexp(x, axes, keep)


def unary(function):
    return lambda node, a, x: function(x)


def variadic(function):
    def run(node, a, *inputs):
        total = inputs[0]
        for value in inputs[1:]:
            total = function(total, value)
        return total

    return run


def binary(function):
    return lambda node, a, x, y: function(x, y)


def spatial_axes(x):
    return tuple(range(2, x.dim()))


NODES = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalAveragePool": unary(lambda x: x.mean(spatial_axes(x), keepdim=True)),
    "GlobalMaxPool": unary(lambda x: x.amax(spatial_axes(x), keepdim=True)),
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "LRN": lrn,
    "Relu": unary(F.relu),
    "Sigmoid": unary(torch.sigmoid),
    "Tanh": unary(torch.tanh),
    "LeakyRelu": lambda node, a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Elu": lambda node, a, x: F.elu(x, a.get("alpha", 1.0)),
    "Celu": lambda node, a, x: F.celu(x, a.get("alpha", 1.0)),
    "Selu": unary(F.selu),
    "Softplus": unary(F.softplus),
    "Softsign": unary(F.softsign),
    "HardSigmoid": lambda node, a, x: (a.get("alpha", 0.2) * x + a.get("beta", 0.5)).clamp(0, 1),
    "HardSwish": unary(F.hardswish),
    "Mish": unary(F.mish),
    "Gelu": lambda node, a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "Abs": unary(torch.abs),
    "Neg": unary(torch.neg),
    "Exp": unary(torch.exp),
    "Erf": unary(torch.erf),
    "Sin": unary(torch.sin),
    "Cos": unary(torch.cos),
    "Clip": clip,
    "PRelu": prelu,
    "Add": binary(torch.add),
    "Sub": binary(torch.sub),
    "Mul": binary(torch.mul),
    "Div": binary(torch.div),
    "Mod": binary(torch.fmod),
    "Max": variadic(torch.maximum),
    "Min": variadic(torch.minimum),
    "Sum": variadic(torch.add),
    "Mean": lambda node, a, *inputs: variadic(torch.add)(node, a, *inputs) / len(inputs),
    "Equal": binary(torch.eq),
    "Greater": binary(torch.gt),
    "Where": lambda node, a, c, x, y: torch.where(c, x, y),
    "Softmax": softmax(torch.softmax),
    "LogSoftmax": softmax(torch.log_softmax),
    "ReduceMean": reduction(torch.mean),
    "ReduceSum": reduction(torch.sum),
    "ReduceMax": reduction(torch.amax),
    "ReduceMin": reduction(torch.amin),
    "ReduceL1": reduction(lambda x, d, k: x.abs().sum(d, k)),
    "ReduceL2": reduction(lambda x, d, k: (x * x).sum(d, k).sqrt()),
    "ReduceSumSquare": reduction(lambda x, d, k: (x * x).sum(d, k)),
    "ReduceLogSumExp": reduction(log_sum_exp),
    "Gemm": gemm,
    "MatMul": binary(torch.matmul),
    "Einsum": lambda node, a, *inputs: torch.einsum(a["equation"], *inputs),
    "Flatten": lambda node, a, x: x.reshape(math.prod(x.shape[: a.get("axis", 1)]), -1),
    "Reshape": reshape,
    "Transpose": lambda node, a, x: x.permute(a["perm"]),
    "Slice": slices,
    "Split": split,
    "Concat": lambda node, a, *inputs: torch.cat(inputs, a["axis"]),
    "Gather": gather,
    "Expand": lambda node, a, x, shape: x.expand(torch.broadcast_shapes(x.shape, ints(shape))),
    "Tile": lambda node, a, x, repeats: x.repeat(ints(repeats)),
    "Pad": pad,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Resize": resize,
    "Upsample": resize,
    "GridSample": grid_sample,
    "ArgMax": place_of_extreme(torch.argmax),
    "ArgMin": place_of_extreme(torch.argmin),
    "TopK": top_k,
    "Range": lambda node, a, start, limit, step: torch.arange(
        start.item(), limit.item(), step.item(), dtype=start.dtype
    ),
    "Shape": lambda node, a, x: torch.tensor(x.shape),
    "Cast": lambda node, a, x: x.to(DTYPES[a["to"]]),
    "Identity": unary(lambda x: x),
}


def attributes_of(node, opset):
    found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    decoded = {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}
    return {**decoded, "opset": opset}


def run_nodes(nodes, values, opset):
    for node in nodes:
        a = attributes_of(node, opset)
        if node.op_type == "Constant":
            values[node.output[0]] = tensor(numpy_helper.to_array(a["value"]))
            continue
        if node.op_type == "If":
            branch = a["then_branch" if values[node.input[0]].item() else "else_branch"]
            run_nodes(branch.node, values, opset)
            for name, inner in zip(node.output, branch.output):
                values[name] = values[inner.name]
            continue
        if node.op_type not in NODES:
            raise Unknown(node.op_type)
        inputs = [values[name] if name else None for name in node.input]
        results = NODES[node.op_type](node, a, *inputs)
        for name, value in zip(node.output, results if isinstance(results, list) else [results]):
            values[name] = value


def evaluate(model, inputs):
    """All values of the model by name, as arrays; None if torch has no function for a node."""
    values = {name: tensor(value) for name, value in inputs.items()}
    for constant in model.graph.initializer:
        values[constant.name] = tensor(numpy_helper.to_array(constant))
    try:
        with torch.inference_mode():
            run_nodes(model.graph.node, values, model.opset_import[0].version)
    except Unknown:
        return None
    return {name: value.numpy() for name, value in values.items()}
