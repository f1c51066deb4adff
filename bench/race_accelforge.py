"""Races `laminate explore` against AccelForge's fused mapper on chains of convolutions, by external
traffic and time.

  python3.12 -m venv DIR && DIR/bin/pip install --no-deps -r bench/requirements-accelforge.txt
  DIR/bin/python bench/race_accelforge.py --laminate build/bin/laminate [--chain NAME]...
                 [--kib 256,512,1024] [--time] [--json FILE]

Run it by hand: AccelForge needs Python 3.12 or newer, and minutes per chain and capacity. Neither
the product nor its tests need it.

Both solve the same problem: convolutions without padding on 8-bit words, an external memory whose
every access costs 1, and an internal memory of the given number of words that costs nothing and
that every operand passes through. AccelForge runs its mapper with default options for the metric
energy, which then is the traffic; the detailed evaluation of the winner is left out. Laminate is
asked the same (--objective accesses) unless other options are given, such as --option=--axes
--option=accesses,memory,macs for a front. It counts in elements, so its --memory is four bytes per
word. Both use one thread. Seconds are CPU time, so a busy machine does not matter.

With --time each makes a front: AccelForge of energy and latency, with one multiplication per cycle,
Laminate of accesses, memory and time on a processor. The traffic compared is the least of each.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

# Input channels, rows, columns; then (output channels, kernel) of each layer.
CHAINS = {
    "l3net": (3, 22, 22, [(4, 3), (4, 3), (4, 3)]),
    "l3net-4k": (3, 2160, 3840, [(4, 3), (4, 3), (4, 3)]),
    "vgg-pair": (64, 116, 116, [(128, 3), (128, 3)]),
    "fsrcnn-head": (1, 544, 964, [(56, 5), (12, 1), (12, 3)]),
    "fsrcnn": (1, 568, 988, [(56, 5), (12, 1), (12, 3), (12, 3), (12, 3), (12, 3), (56, 1), (1, 9)]),
}

ARCHITECTURE = """
arch:
  nodes:
  - !Memory
    name: External
    size: inf
    leak_power: 0
    area: 0
    tensors: {{keep: ~Intermediates, may_keep: All}}
    actions:
    - {{name: read, energy: 1, throughput: inf, latency: 0}}
    - {{name: write, energy: 1, throughput: inf, latency: 0}}
  - !Memory
    name: Internal
    size: {bits}
    leak_power: 0
    area: 0
    tensors: {{keep: All}}
    actions:
    - {{name: read, energy: 0, throughput: inf, latency: 0}}
    - {{name: write, energy: 0, throughput: inf, latency: 0}}
  - !Compute
    name: MAC
    leak_power: 0
    area: 0
    actions:
    - {{name: compute, energy: 0, throughput: 1, latency: 0}}
"""


def shapes(chain):
    """Channels, rows, columns of every tensor."""
    channels, rows, columns, layers = chain
    found = [(channels, rows, columns)]
    for out, kernel in layers:
        rows, columns = rows - kernel + 1, columns - kernel + 1
        found.append((out, rows, columns))
    return found


def compulsory(chain):
    """Words that cross when the whole chain is fused: input, weights, output, once each."""
    tensors = shapes(chain)
    weights = sum(tensors[k][0] * out * kernel * kernel for k, (out, kernel) in enumerate(chain[3]))
    return sum(c * y * x for c, y, x in (tensors[0], tensors[-1])) + weights


def workload(chain):
    """The chain as AccelForge's YAML: tensor A<k> of ranks C<k>, P<k> (rows), Q<k> (columns)."""
    lines = ["workload:", "  rank_sizes:"]
    for k, (c, y, x) in enumerate(shapes(chain)):
        lines += [f"    C{k}: {c}", f"    P{k}: {y}", f"    Q{k}: {x}"]
    lines += ["  bits_per_value: {All: 8}", "  einsums:"]
    for k, (_, kernel) in enumerate(chain[3]):
        row, column = f"p{k + 1}", f"q{k + 1}"
        if kernel > 1:
            row, column = f"{row} + r{k}", f"{column} + s{k}"
        taps = f", r{k}, s{k}" if kernel > 1 else ""
        lines += [f"  - name: conv{k + 1}", "    tensor_accesses:",
                  f"    - {{name: A{k}, projection: {{C{k}: c{k}, P{k}: {row}, Q{k}: {column}}}}}",
                  f"    - {{name: W{k + 1}, projection: [c{k}, c{k + 1}{taps}]}}",
                  f"    - {{name: A{k + 1}, projection: [c{k + 1}, p{k + 1}, q{k + 1}], output: True}}",
                  f"    renames: {{input: A{k}, weight: W{k + 1}, output: A{k + 1}}}"]
        if kernel > 1:
            lines.append(f"    iteration_space_shape: [0 <= r{k} < {kernel}, 0 <= s{k} < {kernel}]")
    return "\n".join(lines) + "\n"


