"""Races compiled networks against onnxruntime, and against OpenVINO, PyTorch, ncnn and MNN where they
are installed (bench/requirements-*.txt). runtimes.py runs each of them.

  peers.py --laminate PROGRAM [--net zoo:NAME?...|picture:NAME?...|FILE.onnx]...
           [--height H --width W] [--threads 1,2] [--rounds 7] [--before PROGRAM] [--json FILE]

A picture: network has seeded weights; its name is a function of tests/conformance/picture_networks.py
or of tests/real/seeded.py, its sizes are that function's:
"picture:artcnn?height=1080&width=1920&channels=32", "picture:unet?height=512&width=512&channels=64".
A network must have one input and one output, both FLOAT. For each network and thread count the
contestants are the fused network, the same network compiled layer by layer and, if asked for, by an
older version of the program, onnxruntime and the other runtimes, all in float32. Outputs are
compared with those in float64 (float64.py) before anything is timed. In each round every contestant
in turn gets a fresh process, which warms up and times some runs, so drift of the machine meets all
alike.

  error         the largest difference from the output in float64, as a part of that output's range
  min, median   over all timed runs of all rounds
  spread        (90th percentile - 10th percentile) / median
  memory        growth of the resident set, at its peak, since just before the network was opened,
                when the process already held input and output. It includes weights and working
                memory; the smallest over the rounds is printed.

PyTorch runs in the fastest of six ways, tried in each process before it is timed: as it is, frozen
or by torch.compile, in its own layout or channels last. Its memory is that of all six. A runtime
that cannot convert or run a network, or whose error is more than a thousandth of the range, takes no
part in that race; the race says so by name.

FILE is rewritten after each network. A network that fails is named there and in the table, and the
exit status is 1.
"""

import argparse
import datetime
import functools
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

from runtimes import PEERS, Failed, installed_peers, last_line

DEFAULT_NETS = ["zoo:fsrcnn?height=540&width=960", "zoo:resnet18", "zoo:mobilenetv2"]
LARGEST_ERROR = 1e-3  # of the range; MNN's filters leave 4e-4 on vgg16
OUR_LARGEST_ERROR = 2e-5


def processor():
    with open("/proc/cpuinfo") as cpuinfo:
        return next((line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")),
                    platform.machine())


def commit():
    """Of the checkout that this file lies in, with "+" after it where files were changed; None where
    git knows nothing of it."""
    described = subprocess.run(["git", "describe", "--always", "--exclude=*", "--dirty=+"],
                               cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True,
                               text=True)
    return described.stdout.strip() or None


def described_run(schema, machine=None):
    """The first members of every file of answers. Prints them as well. `machine` is a name of
    results/machines.json."""
    answer = {"schema": schema, "version": 1,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "machine": machine, "cpu": processor(), "cores": os.cpu_count(), "commit": commit(),
              "command": shlex.join(sys.argv)}
    answer = {key: value for key, value in answer.items() if value is not None}
    print(f"{answer['cpu']}, {answer['cores']} cores, {answer['date']}", flush=True)
    return answer


def measure_all(answer, key, measurements, path):
    """Calls the function of each of `measurements`, pairs of (what it is about, function), and
    appends its result to answer[key]. Returns the exit status.

    The answer is written to `path`, if given, after each measurement, so that neither a failing
    network nor the end of this process loses the others."""
    answer |= {key: [], "failed": []}
    for about, measure in measurements:
        try:
            answer[key].append(measure())
        except Exception as error:  # onnxruntime's own exceptions included: the next network may work
            why = str(error)
            if not isinstance(error, Failed):
                why = f"{type(error).__name__}: {' '.join(why.split())}"
            answer["failed"].append({**about, "error": why})
            print(f"\n{about['net']}, {threads_in_words(about['threads'])}: failed: {why}", flush=True)
        if path:
            aside = path + ".partial"
            with open(aside, "w") as out:
                json.dump(answer, out, indent=2)
            os.replace(aside, path)
    if answer["failed"]:
        print(f"{len(answer['failed'])} of {len(measurements)} measurements failed", file=sys.stderr)
    return 1 if answer["failed"] else 0


def threads_in_words(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def resident_bytes(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def reset_peak():
    """Restarts VmHWM from the present resident set, so that the peak of the imports does not count."""
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")


def error_of(made, exact):
    """The largest difference from the output in float64, as a part of that one's range."""
    import numpy as np

    span = float(exact.max() - exact.min()) or 1.0
    return float(np.abs(made - exact).max()) / span


def checked_error(made, exact, largest=LARGEST_ERROR):
    error = error_of(made, exact)
    if not error <= largest:  # nor NaN
        raise Failed(f"differs from float64 by {error:.3g} of the range")
    return error


def peer_worker(package, path, input_file, threads, seconds):
    import importlib

    import numpy as np

    peer = PEERS[package]
    for module in peer.modules[:1]:
        importlib.import_module(module)
    value = np.load(input_file)
    exact = np.load(input_file.replace("input.npy", "output.npy"))
    output = np.zeros_like(exact, np.float32)
    output += 1  # resident, as the arrays of the others
    reset_peak()
    before = resident_bytes("VmRSS")
    try:
        infer = peer.runner(path, value, output, threads)
        infer()
        error = checked_error(output, exact)
    except Failed as failure:
        sys.exit(str(failure))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        infer()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"times_ms": times, "peak_rss_bytes": resident_bytes("VmHWM") - before,
                      "error": error}))


