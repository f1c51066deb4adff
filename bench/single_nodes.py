"""Networks of one node, of the sizes that nodes have in networks for pictures: what nodes.py times as
`node:NAME`. Operands that networks compute are inputs; those that they hold are constants."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def values(*dims):
    return numpy.random.default_rng(28).random(dims, numpy.float32)


def integers(*list_of_values):
    return numpy.array(list_of_values, numpy.int64)


def places(count, extent):
    return numpy.random.default_rng(28).integers(0, extent, count)


def scalar(value):
    return numpy.array(value, numpy.float32)


MAP, TOKENS = (1, 64, 80, 80), (1, 3136, 96)

# name: (operator, dims of inputs, constants behind them, attributes)
NODES = {
    # elements
    "Sqrt": ("Sqrt", [MAP], [], {}),
    "Exp": ("Exp", [MAP], [], {}),
    "Log": ("Log", [MAP], [], {}),
    "Erf": ("Erf", [MAP], [], {}),
    "Sin": ("Sin", [MAP], [], {}),
    "Cos": ("Cos", [MAP], [], {}),
    "Sign": ("Sign", [MAP], [], {}),
    "Floor": ("Floor", [MAP], [], {}),
    "Round": ("Round", [MAP], [], {}),
    "Reciprocal": ("Reciprocal", [MAP], [], {}),
    "ThresholdedRelu": ("ThresholdedRelu", [MAP], [], {"alpha": 0.5}),
    "Shrink": ("Shrink", [MAP], [], {"lambd": 0.5}),
    "Pow_2": ("Pow", [MAP], [scalar(2)], {}),
    "Pow_3": ("Pow", [MAP], [scalar(3)], {}),
    "Pow_half": ("Pow", [MAP], [scalar(0.5)], {}),
    "Pow_minus_half": ("Pow", [MAP], [scalar(-0.5)], {}),
    "Pow_2.2": ("Pow", [MAP], [scalar(2.2)], {}),
    "Pow_maps": ("Pow", [MAP, MAP], [], {}),
    "Mod": ("Mod", [MAP, MAP], [], {"fmod": 1}),
    "Max_maps": ("Max", [MAP, MAP], [], {}),
    "Min_constant": ("Min", [MAP], [scalar(0.5)], {}),
    "Greater": ("Greater", [MAP], [scalar(0.5)], {}),
    "Equal": ("Equal", [MAP, MAP], [], {}),
    "Where": ("Where", [MAP, MAP], [], {}),
    "Cast": ("Cast", [MAP], [], {"to": TensorProto.INT32}),
    "PRelu_per_element": ("PRelu", [MAP], [values(64, 80, 80)], {}),
    **{f"{operator}_tokens": (operator, [TOKENS], [], {})
       for operator in ("Exp", "Erf", "Sigmoid", "Tanh", "Relu", "LeakyRelu", "Elu", "Selu", "Celu",
                        "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish", "Gelu")},
    "Gelu_tanh_tokens": ("Gelu", [TOKENS], [], {"approximate": "tanh"}),
    "Add_column": ("Add", [TOKENS, (1, 3136, 1)], [], {}),
    "Mul_row": ("Mul", [TOKENS, (1, 1, 96)], [], {}),
    "Sub_outer": ("Sub", [(1, 1, 900, 1), (1, 1, 1, 900)], [], {}),
    "CumSum_last": ("CumSum", [MAP], [numpy.array(3)], {}),
    "CumSum_first": ("CumSum", [MAP], [numpy.array(1)], {}),
    "CumSum_tokens": ("CumSum", [TOKENS], [numpy.array(1)], {}),
    "CumSum_long": ("CumSum", [(1, 4000)], [numpy.array(1)], {}),
    # moving
    "Gather_rows": ("Gather", [(1, 64, 80, 80)], [places(40, 80)], {"axis": 2}),
    "Gather_columns": ("Gather", [(1, 64, 80, 80)], [places(40, 80)], {"axis": 3}),
    "Gather_window": ("Gather", [(169, 12)], [places(49 * 49, 169)], {"axis": 0}),
    "Tile": ("Tile", [(1, 64, 20, 20)], [integers(1, 1, 4, 4)], {}),
    "Expand": ("Expand", [(1, 64, 1, 80)], [integers(1, 64, 80, 80)], {}),
    "Slice_steps": ("Slice", [MAP], [integers(0, 0), integers(80, 80), integers(2, 3),
                                     integers(2, 2)], {}),
    "Slice_reversed": ("Slice", [MAP], [integers(-1), integers(-81), integers(3), integers(-1)],
                       {}),
    "Pad_reflect_5d": ("Pad", [(1, 16, 16, 40, 40)], [integers(0, 0, 1, 1, 1, 0, 0, 1, 1, 1)],
                       {"mode": "reflect"}),
    "Concat_first": ("Concat", [(32, 3136), (32, 3136)], [], {"axis": 0}),
    "Concat_last": ("Concat", [(1, 3136, 48), (1, 3136, 48)], [], {"axis": 2}),
    "Concat_rows": ("Concat", [(1, 64, 40, 80), (1, 64, 40, 80)], [], {"axis": 2}),
    "Concat_columns": ("Concat", [(1, 64, 80, 40), (1, 64, 80, 40)], [], {"axis": 3}),
    "Concat_boxes": ("Concat", [(1, 4, 6300), (1, 80, 6300)], [], {"axis": 1}),
    **{f"Transpose_{''.join(map(str, perm))}": ("Transpose", [dims], [], {"perm": perm})
       for dims, perm in [
           ((1, 3136, 3, 32), [0, 2, 1, 3]), ((1, 3, 3136, 32), [0, 1, 3, 2]), (MAP, [0, 2, 3, 1]),
           (MAP, [0, 3, 1, 2]), (MAP, [0, 3, 2, 1]), (MAP, [0, 1, 3, 2]),
           ((1, 8, 7, 8, 7, 96), [0, 1, 3, 2, 4, 5]), ((1, 96, 8, 7, 8, 7), [0, 2, 4, 3, 5, 1]),
           ((1, 64, 3, 3, 49), [0, 1, 4, 2, 3]), ((49, 64, 3, 32), [2, 0, 1, 3]),
           ((64, 49, 3, 3, 32), [2, 0, 3, 1, 4])]},
    "DepthToSpace_5": ("DepthToSpace", [(1, 75, 40, 40)], [], {"blocksize": 5}),
    "SpaceToDepth_4": ("SpaceToDepth", [(1, 12, 160, 160)], [], {"blocksize": 4}),
    "Resize_nearest_odd": ("Resize", [(1, 32, 40, 40)], [values(0), values(0),
                                                        integers(1, 32, 77, 91)],
                           {"mode": "nearest"}),
    "Resize_linear_odd": ("Resize", [(1, 32, 40, 40)], [values(0), values(0),
                                                       integers(1, 32, 77, 91)],
                          {"mode": "linear"}),
    "Resize_linear_aligned": ("Resize", [(1, 32, 40, 40)], [values(0), values(0),
                                                           integers(1, 32, 80, 80)],
                              {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    "Resize_cubic_odd": ("Resize", [(1, 3, 80, 80)], [values(0), values(0),
                                                     integers(1, 3, 200, 200)], {"mode": "cubic"}),
    "Resize_antialias": ("Resize", [(1, 3, 320, 320)], [values(0), values(0),
                                                       integers(1, 3, 112, 112)],
                         {"mode": "linear", "antialias": 1}),
    "Resize_linear_5d": ("Resize", [(1, 8, 16, 32, 32)], [values(0), scalar([1, 1, 2, 2, 2])],
                         {"mode": "linear"}),
    "Resize_nearest_5d": ("Resize", [(1, 8, 16, 32, 32)], [values(0), scalar([1, 1, 2, 2, 2])],
                          {"mode": "nearest"}),
    # over axes
    **{f"{operator}_{name}": (operator, [dims], [integers(*axes)], {"keepdims": 1})
       for operator in ("ReduceMean", "ReduceSum", "ReduceMin", "ReduceMax", "ReduceL1", "ReduceL2",
                        "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare")
       for name, dims, axes in [("channels", MAP, [1]), ("last", TOKENS, [2]), ("pixels", MAP, [2, 3]),
                                ("columns", MAP, [3]), ("rows", MAP, [2]), ("images", (8, 16, 40, 40),
                                                                          [0, 2, 3])]},
    **{f"{operator}_{axis}": (operator, [MAP], [], {"axis": axis})
       for operator in ("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin")
       for axis in (1, 2, 3)},
    "Softmax_classes": ("Softmax", [(1, 8400, 80)], [], {"axis": 2}),
    "Softmax_attention": ("Softmax", [(1, 12, 197, 197)], [], {"axis": 3}),
    "Softmax_windows": ("Softmax", [(64, 3, 49, 49)], [], {"axis": 3}),
    "ArgMax_classes": ("ArgMax", [(1, 8400, 80)], [], {"axis": 2}),
    "TopK_boxes": ("TopK", [(1, 8400)], [integers(300)], {}),
    "TopK_anchors": ("TopK", [(1, 25200)], [integers(1000)], {}),
    "TopK_classes": ("TopK", [(300, 80)], [integers(5)], {}),
    "TopK_channels": ("TopK", [MAP], [integers(4)], {"axis": 1}),
    "InstanceNormalization": ("InstanceNormalization", [MAP], [values(64), values(64)], {}),
    "LayerNormalization": ("LayerNormalization", [TOKENS], [values(96), values(96)], {}),
    "LayerNormalization_maps": ("LayerNormalization", [(1, 64, 40, 40)],
                                [values(64, 40, 40), values(64, 40, 40)], {"axis": 1}),
    "MeanVarianceNormalization": ("MeanVarianceNormalization", [MAP], [], {}),
    "LpNormalization": ("LpNormalization", [TOKENS], [], {"axis": 2}),
    "LRN": ("LRN", [(1, 64, 55, 55)], [], {"size": 5}),
    # windows
    "Conv_1d": ("Conv", [(1, 64, 1000)], [values(64, 64, 5)], {"pads": [2, 2]}),
    "Conv_3d": ("Conv", [(1, 16, 8, 28, 28)], [values(32, 16, 3, 3, 3)], {"pads": [1] * 6}),
    "Conv_3d_strided": ("Conv", [(1, 3, 8, 112, 112)], [values(32, 3, 3, 7, 7)],
                        {"pads": [1, 3, 3] * 2, "strides": [1, 2, 2]}),
    "Conv_3d_1x1": ("Conv", [(1, 64, 8, 28, 28)], [values(64, 64, 1, 1, 1)], {}),
    "Conv_3d_depthwise": ("Conv", [(1, 64, 8, 28, 28)], [values(64, 1, 3, 3, 3)],
                          {"pads": [1] * 6, "group": 64}),
    "ConvTranspose_1d": ("ConvTranspose", [(1, 64, 250)], [values(64, 32, 8)],
                         {"strides": [4], "pads": [2, 2]}),
    "ConvTranspose_3d": ("ConvTranspose", [(1, 16, 8, 14, 14)], [values(16, 16, 2, 2, 2)],
                         {"strides": [2, 2, 2]}),
    "ConvTranspose_holes": ("ConvTranspose", [(1, 32, 20, 20)], [values(32, 32, 2, 2)],
                            {"strides": [3, 3]}),
    "ConvTranspose_output_padding": ("ConvTranspose", [(1, 32, 20, 20)], [values(32, 32, 3, 3)],
                                     {"strides": [2, 2], "output_padding": [1, 1]}),
    "MaxPool_3d": ("MaxPool", [(1, 32, 8, 56, 56)], [], {"kernel_shape": [2, 2, 2],
                                                        "strides": [2, 2, 2]}),
    "MaxPool_3d_overlap": ("MaxPool", [(1, 32, 8, 56, 56)], [],
                           {"kernel_shape": [3, 3, 3], "pads": [1] * 6, "strides": [2, 2, 2]}),
    "AveragePool_3d": ("AveragePool", [(1, 32, 8, 56, 56)], [], {"kernel_shape": [2, 2, 2],
                                                                "strides": [2, 2, 2]}),
    "MaxPool_1d": ("MaxPool", [(1, 64, 1000)], [], {"kernel_shape": [3], "strides": [2]}),
    "LpPool": ("LpPool", [MAP], [], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "GlobalMaxPool": ("GlobalMaxPool", [MAP], [], {}),
    # points and products
    **{f"GridSample_{mode}_{channels}": ("GridSample", [(1, channels, side, side),
                                                       (1, side, side, 2)], [], {"mode": mode})
       for mode in ("linear", "nearest", "cubic") for channels, side in ((3, 256), (32, 64))},
    "GridSample_border_3": ("GridSample", [(1, 3, 256, 256), (1, 256, 256, 2)], [],
                            {"mode": "linear", "padding_mode": "border"}),
    "GridSample_reflection_3": ("GridSample", [(1, 3, 256, 256), (1, 256, 256, 2)], [],
                                {"mode": "linear", "padding_mode": "reflection"}),
    "MatMul_tokens": ("MatMul", [TOKENS], [values(96, 288)], {}),
    "MatMul_attention": ("MatMul", [(64, 3, 49, 32), (64, 3, 32, 49)], [], {}),
    "MatMul_scores": ("MatMul", [(1, 12, 197, 197), (1, 12, 197, 64)], [], {}),
    "MatMul_vector": ("MatMul", [(1, 1, 1280)], [values(1280, 1000)], {}),
    "MatMul_vectors": ("MatMul", [(64, 1, 256), (64, 256, 49)], [], {}),
    "MatMul_4rows": ("MatMul", [(1, 4, 1280)], [values(1280, 1000)], {}),
    "Gemm_batch": ("Gemm", [(8, 1280)], [values(1280, 1000)], {}),
    "Einsum_scores": ("Einsum", [(1, 3, 784, 32), (1, 3, 784, 32)], [],
                      {"equation": "bhid,bhjd->bhij"}),
    "Einsum_pixels": ("Einsum", [(1, 64, 40, 40), (1, 20, 64)], [],
                      {"equation": "bchw,bnc->bnhw"}),
}


def write(name, path):
    """Writes a network of one node and returns the dims of its inputs."""
    operator, dims, constants, attributes = NODES[name]
    words = [f"x{k}" for k in range(len(dims))]
    inputs = [helper.make_tensor_value_info(word, FLOAT, shape) for word, shape in zip(words, dims)]
    held = [numpy_helper.from_array(value, f"c{k}") for k, value in enumerate(constants)]
    nodes, read = [], words + [value.name for value in held]
    if operator == "Where":
        held.append(numpy_helper.from_array(scalar(0.5), "half"))
        nodes.append(helper.make_node("Greater", [words[0], "half"], ["chosen"], name="compare"))
        read = ["chosen", *words]
    if operator == "Resize" and len(constants) == 2:
        read = [words[0], "", "c1"]
        held = held[1:]
    elif operator == "Resize":
        read = [words[0], "", "", "c2"]
        held = held[2:]
    outputs = ["y", "places"] if operator == "TopK" else ["y"]
    nodes.append(helper.make_node(operator, read, outputs, name=name, **attributes))
    graph = helper.make_graph(nodes, name, inputs, [], held)
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
        data_prop=True)
    model.graph.output.extend(value for value in model.graph.value_info if value.name == "y")
    onnx.save(model, path)
    return dims
