"""Networks as those for pictures are built, seeded, at odd sizes.

  picture_networks.py --laminate PROGRAM [NAME ...]                       names: all
  picture_networks.py --laminate PROGRAM --random FIRST COUNT             random:picture:FIRST ...
  picture_networks.py --laminate PROGRAM --write DIR --size HEIGHT WIDTH  only writes the files

Each runs as in onnxruntime, and random schedules of it are equal for all four witnesses (`laminate
validate`). Random networks, whose sums are exact, are compared bit for bit.

Exit 0: equal; 1: the lines say what is not; 77: onnx or onnxruntime is not installed.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import (
    compare_model,
    laminate,
    onnxruntime_session,
    random_inputs,
)  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


class Net:
    """A model under construction: operators return names of tensors."""

    def __init__(self, channels):
        self.rng = np.random.default_rng(1)
        self.nodes, self.constants = [], []
        self.channels = {"x": channels}

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def op(self, kind, inputs, channels=None, outputs=1, **attributes):
        names = [f"{kind.lower()}{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=names[0], **attributes))
        for name in names:
            self.channels[name] = channels or self.channels[inputs[0]]
        return names[0] if outputs == 1 else names

    def conv(self, x, channels, kernel=3, pad=None, relu=False):
        before = self.channels[x]
        scale = np.sqrt(1.7 / (before * kernel * kernel))
        weights = self.rng.normal(0, scale, (channels, before, kernel, kernel))
        bias = self.rng.uniform(-0.1, 0.1, channels)
        constants = [self.constant(w.astype(np.float32)) for w in (weights, bias)]
        pads = [kernel // 2 if pad is None else pad] * 4
        y = self.op("Conv", [x, *constants], channels, pads=pads)
        return self.op("Relu", [y]) if relu else y

    def prelu(self, x):
        slopes = self.rng.uniform(0.05, 0.35, (self.channels[x], 1, 1)).astype(np.float32)
        return self.op("PRelu", [x, self.constant(slopes)])

    def shuffle(self, x, block, mode="CRD"):
        channels = self.channels[x] // block**2
        return self.op("DepthToSpace", [x], channels, blocksize=block, mode=mode)

    def enlarged(self, x, times):
        scales = self.constant(np.array([1, 1, times, times], np.float32))
        return self.op("Resize", [x, "", scales], mode="nearest", nearest_mode="floor",
                       coordinate_transformation_mode="asymmetric")

    def resized(self, x, size, mode="linear", coordinates="half_pixel"):
        sizes = self.constant(np.array([1, self.channels[x], *size], np.int64))
        return self.op("Resize", [x, "", "", sizes], mode=mode,
                       coordinate_transformation_mode=coordinates)

    def padded(self, x, pads, mode="reflect"):
        pads = [0, 0, *pads[:2], 0, 0, *pads[2:]]
        return self.op("Pad", [x, self.constant(np.array(pads, np.int64))], mode=mode)

    def excited(self, x, part=4):
        """Squeeze and excitation."""
        mean = self.op("GlobalAveragePool", [x])
        few = self.conv(mean, max(1, self.channels[x] // part), 1, relu=True)
        factors = self.op("HardSigmoid", [self.conv(few, self.channels[x], 1)])
        return self.op("Mul", [x, factors])

    def attended(self, x):
        """A factor per position."""
        return self.op("Mul", [self.op("Sigmoid", [self.conv(x, 1)]), x], self.channels[x])

    def halves(self, x):
        return self.op("Split", [x], self.channels[x] // 2, 2, axis=1)

    def cropped(self, x, border):
        lists = ([border] * 2, [-border] * 2, [2, 3])
        return self.op("Slice", [x] + [self.constant(np.array(v, np.int64)) for v in lists])

    def model(self, y, size):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "g", [value("x", TensorProto.FLOAT, [1, self.channels["x"], *size])],
            [helper.make_empty_tensor_value_info(y)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def espcn(size, block=2):
    net = Net(1)
    x = net.op("Tanh", [net.conv("x", 64, 5)])
    x = net.op("Tanh", [net.conv(x, 32)])
    return net.model(net.shuffle(net.conv(x, block**2), block, "DCR"), size)


def espcn_rgb(size, block=3):
    net = Net(3)
    x = net.conv(net.conv("x", 32, 5, relu=True), 16, relu=True)
    return net.model(net.shuffle(net.conv(x, 3 * block**2), block, "DCR"), size)


def artcnn(size, channels=16):
    net = Net(1)
    first = x = net.conv("x", channels)
    for _ in range(4):
        x = net.conv(x, channels, relu=True)
    x = net.op("Add", [net.conv(x, channels), first])
    return net.model(net.shuffle(net.conv(x, 4), 2, "DCR"), size)


def srvgg(size, channels=16, depth=4, block=4):
    net = Net(3)
    x = net.prelu(net.conv("x", channels))
    for _ in range(depth):
        x = net.prelu(net.conv(x, channels))
    x = net.shuffle(net.conv(x, 3 * block**2), block)
    return net.model(net.op("Add", [x, net.enlarged("x", block)]), size)


def gates(size, channels=16):
    """SimpleGate and GLU, with a residual around each."""
    net = Net(3)
    x = net.conv("x", channels)
    a, b = net.halves(net.conv(x, 2 * channels))
    x = net.op("Add", [x, net.op("Mul", [a, b])])
    a, b = net.halves(net.conv(x, 2 * channels))
    x = net.op("Sub", [net.op("Mul", [a, net.op("Sigmoid", [b])]), x])
    return net.model(net.op("Add", [net.conv(x, 3), "x"]), size)


def cropping(size, channels=8):
    """Convolutions without padding, and what they leave of the input, as in CUNet."""
    net = Net(3)
    x = net.conv(net.conv("x", channels, pad=0, relu=True), channels, pad=0, relu=True)
    x = net.op("Concat", [x, net.cropped("x", 2)], channels + 3, axis=1)
    return net.model(net.op("Sub", [net.conv(x, 3), net.cropped("x", 2)]), size)


def unet_se(size, channels=8):
    """One level of a U-Net with squeeze and excitation."""
    net = Net(3)
    x = net.excited(net.conv(net.conv("x", channels, relu=True), channels, relu=True))
    y = net.conv(net.resized(x, [(n + 1) // 2 for n in size]), 2 * channels, relu=True)
    y = net.attended(net.excited(net.conv(y, 2 * channels, relu=True)))
    y = net.resized(net.conv(y, channels), size, coordinates="align_corners")
    y = net.op("Concat", [y, x], 2 * channels, axis=1)
    return net.model(net.conv(net.conv(y, channels, relu=True), 3), size)


def style(size, channels=8):
    """Convolutions of reflected borders, enlarged by cubic interpolation."""
    net = Net(3)
    x = net.conv(net.padded("x", [4, 4, 4, 4]), channels, 9, pad=0, relu=True)
    x = net.conv(net.padded(x, [1, 1, 1, 1]), channels, pad=0, relu=True)
    x = net.resized(x, [2 * n for n in size], "cubic", "pytorch_half_pixel")
    x = net.conv(net.padded(x, [1, 0, 1, 2], "edge"), channels, pad=0, relu=True)
    x = net.conv(net.padded(x, [1, 1, 1, 1], "constant"), 3, pad=0)
    return net.model(net.resized(x, [3 * n for n in size], "linear", "asymmetric"), size)


def yolo_neck(size, channels=8):
    """Maps of two sizes joined, as in the neck of a detector."""
    net = Net(3)
    x = net.conv("x", channels, relu=True)
    low = net.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    low = net.conv(low, channels, relu=True)
    up = net.padded(net.enlarged(low, 2), [0, 0, size[0] % 2, size[1] % 2], "edge")
    y = net.op("Concat", [up, x], 2 * channels, axis=1)
    return net.model(net.op("Sigmoid", [net.conv(net.conv(y, channels, relu=True), 6, 1)]), size)


def in_nodes(size, channels=8, block=2):
    """What newer operators would be one node for: GELU by tanh, channel attention by Expand, pixel
    shuffle by Reshape and Transpose, variances by two means."""
    net = Net(3)
    number = lambda value: net.constant(np.float32(value))  # noqa: E731
    mean = lambda x, axes: net.op("ReduceMean", [x], axes=axes, keepdims=1)  # noqa: E731
    shift = net.constant(np.array([0.4, 0.5, 0.6], np.float32).reshape(1, 3, 1, 1))
    x = net.conv(net.op("Sub", ["x", shift]), channels)
    distance = net.op("Sub", [x, mean(x, [1])])
    again = net.op("Sub", [x, mean(x, [1])])
    variance = mean(net.op("Mul", [again, again]), [1])
    y = net.op("Div", [distance, net.op("Sqrt", [net.op("Add", [variance, number(1e-5)])])])
    y = net.conv(y, channels)
    cube = net.op("Mul", [y, net.op("Mul", [y, y])])
    inside = net.op("Add", [y, net.op("Mul", [cube, number(0.044715)])])
    inside = net.op("Mul", [inside, number(0.79788456)])
    gate = net.op("Add", [net.op("Tanh", [inside]), number(1)])
    y = net.op("Mul", [net.op("Mul", [y, gate]), number(0.5)])
    factors = net.op("Sigmoid", [net.conv(net.op("GlobalAveragePool", [y]), channels, 1)])
    y = net.op("Mul", [y, net.op("Expand", [factors, net.op("Shape", [y])])])
    y = net.conv(net.op("Add", [x, y]), 3 * block**2)
    shape = lambda *extents: net.constant(np.array(extents, np.int64))  # noqa: E731
    y = net.op("Reshape", [y, shape(1, 3, block, block, *size)], 3)
    y = net.op("Transpose", [y], perm=[0, 1, 4, 2, 5, 3])
    y = net.op("Reshape", [y, shape(1, 3, *(block * n for n in size))])
    return net.model(net.conv(y, 3), size)


def tokens(size, channels=8):
    """A layer of a transformer without attention: LayerNormalization and products of tokens, a
    convolution of their map."""
    net = Net(3)
    constant = lambda *dims: net.constant(  # noqa: E731
        net.rng.uniform(-0.5, 0.5, dims).astype(np.float32))
    shape = lambda *extents: net.constant(np.array(extents, np.int64))  # noqa: E731

    def to_tokens(x):
        x = net.op("Reshape", [x, shape(0, net.channels[x], -1)])
        return net.op("Transpose", [x], perm=[0, 2, 1])

    def to_map(x):
        x = net.op("Transpose", [x], perm=[0, 2, 1])
        return net.op("Reshape", [x, shape(1, net.channels[x], *size)])

    t = to_tokens(net.conv("x", channels))
    y = net.op("LayerNormalization", [t, constant(channels), constant(channels)], axis=-1)
    y = net.op("MatMul", [y, constant(channels, 2 * channels)], 2 * channels)
    y = to_tokens(net.conv(to_map(net.op("Add", [y, constant(2 * channels)])), 2 * channels))
    y = net.op("Mul", [y, net.op("Sigmoid", [y])])
    y = net.op("Add", [t, net.op("MatMul", [y, constant(2 * channels, channels)], channels)])
    return net.model(net.conv(to_map(y), 3), size)


def channels_last(size, channels=6):
    """As TensorFlow's converter has them: each convolution between two Transposes."""
    net = Net(3)
    last = lambda x: net.op("Transpose", [x], perm=[0, 2, 3, 1])  # noqa: E731
    first = lambda x: net.op("Transpose", [x], perm=[0, 3, 1, 2])  # noqa: E731
    part = lambda *values: net.constant(np.array(values, np.int64))  # noqa: E731
    x = last(net.conv("x", channels))
    slopes = net.constant(net.rng.uniform(0.1, 0.3, (1, 1, channels)).astype(np.float32))
    x = net.op("Pad", [net.op("PRelu", [x, slopes]), part(0, 0, 1, 0, 0, 1, 0, 0)], mode="reflect")
    x = last(net.conv(first(x), channels))
    mean = first(net.op("ReduceMean", [x], axes=[1, 2], keepdims=1))
    x = net.op("Mul", [x, last(net.op("Sigmoid", [net.conv(mean, channels, 1)]))])
    a, b = net.op("Split", [x, part(2, channels - 2)], outputs=2, axis=3)
    net.channels.update({a: 2, b: channels - 2})
    x = net.op("Concat", [last(net.conv(first(b), channels)), a], channels + 2, axis=3)
    x = net.op("Slice", [x, part(1, 2), part(size[0], size[1] + 1), part(1, 2)])
    return net.model(net.conv(first(x), 3), size)