def accelforge(chain, words, with_time):
    import accelforge
    from accelforge.frontend.spec import Spec
    from accelforge.mapper import Metrics
    from accelforge.mapper.FFM.main import map_workload_to_arch

    accelforge.set_n_parallel_jobs(1)
    with tempfile.TemporaryDirectory() as directory:
        files = {"arch.yaml": ARCHITECTURE.format(bits=8 * words), "workload.yaml": workload(chain)}
        for name, text in files.items():
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)
        spec = Spec.from_yaml(*(os.path.join(directory, name) for name in files))
    spec.mapper.metrics = Metrics.ENERGY | Metrics.LATENCY if with_time else Metrics.ENERGY
    begin = time.process_time()
    mappings = map_workload_to_arch(spec, print_progress=False, eval_in_detail=False)
    return float(mappings.data["Total<SEP>energy"].min()) / 8, time.process_time() - begin


def write_onnx(chain, path):
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    tensors = shapes(chain)
    values = [helper.make_tensor_value_info(f"A{k}", TensorProto.FLOAT, [1, *tensors[k]])
              for k in (0, len(tensors) - 1)]
    nodes, weights = [], []
    for k, (out, kernel) in enumerate(chain[3]):
        ones = numpy.ones((out, tensors[k][0], kernel, kernel), numpy.float32)
        weights.append(numpy_helper.from_array(ones, f"W{k + 1}"))
        nodes.append(helper.make_node("Conv", [f"A{k}", f"W{k + 1}"], [f"A{k + 1}"],
                                      name=f"conv{k + 1}"))
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def laminate(program, chain, words, with_time, options):
    if not options:
        options = ["--axes", "accesses,memory,time"] if with_time else ["--objective", "accesses"]
    with tempfile.TemporaryDirectory() as directory:
        net = os.path.join(directory, "chain.onnx")
        write_onnx(chain, net)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([program, "explore", net, "-o", os.path.join(directory, "front"),
                              "--memory", str(4 * words),
                              "--threads", "1", "-q", "--json", "-", *options],
                             stdout=subprocess.PIPE, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    points = json.loads(run.stdout)["points"]
    best = min(points, key=lambda point: point["accesses_elements"])
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return best["accesses_elements"], best["macs"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--chain", action="append", choices=CHAINS, help="default: all")
    parser.add_argument("--kib", default="256,512,1024", help="capacities in KiB of 8-bit words")
    parser.add_argument("--time", action="store_true", help="fronts with time")
    parser.add_argument("--option", action="append", default=[], help="passed on to laminate explore")
    parser.add_argument("--only-laminate", action="store_true", help="leave AccelForge out")
    parser.add_argument("--json", help="file for the rows")
    arguments = parser.parse_args()

    rows = []
    print(f"{'chain':12} {'KiB':>5} {'compulsory':>13} {'accelforge':>13} {'CPU s':>8} "
          f"{'laminate':>13} {'CPU s':>8}", flush=True)
    for name in arguments.chain or CHAINS:
        for kib in map(int, arguments.kib.split(",")):
            chain, words = CHAINS[name], 1024 * kib
            row = {"chain": name, "words": words, "with_time": arguments.time,
                   "compulsory": compulsory(chain)}
            row["laminate"], row["laminate_macs"], row["laminate_s"] = laminate(
                arguments.laminate, chain, words, arguments.time, arguments.option)
            row["accelforge"], row["accelforge_s"] = None, None
            theirs = f"{'-':>13} {'-':>8}"
            if not arguments.only_laminate:
                row["accelforge"], row["accelforge_s"] = accelforge(
                    chain, words, arguments.time)
                theirs = f"{row['accelforge']:13,.0f} {row['accelforge_s']:8.1f}"
            rows.append(row)
            print(f"{name:12} {kib:5} {row['compulsory']:13,} {theirs} {row['laminate']:13,} "
                  f"{row['laminate_s']:8.2f}", flush=True)
            if row["accelforge"] is not None and row["laminate"] > row["accelforge"]:
                sys.exit(f"{name}, {kib} KiB: laminate moves more")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"schema": "laminate.accelforge", "version": 1, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
