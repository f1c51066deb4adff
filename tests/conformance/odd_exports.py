"""Variants of one small network that exporters leave in real files.

  odd_exports.py --laminate PROGRAM [CASE ...]      cases: all

Each variant runs as in onnxruntime, or is refused in one line that names the culprit.

Exit 0: as expected; 1: the lines say what is not; 77: onnx or onnxruntime is not installed.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import (
    compare_model,
    onnxruntime_session,
)  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(9)
W1 = RNG.integers(-3, 4, (4, 2, 3, 3)).astype(np.float32)
B1 = RNG.integers(-3, 4, 4).astype(np.float32)
W2 = RNG.integers(-3, 4, (2, 4, 1, 1)).astype(np.float32)
SHAPE = (1, 2, 6, 7)
CASES = {}


def case(function):
    """Registers a case. `function` returns a model and how to run it.

    `shape`, `shapes`: of the inputs; `options`: of `run`; `for_onnxruntime`: a model of the same
    network that onnxruntime takes; `refused`: a word of the message; `unchecked`: onnx.checker
    refuses the model too; `renamed`: names of outputs that differ here, by position.
    """
    CASES[function.__name__] = function
    return function


ANY = [None] * 4


def floats(name, shape=ANY):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def tensors(**arrays):
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def conv(x, y, weights, bias=None, **attributes):
    return helper.make_node("Conv", [x, weights] + ([bias] if bias else []), [y], **attributes)


def body(x="x", y="y", w1="w1", b1="b1", w2="w2"):
    """Conv 3x3, Relu, Conv 1x1."""
    return [
        conv(x, "a", w1, b1, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        conv("r", y, w2, kernel_shape=[1, 1]),
    ]


def model(nodes, constants=None, inputs=None, outputs=None, opset=17, ir_version=8, **extra):
    graph = helper.make_graph(
        nodes,
        extra.pop("name", "g"),
        inputs or [floats("x", SHAPE)],
        outputs or [floats("y")],
        tensors(w1=W1, b1=B1, w2=W2) if constants is None else constants,
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, **extra
    )


@case
def dynamic_batch():
    return model(body(), inputs=[floats("x", ["N", 2, 6, 7])]), {
        "shape": (3, 2, 6, 7),
        "options": ["--batch", "3"],
    }


@case
def every_size_dynamic():
    return model(body(), inputs=[floats("x", ["N", 2, None, "width"])]), {
        "options": ["--batch", "1", "--height", "6", "--width", "7"]
    }


@case
def nhwc():
    nodes = [
        helper.make_node("Transpose", ["x"], ["c"], perm=[0, 3, 1, 2]),
        *body("c", "d"),
        helper.make_node("Transpose", ["d"], ["y"], perm=[0, 2, 3, 1]),
    ]
    return model(nodes, inputs=[floats("x", [1, 6, 7, 2])]), {"shape": (1, 6, 7, 2)}


@case
def external_data():
    return model(body()), {"external": True}


@case
def opset_7_ir_3():
    # Before IR version 4 every initializer is an input as well.
    inputs = [
        floats("x", SHAPE),
        floats("w1", W1.shape),
        floats("b1", B1.shape),
        floats("w2", W2.shape),
    ]
    return model(body(), inputs=inputs, opset=7, ir_version=3), {}


@case
def opset_23_ir_11():
    return model(body(), opset=23, ir_version=11), {}


@case
def half_precision_weights_cast_to_float():
    half = tensors(h1=W1.astype(np.float16), h2=W2.astype(np.float16), b1=B1)
    casts = [helper.make_node("Cast", [f"h{n}"], [f"w{n}"], to=TensorProto.FLOAT) for n in (1, 2)]
    return model([*casts, *body()], half), {}


@case
def double_weights_cast_to_float():
    double = tensors(h1=W1.astype(np.float64), w2=W2, b1=B1)
    return (
        model([helper.make_node("Cast", ["h1"], ["w1"], to=TensorProto.FLOAT), *body()], double),
        {},
    )


@case
def weights_dequantised():
    quantised = tensors(q1=W1.astype(np.int8), w2=W2, b1=B1, scale=np.float32(0.5), zero=np.int8(0))
    return (
        model(
            [helper.make_node("DequantizeLinear", ["q1", "scale", "zero"], ["w1"]), *body()],
            quantised,
        ),
        {},
    )


@case
def weights_dequantised_by_channel():
    quantised = tensors(
        q1=W1.astype(np.int8),
        q2=(W2 + 128).astype(np.uint8),
        b1=B1,
        s1=np.float32([0.5, 2, 1, 0.25]),
        s2=np.float32([3, 0.125]),
        z2=np.uint8([128, 127]),
    )
    nodes = [
        helper.make_node("DequantizeLinear", ["q1", "s1"], ["w1"], axis=0),
        helper.make_node("DequantizeLinear", ["q2", "s2", "z2"], ["w2"], axis=0),
    ]
    return model([*nodes, *body()], quantised), {}


@case
def integer_weights_cast_to_float():
    constants = tensors(q1=W1.astype(np.int8), q2=(W2 + 3).astype(np.uint8), i1=B1.astype(np.int16))
    casts = [
        helper.make_node("Cast", [old], [new], to=TensorProto.FLOAT)
        for old, new in (("q1", "w1"), ("q2", "w2"), ("i1", "b1"))
    ]
    return model([*casts, *body()], constants), {}


@case
def quantised_and_back():
    constants = tensors(w1=W1, w2=W2, b1=B1, scale=np.float32(0.5), zero=np.uint8(128))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantise"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        *body("d"),
    ]
    return model(nodes, constants), {"refused": "QuantizeLinear"}


@case
def names_with_spaces_slashes_and_letters():
    names = {
        "x": "serving default/input image:0",
        "y": "StatefulPartitionedCall/Ausgabe für Bilder",
        "w1": "模型/卷积/weight",
        "b1": " ",
        "w2": "w=2",
        "a": "a\\b",
        "r": "'r\"",
    }
    nodes = [
        helper.make_node(
            n.op_type,
            [names[t] for t in n.input],
            [names[t] for t in n.output],
            name=f"/block 1/{n.op_type} ü{k}",
            **{a.name: helper.get_attribute_value(a) for a in n.attribute},
        )
        for k, n in enumerate(body())
    ]
    constants = tensors(**{names["w1"]: W1, names["b1"]: B1, names["w2"]: W2})
    return (
        model(
            nodes, constants, [floats(names["x"], SHAPE)], [floats(names["y"])], name="netz/größe"
        ),
        {},
    )


@case
def one_name_for_all_nodes():
    nodes = body()
    for node in nodes:
        node.name = "node"
    return model(nodes), {"for_onnxruntime": model(body())}  # which refuses it


@case
def no_names_at_all():
    return model(body(), name=" "), {}


@case
def names_that_differ_in_punctuation():
    nodes = body()
    for node, name in zip(nodes, ("conv.1", "conv/1", "conv-1")):
        node.name = name
    return model(nodes), {}


@case
def two_inputs():
    nodes = [*body(y="c"), helper.make_node("Add", ["c", "z"], ["y"])]
    return model(nodes, inputs=[floats("x", SHAPE), floats("z", SHAPE)]), {
        "shapes": {"x": SHAPE, "z": SHAPE}
    }


@case
def inner_tensors_are_outputs():
    return model(body(), outputs=[floats("a"), floats("y"), floats("r")]), {}


@case
def an_input_is_an_output():
    return model(body(), outputs=[floats("y"), floats("x")]), {"renamed": {1: "x_output"}}


@case
def an_output_is_listed_twice():
    return model(body(), outputs=[floats("y"), floats("y")]), {"renamed": {1: "y_output"}}


@case
def an_output_is_constant():
    return model(body(), outputs=[floats("y"), floats("b1", B1.shape)]), {}


@case
def what_nobody_reads():
    constants = tensors(w1=W1, b1=B1, w2=W2, unused=np.ones((5, 5), np.int64))
    return (
        model(
            [
                *body(),
                helper.make_node("Sigmoid", ["r"], ["dead"]),
                helper.make_node("Neg", ["dead"], ["deader"]),
            ],
            constants,
        ),
        {},
    )


@case
def a_dead_branch_of_unsupported_operators():
    # onnxruntime refuses the dead branch; the rest is the network.
    dead = [
        helper.make_node("RandomNormalLike", ["r"], ["noise"], name="noise"),
        helper.make_node("FusedThing", ["noise"], ["lost"], domain="com.vendor"),
        helper.make_node("TopK", ["r", "lost"], ["best", "places"]),
    ]
    net = model([*body(), *dead])
    net.opset_import.append(helper.make_opsetid("com.vendor", 1))
    return net, {"for_onnxruntime": model(body())}


@case
def blocks_of_mobilenet_v3():
    """Depthwise, squeeze-and-excitation, HardSwish as one node and as PyTorch before opset 14."""
    count = iter(range(100))
    constants = {"zero": np.float32(0), "three": np.float32(3), "six": np.float32(6)}
    nodes = []

    def add(operator, *inputs, **attributes):
        output = f"t{next(count)}"
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def convolution(x, z, i, kernel, groups=1):
        name = f"w{next(count)}"
        constants[name] = RNG.normal(0, 1 / kernel, (z, i // groups, kernel, kernel)).astype(
            np.float32
        )
        constants[name + "b"] = RNG.normal(0, 0.5, z).astype(np.float32)
        return add(
            "Conv",
            x,
            name,
            name + "b",
            kernel_shape=[kernel] * 2,
            pads=[kernel // 2] * 4,
            group=groups,
        )

    def block(x, hard_swish):
        wide = hard_swish(convolution(x, 8, 2, 1))
        deep = hard_swish(convolution(wide, 8, 8, 3, 8))
        squeezed = add("Relu", convolution(add("GlobalAveragePool", deep), 4, 8, 1))
        gate = add("HardSigmoid", convolution(squeezed, 8, 4, 1), alpha=1 / 6)
        return add("Add", x, convolution(add("Mul", deep, gate), 2, 8, 1))

    first = block("x", lambda x: add("HardSwish", x))
    last = block(
        first,
        lambda x: add(
            "Div", add("Mul", x, add("Clip", add("Add", x, "three"), "zero", "six")), "six"
        ),
    )
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    return model(nodes, tensors(**constants)), {
        "activations": {"hard_swish": 4, "hard_sigmoid": 2, "relu": 2},
        "scheduled": True,
    }


@case
def an_input_nobody_reads():
    return model(body(), inputs=[floats("x", SHAPE), floats("unused", [3])]), {
        "shapes": {"x": SHAPE, "unused": (3,)}
    }


@case
def weights_shared_by_two_layers():
    nodes = [
        conv("x", "a", "w", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        conv("a", "y", "w", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    return model(nodes, tensors(w=W1[:2])), {}


@case
def weights_from_constant_nodes():
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in (("w1", W1), ("b1", B1), ("w2", W2))
    ]
    return model([*nodes, *body()], []), {}


@case
def weights_as_lists_of_floats():
    lists = [
        helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.flatten().tolist())
        for name, array in (("w1", W1), ("b1", B1), ("w2", W2))
    ]
    return model(body(), lists), {}


@case
def sparse_weights():
    net = model(body(), tensors(b1=B1, w2=W2))
    flat = W1.flatten()
    (places,) = np.nonzero(flat)
    values = numpy_helper.from_array(flat[places], "w1")
    net.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            values, numpy_helper.from_array(places.astype(np.int64), "w1_places"), W1.shape
        )
    )
    return net, {"refused": "sparse", "unchecked": True}


@case
def if_node():
    def branch(name, operator):
        return helper.make_graph(
            [helper.make_node(operator, ["r"], [name])], name, [], [floats(name)]
        )

    nodes = body(y="c") + [
        helper.make_node(
            "If",
            ["condition"],
            ["y"],
            name="choice",
            then_branch=branch("t", "Relu"),
            else_branch=branch("e", "Neg"),
        )
    ]
    return model(
        nodes,
        inputs=[
            floats("x", SHAPE),
            helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
        ],
    ), {"refused": "condition"}


def branch(name, *nodes, constants=()):
    return helper.make_graph(list(nodes), name, [], [floats(nodes[-1].output[0])], list(constants))


@case
def if_on_a_shape():
    """PyTorch's If on an extent, with a second If inside; its branches reuse names from outside."""
    inner = helper.make_node(
        "If",
        ["many"],
        ["chosen"],
        then_branch=branch("then", helper.make_node("Neg", ["c"], ["r"])),
        else_branch=branch("else", helper.make_node("Abs", ["c"], ["r"])),
    )
    scaled = helper.make_node("Mul", ["chosen", "w2"], ["scaled"])
    nodes = [
        *body(y="c"),
        helper.make_node("Shape", ["c"], ["shape"]),
        helper.make_node("Gather", ["shape", "axis"], ["extent"]),
        helper.make_node("Equal", ["extent", "one"], ["is_one"]),
        helper.make_node("Greater", ["extent", "one"], ["many"]),
        helper.make_node(
            "If",
            ["is_one"],
            ["y"],
            then_branch=branch("flat", helper.make_node("Flatten", ["c"], ["s"])),
            else_branch=branch("kept", inner, scaled, constants=tensors(w2=np.float32([[[[2]]]]))),
        ),
    ]
    constants = tensors(w1=W1, b1=B1, w2=W2, axis=np.int64([1]), one=np.int64([1]))
    # onnxruntime refuses branches whose names hide others, so its copy has names of its own.
    for_onnxruntime = model(nodes, constants)
    kept = [a.g for a in for_onnxruntime.graph.node[-1].attribute if a.name == "else_branch"][0]
    kept.initializer[0].name = kept.node[1].input[1] = "two"
    for attribute in kept.node[0].attribute:
        attribute.g.node[0].output[0] = attribute.g.output[0].name = "inner_" + attribute.name
    return model(nodes, constants), {"for_onnxruntime": for_onnxruntime, "unchecked": True}


