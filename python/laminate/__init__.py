"""Laminate from Python: fused convolutional networks on NumPy arrays.

    import laminate
    front = laminate.explore("net.onnx", max_depth=6)  # schedules by accesses, memory and work
    with laminate.compile("net.onnx", memory="256KiB") as net:
        [y] = net.run(x)  # float32 arrays of the shapes of net.inputs
    laminate.validate("net.onnx", random=50)  # model = walker = generated code

`net` is a file name, a zoo name ("zoo:resnet18"), an onnx.ModelProto or, where it makes sense, a
compiled directory. Keyword arguments are the options of `laminate VERB --help`: max_depth=6 is
--max-depth 6, True is a flag, a list repeats the option, None leaves it out.
"""

from ._program import (
    ComparisonFailed,
    Error,
    Infeasible,
    InputError,
    UsageError,
    call,
    find_program,
)
from ._runtime import Network, Tensor
from ._verbs import Front, Point, compile, explore, open, run, validate

__all__ = [
    "ComparisonFailed",
    "Error",
    "Front",
    "Infeasible",
    "InputError",
    "Network",
    "Point",
    "Tensor",
    "UsageError",
    "call",
    "compile",
    "explore",
    "find_program",
    "open",
    "run",
    "validate",
]
