"""Node by node: the layers that no group can hold, beside onnxruntime's nodes of the same name.

  nodes.py --bench BUILD/bench/nodes_bench [--threads 2] [--least 0.05] NET...

NET is a name of tests/real/real.py, an .onnx file of fixed sizes, or `node:PATTERN`: the networks of
one node of single_nodes.py whose names match, which become one table of least times and, in
brackets, medians. Layers below --least ms are added up in one line. onnxruntime optimises within
nodes only, so that its profile has the names of the file; a node that it folds or fuses all the same
has no time. Exit 0, or 77 without onnxruntime.
"""

import argparse
import collections
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "real"))
import single_nodes  # noqa: E402
from real import CASES, picture, sizes  # noqa: E402  (exits 77 without its packages)

import numpy  # noqa: E402
import onnxruntime  # noqa: E402


def profile(path, inputs, threads, directory, runs=20):
    """Least and median ms of each of onnxruntime's nodes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(directory, "profile")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    values = {given.name: value for given, value in zip(session.get_inputs(), inputs)}
    for _ in range(runs):
        session.run(None, values)
    times = collections.defaultdict(list)
    with open(session.end_profiling()) as file:
        for event in json.load(file):
            name = event["name"].removesuffix("_kernel_time")
            if event.get("cat") == "Node" and name != event["name"]:
                times[name].append(event["dur"] / 1e3)
    return {name: (min(of_node), statistics.median(of_node)) for name, of_node in times.items()}


def layers(bench, path, shape, threads):
    options = sizes(path, shape)
    words = [f"{name.removeprefix('--')}={value}" for name, value in zip(options[::2], options[1::2])]
    done = subprocess.run([bench, path, str(threads), *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def table_of_single_nodes(bench, pattern, threads, directory):
    print(f"\n{'node':28} {'layers':>6} {'ms':>18} {'theirs':>18} {'times':>14}")
    for name in fnmatch.filter(single_nodes.NODES, pattern):
        path = os.path.join(directory, name + ".onnx")
        inputs = [numpy.resize(numpy.arange(101) * 37 % 101 / 101, dims).astype(numpy.float32)
                  for dims in single_nodes.write(name, path)]  # as nodes_bench has them
        profiled = profile(path, inputs, threads, directory).values()
        theirs, their_median = (sum(column) for column in zip(*profiled))
        done = subprocess.run([bench, path, str(threads)], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{name:28} {done.stderr.strip()}")
            continue
        rows = json.loads(done.stdout)
        ours, our_median = (sum(row[key] for row in rows) for key in ("ms", "median"))
        print(f"{name:28} {len(rows):6} {ours:8.3f} ({our_median:7.3f}) {theirs:8.3f} "
              f"({their_median:7.3f}) {ours / theirs:6.2f} ({our_median / their_median:5.2f})",
              flush=True)


def table(name, rows, theirs, least):
    print(f"\n{name}\n{'node':44} {'does':18} {'output':>16} {'ms':>8} {'theirs':>8} {'times':>6}")
    small = [row for row in rows if row["ms"] < least]
    for row in sorted(rows, key=lambda row: -row["ms"]):
        if row in small:
            continue
        other = theirs.get(row["node"])
        compared = f"{other[0]:8.3f} {row['ms'] / other[0]:6.2f}" if other else ""
        print(f"{(row['node'] or row['layer'])[-44:]:44} {row['does']:18} {row['output']:>16} "
              f"{row['ms']:8.3f} {compared}")
    print(f"{len(rows)} layers, {sum(row['ms'] for row in rows):.3f} ms; "
          f"{len(small)} of them below {least} ms, {sum(row['ms'] for row in small):.3f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.05)
    parser.add_argument("nets", nargs="+")
    arguments = parser.parse_args()
    for net in arguments.nets:
        with tempfile.TemporaryDirectory() as directory:
            if net.startswith("node:"):
                table_of_single_nodes(arguments.bench, net.removeprefix("node:"), arguments.threads,
                                      directory)
                continue
            if net in CASES:
                path, shape = CASES[net].write(directory), CASES[net].shape
            else:
                path = net
                shape = tuple(onnxruntime.InferenceSession(net).get_inputs()[0].shape)
            theirs = {} if path.endswith(".param") else profile(
                path, [picture(shape)], arguments.threads, directory)
            table(net, layers(arguments.bench, path, shape, arguments.threads), theirs,
                  arguments.least)


if __name__ == "__main__":
    main()