def start(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output_of(process):
    output, errors = process.communicate()
    if process.returncode != 0:
        # Names alone: files of results say nothing of the machine's folders.
        words = " ".join(os.path.basename(word) for word in process.args)
        raise Failed(f"{words}: exit {process.returncode}: {last_line(errors)}")
    return output


def run(command):
    return output_of(start(command))


def bench_command(program, directory, threads, seconds):
    return [program, "bench", directory, "--threads", str(threads),
            "--seconds", str(seconds), "--json", "-"]


def round_of(bench_output):
    compiled = json.loads(bench_output)["compiled"]
    return {"times_ms": compiled["times_ms"], "peak_rss_bytes": compiled["peak_rss_bytes"]}


def laminate_round(program, directory, threads, seconds):
    return round_of(run(bench_command(program, directory, threads, seconds)))


def known_peaks(rounds):
    """Peaks of the resident set, without those that the system did not report."""
    return [r["peak_rss_bytes"] for r in rounds if r["peak_rss_bytes"] is not None]


def summary(rounds):
    times = sorted(t for r in rounds for t in r["times_ms"])
    low, high = times[len(times) // 10], times[-1 - len(times) // 10]
    median = statistics.median(times)
    return {"runs": len(times),
            "min_ms": times[0], "median_ms": median, "spread": (high - low) / median,
            "peak_rss_bytes": min(known_peaks(rounds), default=None)}


def memory_cells(row, peer):
    own, other = row["peak_rss_bytes"], peer["peak_rss_bytes"]
    return (f"{'-' if own is None else format(own / 2**20, '.2f'):>12}",
            "-" if None in (own, other) else f"1/{other / max(1, own):.1f}")


def made_picture(net, target):
    import onnx

    tests = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests")
    sys.path[:0] = [os.path.join(tests, "conformance"), os.path.join(tests, "real")]
    import picture_networks
    import seeded

    name, _, query = net.removeprefix("picture:").partition("?")
    try:
        home = picture_networks if hasattr(picture_networks, name) else seeded
        sizes = {key: int(value) for key, value in urllib.parse.parse_qsl(query, strict_parsing=True)}
        model = getattr(home, name)((sizes.pop("height"), sizes.pop("width")), **sizes)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Failed(f"{type(error).__name__}: {error}; expected picture:NAME?height=H&width=W and "
                     "sizes of a network of picture_networks.py or seeded.py") from error
    onnx.save(model, target)


def fixed_sizes(source, target, height, width):
    """Writes the model at source with its symbolic sizes replaced, so that every contestant gets the
    same file, whatever it does with symbols."""
    import google.protobuf.message
    import onnx

    try:
        model = onnx.load(source)
    except (OSError, google.protobuf.message.DecodeError) as error:
        raise Failed(f"{' '.join(str(error).split())}; expected zoo:NAME or an ONNX file") from error
    initialised = {tensor.name for tensor in model.graph.initializer}
    for described in model.graph.input:
        dims = described.type.tensor_type.shape.dim
        if described.name in initialised:
            continue
        chosen = {0: 1, len(dims) - 2: height, len(dims) - 1: width} if len(dims) == 4 else {0: 1}
        for axis, dim in enumerate(dims):
            if dim.HasField("dim_value"):
                continue
            if chosen.get(axis) is None:
                raise Failed(f"axis {axis} of input {described.name} is symbolic ({dim.dim_param}); "
                             "expected --height and --width for rows and columns, a number elsewhere")
            dim.dim_value = chosen[axis]
    # What was inferred from the symbols no longer holds.
    del model.graph.value_info[:]
    onnx.save(model, target)


def our_contestants(program, model, exact, options, threads):
    """By name, the error of our outputs and a function that runs a round of the network."""
    import numpy as np

    directory = os.path.dirname(model)
    ways = [("laminate fused", program, []),
            ("laminate layer by layer", program, ["--layer-by-layer"])]
    if options.before:
        ways.append(("laminate before", options.before, []))
    contestants = {}
    for name, own, extra in ways:
        compiled = os.path.join(directory, name.replace(" ", "_"))
        run([own, "compile", model, "-o", compiled, "--threads", str(threads), "--quiet", *extra])
        ours_file = os.path.join(directory, "ours.npy")
        run([own, "run", compiled, "--input", os.path.join(directory, "input.npy"), "--output",
             ours_file, "--quiet"])
        contestants[name] = (checked_error(np.load(ours_file), exact, OUR_LARGEST_ERROR),
                             functools.partial(laminate_round, own, compiled, threads,
                                               options.seconds))
    return contestants


def peer_contestants(model, shape, options, threads):
    """The same of the installed runtimes, and of those that take no part, the reason."""
    directory = os.path.dirname(model)
    contestants, skipped = {}, {}

    def one_round(peer, path, seconds):
        said = run([sys.executable, os.path.abspath(__file__), "--worker", peer.package, path,
                    os.path.join(directory, "input.npy"), str(threads), str(seconds)])
        return json.loads(last_line(said))  # MNN says something before

    for name, peer in installed_peers().items():
        try:
            path = peer.convert(model, directory, shape) if peer.convert else model
            error = one_round(peer, path, 0)["error"]
        except Failed as failure:
            if not contestants:
                raise
            skipped[name] = str(failure)
            continue
        contestants[name] = (error, functools.partial(one_round, peer, path, options.seconds))
    return contestants, skipped


def print_rows(rows, reference, macs):
    """The table of a race; the rows get their pace."""
    print(f"{'':26}{'min ms':>10}{'median ms':>11}{'spread':>8}{'GFLOP/s':>9}{'memory MiB':>12}"
          f"{'speed':>8}{'memory':>9}{'error':>9}")
    for name, row in rows.items():
        row["gflops"] = 2 * macs / row["median_ms"] / 1e6
        memory, ratio = memory_cells(row, reference)
        print(f"{name:26}{row['min_ms']:10.3f}{row['median_ms']:11.3f}{row['spread']:8.1%}"
              f"{row['gflops']:9.1f}{memory}{reference['median_ms'] / row['median_ms']:7.2f}x"
              f"{ratio:>9}{row['error']:9.1e}", flush=True)


def race(program, net, options, threads, directory):
    import numpy as np
    import onnxruntime
    from float64 import float64_output

    rounds = options.rounds
    model = os.path.join(directory, "net.onnx")
    if net.startswith("zoo:"):
        run([program, "zoo", "export", net, "-o", model])
    elif net.startswith("picture:"):
        made_picture(net, model)
    else:
        fixed_sizes(net, model, options.height, options.width)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    types = sorted({end.type for end in [*inputs, *outputs]})
    if len(inputs) != 1 or len(outputs) != 1 or types != ["tensor(float)"]:
        raise Failed(f"{len(inputs)} inputs, {len(outputs)} outputs, of {', '.join(types)}; "
                     "expected one of each, of tensor(float)")
    value = np.random.default_rng(1).uniform(-1, 1, inputs[0].shape).astype(np.float32)
    del session, inputs, outputs  # the race needs the memory
    exact = float64_output(model, value)
    np.save(os.path.join(directory, "input.npy"), value)
    np.save(os.path.join(directory, "output.npy"), exact)
    macs = json.loads(run([program, "info", model, "--json", "-"]))["macs"]

    peers, skipped = peer_contestants(model, value.shape, options, threads)
    contestants = our_contestants(program, model, exact, options, threads) | peers
    results = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (_, one_round) in contestants.items():
            results[name].append(one_round())
    rows = {name: summary(r) | {"error": contestants[name][0]}
            for name, r in results.items()}

    print(f"\n{net}, {threads_in_words(threads)}, {2 * macs / 1e9:.3f} GFLOP, "
          f"{rounds} interleaved rounds")
    print_rows(rows, rows[next(iter(peers))], macs)
    for name, why in skipped.items():
        print(f"{name:26}not raced: {why}", flush=True)
    return {"net": net, "threads": threads, "macs": macs, "rounds": rounds, "contestants": rows,
            "skipped": skipped}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", help="the program")
    parser.add_argument("--before", help="an older version of the program, to race with")
    parser.add_argument("--net", action="append", help=f"default: {', '.join(DEFAULT_NETS)}")
    parser.add_argument("--height", type=int,
                        help="rows of inputs of an .onnx file where they are symbolic")
    parser.add_argument("--width", type=int, help="columns, likewise")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="timed runs per contestant and round")
    parser.add_argument("--json")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        peer, path, input_file, threads, seconds = options.worker
        peer_worker(peer, path, input_file, int(threads), float(seconds))
        return 0
    if not options.laminate:
        parser.error("--laminate is needed")

    def in_scratch(net, threads):
        with tempfile.TemporaryDirectory() as directory:
            return race(options.laminate, net, options, threads, directory)

    return measure_all(described_run("laminate.peers"), "races", [
        ({"net": net, "threads": threads}, lambda net=net, threads=threads: in_scratch(net, threads))
        for net in options.net or DEFAULT_NETS
        for threads in (int(t) for t in options.threads.split(","))], options.json)


if __name__ == "__main__":
    sys.exit(main())
