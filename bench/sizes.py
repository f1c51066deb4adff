"""Pictures of many sizes through one compiled directory: the time to prepare a size, the speed
beside code made for that size, and resident memory beside onnxruntime and OpenVINO.

  sizes.py --laminate PROGRAM --library liblaminate.so [--net NETWORK]... [--sizes 200]
           [--least 64] [--largest 4096] [--compared 8] [--peers-largest 1536] [--threads 2]
           [--seconds 1] [--json FILE] [--plot FILE.svg]

NETWORK is zoo:NAME or an ONNX file whose rows and columns are open. Each contestant is a process of
its own that takes the same random sizes in the same order, one run each, and notes its resident
memory after each. Peers take those sizes of the list that are not larger than --peers-largest, since
they keep whole tensors between layers.

For the first sizes of the list (--compared) a directory is compiled for that size alone, by default
and by the schedule of the directory of any size. Runs of the two kinds of code are interleaved; the
table shows the ratio of their least times. `bits` compares with the code by the same schedule.

FILE is rewritten after each network; the exit status is 1 if one failed.
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from peers import Failed, described_run, measure_all, resident_bytes, run

FLOATS = ctypes.POINTER(ctypes.c_float)


def symbolic(source, target):
    """Writes the model at source with open rows and columns of its maps."""
    import onnx

    model = onnx.load(source)
    initialised = {tensor.name for tensor in model.graph.initializer}
    ends = [end for end in model.graph.input if end.name not in initialised]
    for n, described in enumerate([*ends, *model.graph.output]):
        dims = described.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            if len(dims) == 4 and axis >= 2:
                dim.dim_param = f"{'HW'[axis - 2]}{'' if n < len(ends) else '_out'}"
    del model.graph.value_info[:]
    onnx.save(model, target)


class Directory:
    """A compiled directory through the C API."""

    def __init__(self, library, directory, threads):
        self.c = ctypes.CDLL(library)
        self.c.laminate_open.restype = ctypes.c_void_p
        self.c.laminate_open.argtypes = [ctypes.c_char_p, ctypes.c_int32]
        self.c.laminate_last_error.restype = ctypes.c_char_p
        self.c.laminate_session_resize.argtypes = [ctypes.c_void_p] + 3 * [ctypes.c_int64]
        self.c.laminate_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(FLOATS),
                                        ctypes.POINTER(FLOATS)]
        for side in ("input", "output"):
            dims = getattr(self.c, f"laminate_{side}_dims")
            dims.restype, dims.argtypes = ctypes.POINTER(ctypes.c_int64), [ctypes.c_void_p,
                                                                           ctypes.c_int32]
            rank = getattr(self.c, f"laminate_{side}_rank")
            rank.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        self.session = self.c.laminate_open(directory.encode(), threads)
        if not self.session:
            raise Failed(self.c.laminate_last_error().decode())

    def check(self, code):
        if code != 0:
            raise Failed(self.c.laminate_last_error().decode())

    def resize(self, height, width):
        self.check(self.c.laminate_session_resize(self.session, 1, height, width))

    def shape(self, side):
        dims = getattr(self.c, f"laminate_{side}_dims")(self.session, 0)
        return tuple(dims[: getattr(self.c, f"laminate_{side}_rank")(self.session, 0)])

    def run(self, value, output):
        pointers = [(FLOATS * 1)(array.ctypes.data_as(FLOATS)) for array in (value, output)]
        self.check(self.c.laminate_run(self.session, *pointers))


def value_of(shape):
    import numpy as np

    return np.random.default_rng(1).random(shape, dtype=np.float32)


def peer_runner(peer, path, threads):
    """A function that runs one array, whose shape may change from call to call."""
    if peer == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return lambda value: session.run(None, {name: value})
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads})
    request = compiled.create_infer_request()
    return lambda value: request.infer({0: value})


def take_sizes(contestant, path, library, threads, sizes):
    """One run of each size, in this process: prepare and run in ms, resident memory in bytes beyond
    that before the first, without the arrays of input and output."""
    import numpy as np

    channels = sizes["channels"]
    if contestant == "laminate":
        ours = Directory(library, path, threads)
    else:
        infer = peer_runner(contestant, path, threads)
    before = None
    for height, width in sizes["sizes"]:
        value = value_of((1, channels, height, width))
        begin = time.perf_counter()
        prepared = begin
        if contestant == "laminate":
            ours.resize(height, width)
            prepared = time.perf_counter()
            output = np.empty(ours.shape("output"), np.float32)
            before = resident_bytes("VmRSS") - value.nbytes if before is None else before
            ours.run(value, output)
        else:
            before = resident_bytes("VmRSS") - value.nbytes if before is None else before
            output = infer(value)
        end = time.perf_counter()
        del value, output
        row = {"size": [height, width], "prepare_ms": (prepared - begin) * 1e3,
               "run_ms": (end - prepared) * 1e3, "resident": resident_bytes("VmRSS") - before}
        print(json.dumps(row), flush=True)


def started(contestant, path, options, sizes):
    """The rows of take_sizes() in a process of its own; those before it ended, where it did."""
    command = [sys.executable, os.path.abspath(__file__), "--worker", contestant, "--path", path,
               "--library", options.library or "", "--threads", str(options.threads)]
    done = subprocess.run(command, input=json.dumps(sizes), capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 and contestant == "laminate":
        raise Failed(done.stderr.strip().splitlines()[-1])
    return rows


def least_ms(run_one, other, seconds):
    """Interleaved runs of both: the least time of each."""
    times = ([], [])
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[0]) < 3:
        for of, runs in zip(times, (run_one, other)):
            begin = time.perf_counter()
            runs()
            of.append((time.perf_counter() - begin) * 1e3)
    return min(times[0]), min(times[1])


def same_schedule(any_size, height, width, target):
    """The schedule of a directory of any size with tiles and strips of another size, as a file."""
    import re

    with open(os.path.join(any_size, "manifest.json")) as file:
        known = json.load(file)["any_size"]
    with open(os.path.join(any_size, "schedule.json")) as file:
        text = json.load(file)["schedule"]
    # Only of networks whose maps are as large as their input or twice as large.
    for factor in (2, 1):
        text = re.sub(rf"\bx{factor * known['columns']}\b", f"x{factor * width}", text)
        text = re.sub(rf"\by{factor * known['rows']}\b", f"y{factor * height}", text)

    def strip(match):
        rows, columns = match.group(1), match.group(2)
        parts = ["strip"]
        if rows:
            parts.append(f"y{min(int(rows), height)}")
        if columns:
            parts.append(f"x{min(int(columns), width)}")
        return " ".join(parts)

    text = re.sub(r"strip(?: y(\d+))?(?: x(\d+))?", strip, text)
    with open(target, "w") as file:
        file.write(text)


def compare(program, model, any_size, options, size, directory):
    """Code of any size beside code made for one."""
    import numpy as np

    height, width = size
    # Of each its own, for a library that is loaded is not replaced.
    fixed, same = (os.path.join(directory, f"{kind}_{height}_{width}") for kind in ("fixed", "same"))
    given = ["--height", str(height), "--width", str(width), "--quiet", "--threads",
             str(options.threads)]
    run([program, "compile", model, "-o", fixed, *given])
    ours, theirs = (Directory(options.library, path, options.threads) for path in (any_size, fixed))
    ours.resize(height, width)
    value = value_of(ours.shape("input"))
    outputs = [np.empty(ours.shape("output"), np.float32) for _ in range(2)]
    least = least_ms(lambda: ours.run(value, outputs[0]), lambda: theirs.run(value, outputs[1]),
                     options.seconds)
    if not np.allclose(*outputs, rtol=1e-3, atol=1e-5 * float(np.ptp(outputs[1]))):
        raise Failed(f"{height} x {width}: outputs differ from those of code for that size")
    row = {"size": size, "any_ms": least[0], "fixed_ms": least[1], "bits": None}
    schedule = os.path.join(directory, "schedule.txt")
    same_schedule(any_size, height, width, schedule)
    try:
        run([program, "compile", model, "-o", same, "--schedule", schedule, *given])
    except Failed as error:
        row["bits_unknown"] = str(error).splitlines()[-1]
        return row
    again = Directory(options.library, same, options.threads)
    again.run(value, outputs[1])
    row["bits"] = bool(np.array_equal(*outputs))
    return row


def measure(net, options):
    with tempfile.TemporaryDirectory() as directory:
        model = os.path.join(directory, "net.onnx")
        if net.startswith("zoo:"):
            run([options.laminate, "zoo", "export", net.removeprefix("zoo:"), "-o", model])
            symbolic(model, model)
        else:
            model = net
        any_size = os.path.join(directory, "any")
        run([options.laminate, "compile", model, "--any-size", "-o", any_size, "--quiet"])
        channels = Directory(options.library, any_size, 1).shape("input")[1]
        draw = random.Random(1)
        sizes = [[draw.randint(options.least, options.largest) for _ in range(2)]
                 for _ in range(options.sizes)]
        answer = {"net": net, "threads": options.threads, "contestants": {}}
        for contestant, path in (("laminate", any_size), ("onnxruntime", model),
                                 ("openvino", model)):
            most = options.largest if contestant == "laminate" else options.peers_largest
            taken = [size for size in sizes if max(size) <= most]
            rows = started(contestant, path, options, {"channels": channels, "sizes": taken})
            answer["contestants"][contestant] = rows
            if not rows:
                print(f"{net:30}{contestant:14} did not run", flush=True)
                continue
            print(f"{net:30}{contestant:14}{len(rows):5} of {len(taken)} sizes  prepare median "
                  f"{statistics.median(row['prepare_ms'] for row in rows):7.3f} ms, most "
                  f"{max(row['prepare_ms'] for row in rows):7.3f}  resident at most "
                  f"{max(row['resident'] for row in rows) / 2**20:8.1f} MiB, at the end "
                  f"{rows[-1]['resident'] / 2**20:8.1f}", flush=True)
        answer["compared"] = []
        for size in sizes[: options.compared]:
            row = compare(options.laminate, model, any_size, options, size, directory)
            answer["compared"].append(row)
            print(f"{net:30}{size[0]:5} x {size[1]:<5} any size {row['any_ms']:9.2f} ms, this size "
                  f"{row['fixed_ms']:9.2f} ms, ratio {row['any_ms'] / row['fixed_ms']:.3f}, bits "
                  f"{'equal' if row['bits'] else 'unknown' if row['bits'] is None else 'DIFFER'}",
                  flush=True)
        return answer


COLOURS = {"laminate": "#1a7f37", "onnxruntime": "#b35900", "openvino": "#6639ba"}


def plot(answer, path):
    """Resident memory over the number of the size, on a logarithmic axis, of the first network."""
    width, height, left, low, high = 720, 360, 70, 2**20, 2**36
    import math

    def y_of(value):
        part = math.log(max(value, low) / low) / math.log(high / low)
        return height - 40 - part * (height - 70)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">']
    for power in range(20, 37, 4):
        y = y_of(2**power)
        label = f"{2 ** (power - 20)} MiB" if power < 30 else f"{2 ** (power - 30)} GiB"
        lines.append(f'<line x1="{left}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" '
                     f'stroke="#ddd"/><text x="{left - 8}" y="{y + 4:.1f}" '
                     f'text-anchor="end">{label}</text>')
    for n, (name, rows) in enumerate(answer["networks"][0]["contestants"].items()):
        if not rows:
            continue
        step = (width - 20 - left) / max(1, len(rows) - 1)
        points = " ".join(f"{left + k * step:.1f},{y_of(row['resident']):.1f}"
                          for k, row in enumerate(rows))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" '
                     f'stroke-width="1.5"/><text x="{left + 10 + 200 * n}" y="20" '
                     f'fill="{COLOURS[name]}">{name}, {len(rows)} sizes</text>')
    lines.append(f'<text x="{left}" y="{height - 12}">resident memory beyond the start, after each '
                 f'of the random sizes; {answer["networks"][0]["net"]}</text></svg>')
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", help="the program")
    parser.add_argument("--library", help="liblaminate.so")
    parser.add_argument("--net", action="append", help="default: zoo:fsrcnn and zoo:mc-cnn")
    parser.add_argument("--sizes", type=int, default=200)
    parser.add_argument("--least", type=int, default=64)
    parser.add_argument("--largest", type=int, default=4096)
    parser.add_argument("--compared", type=int, default=8)
    parser.add_argument("--peers-largest", type=int, default=1536)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return take_sizes(options.worker, options.path, options.library, options.threads,
                          json.load(sys.stdin))
    if not options.laminate or not options.library:
        parser.error("expected --laminate PROGRAM and --library liblaminate.so")
    answer = described_run("laminate.sizes")
    nets = options.net or ["zoo:fsrcnn", "zoo:mc-cnn"]
    status = measure_all(answer, "networks",
                         [({"net": net, "threads": options.threads},
                           lambda net=net: measure(net, options)) for net in nets], options.json)
    if options.plot and answer["networks"]:
        plot(answer, options.plot)
    return status


if __name__ == "__main__":
    sys.exit(main())