def looks(size, channels=8):
    """Attention to channels and to places (CBAM), normalisation of each image."""
    net = Net(3)
    values = lambda: net.constant(  # noqa: E731
        net.rng.uniform(0.5, 1.5, channels).astype(np.float32))
    x = net.op("Relu", [net.op("InstanceNormalization", [net.conv("x", channels), values(), values()])])
    mean = net.op("ReduceMean", [x], 1, axes=[1], keepdims=1)
    most = net.op("ReduceMax", [x], 1, axes=[1], keepdims=1)
    places = net.conv(net.op("Concat", [mean, most], 2, axis=1), 1, 5)
    x = net.op("Mul", [x, net.op("Sigmoid", [places])])
    return net.model(net.conv(x, 3), size)


def coordinates(size, channels=8):
    """Where each pixel lies, beside what is there (CoordConv), and a map added to itself."""
    net = Net(3)
    rows, columns = (np.linspace(-1, 1, extent, dtype=np.float32) for extent in size)
    places = np.stack(np.meshgrid(rows, columns, indexing="ij"))[None]
    x = net.op("Relu", [net.conv("x", channels)])
    x = net.conv(net.op("Concat", [x, net.constant(places)], channels + 2, axis=1), channels)
    x = net.op("Relu", [x])
    x = net.op("Mul", [net.op("Add", [x, x]), net.op("Sigmoid", [net.conv(x, channels)])])
    return net.model(net.conv(x, 3), size)


