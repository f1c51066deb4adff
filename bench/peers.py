"""Race of compiled networks against onnxruntime, and OpenVINO and PyTorch where they are installed (bench/requirements-*.txt): one run,
interleaved, in processes of their own.

  peers.py --laminate PROGRAM [--net zoo:NAME?...|FILE.onnx]... [--height H --width W] [--threads 1,2] [--rounds 7] [--json FILE]

Per network and thread count the contestants are: the fused network, the same compiled layer by layer, onnxruntime, OpenVINO. Each is a
compiled directory or a model file made beforehand; outputs are compared before anything is timed. Then `rounds` times in turn
each contestant gets a fresh process that warms up and times some runs, so that drift of the machine meets all alike.

  min, median   over all timed runs of all rounds
  spread        (90th percentile - 10th percentile) / median
  memory        peak of the resident set over what it was just before the network was opened, when the process already held
                input and output. It includes weights and working memory of both; the smallest over the rounds is printed.

PyTorch runs in the fastest of four ways, tried in each process before it is timed: as it is or frozen, in its own layout or channels last. Its
memory is of all four.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

DEFAULT_NETS = ["zoo:fsrcnn?height=540&width=960", "zoo:resnet18", "zoo:mobilenetv2"]


def resident_bytes(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def reset_peak():
    """Makes VmHWM start again from the present resident set; without it the peak of the imports would count."""
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")


def onnxruntime_runner(path, value, output, threads):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    # With bindings, onnxruntime reads and writes our arrays and copies neither.
    binding = session.io_binding()
    binding.bind_input(session.get_inputs()[0].name, "cpu", 0, np.float32, value.shape, value.ctypes.data)
    binding.bind_output(session.get_outputs()[0].name, "cpu", 0, np.float32, output.shape, output.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def openvino_runner(path, value, output, threads):
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(0, openvino.Tensor(value, shared_memory=True))
    request.set_output_tensor(0, openvino.Tensor(output, shared_memory=True))
    return request.infer


def pytorch_runner(path, value, output, threads):
    import warnings

    import torch
    from onnx2torch import convert

    torch.set_num_threads(threads)
    warnings.simplefilter("ignore")

    def milliseconds(run):
        run()
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e3

    ways = []
    with torch.inference_mode():
        for layout in (torch.contiguous_format, torch.channels_last):
            model = convert(path).eval()
            x = torch.from_numpy(value)
            if x.dim() == 4:
                model, x = model.to(memory_format=layout), x.to(memory_format=layout)
            frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, x)))
            ways += [lambda model=model, x=x: model(x), lambda frozen=frozen, x=x: frozen(x)]
        best = min(ways, key=milliseconds)
        output[...] = best().numpy()

    def infer():
        with torch.inference_mode():
            best()

    return infer


RUNNERS = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner, "torch": pytorch_runner}


def installed_peers():
    """Name of each contestant and its module, onnxruntime first: the reference of the race."""
    import onnxruntime

    peers = {"onnxruntime " + onnxruntime.__version__: "onnxruntime"}
    try:
        import openvino
        peers["OpenVINO " + openvino.__version__.split("-")[0]] = "openvino"
    except ImportError:
        print("OpenVINO is not installed (bench/requirements-openvino.txt)", file=sys.stderr)
    # In the workers only: here it would take seconds and hundreds of MiB.
    if importlib.util.find_spec("torch") and importlib.util.find_spec("onnx2torch"):
        peers["PyTorch " + importlib.metadata.version("torch")] = "torch"
    return peers


def peer_worker(peer, path, input_file, threads, seconds):
    import numpy as np

    importlib.import_module(peer)
    value = np.load(input_file)
    expected = np.load(input_file.replace("input.npy", "output.npy"))
    output = np.zeros_like(expected)
    output += 1  # resident, as the arrays of the others
    reset_peak()
    before = resident_bytes("VmRSS")
    infer = RUNNERS[peer](path, value, output, threads)
    infer()
    if not np.allclose(output, expected, rtol=1e-3, atol=1e-5 * float(expected.max() - expected.min())):
        sys.exit(f"{peer} differs from onnxruntime")
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        infer()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"times_ms": times, "peak_rss_bytes": resident_bytes("VmHWM") - before}))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"peers: {' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def laminate_round(program, directory, threads, seconds):
    answer = json.loads(run([program, "bench", directory, "--threads", str(threads), "--seconds", str(seconds), "--json", "-"]))
    return {"times_ms": answer["compiled"]["times_ms"], "peak_rss_bytes": answer["compiled"]["peak_rss_bytes"]}


def summary(rounds):
    times = sorted(t for r in rounds for t in r["times_ms"])
    low, high = times[len(times) // 10], times[-1 - len(times) // 10]
    median = statistics.median(times)
    return {"runs": len(times), "min_ms": times[0], "median_ms": median, "spread": (high - low) / median,
            "peak_rss_bytes": min(r["peak_rss_bytes"] for r in rounds)}


def fixed_sizes(source, target, height, width):
    """Writes the model at source with its symbolic sizes replaced: every contestant shall have the same file, whatever it does with symbols."""
    import google.protobuf.message
    import onnx

    try:
        model = onnx.load(source)
    except (OSError, google.protobuf.message.DecodeError) as error:
        sys.exit(f"peers: {source}: {error}; expected zoo:NAME or an ONNX file")
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
                sys.exit(f"peers: {source}: axis {axis} of input {described.name} is symbolic ({dim.dim_param}); "
                         "expected --height and --width for rows and columns, a number elsewhere")
            dim.dim_value = chosen[axis]
    # What was inferred from the symbols no longer holds.
    del model.graph.value_info[:]
    onnx.save(model, target)


def race(program, net, options, threads, directory):
    import numpy as np
    import onnxruntime

    rounds, seconds = options.rounds, options.seconds
    model = os.path.join(directory, "net.onnx")
    if net.startswith("zoo:"):
        run([program, "zoo", "export", net, "-o", model])
    else:
        fixed_sizes(net, model, options.height, options.width)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    described = session.get_inputs()[0]
    value = np.random.default_rng(1).uniform(-1, 1, described.shape).astype(np.float32)
    expected = session.run(None, {described.name: value})[0]
    np.save(os.path.join(directory, "input.npy"), value)
    np.save(os.path.join(directory, "output.npy"), expected)
    macs = json.loads(run([program, "info", model, "--json", "-"]))["macs"]

    contestants = {}
    for name, extra in (("laminate fused", []), ("laminate layer by layer", ["--layer-by-layer"])):
        compiled = os.path.join(directory, name.replace(" ", "_"))
        run([program, "compile", model, "-o", compiled, "--threads", str(threads), "--quiet", *extra])
        ours_file = os.path.join(directory, "ours.npy")
        run([program, "run", compiled, "--input", os.path.join(directory, "input.npy"), "--output", ours_file, "--quiet"])
        ours = np.load(ours_file)
        span = float(expected.max() - expected.min())
        if not np.allclose(ours, expected, rtol=1e-3, atol=1e-5 * span):
            sys.exit(f"peers: {net}: {name} differs from onnxruntime by {np.abs(ours - expected).max():.3g} (range {span:.3g})")
        contestants[name] = lambda compiled=compiled: laminate_round(program, compiled, threads, seconds)
    peers = installed_peers()
    for name, peer in peers.items():
        contestants[name] = lambda peer=peer: json.loads(run(
            [sys.executable, os.path.abspath(__file__), "--worker", peer, model, os.path.join(directory, "input.npy"), str(threads), str(seconds)]))

    results = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, one_round in contestants.items():
            results[name].append(one_round())
    rows = {name: summary(r) for name, r in results.items()}
    peer = rows[next(iter(peers))]

    print(f"\n{net}, {threads} thread{'s' if threads > 1 else ''}, {2 * macs / 1e9:.3f} GFLOP, {rounds} interleaved rounds; outputs equal")
    print(f"{'':26}{'min ms':>10}{'median ms':>11}{'spread':>8}{'GFLOP/s':>9}{'memory MiB':>12}{'speed':>8}{'memory':>9}")
    for name, row in rows.items():
        row["gflops"] = 2 * macs / row["median_ms"] / 1e6
        print(f"{name:26}{row['min_ms']:10.3f}{row['median_ms']:11.3f}{row['spread']:8.1%}{row['gflops']:9.1f}"
              f"{row['peak_rss_bytes'] / 2**20:12.2f}{peer['median_ms'] / row['median_ms']:7.2f}x"
              f"   1/{peer['peak_rss_bytes'] / max(1, row['peak_rss_bytes']):.1f}", flush=True)
    return {"net": net, "threads": threads, "macs": macs, "rounds": rounds, "contestants": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", help="the program")
    parser.add_argument("--net", action="append", help=f"default: {', '.join(DEFAULT_NETS)}")
    parser.add_argument("--height", type=int, help="rows of inputs of an .onnx file where they are symbolic")
    parser.add_argument("--width", type=int, help="columns, likewise")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="timed runs per contestant and round")
    parser.add_argument("--json")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        peer, path, input_file, threads, seconds = options.worker
        peer_worker(peer, path, input_file, int(threads), float(seconds))
        return 0
    if not options.laminate:
        parser.error("--laminate is needed")
    with open("/proc/cpuinfo") as cpuinfo:
        model = next((line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")), platform.machine())
    print(f"{model}, {os.cpu_count()} cores")
    answers = []
    for net in options.net or DEFAULT_NETS:
        for threads in (int(t) for t in options.threads.split(",")):
            with tempfile.TemporaryDirectory() as directory:
                answers.append(race(options.laminate, net, options, threads, directory))
    if options.json:
        aside = options.json + ".partial"
        with open(aside, "w") as out:
            json.dump({"schema": "laminate.peers", "version": 1, "cpu": model, "races": answers}, out, indent=2)
        os.replace(aside, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
