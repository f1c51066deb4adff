"""Random models of a few operators with odd attributes, written in the ways of different exporters, against onnxruntime: equal results, or onnxruntime does not take the model either.

  random_exports.py --laminate PROGRAM FIRST COUNT [--keep DIR]   seeds FIRST ...; --keep: models that differ stay there

Exit 0: all as expected; 1: the lines say which seeds are not; 77: onnx or onnxruntime is not installed.
"""

import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import (
    compare_model,
    difference,
    onnxruntime_session,
)  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.reference  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

# Continuous functions only: where a last digit decides between 0 and 1, two right programs differ.
ACTIVATIONS = {
    "Relu": {},
    "Sigmoid": {},
    "Tanh": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.7},
    "Selu": {},
    "Softplus": {},
    "Softsign": {},
    "HardSigmoid": {"alpha": 0.3},
    "Abs": {},
    "Neg": {},
    "Celu": {"alpha": 1.5},
    "Exp": {},
    "Erf": {},
    "Sin": {},
    "Cos": {},
    "HardSwish": {},
    "Mish": {},
    "Gelu": {"approximate": "tanh"},
}
SINCE = {"Celu": 12, "HardSwish": 14, "Mish": 18, "Gelu": 20}
REDUCTIONS = [
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceSum",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceSumSquare",
]


class Refused(Exception):
    """A node that does not fit its input, by onnx's own shape inference."""


