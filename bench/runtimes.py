"""The runtimes that peers.py races with: what each reads, and how each runs a network in one process.

A runtime is a row of PEERS. Its `convert`, if it has one, writes the network's ONNX file in the
runtime's own format, once per race; its `runner` opens that file, or the ONNX file, and returns a
function that runs the network once, from one array into another. All compute in float32: where a
runtime would take 16 bits by itself, the runner says no.
"""

import collections
import functools
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import time


class Failed(Exception):
    """Why a network cannot be measured, in one line."""


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
    binding.bind_input(session.get_inputs()[0].name, "cpu", 0, np.float32, value.shape,
                       value.ctypes.data)
    binding.bind_output(session.get_outputs()[0].name, "cpu", 0, np.float32, output.shape,
                        output.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def openvino_request(path, shape, threads):
    """A request for an input of that shape, whatever sizes the file leaves open."""
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape(list(shape))
    return core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()


def openvino_runner(path, value, output, threads):
    import openvino

    request = openvino_request(path, value.shape, threads)
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
            ways += [lambda run=run, x=x: run(x) for run in (model, frozen, torch.compile(model))]
        best = min(ways, key=milliseconds)
        output[...] = best().numpy()

    def infer():
        with torch.inference_mode():
            best()

    return infer


def ncnn_runner(path, value, output, threads):
    import ncnn
    import numpy as np

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_packed = net.opt.use_bf16_storage = False
    if net.load_param(path + ".param") != 0 or net.load_model(path + ".bin") != 0:
        raise Failed("ncnn does not load what pnnx wrote")
    source, result = net.input_names()[0], net.output_names()[0]
    given = ncnn.Mat(value[0])  # ncnn has no batches; neither array is copied

    def infer():
        with net.create_extractor() as extractor:
            extractor.input(source, given)
            status, made = extractor.extract(result)
            if status != 0:
                raise Failed(f"ncnn cannot run it: status {status}")
            output.reshape(-1)[...] = np.array(made, copy=False).reshape(-1)

    return infer


def ncnn_file(model, directory, shape):
    """pnnx writes a dozen files beside the model; those of ncnn have its name."""
    if shape[0] != 1:
        raise Failed(f"found {shape[0]} pictures at once, expected one")
    # The package's program; the package itself would import PyTorch.
    program = os.path.join(importlib.util.find_spec("pnnx").submodule_search_locations[0], "pnnx")
    described = "inputshape=[" + ",".join(map(str, shape)) + "]f32"
    done = subprocess.run([program, model, described, "fp16=0"], cwd=directory,
                          capture_output=True, text=True)
    path = os.path.splitext(model)[0] + ".ncnn"
    if done.returncode != 0 or not os.path.exists(path + ".bin"):
        raise Failed(f"pnnx: exit {done.returncode}: {last_line(done.stderr or done.stdout)}")
    # What pnnx has no layer for keeps the name of its operator.
    with open(path + ".param") as layers:
        unknown = sorted({line.split()[0] for line in layers if line.split()[0].startswith(
            ("aten::", "prim::", "pnnx.", "nn.", "F.", "torch."))})
    if unknown:
        raise Failed(f"pnnx has no layer of ncnn for {', '.join(unknown)}")
    return path


def mnn_runner(path, value, output, threads):
    import MNN

    interpreter = MNN.Interpreter(path)
    session = interpreter.createSession(
        {"backend": "CPU", "numThread": threads, "precision": "high", "memory": "normal",
         "power": "normal"})
    source = interpreter.getSessionInput(session)
    result = interpreter.getSessionOutput(session)

    def tensor(array):
        return MNN.Tensor(tuple(array.shape), MNN.Halide_Type_Float, array,
                          MNN.Tensor_DimensionType_Caffe)

    given, made = tensor(value), tensor(output)

    def infer():
        source.copyFrom(given)
        interpreter.runSession(session)
        result.copyToHostTensor(made)
        output[...] = made.getNumpyData().reshape(output.shape)

    return infer


def mnn_file(model, directory, shape):
    del shape
    path = os.path.join(directory, "net.mnn")
    # Not the command mnnconvert: it installs a package for its reports of use, and sends them.
    arguments = ["mnnconvert", "-f", "ONNX", "--modelFile", model, "--MNNModel", path, "--bizCode",
                 "peers"]
    done = subprocess.run([sys.executable, "-c", f"import _tools; _tools.mnnconvert({arguments!r})"],
                          capture_output=True, text=True)
    if done.returncode != 0 or not os.path.exists(path):
        raise Failed(f"mnnconvert: exit {done.returncode}: {last_line(done.stderr or done.stdout)}")
    return path


def last_line(text):
    """The last line of what a process said holds its error, or the message of a traceback."""
    return (text.strip().splitlines() or ["nothing said"])[-1]


Peer = collections.namedtuple("Peer", "name, package, modules, runner, convert, requirements")
PEERS = {peer.package: peer for peer in (
    # The reference of the race comes first.
    Peer("onnxruntime", "onnxruntime", ["onnxruntime"], onnxruntime_runner, None,
         "requirements-peers.txt"),
    Peer("OpenVINO", "openvino", ["openvino"], openvino_runner, None,
         "bench/requirements-openvino.txt"),
    Peer("PyTorch", "torch", ["torch", "onnx2torch"], pytorch_runner, None,
         "bench/requirements-pytorch.txt"),
    Peer("ncnn", "ncnn", ["ncnn", "pnnx"], ncnn_runner, ncnn_file, "bench/requirements-ncnn.txt"),
    Peer("MNN", "MNN", ["MNN", "_tools"], mnn_runner, mnn_file, "bench/requirements-mnn.txt"),
)}


@functools.cache
def installed_peers():
    """(name and version, row of PEERS) of each contestant; onnxruntime comes first. Nothing is
    imported here: PyTorch alone takes seconds and hundreds of MiB, which only its workers need."""
    peers = {}
    for peer in PEERS.values():
        if all(importlib.util.find_spec(module) for module in peer.modules):
            version = importlib.metadata.version(peer.package).split("+")[0]
            peers[f"{peer.name} {version}"] = peer
        else:
            print(f"{peer.name} is not installed ({peer.requirements})", file=sys.stderr)
    return peers