def levels(size, channels=16):
    """A quarter of the channels at each of four sizes, enlarged again and weighed, as in SAFMN; then a
    network of each pixel's channels."""
    net = Net(3)

    def normed(x):
        centred = net.op("Sub", [x, net.op("ReduceMean", [x], axes=[1], keepdims=1)])
        variance = net.op("ReduceMean", [net.op("Mul", [centred, centred])], axes=[1], keepdims=1)
        shifted = net.op("Add", [variance, net.constant(np.float32(1e-5))])
        return net.op("Div", [centred, net.op("Sqrt", [shifted])])

    x = net.conv("x", channels)
    y = normed(x)
    parts = net.op("Split", [y], channels // 4, 4, axis=1)
    made = [net.conv(parts[0], channels // 4)]
    for part, side in zip(parts[1:], (2, 4, 8)):
        low = net.op("MaxPool", [part], kernel_shape=[side] * 2, strides=[side] * 2)
        low = net.conv(low, channels // 4)
        made.append(net.resized(low, size, "nearest", "asymmetric"))
    weights = net.conv(net.op("Concat", made, channels, axis=1), channels, 1)
    x = net.op("Add", [x, net.op("Mul", [weights, y])])
    x = net.op("Add", [x, net.conv(net.conv(normed(x), 2 * channels, relu=True), channels, 1)])
    return net.model(net.conv(x, 3), size)


NETWORKS = {f.__name__: f for f in (espcn, espcn_rgb, artcnn, srvgg, gates, cropping, unet_se,
                                    style, yolo_neck, in_nodes, tokens, channels_last, looks,
                                    coordinates, levels)}


def wrong(program, path, seed, directory, exact):
    onnx.checker.check_model(path)
    session = onnxruntime_session(path, threads=1)
    rng = np.random.default_rng(seed)
    inputs = random_inputs(session, rng)
    if exact:
        inputs = {name: np.round(8 * value) for name, value in inputs.items()}
    laminate(program, "validate", path, "--random", "1", "--seed", str(seed), "--quiet")
    return compare_model(program, path, inputs, directory, ["--threads", "1"], exact)


def compare(program, names, seeds):
    """(name, difference) of each network."""
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, f"{name}.onnx")
            onnx.save(NETWORKS[name]((12, 17)), path)
            yield name, wrong(program, path, 1, directory, exact=False)
    for seed in seeds:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "net.onnx")
            laminate(program, "zoo", "export", f"random:picture:{seed}", "-o", path)
            yield f"random:picture:{seed}", wrong(program, path, seed, directory, exact=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate")
    parser.add_argument("--random", nargs=2, type=int, metavar=("FIRST", "COUNT"))
    parser.add_argument("--write", metavar="DIR")
    parser.add_argument("--size", nargs=2, type=int, default=(12, 17))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or ([] if arguments.random else list(NETWORKS))
    if arguments.write:
        for name in names:
            model = NETWORKS[name](tuple(arguments.size))
            onnx.save(model, os.path.join(arguments.write, f"{name}.onnx"))
        return
    first, count = arguments.random or (0, 0)
    found = list(compare(arguments.laminate, names, range(first, first + count)))
    for name, text in found:
        if text:
            print(f"{name}: {text}")
    print(f"{sum(not text for _, text in found)} of {len(found)} equal")
    sys.exit(1 if any(text for _, text in found) else 0)


if __name__ == "__main__":
    main()