@case
def clip_by_computed_bounds():
    nodes = [
        *body(y="c"),
        helper.make_node("ReduceMax", ["x"], ["high"], keepdims=0),
        helper.make_node("ReduceMin", ["x"], ["low"], keepdims=0),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ]
    return model(nodes), {}


@case
def weights_that_are_computed():
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"]),
        helper.make_node("Mul", ["w", "mean"], ["w1"]),
        *body(),
    ]
    return model(nodes, tensors(w=W1, b1=B1, w2=W2)), {
        "refused": "is computed when the network runs"
    }


@case
def loop_node():
    loop = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Relu", ["carried"], ["next"]),
        ],
        "loop",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            floats("carried"),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), floats("next")],
    )
    nodes = body(y="c") + [
        helper.make_node("Loop", ["times", "yes", "c"], ["y"], name="again", body=loop)
    ]
    return model(nodes, tensors(w1=W1, b1=B1, w2=W2, times=np.int64(2), yes=np.bool_(True))), {
        "refused": "Loop"
    }


@case
def function_of_the_model():
    function = helper.make_function(
        "here",
        "Twice",
        ["p"],
        ["q"],
        [helper.make_node("Add", ["p", "p"], ["q"])],
        [helper.make_opsetid("", 17)],
    )
    net = model(
        [*body(y="c"), helper.make_node("Twice", ["c"], ["y"], domain="here")], functions=[function]
    )
    net.opset_import.append(helper.make_opsetid("here", 1))
    return net, {"refused": "Twice"}


