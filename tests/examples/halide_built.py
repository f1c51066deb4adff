"""Printed Halide generators, built by the two commands of docs/halide.md with each set of their
parameters. What they compute is what `laminate run` computes.

  halide_built.py LAMINATE CXX NETWORK SCHEDULE [--params "lanes=8 threads=true"]... [--closest]

Runs in a Python with halide and numpy. NETWORK has one input and one output, and every layer of it
is in a group. The functions are called from here, with arrays aligned as C++ aligns floats.
"""

import argparse
import ctypes
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy


class Dimension(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("min", "extent", "stride", "flags")]


class HalideBuffer(ctypes.Structure):
    """halide_buffer_t of Halide 21."""

    _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p),
                ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("dimensions", ctypes.c_int32), ("dim", ctypes.POINTER(Dimension)),
                ("padding", ctypes.c_void_p)]


def unaligned(shape):
    """An array that begins one float behind a whole cache line."""
    count = int(numpy.prod(shape))
    memory = numpy.full(count + 32, numpy.nan, numpy.float32)
    begin = -(memory.ctypes.data // 4) % 16 + 1
    return memory[begin:begin + count].reshape(shape)


def buffer_of(array):
    dims = (Dimension * array.ndim)()
    stride = 1
    for dim, extent in zip(dims, reversed(array.shape)):
        dim.min, dim.extent, dim.stride = 0, extent, stride
        stride *= extent
    return HalideBuffer(host=array.ctypes.data, code=2, bits=32, lanes=1, dimensions=array.ndim,
                        dim=dims)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
                 f"ended with {done.returncode}")
    return done.stdout


def compiled(options, folder, generator):
    """The program that emits the generators' functions: the first command."""
    home = importlib.util.find_spec("halide").submodule_search_locations[0]
    (folder / "net.cpp").write_text(generator)
    run([options.cxx, "-std=c++17", folder / "net.cpp", f"{home}/lib64/libHalide_GenGen.a",
         f"-I{home}/include", f"-L{home}/lib64", "-lHalide", f"-Wl,-rpath,{home}/lib64", "-o",
         folder / "net"])
    return folder / "net"


def library_of(options, folder, names, params):
    """The functions with these parameters, and their arguments' names: the second command."""
    folder.mkdir()
    arguments = {}
    for name in names:
        run([folder.parent / "net", "-g", name, "-e", "static_library,h", "-o", folder,
             "target=host", *params])
        declared = re.search(rf"^int {name}\((.*)\);", (folder / f"{name}.h").read_text(), re.M)
        arguments[name] = re.findall(r"\*_(\w+)_buffer", declared[1])
    run([options.cxx, "-shared", "-o", folder / "net.so", "-Wl,--whole-archive",
         *(folder / f"{name}.a" for name in names), "-Wl,--no-whole-archive", "-lpthread", "-ldl",
         "-Wl,--allow-multiple-definition"])
    return ctypes.CDLL(str(folder / "net.so")), arguments


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laminate")
    parser.add_argument("cxx")
    parser.add_argument("network")
    parser.add_argument("schedule")
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--closest", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        generator = run([options.laminate, "show", options.schedule, "--net", options.network,
                         "--halide", "--name", "net", "--constants", folder / "constants",
                         *(["--closest"] if options.closest else [])])
        names = re.findall(r"HALIDE_REGISTER_GENERATOR\(\w+, (\w+)\)", generator)
        shape = json.loads(run([options.laminate, "info", options.network, "--json", "-"])
                           )["inputs"][0]["dims"]
        picture = numpy.random.default_rng(5).random(shape, dtype=numpy.float32)
        numpy.save(folder / "input.npy", picture)
        run([options.laminate, "run", options.network, "--schedule", options.schedule, "--input",
             folder / "input.npy", "--output", folder / "expected.npy", "--quiet"])
        expected = numpy.load(folder / "expected.npy")
        compiled(options, folder, generator)
        for params in options.params or [""]:
            functions, arguments = library_of(options, folder / f"built{params}".replace(" ", "_"),
                                              names, params.split())
            made = computed(functions, arguments, generator, folder / "constants", picture)
            made = made.reshape(expected.shape)
            if not numpy.allclose(made, expected, rtol=1e-4, atol=1e-5 * numpy.abs(expected).max()):
                sys.exit(f"{options.network} {options.schedule} {params}: differs by "
                         f"{numpy.abs(made - expected).max():.3g}, NaN {numpy.isnan(made).sum()}")
        print(f"{len(names)} generators, {len(options.params or [''])} sets of parameters: equal")


def computed(functions, arguments, generator, constants, picture):
    """The last function's output."""
    tensors = {path.stem: numpy.load(path) for path in constants.glob("*.npy")}
    for name, names in arguments.items():
        arrays = []
        for argument in names[:-1]:
            value = tensors.get(argument, picture[0])
            arrays.append(unaligned(value.shape))
            arrays[-1][...] = value
        extents = re.search(rf"Output<.*> {names[-1]}{{.*// x, y, z: (\d+) x (\d+) x (\d+)",
                            generator)
        arrays.append(unaligned([int(n) for n in reversed(extents.groups())]))
        buffers = [buffer_of(array) for array in arrays]
        status = getattr(functions, name)(*(ctypes.byref(b) for b in buffers))
        if status != 0:
            sys.exit(f"{name} returns {status}")
        tensors[names[-1]] = arrays[-1]
    return arrays[-1]


if __name__ == "__main__":
    main()
