"""The reference operators as a Python object: one process of reference_run for many models."""

import os
import subprocess
import tempfile

import numpy as np
import onnx


class Refused(Exception):
    """The importer's message."""


class ReferenceOperators:
    def __init__(self, program):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)
        self.directory = tempfile.TemporaryDirectory()

    def run(self, model, inputs, **sizes):
        """The outputs for a list of arrays, in the order of the model's inputs.

        `model` is a ModelProto or the path of a file; `sizes` are those of symbolic dimensions.
        """
        folder = self.directory.name
        target = os.path.join(folder, "net.onnx")
        if isinstance(model, str):
            os.replace(model, target)
        else:
            onnx.save(model, target)
        for k, value in enumerate(inputs):
            value.astype(np.float32).tofile(os.path.join(folder, f"in{k}.f32"))
        words = [folder, *(f"{name}={extent}" for name, extent in sizes.items())]
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        status, *shapes = self.process.stdout.readline().rstrip("\n").split(" ")
        if status != "ok":
            raise Refused(" ".join(shapes) or f"the process ended with {self.process.poll()}")
        return [
            np.fromfile(os.path.join(folder, f"out{k}.f32"), np.float32).reshape(
                [int(extent) for extent in shape.split("x")]
            )
            for k, shape in enumerate(shapes)
        ]
