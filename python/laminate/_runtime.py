"""Runs compiled networks on NumPy arrays by the runtime's C API (runtime/laminate.h). No Halide."""

import ctypes
import functools
import os
import threading
from typing import NamedTuple

import numpy

from ._program import Error, InputError, find_runtime

_FLOATS = ctypes.POINTER(ctypes.c_float)


class Tensor(NamedTuple):
    name: str
    shape: tuple
    dtype: str = "float32"  #: or "uint8", "int8", where the network was exported so


@functools.cache
def _library():
    file = find_runtime()
    try:
        library = ctypes.CDLL(file)
    except OSError as error:
        raise Error(
            f"the runtime library was not found beside the program or cannot be loaded: {error}; "
            "in a checkout `make` builds it"
        ) from error
    session, index = ctypes.c_void_p, ctypes.c_int32

    def declare(name, result, *arguments):
        function = getattr(library, "laminate_" + name)
        function.restype, function.argtypes = result, arguments

    declare("open", session, ctypes.c_char_p, ctypes.c_int32)
    declare("close", None, session)
    for side in ("input", "output"):
        declare(side + "_count", ctypes.c_int32, session)
        declare(side + "_name", ctypes.c_char_p, session, index)
        declare(side + "_rank", ctypes.c_int32, session, index)
        declare(side + "_type", ctypes.c_char_p, session, index)
        declare(side + "_dims", ctypes.POINTER(ctypes.c_int64), session, index)
    declare("session_resize", ctypes.c_int32, session, *3 * [ctypes.c_int64])
    declare("arena_bytes", ctypes.c_int64, session)
    declare("run", ctypes.c_int32, session, ctypes.POINTER(_FLOATS), ctypes.POINTER(_FLOATS))
    declare("last_error", ctypes.c_char_p)
    return library


def _last_error():
    return _library().laminate_last_error().decode(errors="replace")


class Network:
    """An opened directory of `laminate compile`. Opening it allocates all memory that runs use.

    inputs, outputs: the network's tensors, with names and shapes (N C H W). Runs of several threads
    wait for each other; several objects may run at once.
    """

    def __init__(self, directory, threads=0):
        """threads: the most to use; 0 for OpenMP's choice."""
        self._lock = threading.Lock()
        self._session = None
        self.directory = os.fspath(directory)
        self._session = _library().laminate_open(os.fsencode(self.directory), threads)
        if not self._session:
            raise InputError(_last_error())
        self.inputs = self._tensors("input")
        self.outputs = self._tensors("output")

    def _tensors(self, side):
        def ask(what, *arguments):
            return getattr(_library(), f"laminate_{side}_{what}")(self._session, *arguments)

        return [
            Tensor(
                ask("name", k).decode(errors="replace"),
                tuple(ask("dims", k)[: ask("rank", k)]),
                ask("type", k).decode(),
            )
            for k in range(ask("count"))
        ]

    def resize(self, height, width, batch=1):
        """The next runs are of inputs of that size. Needs a directory of `compile --any-size`.

        Takes no compiler and less than a millisecond of usual networks. Memory grows with the
        largest size and never shrinks. Raises InputError, and the size stays, for a network of one
        size and for a size that its layers do not allow.
        """
        with self._lock:
            if _library().laminate_session_resize(self._opened(), batch, height, width) != 0:
                raise InputError(_last_error())
            self.inputs = self._tensors("input")
            self.outputs = self._tensors("output")

    @property
    def arena_bytes(self):
        """Bytes that a run uses besides inputs, outputs and constants."""
        return _library().laminate_arena_bytes(self._opened())

    def _opened(self):
        if not self._session:
            raise Error(f"{self.directory}: the network is closed")
        return self._session

    def _input_arrays(self, inputs, named):
        if named:
            if inputs:
                raise TypeError("inputs by position or by name, not both")
            unknown = set(named) - {tensor.name for tensor in self.inputs}
            if unknown:
                raise InputError(
                    f"input {sorted(unknown)[0]}: expected {', '.join(t.name for t in self.inputs)}"
                )
            inputs = [named[tensor.name] for tensor in self.inputs if tensor.name in named]
        if len(inputs) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise InputError(f"found {len(inputs)} inputs, expected {len(self.inputs)}: {names}")
        arrays = []
        for tensor, given in zip(self.inputs, inputs):
            array = numpy.asarray(given)
            if array.dtype.kind not in "fiub":
                raise InputError(f"input {tensor.name}: found {array.dtype}, expected numbers")
            if array.shape != tensor.shape:
                raise InputError(
                    f"input {tensor.name}: found shape {array.shape}, expected {tensor.shape}"
                )
            if tensor.dtype != "float32" and array.dtype.name != tensor.dtype:
                raise InputError(
                    f"input {tensor.name}: found {array.dtype}, expected {tensor.dtype}"
                )
            arrays.append(numpy.ascontiguousarray(array, dtype=numpy.float32))
        return arrays

    def run(self, *inputs, **named):
        """Runs on arrays by position or by the inputs' names.

        Returns a list of arrays of the outputs' types. C-ordered float32 inputs are not copied.
        """
        arrays = self._input_arrays(inputs, named)
        results = [numpy.empty(tensor.shape, dtype=numpy.float32) for tensor in self.outputs]

        def pointers(of):
            return (_FLOATS * len(of))(*[array.ctypes.data_as(_FLOATS) for array in of])

        with self._lock:
            if _library().laminate_run(self._opened(), pointers(arrays), pointers(results)) != 0:
                raise Error(_last_error())
        return [
            result if tensor.dtype == "float32" else result.astype(tensor.dtype)
            for tensor, result in zip(self.outputs, results)
        ]

    def close(self):
        """Closes the network after waiting for a run of another thread."""
        with self._lock:
            if self._session:
                _library().laminate_close(self._session)
                self._session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