@case
def foreign_operator():
    net = model(
        [
            *body(y="c"),
            helper.make_node("FusedThing", ["c"], ["y"], domain="com.vendor", name="thing"),
        ]
    )
    net.opset_import.append(helper.make_opsetid("com.vendor", 1))
    return net, {"refused": "FusedThing"}


@case
def half_precision_network():
    """Weights of small integers, so that sums are exact in 16 bits too."""
    half = tensors(**{k: w.astype(np.float16) for k, w in (("w1", W1), ("b1", B1), ("w2", W2))})
    value = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)
        for name, shape in (("x", SHAPE), ("y", ANY))
    ]
    return model(body(), half, value[:1], value[1:]), {}


@case
def casts_to_half_and_back():
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        *body("h", "z", "w1h", "b1h", "w2h"),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    half = {"w1h": W1, "b1h": B1, "w2h": W2}
    return model(nodes, tensors(**{k: w.astype(np.float16) for k, w in half.items()})), {}


def resized_to(value):
    """The network, resized to the two integers of `size`."""
    nodes = [
        *body("x", "b"),
        helper.make_node("Shape", ["b"], ["whole"]),
        helper.make_node("Slice", ["whole", "zero", "two"], ["kept"]),
        helper.make_node("Concat", ["kept", "size"], ["sizes"], axis=0),
        helper.make_node("Resize", ["b", "", "", "sizes"], ["y"], mode="linear"),
    ]
    constants = tensors(w1=W1, b1=B1, w2=W2, zero=np.array([0]), two=np.array([2]), **value)
    return model(nodes, constants, [floats("x", SHAPE)] + (
        [] if value else [helper.make_tensor_value_info("size", TensorProto.INT64, [2])]))