class Model:
    """Grows node by node; the shapes are those that onnx infers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice([9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22]))
        self.nodes, self.constants, self.shapes = [], [], {}
        rank = int(self.rng.choice([3, 4, 4, 4, 4, 5]))
        self.inputs = {
            "x": [
                int(self.rng.integers(1, 3)),
                int(self.rng.choice([1, 2, 3, 4, 6, 8])),
                *(
                    int(n)
                    for n in self.rng.integers(
                        3 if rank == 5 else 5, 8 if rank == 5 else 20, rank - 2
                    )
                ),
            ]
        }
        self.shapes.update(self.inputs)
        self.last = "x"

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def name(self, stem):
        return f"{stem}{len(self.nodes)}_{len(self.constants)}"

    def constant(self, array):
        """As an initializer, a Constant node, or in another width behind a Cast."""
        array = np.asarray(array)
        name, way = self.name("c"), self.pick("plain", "plain", "node", "half", "bytes")
        if array.dtype == np.float32 and way in ("half", "bytes"):
            stored = (
                array.astype(np.float16) if way == "half" else np.round(array * 16).astype(np.int8)
            )
            self.constants.append(numpy_helper.from_array(stored, name + "_stored"))
            self.nodes.append(
                helper.make_node("Cast", [name + "_stored"], [name], to=TensorProto.FLOAT)
            )
        elif way == "node":
            self.nodes.append(
                helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
            )
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape):
        return self.constant(
            (self.rng.integers(-8, 9, shape) / (4 * max(1.0, np.sqrt(np.prod(shape[1:]))))).astype(
                np.float32
            )
        )

    def ints(self, values):
        return self.constant(np.asarray(values, np.int64))

    def model(self, outputs):
        infos = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in self.inputs.items()
        ]
        graph = helper.make_graph(
            self.nodes,
            "g",
            infos,
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes.get(name))
                for name in outputs
            ],
            self.constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )

    def add(self, operator, inputs, outputs=1, **attributes):
        """Names of the results; Refused leaves the model as it was."""
        names = [self.name("t") + f"_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        try:
            inferred = onnx.shape_inference.infer_shapes(
                self.model(names), strict_mode=True, data_prop=True
            )
        except Exception as error:
            raise Refused(str(error)) from error
        for output in inferred.graph.output:
            extents = [d.dim_value for d in output.type.tensor_type.shape.dim]
            if (
                not output.type.tensor_type.HasField("shape")
                or any(n < 1 for n in extents)
                or np.prod(extents) > 40000
            ):
                raise Refused(f"{operator} makes {extents}")
            self.shapes[output.name] = extents
        return names

    # ---- one step each: from self.last to another tensor -----------------------------------------------------------

    def window(self, rank, largest=4, dilated=True):
        spatial = self.shapes[self.last][2:]
        kernel = [int(self.rng.integers(1, min(largest, n) + 1)) for n in spatial]
        attributes = {"kernel_shape": kernel}
        if self.rng.random() < 0.6:
            attributes["strides"] = [int(n) for n in self.rng.integers(1, 4, rank)]
        if dilated and self.rng.random() < 0.3:
            attributes["dilations"] = [int(n) for n in self.rng.integers(1, 4, rank)]
        way = self.pick("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
        if way == "pads":
            attributes["pads"] = [
                int(self.rng.integers(0, kernel[k % rank])) for k in range(2 * rank)
            ]
        elif way != "none":
            attributes["auto_pad"] = way
        return attributes

    def conv(self):
        channels, rank = self.shapes[self.last][1], len(self.shapes[self.last]) - 2
        group = int(
            self.pick(1, 1, 1, channels, *[g for g in range(2, channels) if channels % g == 0])
        )
        out = group * int(self.rng.integers(1, 4)) if group > 1 else int(self.rng.integers(1, 9))
        attributes = self.window(rank)
        inputs = [self.last, self.weights(out, channels // group, *attributes["kernel_shape"])]
        if self.rng.random() < 0.7:
            inputs.append(self.weights(out))
        if self.rng.random() < 0.2:
            del attributes["kernel_shape"]
        return self.add("Conv", inputs, group=group, **attributes)[0]

    def conv_transpose(self):
        channels, rank = self.shapes[self.last][1], len(self.shapes[self.last]) - 2
        group = int(self.pick(1, 1, channels))
        out = int(self.rng.integers(1, 4))
        attributes = self.window(rank)
        if "auto_pad" not in attributes and "strides" in attributes and self.rng.random() < 0.4:
            attributes["output_padding"] = [
                int(self.rng.integers(0, s)) for s in attributes["strides"]
            ]
        inputs = [self.last, self.weights(channels, out, *attributes["kernel_shape"])]
        if self.rng.random() < 0.5:
            inputs.append(self.weights(out * group))
        return self.add("ConvTranspose", inputs, group=group, **attributes)[0]

    def pool(self):
        operator = self.pick("MaxPool", "AveragePool", "LpPool")
        attributes = self.window(
            len(self.shapes[self.last]) - 2,
            3,
            self.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[operator],
        )
        if self.rng.random() < 0.4 and self.opset >= (18 if operator == "LpPool" else 10):
            attributes["ceil_mode"] = 1
        if operator == "AveragePool":
            attributes["count_include_pad"] = int(self.rng.integers(2))
        return self.add(operator, [self.last], **attributes)[0]

    def global_pool(self):
        return self.add(self.pick("GlobalAveragePool", "GlobalMaxPool"), [self.last])[0]

    def activation(self):
        operator = self.pick(*(name for name in ACTIVATIONS if SINCE.get(name, 1) <= self.opset))
        return self.add(operator, [self.last], **ACTIVATIONS[operator])[0]

    def clip(self):
        if self.opset < 11:
            return self.add("Clip", [self.last], min=-0.5, max=0.75)[0]
        low = self.pick("", self.constant(np.float32(-0.5)))
        return self.add("Clip", [self.last, low, self.constant(np.float32(0.75))])[0]

    def prelu(self):
        shape = self.shapes[self.last]
        return self.add(
            "PRelu", [self.last, self.weights(*self.pick([1], [shape[1]] + [1] * (len(shape) - 2)))]
        )[0]

    def with_constant(self):
        shape = self.shapes[self.last]
        extents = self.pick(
            [],
            [1],
            [shape[1]] + [1] * (len(shape) - 2),
            shape[1:],
            shape[-1:],
            [n if self.rng.random() < 0.5 else 1 for n in shape],
        )
        operator = self.pick("Add", "Sub", "Mul", "Div", "Max", "Min")
        array = self.rng.integers(1, 9, extents).astype(np.float32) / 4
        operands = [self.last, self.constant(array)]
        if operator != "Div" and self.rng.random() < 0.3:
            operands.reverse()
        return self.add(operator, operands)[0]

    def with_earlier(self):
        earlier = [name for name in self.shapes if self.shapes[name] == self.shapes[self.last]]
        other = self.pick(*earlier)
        return self.add(
            self.pick("Add", "Mul", "Sub", "Sum", "Max", "Mean"),
            [self.last, other] if self.rng.random() < 0.5 else [other, self.last],
        )[0]

    def gate(self):
        return self.add(
            "Mul",
            [self.last, self.add("Sigmoid", [self.add("GlobalAveragePool", [self.last])[0]])[0]],
        )[0]

    def normalise(self):
        channels = self.shapes[self.last][1]
        operator = self.pick(
            "BatchNormalization", "BatchNormalization", "InstanceNormalization", "LRN"
        )
        if operator == "LRN":
            return self.add("LRN", [self.last], size=int(self.pick(1, 3, 5)), alpha=0.1)[0]
        inputs = [self.last, self.weights(channels), self.weights(channels)]
        if operator == "BatchNormalization":
            inputs += [
                self.weights(channels),
                self.constant(self.rng.integers(1, 9, channels).astype(np.float32) / 4),
            ]
        return self.add(operator, inputs)[0]

    def concat(self):
        shape = self.shapes[self.last]
        axis = int(self.rng.integers(1, len(shape)))
        fitting = [
            name
            for name, other in self.shapes.items()
            if len(other) == len(shape)
            and all(a == b for d, (a, b) in enumerate(zip(shape, other)) if d != axis)
        ]
        return self.add(
            "Concat",
            [self.pick(*fitting) for _ in range(int(self.rng.integers(1, 3)))] + [self.last],
            axis=self.pick(axis, axis - len(shape)),
        )[0]

    def split(self):
        shape = self.shapes[self.last]
        axis = self.pick(*[d for d in range(1, len(shape)) if shape[d] > 1] or [0])
        first = max(1, shape[axis] // 3)
        if shape[axis] < 2:
            raise Refused("nothing to split")
        sizes = [first, shape[axis] - first]
        pieces = (
            self.add("Split", [self.last], 2, axis=axis, split=sizes)
            if self.opset < 13
            else self.add("Split", [self.last, self.ints(sizes)], 2, axis=axis)
        )
        return self.pick(*pieces)

    def slice(self):
        shape = self.shapes[self.last]
        axis = int(self.rng.integers(1, len(shape)))
        start, end, step = self.pick(
            (0, shape[axis] - 1, 1),
            (1, 2**31 - 1, 1),
            (-2, 2**31 - 1, 1),
            (0, 2**31 - 1, 2),
            (-1, -(2**31), -1),
        )
        if self.opset < 10:
            return (
                self.add("Slice", [self.last], starts=[start], ends=[end], axes=[axis])[0]
                if step == 1
                else self.activation()
            )
        return self.add(
            "Slice",
            [
                self.last,
                self.ints([start]),
                self.ints([end]),
                self.ints([self.pick(axis, axis - len(shape))]),
                self.ints([step]),
            ],
        )[0]

    def pad(self):
        rank = len(self.shapes[self.last])
        amounts = [0, 0, *(int(n) for n in self.rng.integers(0, 3, rank - 2))] * 2
        mode = self.pick("constant", "reflect", "edge")
        if self.opset < 11:
            return self.add("Pad", [self.last], pads=amounts, mode=mode)[0]
        inputs = [self.last, self.ints(amounts)] + (
            [self.constant(np.float32(0.5))]
            if mode == "constant" and self.rng.random() < 0.5
            else []
        )
        return self.add("Pad", inputs, mode=mode)[0]

    def through_transposes(self):
        """As an export from channels-last: something element by element between two Transposes."""
        rank = len(self.shapes[self.last])
        there, back = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
        self.last = self.add("Transpose", [self.last], perm=there)[0]
        self.last = self.pick(self.activation, self.with_constant)()
        return (
            self.add("Transpose", [self.last], perm=back)[0]
            if len(self.shapes[self.last]) == rank
            else self.last
        )

    def reshape_by_shape(self):
        """N, C, rest as one axis, and back: the shape comes from Shape, Slice and Concat, as in exports with open sizes."""
        shape = self.shapes[self.last]
        extents = self.add_ints("Shape", [self.last])
        head = self.add_ints("Gather", [extents, self.ints([0, 1])])
        flat = self.add(
            "Reshape", [self.last, self.add_ints("Concat", [head, self.ints([-1])], axis=0)]
        )[0]
        self.last = flat
        self.last = self.activation()
        self.shapes[self.last] = [shape[0], shape[1], int(np.prod(shape[2:]))]
        return self.add("Reshape", [self.last, extents])[0]

    def add_ints(self, operator, inputs, **attributes):
        name = self.name("i")
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def blocks(self):
        operator = self.pick("DepthToSpace", "SpaceToDepth")
        mode = (
            {"mode": self.pick("DCR", "CRD")}
            if operator == "DepthToSpace" and self.opset >= 11
            else {}
        )
        return self.add(operator, [self.last], blocksize=2, **mode)[0]

    def resize(self):
        rank = len(self.shapes[self.last])
        if self.opset < 11 or rank == 5:
            raise Refused("only newer ones")
        scales = self.constant(
            np.float32([1, 1] + [self.pick(0.5, 1, 2, 3) for _ in range(rank - 2)])
        )
        mode = self.pick("nearest", "nearest", "linear")
        how = (
            {"nearest_mode": self.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
        )
        return self.add(
            "Resize",
            (
                [self.last, "", scales]
                if self.opset >= 13
                else [self.last, self.constant(np.zeros(0, np.float32)), scales]
            ),
            mode=mode,
            coordinate_transformation_mode=self.pick(
                "asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"
            ),
            **how,
        )[0]

    def reduce(self):
        rank = len(self.shapes[self.last])
        operator = self.pick(*REDUCTIONS)
        axes = sorted({int(d) for d in self.rng.integers(1, rank, 2)})
        keep = int(self.rng.random() < 0.8)
        if self.opset >= 18 or (operator == "ReduceSum" and self.opset >= 13):
            return self.add(operator, [self.last, self.ints(axes)], keepdims=keep)[0]
        return self.add(operator, [self.last], axes=axes, keepdims=keep)[0]

    def softmax(self):
        return self.add(
            self.pick("Softmax", "LogSoftmax"),
            [self.last],
            axis=int(self.rng.integers(1, len(self.shapes[self.last]))),
        )[0]

    def head(self):
        self.last = self.add("Flatten", [self.last], axis=self.pick(1, 1, 2))[0]
        rows = self.shapes[self.last][1]
        if self.rng.random() < 0.5:
            return self.add("MatMul", [self.last, self.weights(rows, 5)])[0]
        return self.add(
            "Gemm",
            [self.last, self.weights(5, rows), self.weights(*self.pick([5], [1, 5], [1]))],
            transB=1,
            alpha=0.5,
            beta=self.pick(1.0, 0.25),
        )[0]

    def gather(self):
        shape = self.shapes[self.last]
        axis = int(self.rng.integers(1, len(shape)))
        return self.add("Gather", [self.last, self.ints([shape[axis] - 1, 0, -1])], axis=axis)[0]

    def tile(self):
        rank = len(self.shapes[self.last])
        return self.add(
            "Tile",
            [self.last, self.ints([1, *(int(n) for n in self.rng.integers(1, 3, rank - 1))])],
        )[0]

    def where(self):
        constant = self.constant(np.float32(0.25))
        return self.add(
            "Where",
            [self.add_ints("Greater", ["x", self.constant(np.float32(0.1))]), self.last, constant],
        )[0]

    def by_if(self):
        """An If on a comparison of extents; the branches share their names."""
        operators = self.pick(("Tanh", "Abs"), ("Abs", "Tanh"))
        condition = self.add_ints(
            "Equal",
            [
                self.add_ints("Gather", [self.add_ints("Shape", [self.last]), self.ints(1)]),
                self.ints(self.pick(1, self.shapes[self.last][1])),
            ],
        )
        branches = [
            helper.make_graph(
                [helper.make_node(operator, [self.last], [f"{side}_{self.name('b')}"])],
                side,
                [],
                [],
            )
            for side, operator in zip(("yes", "no"), operators)
        ]
        for branch in branches:
            branch.output.append(
                helper.make_tensor_value_info(
                    branch.node[0].output[0], TensorProto.FLOAT, self.shapes[self.last]
                )
            )
        return self.add("If", [condition], then_branch=branches[0], else_branch=branches[1])[0]

    def step(self):
        rank = len(self.shapes[self.last])
        maps = (
            [self.conv] * 6
            + [
                self.conv_transpose,
                self.pool,
                self.pool,
                self.normalise,
                self.global_pool,
                self.prelu,
                self.pad,
                self.gate,
                self.head,
            ]
            + ([self.blocks, self.resize] if rank == 4 else [])
        )
        any_rank = [self.activation] * 4 + [
            self.clip,
            self.with_constant,
            self.with_constant,
            self.with_earlier,
            self.concat,
            self.split,
            self.slice,
            self.through_transposes,
            self.reshape_by_shape,
            self.reduce,
            self.softmax,
            self.gather,
            self.tile,
            self.where,
            self.by_if,
        ]
        before = len(self.nodes), len(self.constants), self.last, dict(self.shapes)
        try:
            self.last = self.pick(
                *(maps if rank in (3, 4, 5) and self.rng.random() < 0.6 else any_rank)
            )()
        except Refused:
            del self.nodes[before[0] :], self.constants[before[1] :]
            self.last, self.shapes = before[2:]


def make(seed):
    builder = Model(seed)
    for _ in range(int(builder.rng.integers(2, 9))):
        builder.step()
    written = [name for node in builder.nodes for name in node.output if name in builder.shapes]
    outputs = sorted({builder.last, builder.pick(*written)} if written else set())
    return (
        builder.model([name for name in outputs if name != "x"]) if written else None
    ), builder.inputs


def run_seed(program, seed, directory):
    """(what is wrong, or "" ; whether it was compared)"""
    net, shapes = make(seed)
    if net is None:
        return "", False
    path = os.path.join(directory, "net.onnx")
    onnx.save(net, path)
    rng = np.random.default_rng(seed)
    inputs = {
        name: (rng.integers(-16, 17, shape) / 8).astype(np.float32)
        for name, shape in shapes.items()
    }
    try:
        expected = onnxruntime_session(path).run(None, inputs)
    except Exception:  # not supported, or invalid after all
        return "", False
    # Where onnxruntime makes another shape than onnx's own rules (SAME padding of dilated LpPool windows, say), neither is our judge.
    declared = [
        [d.dim_value for d in output.type.tensor_type.shape.dim] for output in net.graph.output
    ]
    if not all(
        np.all(np.isfinite(value)) and list(value.shape) == shape
        for value, shape in zip(expected, declared)
    ):
        return "", False
    try:
        wrong = compare_model(program, path, inputs, directory)
    except SystemExit as stopped:
        return str(stopped), True
    return (
        ("", False) if wrong and onnxruntime_stands_alone(net, inputs, directory) else (wrong, True)
    )


def onnxruntime_stands_alone(net, inputs, directory):
    """Whether one of its tensors has another shape than onnx's own rules say, or onnx's reference evaluator says what we say (onnxruntime approximates Sigmoid, which
    shows where a product of several nears zero)."""
    inferred = onnx.shape_inference.infer_shapes(net, data_prop=True)
    judged = onnx.ModelProto.FromString(inferred.SerializeToString())
    own = [output.name for output in net.graph.output]
    inner = [
        value
        for value in inferred.graph.value_info
        if value.type.tensor_type.elem_type == TensorProto.FLOAT and value.name not in own
    ]
    written = {
        name
        for node in net.graph.node
        if node.op_type not in ("Constant", "Cast")
        for name in node.output
    }
    judged.graph.output.extend(value for value in inner if value.name in written)
    path = os.path.join(directory, "judged.onnx")
    onnx.save(judged, path)
    session = onnxruntime_session(path)
    for value, output in zip(session.run(None, inputs), judged.graph.output):
        if list(value.shape) != [d.dim_value for d in output.type.tensor_type.shape.dim]:
            return True
    try:
        reference = onnx.reference.ReferenceEvaluator(net).run(own, inputs)
    except Exception:  # it does not know every attribute
        return False
    ours = [np.load(os.path.join(directory, f"out{k}.npy")) for k in range(len(own))]
    return not any(difference(mine, theirs) for mine, theirs in zip(ours, reference))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--keep")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    compared = failed = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        with tempfile.TemporaryDirectory() as directory:
            wrong, was_compared = run_seed(arguments.laminate, seed, directory)
            compared += was_compared
            if wrong:
                failed += 1
                print(f"{seed}: {wrong}", flush=True)
                if arguments.keep:
                    os.makedirs(arguments.keep, exist_ok=True)
                    shutil.copy(
                        os.path.join(directory, "net.onnx"),
                        os.path.join(arguments.keep, f"{seed}.onnx"),
                    )
    print(f"{compared} of {arguments.count} compared, {failed} differ or are refused")
    # A generator whose models onnxruntime does not take would show nothing.
    sys.exit(1 if failed or compared < arguments.count // 2 else 0)


if __name__ == "__main__":
    main()
