"""Runs a network in float64 by onnx's reference evaluator, as the witness of the accuracy that
peers.py prints. Its convolutions are replaced by sums over the taps of the kernel, one product of
matrices each, because the evaluator's own copy every window and take minutes on pictures."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv import Conv as ReferenceConv
from onnx.reference.ops.op_conv_transpose import ConvTranspose as ReferenceConvTranspose


def tap_products(matrix, values):
    """sum over c of matrix[g, m, c] values[n, g, c, y, x], as [n, g, m, y, x]. Strided matrices would
    not go to BLAS, so both are copied."""
    n, groups, channels, height, width = values.shape
    pixels = np.ascontiguousarray(values).reshape(n, groups, channels, height * width)
    return (np.ascontiguousarray(matrix) @ pixels).reshape(n, groups, matrix.shape[1], height, width)


class Conv(OpRun):
    """Of pictures with explicit padding; onnx's own otherwise."""

    op_domain = ""

    def _run(self, x, w, b=None, **attributes):
        if x.ndim != 4 or attributes["auto_pad"] not in (None, "NOTSET"):
            return ReferenceConv._run(self, x, w, b, **attributes)
        (sy, sx), (dy, dx) = attributes["strides"] or (1, 1), attributes["dilations"] or (1, 1)
        top, left, bottom, right = attributes["pads"] or (0, 0, 0, 0)
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        height, width = ((size - d * (k - 1) - 1) // s + 1 for size, d, k, s in
                         zip(padded.shape[2:], (dy, dx), w.shape[2:], (sy, sx)))
        groups = attributes["group"] or 1
        padded = padded.reshape(x.shape[0], groups, -1, *padded.shape[2:])
        w = w.reshape(groups, -1, *w.shape[1:])
        sums = 0
        for ky, kx in np.ndindex(w.shape[-2:]):
            window = padded[..., ky * dy:ky * dy + (height - 1) * sy + 1:sy,
                            kx * dx:kx * dx + (width - 1) * sx + 1:sx]
            sums = sums + tap_products(w[..., ky, kx], window)
        sums = sums.reshape(x.shape[0], -1, height, width)
        return (sums if b is None else sums + b[:, None, None],)


class ConvTranspose(OpRun):
    """Of pictures with explicit padding; onnx's own otherwise."""

    op_domain = ""

    def _run(self, x, w, b=None, **attributes):
        if x.ndim != 4 or attributes["auto_pad"] not in (None, "NOTSET") or attributes["output_shape"]:
            return ReferenceConvTranspose._run(self, x, w, b, **attributes)
        (sy, sx), (dy, dx) = attributes["strides"] or (1, 1), attributes["dilations"] or (1, 1)
        top, left, bottom, right = attributes["pads"] or (0, 0, 0, 0)
        more = attributes["output_padding"] or (0, 0)
        groups = attributes["group"] or 1
        values = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        w = w.reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
        full = np.zeros((x.shape[0], groups, w.shape[1],
                         *(s * (size - 1) + d * (k - 1) + 1 + extra for size, s, d, k, extra in
                           zip(x.shape[2:], (sy, sx), (dy, dx), w.shape[3:], more))))
        for ky, kx in np.ndindex(w.shape[-2:]):
            full[..., ky * dy:ky * dy + (x.shape[2] - 1) * sy + 1:sy,
                 kx * dx:kx * dx + (x.shape[3] - 1) * sx + 1:sx] += tap_products(w[..., ky, kx], values)
        full = full.reshape(x.shape[0], -1, *full.shape[3:])
        sums = full[:, :, top:full.shape[2] - bottom, left:full.shape[3] - right]
        return (sums if b is None else sums + b[:, None, None],)


class BatchNormalization(OpRun):
    """As networks are run. onnx's own takes versions 9 to 13 with a momentum for training."""

    op_domain = ""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, **_):
        ends = (-1,) + (1,) * (x.ndim - 2)
        factor = scale / np.sqrt(variance + epsilon)
        return (x * factor.reshape(ends) + (bias - mean * factor).reshape(ends),)


def in_float64(model):
    """The model with float64 in place of float32 everywhere, save in bodies of If."""
    attributes = [(node.op_type, attribute) for node in model.graph.node for attribute in node.attribute]
    held = [attribute.t for _, attribute in attributes if attribute.HasField("t")]
    for tensor in [*model.graph.initializer, *held]:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64),
                                                    tensor.name))
    for operator, attribute in attributes:
        if operator == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    for end in [*model.graph.input, *model.graph.output]:
        if end.type.tensor_type.elem_type == TensorProto.FLOAT:
            end.type.tensor_type.elem_type = TensorProto.DOUBLE
    del model.graph.value_info[:]
    return model


def float64_output(path, value):
    """The first output of the network at `path` for `value`, its one input.

    The evaluator's own run() keeps every tensor, gigabytes for pictures; this one drops each behind its
    last reader."""
    evaluator = ReferenceEvaluator(in_float64(onnx.load(path)), new_ops=[Conv, ConvTranspose, BatchNormalization])
    (name,), nodes = evaluator.input_names, evaluator.rt_nodes_
    last_reader = {read: place for place, node in enumerate(nodes) for read in node.input}
    wanted = evaluator.output_names[0]
    known = {"": None, **evaluator.rt_inits_, name: value.astype(np.float64)}
    for place, node in enumerate(nodes):
        context = {"context": known} if node.need_context() else {}
        known.update(zip(node.output, node.run(*(known[read] for read in node.input), **context)))
        for read in node.input:
            if read not in ("", wanted) and last_reader[read] == place:
                known.pop(read, None)
    output = known[wanted]
    if output.dtype != np.float64:
        raise TypeError(f"the output is of {output.dtype}, expected float64")
    return output
