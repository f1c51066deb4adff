"""Generated code on NaN, infinities, values near overflow and 1e8 among ones (issue 26, 2).

  specials.py --laminate PROGRAM --reference PROGRAM table
      every activation and pooling, alone and between two convolutions
  specials.py --laminate PROGRAM --reference PROGRAM bounds
      the errors that docs/reliability.md promises, against sums in 64 bits
  specials.py --laminate PROGRAM --reference PROGRAM FIRST COUNT
      random convolutions, poolings, sums and activations of seeds FIRST ...

Generated code is compared with the reference operators and these with onnxruntime, where only what
random_exports.EXPLANATIONS names may differ. Code without minimal filtering keeps what the operators
make of such values; --strict is code without it, checked on them. Exit 0: equal; 1: different (the
lines say where); 77: onnxruntime is not installed.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import laminate  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import random_models  # noqa: E402
from random_exports import (  # noqa: E402
    difference,
    explained,
    onnxruntime_values,
    with_inner_outputs,
)
from reference import ReferenceOperators  # noqa: E402

# The functions that also stand fused behind a convolution, without those of analysis.
ACTIVATIONS = {
    name: attributes
    for name, attributes in random_models.ACTIVATIONS.items()
    if name not in ("Exp", "Erf", "Sin", "Cos")
}
OPERATORS = {
    **ACTIVATIONS,
    "Clip": {},
    "PRelu": {},
    "MaxPool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "AveragePool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "GlobalAveragePool": {},
}
MORE_INPUTS = {"Clip": ["low", "high"], "PRelu": ["slope"]}
# The values among whole numbers, of one picture of a batch each.
KINDS = [
    [np.nan],
    [np.inf],
    [np.inf, -np.inf],
    [3e34],
    [np.nan, np.inf, -np.inf, 1e8, 1e-40],
]
TAKES = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}


class Model:
    """Nodes on one input, x, that share constants; every output is a tensor of its own."""

    def __init__(self, rng, shape):
        self.rng, self.shape = rng, [len(KINDS), *shape]
        self.nodes, self.outputs = [], []
        self.constants = {
            "low": np.float32(-1),
            "high": np.float32(2),
            "slope": np.float32(0.3).reshape(1, 1, 1),
        }

    def weights(self, *shape):
        name = f"w{len(self.constants)}"
        spread = 1 / np.sqrt(np.prod(shape[1:]))
        self.constants[name] = self.rng.normal(0, spread, shape).astype(np.float32)
        return name

    def add(self, operator, inputs, **attributes):
        """The name of the result."""
        name = f"{operator}{len(self.nodes)}"
        inputs = [*inputs, *MORE_INPUTS.get(operator, [])]
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def proto(self):
        tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        constants = [numpy_helper.from_array(v, name) for name, v in self.constants.items()]
        read = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes,
            "g",
            [tensor("x", self.shape)],
            [tensor(name, None) for name in self.outputs],
            [c for c in constants if c.name in read],
        )
        opset = [helper.make_opsetid("", 20)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opset, ir_version=9), strict_mode=True
        )

    def pictures(self):
        """Whole numbers, with each special value once, away from each other."""
        x = self.rng.integers(-4, 5, self.shape).astype(np.float32)
        channels, height, width = self.shape[1:]
        for picture, values in zip(x, KINDS):
            for k, value in enumerate(values):
                y, at = (4 + 3 * k) % height, (3 + 5 * k) % width
                picture[int(self.rng.integers(channels)), y, at] = value
        return x


def table():
    """Every operator, alone and fused behind a convolution that another one reads."""
    model = Model(np.random.default_rng(4), [3, 20, 24])
    first, second = model.weights(8, 3, 3, 3), model.weights(4, 8, 3, 3)
    for operator, attributes in OPERATORS.items():
        inner = model.add(operator, [model.add("Conv", ["x", first], **TAKES)], **attributes)
        model.outputs.append(model.add("Conv", [inner, second], **TAKES))
        model.outputs.append(model.add(operator, ["x"], **attributes))
    return model


def random_model(seed):
    """Some branches of two convolutions with an activation, a pooling or a sum between them."""
    rng = np.random.default_rng(seed)
    channels = int(rng.choice([1, 3, 8, 32]))
    model = Model(rng, [channels, int(rng.integers(9, 30)), int(rng.integers(9, 40))])
    for _ in range(4):
        features = int(rng.choice([4, 8, 24, 32]))
        size, stride = int(rng.choice([1, 3, 3, 5])), int(rng.choice([1, 1, 2]))
        pads, dilation = [int(rng.integers(0, size // 2 + 1))] * 4, int(rng.choice([1, 1, 2]))
        place = {"pads": pads, "strides": [stride] * 2, "dilations": [dilation] * 2}
        kind = rng.choice(["dense", "dense", "depthwise", "transposed"])
        if kind == "transposed":
            weights = model.weights(channels, features, size, size)
            place.update(dilations=[1, 1])
            last = model.add("ConvTranspose", ["x", weights], **place)
        elif kind == "depthwise":
            features = channels
            weights = model.weights(channels, 1, size, size)
            last = model.add("Conv", ["x", weights], group=channels, **place)
        else:
            last = model.add("Conv", ["x", model.weights(features, channels, size, size)], **place)
        operator = str(rng.choice(list(ACTIVATIONS)))
        last = model.add(operator, [last], **OPERATORS[operator])
        step = rng.choice(["pool", "add", "none"])
        if step == "pool":
            operator = str(rng.choice(["MaxPool", "AveragePool"]))
            strides = [int(rng.choice([1, 2]))] * 2
            last = model.add(operator, [last], **OPERATORS[operator], strides=strides)
        elif step == "add":
            last = model.add("Add", [last, model.add("Tanh", [last])])
        model.outputs.append(
            model.add("Conv", [last, model.weights(8, features, 3, 3)], **TAKES)
        )
    return model


class Judge:
    def __init__(self, arguments):
        self.program = arguments.laminate
        self.reference = ReferenceOperators(arguments.reference)

    def generated(self, proto, x, options):
        """The outputs of `laminate run`."""
        with tempfile.TemporaryDirectory() as folder:
            at = lambda name: os.path.join(folder, name)
            onnx.save(proto, at("net.onnx"))
            np.save(at("in.npy"), x)
            names = [output.name for output in proto.graph.output]
            outputs = [w for name in names for w in ("--output", f"{name}={at(name)}.npy")]
            laminate(
                self.program,
                *("run", at("net.onnx"), "--quiet", "--input", f"x={at('in.npy')}"),
                *(*outputs, *options),
            )
            return [np.load(f"{at(name)}.npy") for name in names]

    def differs(self, model, ways):
        """Lines that say what differs, for code of several options."""
        proto, x = model.proto(), model.pictures()
        names = [output.name for output in proto.graph.output]
        expected = self.reference.run(proto, [x])
        lines = []
        for options in ways:
            for name, value, wanted in zip(names, self.generated(proto, x, options), expected):
                for kind, found, right in zip(KINDS, value, wanted):
                    if wrong := difference(found, right):
                        lines.append(f"{name} with {kind} {' '.join(options)}: {wrong}")
        theirs = onnxruntime_values(proto, {"x": x}, optimised=True)
        if any(difference(e, theirs[name]) for name, e in zip(names, expected)):
            values = {
                **model.constants,
                "x": x,
                **onnxruntime_values(with_inner_outputs(proto), {"x": x}, optimised=False),
            }
            _, left = explained(self.reference, "onnxruntime", proto, values)
            if left:
                lines.append(f"reference operators, expected onnxruntime's: {left}")
        return lines

    # ---- errors of single convolutions

    def convolution_error(self, shape, features, group, x, options):
        """|found - exact|, the sum of |w x| and that of |w| max |x|, for every output."""
        model = Model(np.random.default_rng(6), shape)
        model.shape[0] = len(x)
        weights = model.weights(features, shape[0] // group, 3, 3)
        model.outputs.append(model.add("Conv", ["x", weights], group=group, **TAKES))
        [found] = self.generated(model.proto(), x, options)
        w = model.constants[weights].astype(np.float64)
        exact = convolved(x.astype(np.float64), w, group)
        own = convolved(np.abs(x).astype(np.float64), np.abs(w), group)
        largest = np.abs(x).max(axis=(1, 2, 3), keepdims=True).astype(np.float64)
        of_map = largest * np.abs(w).sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1)
        return np.abs(found - exact), own, of_map

    def bounds(self):
        """Lines that say which promised bound does not hold."""
        lines = []
        for features, group in ((32, 1), (32, 32)):
            for columns in (24, 100):
                shape, terms = [32, 24, columns], 9 * 32 // group + 1
                for options, largest in ((["--strict"], 3e37), ([], 3e34)):
                    rng = np.random.default_rng(8)
                    x = np.ones([4, *shape], np.float32)
                    for k, value in enumerate([1e8, largest]):
                        x[k].ravel()[rng.integers(0, x[k].size, 9)] = value
                    x[2] = rng.normal(0, 1, shape)
                    x[3] = np.exp(rng.normal(0, 6, shape))
                    error, own, of_map = self.convolution_error(shape, features, group, x, options)
                    by_own, by_map = (error / own).max(), (error / of_map).max()
                    name = f"{features} of {group} groups, {columns} columns, {options}"
                    print(f"{name}: {by_own:.2g} of sum |w x|, {by_map:.2g} of max |x| sum |w|")
                    if options and not by_own <= terms * 2.0**-24:
                        lines.append(f"{name}: {by_own:.3g} of its own sum of |w x|")
                    if not by_map <= FILTERED:
                        lines.append(f"{name}: {by_map:.3g} of max |x| sum |w|")
        return lines


# docs/reliability.md: the most that minimal filtering errs by, in units of max |x| sum |w|.
FILTERED = 2.0**-20


def convolved(x, w, group):
    """3x3 with padding 1, in the precision of its operands."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = x.shape[2:]
    inputs = w.shape[1]
    outputs = []
    for z in range(w.shape[0]):
        first = z // (w.shape[0] // group) * inputs
        outputs.append(
            sum(
                np.tensordot(
                    padded[:, first : first + inputs, n : n + height, m : m + width],
                    w[z, :, n, m],
                    axes=(1, 0),
                )
                for n in range(3)
                for m in range(3)
            )
        )
    return np.stack(outputs, axis=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("cases", nargs="+")
    arguments = parser.parse_args()
    judge = Judge(arguments)
    if arguments.cases == ["table"]:
        # No layer of the table is large enough for minimal filtering.
        lines = judge.differs(table(), [[], ["--strict"]])
    elif arguments.cases == ["bounds"]:
        lines = judge.bounds()
    else:
        first, count = map(int, arguments.cases)
        ways = [["--strict"], ["--no-winograd"], ["--strict", "--layer-by-layer"]]
        lines = [
            f"seed {seed}: {line}"
            for seed in range(first, first + count)
            for line in judge.differs(random_model(seed), [ways[seed % len(ways)]])
        ]
    for line in lines:
        print(line, flush=True)
    print(f"{len(lines)} differences")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
