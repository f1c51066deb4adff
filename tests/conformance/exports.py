"""Networks of torchvision and timm, exported by both exporters of PyTorch: run, refused, and why
(issue 26, 8).

  exports.py --reference PROGRAM --table FILE [--only NAME] [--ways WAY,WAY] [--shard K/N]

Each network has seeded random weights and a small input. The ways are torchscript-static,
torchscript-dynamic (batch, height and width open), dynamo-static and dynamo-dynamic (the same). The
batch alone is open for networks whose sizes are fixed, and where PyTorch fails to export open
sizes. The reference operators run every export, and PyTorch's own outputs are the expected ones. A
line of FILE says what happened; exports that have a line are not repeated.

Exit 0: every export runs and is equal, or EXPECTED_REFUSALS names it; 77: torch, torchvision, timm
or onnxscript is not installed (requirements-torch.txt).
"""

import argparse
import csv
import os
import sys
import tempfile
import warnings

try:
    import numpy as np
    import timm
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}; requirements-torch.txt names what the exports need")
    sys.exit(77)

from reference import ReferenceOperators, Refused

warnings.simplefilter("ignore")
CLASSES = 10


def vision(name, size=64, open_sizes=True, **how):
    """A network of torchvision: (function that builds it, shape of the input, whether it is open)."""
    keys = {"weights": None, "num_classes": CLASSES, **how}
    if name in ("googlenet", "inception_v3"):
        keys.update(init_weights=True, aux_logits=False)
    return name, lambda: torchvision.models.get_model(name, **keys), (1, 3, size, size), open_sizes


def image_model(name, size=64, open_sizes=True, **how):
    """A network of timm."""
    build = lambda: timm.create_model(name, pretrained=False, num_classes=CLASSES, **how)
    return "timm." + name, build, (1, 3, size, size), open_sizes


def segmentation(name, **how):
    keys = {"weights": None, "weights_backbone": None, "num_classes": CLASSES, **how}
    model = lambda: Only(torchvision.models.get_model(name, **keys), "out")
    return name, model, (1, 3, 64, 64), True


def video(name):
    model = lambda: torchvision.models.get_model(name, weights=None, num_classes=CLASSES)
    return name, model, (1, 3, 8, 32, 32), False


class Only(torch.nn.Module):
    """One entry of the dictionary that a network returns."""

    def __init__(self, inner, key):
        super().__init__()
        self.inner, self.key = inner, key

    def forward(self, x):
        return self.inner(x)[self.key]


class UNet(torch.nn.Module):
    """Two levels; the upsampled map is padded to the skip's size by a difference of shapes."""

    def __init__(self):
        super().__init__()
        block = lambda i, o: torch.nn.Sequential(
            torch.nn.Conv2d(i, o, 3, padding=1), torch.nn.BatchNorm2d(o), torch.nn.ReLU()
        )
        self.first, self.second, self.last = block(3, 8), block(8, 16), block(16, 8)
        self.up = torch.nn.ConvTranspose2d(16, 8, 2, 2)

    def forward(self, x):
        skip = self.first(x)
        deep = self.up(self.second(torch.nn.functional.max_pool2d(skip, 2)))
        rows, columns = skip.shape[2] - deep.shape[2], skip.shape[3] - deep.shape[3]
        around = [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2]
        whole = torch.nn.functional.pad(deep, around)
        return self.last(torch.cat([skip, whole], 1)).argmax(1)


class Detector(torch.nn.Module):
    """Boxes of a YOLO head: grids of arange and meshgrid, and the best candidates by topk."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.SiLU(), torch.nn.Conv2d(16, 18, 3, 2, 1)
        )

    def forward(self, x):
        y = self.body(x)
        n, _, rows, columns = y.shape
        down = torch.arange(rows, dtype=torch.float32)
        across = torch.arange(columns, dtype=torch.float32)
        grid = torch.stack(torch.meshgrid(across, down, indexing="xy"), 2)
        grid = grid.expand(1, 3, rows, columns, 2)
        y = y.view(n, 3, 6, rows, columns).permute(0, 1, 3, 4, 2).sigmoid()
        xy = (y[..., :2] * 2 - 0.5 + grid) * 4
        boxes = torch.cat([xy, (y[..., 2:4] * 2) ** 2 * 8, y[..., 4:]], -1).view(n, -1, 6)
        scores, _ = boxes[..., 4].topk(10, dim=1)
        return boxes, scores


class Warp(torch.nn.Module):
    """Samples its features where a flow says, by grid_sample; correlates them by einsum."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.flow = torch.nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        f = self.features(x)
        grid = torch.tanh(self.flow(f)).permute(0, 2, 3, 1)
        warped = torch.nn.functional.grid_sample(f, grid, align_corners=False)
        return torch.einsum("bchw,bchv->bhwv", f, warped)


def own(model):
    return model.__name__, model, (1, 3, 50, 62), True


