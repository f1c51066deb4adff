"""Printed Halide generators beside Laminate's own kernels: five chains, one thread, the same
schedule for both.

  halide.py --laminate PROGRAM --python PYTHON_WITH_HALIDE
            [--cxx g++] [--rounds 5] [--seconds 0.5] [--lanes 16] [--json FILE]

Each chain keeps lines: the last layer works on four rows at a time, and what it reads is kept along
the rows. `laminate show --halide` prints the generator, which is built with `lanes` (its vectorize
and unroll directives) and without. Rounds alternate between the contestants, so that drift of the
machine meets all alike. `laminate bench` times ours with the same schedule.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROWS = 4  # of the last layer at a time


def chains():
    """name: (channels, rows, columns of the input, layers of (output channels, kernel, stride, depthwise))."""
    return {
        "two 3x3": (16, 240, 320, [(16, 3, 1, False), (16, 3, 1, False)]),
        "three 3x3": (3, 240, 320, [(16, 3, 1, False), (16, 3, 1, False), (16, 3, 1, False)]),
        "depthwise, 1x1": (32, 112, 112, [(32, 3, 1, True), (64, 1, 1, False)]),
        "bottleneck": (64, 56, 56, [(32, 1, 1, False), (32, 3, 1, False), (64, 1, 1, False)]),
        "stride 2, 3x3": (3, 240, 320, [(16, 5, 2, False), (32, 3, 1, False)]),
    }


def write_network(path, channels, rows, columns, layers):
    import numpy
    import onnx
    from onnx import helper, numpy_helper

    random = numpy.random.default_rng(1)
    nodes, constants, name = [], [], "x"
    for number, (out, kernel, stride, depthwise) in enumerate(layers, 1):
        groups = channels if depthwise else 1
        weights = random.standard_normal(
            (out, channels // groups, kernel, kernel), dtype=numpy.float32
        )
        weights *= (2 / (channels // groups * kernel * kernel)) ** 0.5
        constants.append(numpy_helper.from_array(weights, f"w{number}"))
        pad = kernel // 2
        nodes.append(
            helper.make_node(
                "Conv",
                [name, f"w{number}"],
                [f"c{number}"],
                f"conv{number}",
                kernel_shape=[kernel] * 2,
                strides=[stride] * 2,
                pads=[pad] * 4,
                group=groups,
            )
        )
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"y{number}"]))
        name, channels, rows, columns = f"y{number}", out, -(-rows // stride), -(-columns // stride)
    first = path.stem
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        first,
        [info("x", 1, [1] + shape_of_input[first])],
        [info(name, 1, [1, channels, rows, columns])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)
    return [1, channels, rows, columns]


shape_of_input = {}


def schedule_of(layers, rows, columns, channels):
    """Lines kept along the rows of the last layer, weights resident."""
    sink = f"conv{len(layers)}"
    nests = []
    for number, (out, kernel, stride, depthwise) in enumerate(layers, 1):
        rows, columns = -(-rows // stride), -(-columns // stride)
        inner = 1 if depthwise else channels
        last = number == len(layers)
        at = "yo" if last else f"{sink}.yo"
        x = f"X root/{at}; " if number == 1 else ""
        y = "Y yo/yo" if last else f"Y root/{at}"
        tile = ROWS if last else rows
        nests.append(
            f"conv{number}: zo yo xo io | zi yi xi ii n m; tile z{out} y{tile} x{columns} i{inner}; {x}W root/root; {y}"
        )
        channels = out
    return "{" + " & ".join(nests) + "}"


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
    std::vector<Buffer<float>> b{ BUFFERS };
    for (size_t n = 0; n + 1 < b.size(); ++n)
        for (size_t e = 0; e < b[n].number_of_elements(); ++e)
            b[n].data()[e] = float(int(e * 2654435761u >> 20) % 17 - 8) / 64;
    const double seconds = std::atof(argv[1]);
    net(ARGS);
    double spent = 0;
    while (spent < seconds) {
        const auto begin = std::chrono::steady_clock::now();
        if (net(ARGS) != 0) return 1;
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        spent += took;
        std::printf("%.6f\n", took * 1e3);
    }
}
"""


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build_halide(arguments, halide, folder, network, schedule, buffers, lanes):
    """The program that times the generator."""
    folder.mkdir()
    (folder / "net.cpp").write_text(
        run([arguments.laminate, "show", schedule, "--net", network, "--halide", "--name", "net"])
    )
    flags = ["-std=c++17", f"-I{halide}/include"]
    run(
        [
            arguments.cxx,
            *flags,
            "net.cpp",
            f"{halide}/lib64/libHalide_GenGen.a",
            f"-L{halide}/lib64",
            "-lHalide",
            f"-Wl,-rpath,{halide}/lib64",
            "-o",
            "generator",
        ],
        cwd=folder,
    )
    run(
        [
            "./generator",
            "-g",
            "net",
            "-e",
            "static_library,h",
            "-o",
            ".",
            "target=host-no_asserts",
            f"lanes={lanes}",
        ],
        cwd=folder,
    )
    driver = DRIVER.replace(
        "BUFFERS",
        ", ".join(f"Buffer<float>(std::vector<int>{{{', '.join(map(str, b))}}})" for b in buffers),
    )
    (folder / "driver.cpp").write_text(
        driver.replace("ARGS", ", ".join(f"b[{n}]" for n in range(len(buffers))))
    )
    run(
        [
            arguments.cxx,
            *flags,
            "-O2",
            "-I.",
            "driver.cpp",
            "net.a",
            "-lpthread",
            "-ldl",
            "-o",
            "driver",
        ],
        cwd=folder,
    )
    return folder / "driver"


