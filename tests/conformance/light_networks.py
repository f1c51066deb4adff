"""Compares `laminate run` with onnxruntime on the light networks of the onnx package.

  light_networks.py --laminate PROGRAM NAME ...

The names are alexnet, densenet121, inception_v1, inception_v2, resnet50, shufflenet, squeezenet,
vgg19 and zfnet512. The package carries these networks without weights (light_*.onnx: IR version 3,
opset 9, weights made by ConstantOfShape nodes). Constant weights make all channels alike and would
hide a wrong channel order, so each value is drawn from a seeded generator, in a range that keeps
activations of order 1 through the depth of the network.

Exit 0: equal; 1: different; 77: onnx or onnxruntime is not installed.
"""

import argparse
import os
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import (
    compare_model,
    onnxruntime_session,
    random_inputs,
)  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

FILES = {"alexnet": "bvlc_alexnet"}


def readers(graph):
    """For each tensor, the operators that read it and the positions of the input."""
    found = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            found.setdefault(name, []).append((node.op_type, position))
    return found


def draw(rng, shape, reader):
    op, position = reader
    if len(shape) >= 2:  # He's initialisation keeps sums at their size through Relu
        fan_in = int(np.prod(shape[1:]))
        return rng.normal(0, np.sqrt(2 / fan_in), shape)
    is_scale = (op == "BatchNormalization" and position in (1, 4)) or op == "Unsqueeze"
    return rng.uniform(0.5, 1.5, shape) if is_scale else rng.uniform(-0.1, 0.1, shape)


def reseeded(path, seed):
    model = onnx.load(path)
    graph = model.graph
    rng = np.random.default_rng(seed)
    known = {tensor.name: tensor for tensor in graph.initializer}
    read_by = readers(graph)
    weights, kept = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            weights.append(
                (
                    node.output[0],
                    [int(extent) for extent in numpy_helper.to_array(known[node.input[0]])],
                )
            )
        else:
            kept.append(node)
    for tensor in graph.initializer:
        if (
            tensor.data_type == onnx.TensorProto.FLOAT
            and np.size(numpy_helper.to_array(tensor)) > 1
        ):
            weights.append((tensor.name, list(tensor.dims)))
    still_read = {name for node in kept for name in node.input}
    replaced = dict(weights)
    initializers = [
        tensor
        for tensor in graph.initializer
        if tensor.name in still_read and tensor.name not in replaced
    ]
    for name, shape in replaced.items():
        initializers.append(
            numpy_helper.from_array(draw(rng, shape, read_by[name][0]).astype(np.float32), name)
        )
    names = {tensor.name for tensor in initializers}
    # Before IR version 4 every initializer is an input as well.
    inputs = [value for value in graph.input if value.name not in known] + [
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in initializers
    ]
    for field, values in (("node", kept), ("initializer", initializers), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    assert len(names) == len(initializers)
    # Compare the input of a softmax: its output may be 1 for one class and 0 for the others.
    if kept[-1].op_type == "Softmax":
        graph.output.append(
            helper.make_tensor_value_info(kept[-1].input[0], onnx.TensorProto.FLOAT, None)
        )
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    light = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    failed = False
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "net.onnx")
            seed = zlib.crc32(name.encode())
            onnx.save(
                reseeded(os.path.join(light, f"light_{FILES.get(name, name)}.onnx"), seed), path
            )
            inputs = random_inputs(onnxruntime_session(path), np.random.default_rng(seed))
            difference = compare_model(arguments.laminate, path, inputs, directory)
            print(f"{name}: {difference or 'equal'}", flush=True)
            failed = failed or bool(difference)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