NETWORKS = [
    own(UNet),
    own(Detector),
    own(Warp),
    vision("alexnet", 224),
    vision("densenet121"),
    vision("convnext_tiny"),
    vision("efficientnet_b0"),
    vision("efficientnet_v2_s"),
    vision("googlenet"),
    vision("inception_v3", 96),
    vision("mnasnet0_5"),
    vision("mobilenet_v2"),
    vision("mobilenet_v3_small"),
    vision("mobilenet_v3_large"),
    vision("regnet_x_400mf"),
    vision("regnet_y_400mf"),
    vision("resnet18"),
    vision("resnet50"),
    vision("resnext50_32x4d"),
    vision("shufflenet_v2_x0_5"),
    vision("squeezenet1_0"),
    vision("squeezenet1_1", 33),
    vision("vgg11_bn", 224),
    vision("swin_t", 64),
    segmentation("fcn_resnet50"),
    segmentation("deeplabv3_mobilenet_v3_large"),
    segmentation("lraspp_mobilenet_v3_large"),
    video("r3d_18"),
    video("mc3_18"),
    image_model("ghostnet_100"),
    image_model("lcnet_050"),
    image_model("tinynet_e"),
    image_model("mobilenetv4_conv_small"),
    image_model("mobileone_s0"),
    image_model("repvgg_a0"),
    image_model("cspdarknet53"),
    image_model("dla34"),
    image_model("hrnet_w18_small"),
    image_model("res2net50_26w_4s"),
    image_model("rexnet_100"),
    image_model("skresnet18"),
    image_model("ese_vovnet19b_dw"),
    image_model("starnet_s1"),
    image_model("edgenext_xx_small"),
    image_model("poolformer_s12"),
    image_model("mobilevit_xxs"),
    image_model("fastvit_t8"),
    image_model("inception_next_tiny"),
    image_model("vit_tiny_patch16_224", 64, False, img_size=64),
    image_model("mixer_s32_224", 64, False, img_size=64),
    image_model("efficientformer_l1", 224, False),
    image_model("levit_128s", 224, False),
    image_model("xcit_nano_12_p16_224", 64, False, img_size=64),
    image_model("resmlp_12_224", 64, False, img_size=64),
]
WAYS = ["torchscript-static", "torchscript-dynamic", "dynamo-static", "dynamo-dynamic"]
# What does not run, by name and way, and why.
EXPECTED_REFUSALS = {}


def export(model, x, path, way, open_sizes):
    """Writes the file; returns the sizes of its symbolic dimensions."""
    names = {0: "batch", **({2: "height", 3: "width"} if open_sizes else {})}
    is_dynamic = way.endswith("dynamic")
    if way.startswith("torchscript"):
        axes = {"x": names} if is_dynamic else None
        torch.onnx.export(model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes=axes)
    else:
        shapes = None
        if is_dynamic:
            auto = {axis: torch.export.Dim.AUTO for axis in names}
            shapes = (auto,)
        torch.onnx.export(
            model,
            (x,),
            path,
            dynamo=True,
            external_data=False,
            input_names=["x"],
            dynamic_shapes=shapes,
            verbose=False,
        )
    if not is_dynamic:
        return {}
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    dims = graph.input[0].type.tensor_type.shape.dim
    return {dim.dim_param: extent for dim, extent in zip(dims, x.shape) if dim.dim_param}


def difference(found, expected):
    """Empty if equal within 1e-3 of the values and 1e-4 of the range."""
    expected = np.asarray(expected, np.float32)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    allowed = 1e-4 * np.ptp(expected) + 1e-3 * np.abs(expected)
    wrong = ~(np.abs(found - expected) <= allowed)
    return f"{np.count_nonzero(wrong)} of {wrong.size} elements differ" if wrong.any() else ""


def reason(error):
    """The first sentence of the innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = " ".join(str(error).split()).split(". ")[0].rstrip(".")
    return f"{type(error).__name__}: {words}"[:200]


def outcome(reference, network, way, folder):
    """(run, refused, different or not exported; and why)"""
    name, build, shape, open_sizes = network
    torch.manual_seed(1)
    model = build().eval()
    x = torch.rand(shape)
    if way.endswith("dynamic"):
        x = torch.rand((2, *shape[1:]))  # an extent of 1 would become a constant
    with torch.no_grad():
        results = model(x)
    results = results if isinstance(results, (tuple, list)) else [results]
    path = os.path.join(folder, "exported.onnx")
    remark = ""
    try:
        try:
            sizes = export(model, x, path, way, open_sizes)
        except Exception as error:
            if not (open_sizes and way.endswith("dynamic")):
                raise
            remark = f"with open sizes not exported: {reason(error)}"
            sizes = export(model, x, path, way, False)
    except Exception as error:
        return "not exported", reason(error)
    if way.endswith("dynamic") and not sizes:
        return "not exported", "the exporter left no dimension open"
    try:
        found = reference.run(path, [x.numpy()], **sizes)
    except Refused as refused:
        return "refused", str(refused).split("net.onnx: ")[-1].split("; supported:")[0]
    wrong = [difference(f, r.numpy()) for f, r in zip(found, results)]
    return ("different", next(filter(None, wrong))) if any(wrong) else ("run", remark)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True)
    parser.add_argument("--laminate")
    parser.add_argument("--table", required=True)
    parser.add_argument("--only")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--shard", default="0/1")
    arguments = parser.parse_args()
    shard, shards = map(int, arguments.shard.split("/"))
    done = set()
    if os.path.exists(arguments.table):
        with open(arguments.table, newline="") as file:
            done = {(row[0], row[1]) for row in csv.reader(file)}
    reference = ReferenceOperators(arguments.reference)
    failed = 0
    for way in arguments.ways.split(","):
        for k, network in enumerate(NETWORKS):
            name = network[0]
            if k % shards != shard or (name, way) in done:
                continue
            if arguments.only and arguments.only != name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row = [name, way, *outcome(reference, network, way, folder)]
            with open(arguments.table, "a", newline="") as file:
                csv.writer(file).writerow(row)
            print(*row, flush=True)
            expected = "refused" if (name, way) in EXPECTED_REFUSALS else "run"
            failed += row[2] not in (expected, "not exported")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
