"""Laminate as a backend of the onnx package: onnx.backend.base.Backend.

import onnx, laminate.onnx_backend as backend
[y] = backend.prepare(onnx.load("net.onnx")).run([x])
[y] = backend.run_node(helper.make_node("Conv", ["x", "w"], ["y"]), [x, w])
"""

import numpy
import onnx
from onnx.backend.base import Backend, BackendRep

from . import _program, _verbs


class LaminateRep(BackendRep):
    """A compiled network. run() takes arrays in the order of the model's inputs."""

    def __init__(self, network):
        self.network = network

    def run(self, inputs, **_):
        inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        return tuple(self.network.run(*inputs))


class LaminateBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        """options: those of laminate.compile(), e.g. memory="256KiB", height=540."""
        if not cls.supports_device(device):
            raise _program.UsageError(f"device {device}: expected CPU")
        onnx.checker.check_model(model)
        return LaminateRep(_verbs.compile(model, **options))

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, opset_version=23, **options):
        """Runs one operator as a network: the first array is its input, the others are constants.

        outputs_info: (type, shape) of each output; without it onnx infers them.
        """
        names = [name for name in node.input if name]
        if not inputs or len(inputs) != len(names):
            raise _program.UsageError(
                f"run_node: found {len(inputs)} arrays, expected {len(names)}, at least one"
            )
        arrays = [numpy.asarray(array) for array in inputs]
        infos = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        if outputs_info is not None:
            infos = [
                onnx.helper.make_tensor_value_info(
                    info.name, onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(kind)), shape
                )
                for info, (kind, shape) in zip(infos, outputs_info)
            ]
        graph = onnx.helper.make_graph(
            [node],
            node.op_type,
            [
                onnx.helper.make_tensor_value_info(
                    names[0], onnx.helper.np_dtype_to_tensor_dtype(arrays[0].dtype), arrays[0].shape
                )
            ],
            infos,
            [
                onnx.numpy_helper.from_array(array, name)
                for name, array in zip(names[1:], arrays[1:])
            ],
        )
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", opset_version)], ir_version=10
        )
        return cls.run_model(
            onnx.shape_inference.infer_shapes(model), arrays[:1], device, **options
        )

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model, device="CPU", **options):
        """Whether the importer accepts the model. Compiles nothing."""
        if not cls.supports_device(device):
            return False
        try:
            with _program.network_argument(model) as name:
                _program.call("info", name, **options)
        except _program.InputError:
            return False
        return True


prepare = LaminateBackend.prepare
run_model = LaminateBackend.run_model
run_node = LaminateBackend.run_node
supports_device = LaminateBackend.supports_device
is_compatible = LaminateBackend.is_compatible