def times_of(arguments, halide, folder, chain):
    """(schedule, MACs, {contestant: times in ms}) of one chain."""
    channels, rows, columns, layers = chain
    folder.mkdir()
    network = folder / "net.onnx"
    shape_of_input["net"] = [channels, rows, columns]
    output = write_network(network, channels, rows, columns, layers)
    schedule = schedule_of(layers, rows, columns, channels)
    buffers, c = [[columns, rows, channels]], channels
    for out, kernel, _, depthwise in layers:
        buffers.append([kernel, kernel, 1 if depthwise else c, out])
        c = out
    buffers.append(output[:0:-1])
    drivers = {
        "halide": build_halide(
            arguments, halide, folder / "fast", network, schedule, buffers, arguments.lanes
        ),
        "scalar": build_halide(arguments, halide, folder / "scalar", network, schedule, buffers, 0),
    }
    times = {"ours": [], "halide": [], "scalar": []}
    macs = 0
    for _ in range(arguments.rounds):
        ours = json.loads(
            run(
                [
                    arguments.laminate,
                    "bench",
                    network,
                    "--schedule",
                    schedule,
                    "--threads",
                    "1",
                    "--seconds",
                    str(arguments.seconds),
                    "--quiet",
                    "--json",
                    "-",
                ]
            )
        )
        macs = ours["macs"]
        times["ours"] += ours["fused"]["times_ms"]
        for kind, driver in drivers.items():
            times[kind] += map(float, run([driver, str(arguments.seconds)]).split())
    return schedule, macs, times


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--laminate", required=True, type=os.path.abspath)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    halide = run(
        [
            arguments.python,
            "-c",
            "import importlib.util as u; print(u.find_spec('halide').submodule_search_locations[0])",
        ]
    ).strip()
    answer = {
        "date": datetime.date.today().isoformat(),
        "threads": 1,
        "lanes": arguments.lanes,
        "rounds": arguments.rounds,
        "load_before": os.getloadavg()[0],
        "chains": [],
    }
    print(
        f"{'chain':<16}{'MACs':>14}{'ours ms':>10}{'Halide ms':>11}{'times':>7}{'scalar ms':>11}"
        "   least; medians in the file"
    )
    with tempfile.TemporaryDirectory() as directory:
        for name, chain in chains().items():
            folder = pathlib.Path(directory) / name.replace(" ", "_").replace(",", "")
            schedule, macs, times = times_of(arguments, halide, folder, chain)
            entry = {"chain": name, "schedule": schedule, "macs": macs}
            for kind, all_times in times.items():
                entry[kind] = {
                    "runs": len(all_times),
                    "min_ms": min(all_times),
                    "median_ms": statistics.median(all_times),
                }
            answer["chains"].append(entry)
            least = {kind: entry[kind]["min_ms"] for kind in times}
            print(
                f"{name:<16}{macs:>14,}{least['ours']:>10.3f}{least['halide']:>11.3f}"
                f"{least['halide'] / least['ours']:>7.2f}{least['scalar']:>11.2f}",
                flush=True,
            )
            if arguments.json:
                answer["load_after"] = os.getloadavg()[0]
                pathlib.Path(arguments.json).write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()
