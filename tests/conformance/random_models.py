"""Seeded random models of a few operators with odd attributes, as exporters write them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Continuous functions only: a last digit must not decide between 0 and 1.
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


class Graph:
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
            if len(extents) < 2:
                raise Refused("the steps want N and one more axis")
            self.shapes[output.name] = extents
        return names

    # ---- one step each: from self.last to another tensor ------------------------------------

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


class Layers(Graph):
    """With convolutions, poolings, activations and what moves elements."""

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
        """An element-wise operator between two Transposes, as in exports from channels-last."""
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
        """Flattens the spatial axes and restores them by computed shapes, as dynamic exports do."""
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
        shape = self.shapes[self.last]
        rank = len(shape)
        scales = [float(self.pick(0.5, 0.6, 0.75, 1, 1.3, 1.7, 2, 2.5, 3)) for _ in range(rank - 2)]
        constant = self.constant(np.float32([1, 1, *scales]))
        if self.opset < 11:
            mode = self.pick("nearest", "linear") if rank == 4 else "nearest"
            operator = "Upsample" if self.opset < 10 else "Resize"
            if operator == "Upsample" and min(scales) < 1:
                raise Refused("Upsample only enlarges")
            return self.add(operator, [self.last, constant], mode=mode)[0]
        mode = self.pick("nearest", "linear", *(["cubic"] if rank == 4 else []))
        if mode == "nearest":
            # The pair that PyTorch exports; other roundings meet ties, which last digits decide.
            how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            coordinates = self.pick("half_pixel", "align_corners", "pytorch_half_pixel")
            how = {"coordinate_transformation_mode": coordinates}
        empty = "" if self.opset >= 13 else self.constant(np.zeros(0, np.float32))
        if self.rng.random() < 0.3:
            sizes = shape[:2] + [int(n) for n in self.rng.integers(1, 12, rank - 2)]
            no_scales = "" if self.opset >= 13 else self.constant(np.zeros(0, np.float32))
            inputs = [self.last, empty, no_scales, self.ints(sizes)]
        else:
            inputs = [self.last, empty, constant]
        return self.add("Resize", inputs, mode=mode, **how)[0]


class Model(Layers):
    """With the operators of heads, selections and branches; step() adds a random one."""

    def place_of_largest(self):
        """Of the input itself, whose values no rounding changes."""
        axis = int(self.rng.integers(1, len(self.shapes["x"])))
        how = {"select_last_index": self.pick(0, 1)} if self.opset >= 12 else {}
        operator = self.pick("ArgMax", "ArgMin")
        places = self.add_ints(operator, ["x"], axis=axis, keepdims=self.pick(0, 1), **how)
        return self.add("Cast", [places], to=TensorProto.FLOAT)[0]

    def top(self):
        shape = self.shapes[self.last]
        axis = int(self.rng.integers(1, len(shape)))
        count = int(self.rng.integers(1, shape[axis] + 1))
        how = {"largest": self.pick(0, 1)} if self.opset >= 11 else {}
        if self.opset < 10:
            return self.add("TopK", [self.last], 2, k=count, axis=axis)[0]
        return self.add("TopK", [self.last, self.ints([count])], 2, axis=axis, **how)[0]

    def grid_sample(self):
        shape = self.shapes[self.last]
        if self.opset < 16 or len(shape) != 4:
            raise Refused("GridSample of pictures since opset 16")
        grid = self.rng.integers(-10, 11, (shape[0], 4, 5, 2)) / 8 + 1 / 64
        mode = self.pick(*(["linear", "cubic"] if self.opset >= 20 else ["bilinear", "bicubic"]))
        padding = self.pick("zeros", "border", "reflection")
        inputs = [self.last, self.constant(grid.astype(np.float32))]
        return self.add(
            "GridSample", inputs, mode=mode, padding_mode=padding, align_corners=self.pick(0, 1)
        )[0]

    def einsum(self):
        shape = self.shapes[self.last]
        letters = "nchwd"[: len(shape)]
        if self.opset < 12 or len(shape) < 3:
            raise Refused("Einsum since opset 12")
        weights = self.weights(3, shape[-1])
        equation = f"{letters},k{letters[-1]}->{self.pick(letters[:-1] + 'k', 'k' + letters[:-1])}"
        return self.add("Einsum", [self.last, weights], equation=equation)[0]

    def remainder(self):
        """Of the input itself: next to a multiple of the divisor a last digit would decide."""
        if self.opset < 10:
            raise Refused("Mod since opset 10")
        return self.add("Mod", ["x", self.constant(np.float32(0.75))], fmod=1)[0]

    def add_places(self):
        """Float and integer coordinates of the columns, as grids of detectors are made."""
        shape = self.shapes[self.last]
        if self.opset < 11:
            raise Refused("Range since opset 11")
        if self.rng.random() < 0.5:
            limits = [self.constant(np.float32(value)) for value in (0, shape[-1], 1)]
            places = self.add_ints("Range", limits)
        else:
            counted = self.add_ints("Range", [self.ints(value) for value in (0, shape[-1], 1)])
            rows = self.add_ints("Expand", [counted, self.ints([2, shape[-1]])])
            row = self.add_ints("Slice", [rows, self.ints([1]), self.ints([2]), self.ints([0])])
            places = self.add_ints("Cast", [row], to=TensorProto.FLOAT)
        return self.add("Add", [self.last, places])[0]

    def pool_of_small_map(self):
        """A window larger than its map, with ceil_mode."""
        shape = self.shapes[self.last]
        if self.opset < 10 or len(shape) != 4 or min(shape[2:]) < 2:
            raise Refused("pictures of two rows at least")
        axes = self.ints([2, 3])
        small = self.add("Slice", [self.last, self.ints([0, 0]), self.ints([2, 2]), axes])[0]
        operator = self.pick("MaxPool", "AveragePool")
        return self.add(operator, [small], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)[0]

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
        maps = [self.conv] * 6 + [self.pool] * 2 + [self.resize] * 2
        maps += [self.conv_transpose, self.normalise, self.global_pool, self.prelu, self.pad]
        maps += [self.gate, self.head, self.pool_of_small_map, self.grid_sample, self.einsum]
        maps += [self.blocks] if rank == 4 else []
        any_rank = [self.activation] * 4 + [self.with_constant] * 2
        any_rank += [self.clip, self.with_earlier, self.concat, self.split, self.slice, self.tile]
        any_rank += [self.through_transposes, self.reshape_by_shape, self.reduce, self.softmax]
        any_rank += [self.gather, self.where, self.by_if, self.place_of_largest, self.top]
        any_rank += [self.remainder, self.add_places]
        before = len(self.nodes), len(self.constants), self.last, dict(self.shapes)
        try:
            self.last = self.pick(
                *(maps if rank in (3, 4, 5) and self.rng.random() < 0.6 else any_rank)
            )()
        except Refused:
            del self.nodes[before[0] :], self.constants[before[1] :]
            self.last, self.shapes = before[2:]


def make(seed):
    """(model, shapes of its inputs); the model is None if no step succeeded."""
    builder = Model(seed)
    for _ in range(int(builder.rng.integers(2, 9))):
        builder.step()
    written = [name for node in builder.nodes for name in node.output if name in builder.shapes]
    outputs = sorted({builder.last, builder.pick(*written)} if written else set())
    model = builder.model([name for name in outputs if name != "x"]) if written else None
    return model, builder.inputs


SPECIALS = np.float32([np.nan, np.inf, -np.inf, -0.0, 1e-40, np.nan])


def inputs_of(seed, shapes):
    """Multiples of 1/8; every third seed has a few NaN, infinities and subnormal values."""
    rng = np.random.default_rng(seed)
    inputs = {
        name: (rng.integers(-16, 17, shape) / 8).astype(np.float32)
        for name, shape in shapes.items()
    }
    if has_specials(seed):
        for value in inputs.values():
            places = rng.integers(0, value.size, 4)
            value.ravel()[places] = rng.choice(SPECIALS, 4)
    return inputs


def has_specials(seed):
    return seed % 3 == 2
