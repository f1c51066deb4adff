"""What stands between two convolutions of a network for pictures, a kind of layer and a mode each.

  between.py --laminate PROGRAM [--random COUNT] [NAME ...]       names: all
  between.py --laminate PROGRAM --list

Of each network, groups can hold every layer (`laminate info`), all four
witnesses count the same on COUNT random schedules (`laminate validate`), and the outputs are those
of onnxruntime.

Exit 0: all hold; 1: the lines say what does not; 77: onnx or onnxruntime is not installed.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from picture_networks import Net, compare_model, laminate  # noqa: E402  (exits 77 without packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

SIZE = (6, 7)
CHANNELS = 8
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
               "asymmetric")


def integers(net, *values):
    return net.constant(np.array(values, np.int64))


def number(net, value):
    return net.constant(np.float32(value))


def values(net, *dims, low=0.5, high=1.5):
    return net.constant(net.rng.uniform(low, high, dims).astype(np.float32))


def resize(net, x, size, **attributes):
    sizes = integers(net, 1, net.channels[x], *size)
    return net.op("Resize", [x, "", "", sizes], **attributes)


def scale(net, x, factors, **attributes):
    scales = net.constant(np.array([1, 1, *factors], np.float32))
    return net.op("Resize", [x, "", scales], **attributes)


def space_to_depth(net, x, block=2):
    return net.op("SpaceToDepth", [x], net.channels[x] * block**2, blocksize=block)


def unshuffle(net, x, block=2):
    """PyTorch's PixelUnshuffle, by Reshape and Transpose."""
    c, (h, w) = net.channels[x], (SIZE[0] // block, 8 // block)
    x = net.padded(x, [0, 0, 0, 8 - SIZE[1]], "edge")
    x = net.op("Reshape", [x, integers(net, 1, c, h, block, w, block)])
    x = net.op("Transpose", [x], perm=[0, 1, 3, 5, 2, 4])
    return net.op("Reshape", [x, integers(net, 1, c * block**2, h, w)], c * block**2)


def two(kind):
    """An operator of two maps, the second away from 0."""
    def made(net, x):
        other = net.op("Exp", [net.conv(x, CHANNELS)])
        return net.op(kind, [x, other])
    return made


def several(kind):
    return lambda net, x: net.op(kind, [x, net.conv(x, CHANNELS), net.conv(x, CHANNELS)])


def with_map(kind, first=False, channels=CHANNELS, rank=4):
    """An operator of a map and one of constants."""
    def made(net, x):
        constant = values(net, *([1, channels, *SIZE][4 - rank:]))
        return net.op(kind, [constant, x] if first else [x, constant], CHANNELS)
    return made


def with_line(kind, dims):
    return lambda net, x: net.op(kind, [x, values(net, *dims)])


def split(net, x):
    parts = net.op("Split", [x, integers(net, 3, 1, 4)], outputs=3, axis=1)
    for part, channels in zip(parts, (3, 1, 4)):
        net.channels[part] = channels
    return net.op("Concat", [parts[2], net.conv(parts[0], 3), parts[1]], CHANNELS, axis=1)


def sliced(net, x, begins, ends, axes, steps, channels=CHANNELS):
    lists = [integers(net, *v) for v in (begins, ends, axes, steps)]
    return net.op("Slice", [x, *lists], channels)


def halves(net, x):
    return net.op("Split", [net.conv(x, 2 * CHANNELS)], CHANNELS, 2, axis=1, num_outputs=2)


def chunk_gate(net, x):
    a, b = halves(net, x)
    return net.op("Mul", [a, net.op("Sigmoid", [b])])


def gelu_gate(net, x):
    a, b = halves(net, x)
    return net.op("Mul", [net.op("Gelu", [a]), b])


def erf_gelu(net, x):
    inside = net.op("Div", [x, number(net, np.sqrt(2))])
    both = net.op("Add", [net.op("Erf", [inside]), number(net, 1)])
    return net.op("Mul", [net.op("Mul", [x, both]), number(net, 0.5)])


def tanh_gelu(net, x):
    cube = net.op("Pow", [x, number(net, 3)])
    inside = net.op("Add", [x, net.op("Mul", [cube, number(net, 0.044715)])])
    inside = net.op("Tanh", [net.op("Mul", [inside, number(net, np.sqrt(2 / np.pi))])])
    gate = net.op("Add", [inside, number(net, 1)])
    return net.op("Mul", [net.op("Mul", [x, number(net, 0.5)]), gate])


def layer_norm(net, x):
    """Over the channels of each pixel, between two Transposes."""
    x = net.op("Transpose", [x], perm=[0, 2, 3, 1])
    x = net.op("LayerNormalization", [x, values(net, CHANNELS), values(net, CHANNELS)], axis=-1,
               epsilon=1e-5)
    return net.op("Transpose", [x], perm=[0, 3, 1, 2])


def layer_norm_in_nodes(net, x):
    """As NAFNet has it."""
    mean = lambda t: net.op("ReduceMean", [t, integers(net, 1)], 1, keepdims=1)  # noqa: E731
    distance = net.op("Sub", [x, mean(x)])
    variance = mean(net.op("Pow", [distance, number(net, 2)]))
    root = net.op("Sqrt", [net.op("Add", [variance, number(net, 1e-5)])])
    y = net.op("Div", [distance, root], CHANNELS)
    y = net.op("Mul", [y, values(net, 1, CHANNELS, 1, 1)])
    return net.op("Add", [y, values(net, 1, CHANNELS, 1, 1)])


def squeezed(net, x):
    factors = net.op("Sigmoid", [net.conv("factors", CHANNELS, 1)])
    return net.op("Mul", [x, factors])


def grouped(net, x):
    """A Concat at the begin of a branch, in the middle, and of three."""
    a = net.op("Concat", ["x", x], CHANNELS + 3, axis=1)
    b = net.op("Concat", [net.conv(a, 2), net.op("Relu", [x]), "x"], CHANNELS + 5, axis=1)
    return net.op("Concat", [b, net.op("Sigmoid", [net.conv(b, 1)])], CHANNELS + 6, axis=1)


CASES = {
    "DepthToSpace DCR": lambda n, x: n.shuffle(x, 2, "DCR"),
    "DepthToSpace CRD": lambda n, x: n.shuffle(x, 2, "CRD"),
    "DepthToSpace DCR 3": lambda n, x: n.shuffle(n.conv(x, 18), 3, "DCR"),
    "DepthToSpace CRD 4": lambda n, x: n.shuffle(n.conv(x, 16), 4, "CRD"),
    "SpaceToDepth": lambda n, x: space_to_depth(n, n.padded(x, [0, 0, 0, 1], "edge")),
    "SpaceToDepth 3": lambda n, x: space_to_depth(n, n.padded(x, [0, 0, 0, 2], "edge"), 3),
    "PixelUnshuffle": unshuffle,
    **{f"Resize nearest {c} {r}": lambda n, x, c=c, r=r: resize(
        n, x, (13, 17), mode="nearest", coordinate_transformation_mode=c, nearest_mode=r)
       for c in COORDINATES for r in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    **{f"Resize {m} {c} {size}": lambda n, x, m=m, c=c, size=size: resize(
        n, x, size, mode=m, coordinate_transformation_mode=c)
       for m in ("linear", "cubic") for c in COORDINATES for size in ((12, 14), (15, 10), (4, 5))},
    "Resize cubic exclude_outside": lambda n, x: scale(
        n, x, (2, 2), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
    "Resize linear antialias": lambda n, x: resize(n, x, (3, 4), mode="linear", antialias=1),
    "Resize cubic antialias": lambda n, x: resize(n, x, (4, 5), mode="cubic", antialias=1),
    "Resize nearest twice": lambda n, x: n.enlarged(x, 2),
    "Resize nearest nine times": lambda n, x: n.enlarged(x, 9),
    "Resize nearest half": lambda n, x: scale(n, x, (0.5, 0.5), mode="nearest"),
    "Resize linear 1.5": lambda n, x: scale(n, x, (1.5, 1.5), mode="linear"),
    "Resize crop": lambda n, x: n.op(
        "Resize", [x, n.constant(np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 0.8], np.float32)), "",
                   integers(n, 1, CHANNELS, 5, 9)], mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize"),
    "Resize crop beyond": lambda n, x: n.op(
        "Resize", [x, n.constant(np.array([0, 0, -0.2, -0.1, 1, 1, 1.2, 1.1], np.float32)), "",
                   integers(n, 1, CHANNELS, 9, 9)], mode="linear", extrapolation_value=0.5,
        coordinate_transformation_mode="tf_crop_and_resize"),
    **{kind: two(kind) for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    **{kind + " of three": several(kind) for kind in ("Sum", "Max", "Min", "Mean")},
    "Pow": lambda n, x: n.op("Pow", [n.op("Exp", [x]), n.conv(x, CHANNELS)]),
    "Pow with a constant map": lambda n, x: n.op("Pow", [n.op("Exp", [x]), values(n, CHANNELS, *SIZE)]),
    "Pow of channels": lambda n, x: n.op("Pow", [n.op("Exp", [x]), values(n, CHANNELS, 1, 1)]),
    "Pow of a number": lambda n, x: n.op("Pow", [number(n, 2), x], CHANNELS),
    "PRelu by a map": lambda n, x: n.op("PRelu", [x, n.conv(x, CHANNELS)]),
    "PRelu by a plane": lambda n, x: n.op("PRelu", [x, n.conv(x, 1)]),
    "PRelu by a constant map": lambda n, x: n.op("PRelu", [x, values(n, CHANNELS, *SIZE)]),
    "PRelu by a constant plane": lambda n, x: n.op("PRelu", [x, values(n, *SIZE)]),
    **{f"{kind} with a constant map": with_map(kind)
       for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    **{f"{kind} of a constant map": with_map(kind, True) for kind in ("Add", "Sub", "Mul", "Div")},
    **{f"{kind} with a constant map of rank 3": with_map(kind, rank=3) for kind in ("Add", "Mul")},
    **{f"{kind} with a constant plane": with_map(kind, channels=1)
       for kind in ("Add", "Sub", "Mul")},
    **{f"{kind} with a constant plane of rank 2": with_map(kind, rank=2)
       for kind in ("Add", "Mul")},
    **{f"{kind} with a constant row": with_line(kind, (1, CHANNELS, 1, SIZE[1]))
       for kind in ("Add", "Mul")},
    **{f"{kind} with a constant column": with_line(kind, (SIZE[0], 1)) for kind in ("Add", "Mul")},
    "Concat with a constant map": lambda n, x: n.op(
        "Concat", [values(n, 1, 2, *SIZE), x], CHANNELS + 2, axis=1),
    "Split": split,
    "Slice channels": lambda n, x: sliced(n, x, [2], [7], [1], [1], 5),
    "Slice every second channel": lambda n, x: sliced(n, x, [1], [8], [1], [2], 4),
    "Slice rows and columns": lambda n, x: sliced(n, x, [1, 2], [-1, 6], [2, 3], [1, 1]),
    "Slice every second row": lambda n, x: sliced(n, x, [0, 1], [6, 7], [2, 3], [2, 2]),
    "Slice backwards": lambda n, x: sliced(n, x, [-1], [-100], [3], [-1]),
    **{f"Pad {m}": lambda n, x, m=m: n.padded(x, [1, 2, 3, 0], m)
       for m in ("constant", "reflect", "edge", "wrap")},
    "Pad by a value": lambda n, x: n.op(
        "Pad", [x, integers(n, 0, 0, 2, 1, 0, 0, 0, 3), number(n, 0.5)]),
    "Pad below zero": lambda n, x: n.padded(x, [-1, 2, 1, -2], "constant"),
    "Pad of channels": lambda n, x: n.op(
        "Pad", [x, integers(n, 0, 1, 0, 0, 0, 2, 0, 0), number(n, 0)], CHANNELS + 3),
    "LayerNormalization": layer_norm,
    "LayerNormalization in nodes": layer_norm_in_nodes,
    "Softmax": lambda n, x: n.op("Softmax", [x], axis=1),
    "LogSoftmax": lambda n, x: n.op("LogSoftmax", [x], axis=1),
    **{f"LpNormalization {p}": lambda n, x, p=p: n.op("LpNormalization", [x], axis=1, p=p)
       for p in (1, 2)},
    "LpNormalization in nodes": lambda n, x: n.op(
        "Div", [x, n.op("Max", [n.op("ReduceL2", [x, integers(n, 1)], 1, keepdims=1),
                               number(n, 1e-6)])], CHANNELS),
    **{kind + " over channels": lambda n, x, kind=kind: n.op(
        "Mul", [x, n.op(kind, [x, integers(n, 1)], 1, keepdims=1)], CHANNELS)
       for kind in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum")},
    "Gelu": lambda n, x: n.op("Gelu", [x]),
    "Gelu tanh": lambda n, x: n.op("Gelu", [x], approximate="tanh"),
    "Gelu in nodes": erf_gelu,
    "Gelu tanh in nodes": tanh_gelu,
    "gate": chunk_gate,
    "gate by Gelu": gelu_gate,
    "Concat": grouped,
    "factor per channel": squeezed,
    "squeeze and excitation": lambda n, x: n.excited(x),
    "factor per position": lambda n, x: n.attended(x),
    **{kind: lambda n, x, kind=kind: n.op(kind, [x]) for kind in ("Sin", "Cos", "Tan")},
    "snake": lambda n, x: n.op("Add", [x, n.op("Pow", [n.op("Sin", [x]), number(n, 2)])]),
}


def model(name):
    """With inputs x and, where the case reads it, `factors`, one value per channel."""
    net = Net(3)
    net.channels["factors"] = CHANNELS
    y = net.conv(CASES[name](net, net.conv("x", CHANNELS)), 3)
    value = lambda tensor, dims: helper.make_tensor_value_info(  # noqa: E731
        tensor, TensorProto.FLOAT, dims)
    inputs = [value("x", [1, 3, *SIZE]), value("factors", [1, CHANNELS, 1, 1])]
    read = {tensor for node in net.nodes for tensor in node.input}
    graph = helper.make_graph(net.nodes, "g", [i for i in inputs if i.name in read],
                              [helper.make_empty_tensor_value_info(y)], net.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made, strict_mode=True)


def wrong(program, name, schedules):
    """Empty, or what does not hold."""
    network = model(name)
    onnx.checker.check_model(network)
    rng = np.random.default_rng(1)
    dims = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim]
            for i in network.graph.input}
    inputs = {i: rng.uniform(-1, 1, extents).astype(np.float32) for i, extents in dims.items()}
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "net.onnx")
        onnx.save(network, path)
        try:
            told = laminate(program, "info", path)
            outside = [line for line in told.splitlines() if "can be in no group" in line]
            laminate(program, "validate", path, "--random", str(schedules), "--quiet")
            different = compare_model(program, path, inputs, directory, ["--threads", "1"])
        except SystemExit as refusal:
            return str(refusal)
    return "; ".join(filter(None, [*outside, different]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate")
    parser.add_argument("--random", type=int, default=6)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        return print("\n".join(CASES))
    names = arguments.names or list(CASES)
    failed = 0
    for name in names:
        text = wrong(arguments.laminate, name, arguments.random)
        failed += bool(text)
        if text:
            print(f"{name}: {text}", flush=True)
    print(f"{len(names) - failed} of {len(names)} hold")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