@case
def sizes_are_an_input():
    return resized_to({}), {
        "shapes": {"x": SHAPE},
        "options": ["--integers", "size=9,11"],
        "for_onnxruntime": resized_to({"size": np.array([9, 11])}),
    }


@case
def sizes_are_an_input_not_given():
    return resized_to({}), {"refused": "--integers NAME=N,... gives those of input \"size\""}


@case
def integers_become_floats():
    """INT64 in a graph of floats: the class of each image, added to its map."""
    nodes = [
        helper.make_node("Cast", ["k"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["s"]),
        *body("s", "y"),
    ]
    inputs = [floats("x", SHAPE), helper.make_tensor_value_info("k", TensorProto.INT64, [1, 2, 1, 1])]
    return model(nodes, inputs=inputs), {"shapes": {"x": SHAPE, "k": (1, 2, 1, 1)}}


@case
def batch_of_one_input_only():
    inputs = [floats("x", ["N", 2, 6, 7]), floats("bias", [1, 2, 6, 7])]
    nodes = [helper.make_node("Add", ["x", "bias"], ["s"]), *body("s", "y")]
    return model(nodes, inputs=inputs), {
        "shapes": {"x": (3, 2, 6, 7), "bias": (1, 2, 6, 7)},
        "options": ["--batch", "3"],
    }


def small(name, shape, kind=TensorProto.UINT8):
    return helper.make_tensor_value_info(name, kind, shape)


def cast(x, y, to=TensorProto.FLOAT):
    return helper.make_node("Cast", [x], [y], to=to)


NORMALISE = {"mean": np.float32([120, 100]).reshape(1, 2, 1, 1), "scale": np.float32(1 / 64)}


@case
def picture_of_bytes():
    nodes = [
        cast("p", "f"),
        helper.make_node("Sub", ["f", "mean"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["x"]),
        *body(),
    ]
    return model(nodes, tensors(w1=W1, b1=B1, w2=W2, **NORMALISE), [small("p", SHAPE)]), {
        "shape": SHAPE,
        "scheduled": True,
    }


@case
def picture_of_bytes_channels_last():
    """Bytes are transposed, cut, and reshaped to a shape computed from their own."""
    constants = tensors(
        w1=W1, b1=B1, w2=W2, starts=np.int64([1]), ends=np.int64([7]), axes=np.int64([1])
    )
    nodes = [
        helper.make_node("Slice", ["p", "starts", "ends", "axes"], ["cut"]),
        helper.make_node("Transpose", ["cut"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Shape", ["t"], ["extents"]),
        helper.make_node("Flatten", ["t"], ["flat"]),
        helper.make_node("Reshape", ["flat", "extents"], ["r0"]),
        cast("r0", "x"),
        *body(),
    ]
    return model(nodes, constants, [small("p", [None, 8, 7, 2])]), {"shape": (1, 8, 7, 2)}


@case
def picture_of_bytes_in_and_out():
    """Fractions are truncated; the resulting bytes are transposed before they leave."""
    constants = tensors(
        w1=W1, b1=B1, w2=W2, low=np.float32(0), high=np.float32(255), half=np.float32(1 / 256)
    )
    nodes = [
        cast("p", "x"),
        *body(y="large"),
        helper.make_node("Mul", ["large", "half"], ["small"]),
        helper.make_node("Clip", ["small", "low", "high"], ["c"]),
        cast("c", "b", TensorProto.UINT8),
        helper.make_node("Transpose", ["b"], ["y"], perm=[0, 2, 3, 1]),
    ]
    return model(nodes, constants, [small("p", SHAPE)], [small("y", ANY)]), {"shape": SHAPE}


@case
def bytes_in_windows():
    """A picture run in windows by `run --stream` and whole."""
    constants = tensors(
        w=RNG.integers(-3, 4, (3, 3, 3, 3)).astype(np.float32),
        scale=np.float32(1 / 32),
        low=np.float32(0),
        high=np.float32(255),
    )
    nodes = [
        cast("p", "x"),
        conv("x", "a", "w", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["a", "scale"], ["s"]),
        helper.make_node("Clip", ["s", "low", "high"], ["c"]),
    ]
    return model(
        [*nodes, cast("c", "y", TensorProto.UINT8)],
        constants,
        [small("p", [1, 3, "height", "width"])],
        [small("y", ANY)],
    ), {"shape": (1, 3, 90, 110), "streamed": True}


@case
def signed_bytes_beside_floats():
    nodes = [
        helper.make_node("Identity", ["q"], ["q1"]),
        helper.make_node("CastLike", ["q1", "z"], ["f"]),
        helper.make_node("Add", ["f", "z"], ["x"]),
        *body(),
    ]
    return model(nodes, None, [small("q", SHAPE, TensorProto.INT8), floats("z", SHAPE)]), {
        "shapes": {"q": SHAPE, "z": SHAPE}
    }


@case
def bytes_through_a_branch():
    branches = [
        helper.make_graph(
            [helper.make_node("Identity", ["p"], [name])], name, [], [small(name, SHAPE)]
        )
        for name in ("yes", "no")
    ]
    constants = tensors(w1=W1, b1=B1, w2=W2, condition=np.bool_(True))
    nodes = [
        helper.make_node(
            "If", ["condition"], ["chosen"], then_branch=branches[0], else_branch=branches[1]
        ),
        cast("chosen", "x"),
        *body(),
    ]
    return model(nodes, constants, [small("p", SHAPE)]), {"shape": SHAPE}


@case
def sum_of_bytes():
    """The sum would wrap around at 256."""
    nodes = [
        helper.make_node("Add", ["p", "p"], ["twice"], name="wrapping"),
        cast("twice", "x"),
        *body(),
    ]
    return model(nodes, None, [small("p", SHAPE)]), {"refused": "wrapping"}


@case
def sum_of_bytes_after_a_branch():
    branches = [
        helper.make_graph(
            [helper.make_node("Identity", ["p"], [name])], name, [], [small(name, SHAPE)]
        )
        for name in ("yes", "no")
    ]
    nodes = [
        helper.make_node(
            "If", ["condition"], ["chosen"], then_branch=branches[0], else_branch=branches[1]
        ),
        helper.make_node("Mul", ["chosen", "chosen"], ["square"], name="wrapping"),
        cast("square", "x"),
        *body(),
    ]
    return model(
        nodes, tensors(w1=W1, b1=B1, w2=W2, condition=np.bool_(False)), [small("p", SHAPE)]
    ), {"refused": "wrapping"}


@case
def no_shape_at_all():
    return model(body(), inputs=[floats("x", None)]), {"refused": "x", "unchecked": True}


@case
def documents_and_metadata():
    net = model(body(), producer_name="pytorch", producer_version="2.9", doc_string="line\nline")
    helper.set_model_props(net, {"author": "somebody", "stride": "32"})
    for node in net.graph.node:
        node.doc_string = "from\na stack trace"
    return net, {}


@case
def blocks_of_yolo():
    """PyTorch's SiLU (Sigmoid, Mul) and Mish before opset 18 (Softplus, Tanh, Mul), joined."""
    wide = {
        "s1": RNG.normal(0, 0.3, (8, 2, 3, 3)),
        "s2": RNG.normal(0, 0.3, (4, 8, 1, 1)),
        "s3": RNG.normal(0, 0.3, (4, 8, 3, 3)),
        "s4": RNG.normal(0, 0.3, (2, 8, 1, 1)),
    }
    nodes = [
        conv("x", "a", "s1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["as"]),
        helper.make_node("Mul", ["a", "as"], ["b"]),
        conv("b", "c", "s2", kernel_shape=[1, 1]),
        helper.make_node("Softplus", ["c"], ["cs"]),
        helper.make_node("Tanh", ["cs"], ["ct"]),
        helper.make_node("Mul", ["c", "ct"], ["d"]),
        conv("b", "e", "s3", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Elu", ["e"], ["f"], alpha=0.7),
        helper.make_node("Concat", ["d", "f"], ["g"], axis=1),
        conv("g", "h", "s4", kernel_shape=[1, 1]),
        helper.make_node("LeakyRelu", ["h"], ["y"], alpha=0.1),
    ]
    constants = {name: array.astype(np.float32) for name, array in wide.items()}
    return model(nodes, tensors(**constants)), {
        "activations": {"swish": 1, "mish": 1, "elu": 1, "leaky_relu": 1},
        "scheduled": True,
    }


def wrong_activations(program, path, expected):
    """Checks how many layers carry each activation, and that no layer is only an activation."""
    layers = json.loads(
        subprocess.run(
            [program, "info", path, "--json", "-"], capture_output=True, text=True, check=True
        ).stdout
    )["layers"]
    found = collections.Counter(
        layer["activation"] for layer in layers if layer["activation"] != "none"
    )
    alone = [layer["name"] for layer in layers if layer["kind"] == "activation"]
    return (
        f"activations are {dict(found)}, expected {expected}; on their own: {alone}"
        if found != expected or alone
        else ""
    )


def wrong_schedule(program, path, inputs, directory):
    """Explores, validates and compiles the file, and compares the compiled results."""
    front, compiled = (os.path.join(directory, name) for name in ("front", "compiled"))
    for command in (
        ["explore", path, "--max-depth", "3", "--tiles", "pow2", "-o", front],
        ["validate", path, "--schedule", front + "#0"],
        ["compile", path, "--schedule", front + "#0", "-o", compiled],
    ):
        done = subprocess.run([program, *command, "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            found = done.stderr.strip() or done.stdout.strip()[:400]
            return f"{' '.join(command)}: exit {done.returncode}: {found}"
    return compare_model(program, compiled, inputs, directory, for_onnxruntime=path)


def wrong_windows(program, path, picture, directory):
    """Checks that the picture in small windows and at once gives the same file."""
    files = [os.path.join(directory, name) for name in ("in.ppm", "windows.ppm", "whole.ppm")]
    with open(files[0], "wb") as file:
        file.write(
            b"P6 %d %d 255\n" % picture.shape[:0:-1][:2]
            + np.ascontiguousarray(picture[0].transpose(1, 2, 0)).tobytes()
        )
    for options, output in ((["--stream", "--memory", "160KiB"], files[1]), ([], files[2])):
        done = subprocess.run(
            [program, "run", path, "--quiet", "--input", files[0], "--output", output, *options],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            return f"{' '.join(options)}: exit {done.returncode}: {done.stderr.strip()}"
    windows, whole = (open(file, "rb").read() for file in files[1:])
    [expected] = onnxruntime_session(path).run(None, {"p": picture})
    if not whole.endswith(expected[0].transpose(1, 2, 0).tobytes()):
        return "the picture is not onnxruntime's"
    return "" if windows == whole else "the picture in windows differs from the whole one"


def run_case(program, name, directory):
    """What is wrong, or an empty text."""
    net, about = CASES[name]()
    path = os.path.join(directory, "net.onnx")
    if about.get("external"):
        onnx.save(net, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save(net, path)
    if not about.get("unchecked"):
        onnx.checker.check_model(path)
    if "refused" in about:
        done = subprocess.run([program, "info", path], capture_output=True, text=True)
        lines = done.stderr.splitlines()
        if (
            done.returncode != 3
            or len(lines) != 1
            or not lines[0].startswith("laminate: error: ")
            or about["refused"] not in lines[0]
        ):
            found = done.stderr.strip() or done.stdout.strip()[:200]
            wanted = f"expected one line about {about['refused']}, exit 3"
            return f"exit {done.returncode}: {found}; {wanted}"
        return ""
    shapes = about.get("shapes") or {net.graph.input[0].name: about.get("shape", SHAPE)}
    types = {value.name: value.type.tensor_type.elem_type for value in net.graph.input}
    bounds = {
        TensorProto.FLOAT: (-4, 5, np.float32),
        TensorProto.UINT8: (0, 256, np.uint8),
        TensorProto.INT8: (-128, 128, np.int8),
        TensorProto.FLOAT16: (-4, 5, np.float16),
        TensorProto.INT64: (-4, 5, np.int64),
    }
    inputs = {}
    for tensor, shape in shapes.items():
        low, high, dtype = bounds[types[tensor]]
        inputs[tensor] = RNG.integers(low, high, shape).astype(dtype)
    accepted = None
    if "for_onnxruntime" in about:
        accepted = os.path.join(directory, "accepted.onnx")
        onnx.save(about["for_onnxruntime"], accepted)
    wrong = compare_model(
        program,
        path,
        inputs,
        directory,
        about.get("options", []),
        for_onnxruntime=accepted,
        renamed=about.get("renamed"),
    )
    if not wrong and "activations" in about:
        wrong = wrong_activations(program, path, about["activations"])
    if not wrong and about.get("streamed"):
        wrong = wrong_windows(program, path, inputs["p"], directory)
    if not wrong and about.get("scheduled"):
        wrong = wrong_schedule(program, path, inputs, directory)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.cases or CASES:
        with tempfile.TemporaryDirectory() as directory:
            try:
                wrong = run_case(arguments.laminate, name, directory)
            except SystemExit as stopped:  # raised by compare.py if the program fails
                wrong = str(stopped)
            if wrong:
                failed += 1
                print(f"{name}: {wrong}", flush=True)
    print(
        f"{len(arguments.cases or CASES) - failed} of {len(arguments.cases or CASES)} as expected"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
