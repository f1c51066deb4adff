"""Printed Halide generators beside Laminate's own kernels: five chains, one thread, the same
schedule for both.

  halide.py --laminate PROGRAM [--cxx g++] [--rounds 7] [--seconds 0.5] [--lanes 16]
            [--machine NAME] [--json FILE]

Runs in a Python with halide, onnx and onnxruntime. Each chain keeps lines: the last layer works on
four rows at a time, and what it reads is kept along the rows. `laminate show --halide` prints the
generator, which is built twice: with `lanes` (its vectorize and unroll directives), and without,
one element at a time. Outputs are compared with onnxruntime's before anything is timed. In each
round every contestant in turn gets a fresh process, which warms up and times some runs, so drift of
the machine meets all alike.

  min, median   over all timed runs of all rounds
  spread        (90th percentile - 10th percentile) / median

FILE is rewritten after each chain. A chain that fails is named there, and the exit status is 1.
"""

import argparse
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

from peers import Failed, described_run, measure_all, run, summary

ROWS = 4  # of the last layer at a time
OURS, HALIDE, SCALAR = "laminate", "Halide", "Halide, element by element"

# name: channels, rows and columns of the input, layers of (output channels, kernel, stride, depthwise)
CHAINS = {
    "two 3x3": (16, 240, 320, [(16, 3, 1, False), (16, 3, 1, False)]),
    "three 3x3": (3, 240, 320, [(16, 3, 1, False), (16, 3, 1, False), (16, 3, 1, False)]),
    "depthwise, 1x1": (32, 112, 112, [(32, 3, 1, True), (64, 1, 1, False)]),
    "bottleneck": (64, 56, 56, [(32, 1, 1, False), (32, 3, 1, False), (64, 1, 1, False)]),
    "stride 2, 3x3": (3, 240, 320, [(16, 5, 2, False), (32, 3, 1, False)]),
}


