"""Laminate as a backend of the onnx package: onnx.backend.base.Backend.

    import onnx, laminate.onnx_backend as backend
    [y] = backend.prepare(onnx.load("net.onnx")).run([x])
"""

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
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model, device="CPU", **options):
        """Whether the importer takes the model; compiles nothing."""
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
supports_device = LaminateBackend.supports_device
is_compatible = LaminateBackend.is_compatible