def model_of(channels, rows, columns, layers):
    """The chain as an ONNX model, and the shape of its output."""
    import numpy
    from onnx import TensorProto, helper, numpy_helper

    random = numpy.random.default_rng(1)
    first = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, rows, columns])
    nodes, constants, name = [], [], "x"
    for number, (out, kernel, stride, depthwise) in enumerate(layers, 1):
        groups = channels if depthwise else 1
        taps = channels // groups * kernel * kernel
        weights = random.standard_normal((out, channels // groups, kernel, kernel))
        weights = (weights * (2 / taps) ** 0.5).astype(numpy.float32)
        constants.append(numpy_helper.from_array(weights, f"w{number}"))
        nodes.append(helper.make_node(
            "Conv", [name, f"w{number}"], [f"c{number}"], f"conv{number}",
            kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"y{number}"]))
        name, channels, rows, columns = f"y{number}", out, -(-rows // stride), -(-columns // stride)
    shape = [1, channels, rows, columns]
    last = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    model = helper.make_model(helper.make_graph(nodes, "net", [first], [last], constants),
                              opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model, shape


def schedule_of(channels, rows, columns, layers):
    """Lines kept along the rows of the last layer, weights resident."""
    sink = f"conv{len(layers)}"
    nests = []
    for number, (out, _, stride, depthwise) in enumerate(layers, 1):
        rows, columns = -(-rows // stride), -(-columns // stride)
        is_last = number == len(layers)
        at = "yo" if is_last else f"{sink}.yo"
        x = f"X root/{at}; " if number == 1 else ""
        y = "Y yo/yo" if is_last else f"Y root/{at}"
        nests.append(f"conv{number}: zo yo xo io | zi yi xi ii n m; tile z{out} "
                     f"y{ROWS if is_last else rows} x{columns} i{1 if depthwise else channels}; "
                     f"{x}W root/root; {y}")
        channels = out
    return "{" + " & ".join(nests) + "}"


# Arguments: the seconds to time, a file for the output, the files of the input and of the weights.
DRIVER = r"""
#include <HalideBuffer.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>
#include "net.h"
using Halide::Runtime::Buffer;
int main(int, char** argv) {
    std::vector<Buffer<float>> arrays{ARRAYS};
    for (size_t n = 0; n + 1 < arrays.size(); ++n) {
        std::ifstream file(argv[n + 3], std::ios::binary);
        file.read(reinterpret_cast<char*>(arrays[n].data()), arrays[n].size_in_bytes());
        if (!file) return 2;
    }
    if (net(ARGUMENTS) != 0) return 1;
    std::ofstream(argv[2], std::ios::binary)
        .write(reinterpret_cast<const char*>(arrays.back().data()), arrays.back().size_in_bytes());
    const double seconds = std::atof(argv[1]);
    for (double spent = 0; spent < seconds;) {
        const auto begin = std::chrono::steady_clock::now();
        if (net(ARGUMENTS) != 0) return 1;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        spent += took.count();
        std::printf("%.6f\n", took.count() * 1e3);
    }
}
"""


def build(options, folder, generator, shapes, lanes):
    """The program that times the generator with so many lanes. Shapes are NumPy's."""

    # Not by import: this file has the package's name.
    home = str(importlib.metadata.distribution("halide").locate_file("halide"))
    folder.mkdir()
    (folder / "net.cpp").write_text(generator)
    arrays = ", ".join(f"Buffer<float>(std::vector<int>{{{', '.join(map(str, shape[::-1]))}}})"
                       for shape in shapes)
    arguments = ", ".join(f"arrays[{n}]" for n in range(len(shapes)))
    (folder / "driver.cpp").write_text(DRIVER.replace("ARRAYS", arrays)
                                       .replace("ARGUMENTS", arguments))
    flags = ["-std=c++17", f"-I{home}/include", f"-I{folder}"]
    run([options.cxx, *flags, str(folder / "net.cpp"), f"{home}/lib64/libHalide_GenGen.a",
         f"-L{home}/lib64", "-lHalide", f"-Wl,-rpath,{home}/lib64", "-o", str(folder / "generator")])
    run([str(folder / "generator"), "-g", "net", "-e", "static_library,h", "-o", str(folder),
         "target=host-no_asserts", f"lanes={lanes}"])
    run([options.cxx, *flags, "-O2", str(folder / "driver.cpp"), str(folder / "net.a"), "-lpthread",
         "-ldl", "-o", str(folder / "driver")])
    return folder / "driver"


def check_equal(name, made, expected):
    import numpy

    span = float(expected.max() - expected.min())
    if not numpy.allclose(made, expected, rtol=1e-3, atol=1e-5 * span):
        error = numpy.abs(made - expected).max()
        raise Failed(f"{name} differs from onnxruntime by {error:.3g} (range {span:.3g})")


def timed(command):
    """A round of a contestant; the program prints a time per line."""
    return {"times_ms": [float(line) for line in run(command).split()], "peak_rss_bytes": None}


def timed_ours(command):
    answer = json.loads(run(command))
    return {"times_ms": answer["fused"]["times_ms"], "peak_rss_bytes": None}


def contestants_of(options, folder, chain, schedule):
    """A function for each contestant that times one round of it, after its output was compared."""
    import numpy
    import onnx
    import onnxruntime

    model, output_shape = model_of(*chain)
    network, input_file = str(folder / "net.onnx"), str(folder / "input.npy")
    onnx.save(model, network)
    value = numpy.random.default_rng(1).uniform(-1, 1, [1, *chain[:3]]).astype(numpy.float32)
    numpy.save(input_file, value)
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": value})[0]

    run([options.laminate, "run", network, "--schedule", schedule, "--input", input_file,
         "--output", str(folder / "ours.npy"), "--quiet"])
    check_equal(OURS, numpy.load(folder / "ours.npy"), expected)
    contestants = {OURS: functools.partial(timed_ours, [
        options.laminate, "bench", network, "--schedule", schedule, "--threads", "1",
        "--seconds", str(options.seconds), "--quiet", "--json", "-"])}

    generator = run([options.laminate, "show", schedule, "--net", network, "--halide", "--name",
                     "net", "--constants", str(folder / "constants")])
    arrays = [value[0]] + [numpy.load(folder / "constants" / f"conv{number}_weights.npy")
                           for number in range(1, len(chain[3]) + 1)]
    files = []
    for number, array in enumerate(arrays):
        files.append(str(folder / f"array{number}"))
        array.tofile(files[-1])
    shapes = [array.shape for array in arrays] + [output_shape[1:]]
    for name, lanes in ((HALIDE, options.lanes), (SCALAR, 0)):
        driver = str(build(options, folder / f"lanes{lanes}", generator, shapes, lanes))
        made = str(folder / "made")
        run([driver, "0", made, *files])
        check_equal(name, numpy.fromfile(made, numpy.float32).reshape(output_shape), expected)
        contestants[name] = functools.partial(timed, [driver, str(options.seconds), made, *files])
    return contestants


def race(options, name, folder):
    schedule = schedule_of(*CHAINS[name])
    contestants = contestants_of(options, folder, CHAINS[name], schedule)
    macs = json.loads(run([options.laminate, "info", str(folder / "net.onnx"), "--json", "-"]))["macs"]
    results = {contestant: [] for contestant in contestants}
    for _ in range(options.rounds):
        for contestant, one_round in contestants.items():
            results[contestant].append(one_round())
    rows = {contestant: summary(rounds) for contestant, rounds in results.items()}
    print(f"\n{name}, 1 thread, {macs / 1e6:.0f} M MACs, {options.rounds} interleaved rounds; outputs equal")
    print(f"{'':28}{'min ms':>10}{'median ms':>11}{'spread':>8}")
    for contestant, row in rows.items():
        print(f"{contestant:28}{row['min_ms']:10.3f}{row['median_ms']:11.3f}{row['spread']:8.1%}", flush=True)
    return {"net": name, "threads": 1, "macs": macs, "rounds": options.rounds, "lanes": options.lanes,
            "schedule": schedule, "contestants": rows}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True, help="the program")
    parser.add_argument("--cxx", default="g++", help="the compiler of generators and drivers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="timed runs per contestant and round")
    parser.add_argument("--lanes", type=int, default=16, help="floats of the generators' vectors")
    parser.add_argument("--machine", help="its name in bench/results/machines.json")
    parser.add_argument("--json")
    options = parser.parse_args()

    def in_scratch(name):
        with tempfile.TemporaryDirectory() as directory:
            return race(options, name, pathlib.Path(directory))

    return measure_all(described_run("laminate.halide", options.machine), "chains", [
        ({"net": name, "threads": 1}, functools.partial(in_scratch, name)) for name in CHAINS],
        options.json)


if __name__ == "__main__":
    sys.exit(main())
