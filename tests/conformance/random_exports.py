"""Random models (random_models.py) against onnxruntime and PyTorch: no difference is unexplained
(issue 26).

  random_exports.py --laminate PROGRAM --reference PROGRAM FIRST COUNT
                    [--compiled EVERY] [--recorded FILE | --record FILE] [--keep DIR]

The reference operators run every model of the seeds FIRST ... FIRST + COUNT - 1; every EVERY-th
model also runs as generated code (`laminate run`). Every third seed has NaN, infinities and
subnormal values among its inputs, and its code is made with --strict.

PyTorch evaluates the models where it is installed. Elsewhere its answers are taken from FILE, which
--record writes: some elements of every output.

Where a peer differs, its own values are fed to every node of the model alone. The difference is
explained if it begins at nodes that EXPLANATIONS names, or if every node agrees, so that only
roundings grew from node to node. Exit 0: no difference is left; 1: the lines name the seeds that
differ; 77: onnx or onnxruntime is not installed.
"""

import argparse
import collections
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import compare_model  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import random_models  # noqa: E402
from reference import ReferenceOperators, Refused  # noqa: E402

try:
    import torch_nodes
except ImportError:
    torch_nodes = None

RELATIVE, OF_RANGE = 1e-3, 1e-5
SAMPLES = 24  # elements of an output that --record keeps


def difference(found, expected):
    """Empty if equal, else one line. NaN equals NaN; the range is that of the finite values."""
    if found.shape != expected.shape and (found.shape, expected.shape) != ((1,), ()):
        return f"shape {found.shape}, expected {expected.shape}"
    found, expected = found.reshape(-1).astype(np.float64), expected.reshape(-1).astype(np.float64)
    finite = np.isfinite(expected)
    span = np.ptp(expected[finite]) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= OF_RANGE * span + RELATIVE * np.abs(expected)
        equal = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (finite & near)
    if equal.all():
        return ""
    worst = int(np.argmin(equal))
    return (
        f"{np.count_nonzero(~equal)} of {equal.size} elements differ, the first at {worst}: "
        f"found {found[worst]:.8g}, expected {expected[worst]:.8g}, range {span:.3g}"
    )


# ---- why a peer differs, by the node where it begins -------------------------------------------


def has_nan(node, a, inputs):
    return any(np.isnan(value).any() for value in inputs if value.dtype == np.float32)


def has_infinity(node, a, inputs):
    return any(np.isinf(value).any() for value in inputs if value.dtype == np.float32)


def shrinks(node, a, inputs):
    return a["opset"] == 10 and a.get("mode", "nearest") == "nearest" and (inputs[1] < 1).any()


def reads_with_weight_zero(node, a, inputs):
    """A special value that rounding multiplies by 0 or a little more; 0 makes it NaN."""
    if a.get("mode") == "nearest" or not (
        has_nan(node, a, inputs) or has_infinity(node, a, inputs)
    ):
        return False
    x, *others = inputs
    last = others[-1]
    # onnxruntime interpolates lines along N and C, too, with weights of 1 and 0.
    for axis in range(0 if x.ndim == 3 else 2, x.ndim):
        extent = x.shape[axis]
        scale = last[axis] / extent if last.dtype == np.int64 else np.float64(last[axis])
        out = np.arange(max(1, int(extent * scale + 1e-6)))
        at = (out + 0.5) / scale - 0.5
        if a.get("coordinate_transformation_mode") == "align_corners":
            at = out * (extent - 1) / max(1, len(out) - 1)
        at = np.clip(at, 0, extent - 1)
        if (np.abs(at - np.round(at)) < 1e-5).any():
            return True
    return False


def new_extents(inputs):
    extents = np.array(inputs[0].shape)
    last = inputs[-1]
    return extents, last if last.dtype == np.int64 else np.floor(extents * last).astype(int)


def meets_whole_coordinates(node, a, inputs):
    """A coordinate that the scale, rounded to 32 bits, brings beside a whole number."""
    before, after = new_extents(inputs)
    for axis in range(2, len(before)):
        scale = after[axis] / before[axis] if inputs[-1].dtype == np.int64 else inputs[-1][axis]
        at = np.arange(after[axis]) / np.float64(np.float32(scale))
        near = np.abs(at - np.round(at))
        if a.get("mode", "nearest") == "nearest" and ((near > 0) & (near < 1e-5)).any():
            return True
    return False


def shrinks_to_one(node, a, inputs):
    is_named = a.get("coordinate_transformation_mode") == "pytorch_half_pixel"
    return is_named and (new_extents(inputs)[1][2:] == 1).any()


def keeps_an_extent(node, a, inputs):
    before, after = new_extents(inputs)
    return inputs[-1].dtype == np.float32 and ((before == after) & (inputs[-1] != 1)).any()


def is_dilated_same(node, a, inputs):
    return a.get("auto_pad", "").startswith("SAME") and max(a.get("dilations", [1])) > 1


def is_ill_conditioned(node, a, inputs):
    """Rows that are nearly constant, or whose squares are no 32-bit floats."""
    x = inputs[0].astype(np.float64)
    rows = x.reshape(x.shape[0] * x.shape[1], -1)
    with np.errstate(invalid="ignore", over="ignore"):
        largest = np.abs(rows).max(axis=1)
        return bool(((rows.std(axis=1) < 1e-3 * largest) | (largest > 1e18)).any())


def nears_overflow(node, a, inputs):
    floats = [value for value in inputs if value.dtype == np.float32]
    return any((np.abs(value[np.isfinite(value)]) > 1e36).any() for value in floats)


def is_small_sigmoid(node, a, inputs):
    return (inputs[0] < -9).any()


def strides_over_same(node, a, inputs):
    """SAME pooling that needs no padding: ONNX's sum is negative where a stride passes its window."""
    if not a.get("auto_pad", "").startswith("SAME"):
        return False
    kernel = np.array(a["kernel_shape"])
    strides = np.array(a.get("strides", [1] * len(kernel)))
    spans = (kernel - 1) * np.array(a.get("dilations", [1] * len(kernel))) + 1
    extents = np.array(inputs[0].shape[2:])
    return bool(((np.ceil(extents / strides) - 1) * strides + spans < extents).any())


def powers_overflow(node, a, inputs):
    x = np.abs(inputs[0][np.isfinite(inputs[0])].astype(np.float64))
    return bool((x ** a.get("p", 2) > 1e36).any())


def samples_with_weight_zero(node, a, inputs):
    """A special value beside a coordinate that is whole, or that the border makes whole."""
    special = has_nan(node, a, inputs) or has_infinity(node, a, inputs)
    if not special or a.get("mode", "linear") == "nearest":
        return False
    x, grid = inputs
    for axis, extent in enumerate(reversed(x.shape[2:])):
        at = (grid[..., axis] + 1) * extent / 2 - 0.5
        if a.get("align_corners", 0):
            at = (grid[..., axis] + 1) * (extent - 1) / 2
        outside = (at <= 0) | (at >= extent - 1)
        if outside.any() or (np.abs(at - np.round(at)) < 1e-5).any():
            return True
    return False


ILL_CONDITIONED = "rows are nearly constant or overflow: their normalisation has few digits"
DROPS_NAN = "onnxruntime drops NaN or keeps it, by its place in the vector; torch keeps it"
POWERS = "the peer's sum of powers overflows 32 bits, ours is a double"
LOWEST = "onnxruntime's maximum starts from the lowest float, so -inf becomes that"
IGNORES_NAN = "onnxruntime finds places beside NaN; NumPy and torch find the NaN"
WEIGHT_ZERO = "a NaN or infinity is read with a weight that is zero but for rounding"
RUNNING_SUM = "onnxruntime's sum over channels runs on, and no NaN or infinity leaves it again"
CLIP_OF_INFINITY = (
    "Clip without a bound: torch keeps an infinity, ONNX and onnxruntime clip it to the largest "
    "float"
)
SAME_RULE = "onnxruntime makes another shape of SAME pooling with dilations than ONNX says"
RECIPROCAL = "torch multiplies by the rounded reciprocal of a scale, ONNX divides by the scale"
EXPLANATIONS = {
    ("onnxruntime", "MaxPool"): [
        (has_nan, DROPS_NAN),
        (has_infinity, LOWEST),
        (is_dilated_same, SAME_RULE),
    ],
    ("onnxruntime", "InstanceNormalization"): [(is_ill_conditioned, ILL_CONDITIONED)],
    ("torch", "InstanceNormalization"): [(is_ill_conditioned, ILL_CONDITIONED)],
    ("onnxruntime", "AveragePool"): [(is_dilated_same, SAME_RULE)],
    ("onnxruntime", "LpPool"): [
        (is_dilated_same, SAME_RULE),
        (strides_over_same, "onnxruntime pads by less than nothing, so its windows begin later"),
        (powers_overflow, POWERS),
    ],
    ("torch", "LpPool"): [(powers_overflow, POWERS)],
    ("onnxruntime", "GlobalMaxPool"): [(has_nan, DROPS_NAN), (has_infinity, LOWEST)],
    ("onnxruntime", "GridSample"): [(samples_with_weight_zero, WEIGHT_ZERO)],
    ("torch", "GridSample"): [(samples_with_weight_zero, WEIGHT_ZERO)],
    ("onnxruntime", "ReduceMax"): [(has_nan, DROPS_NAN)],
    ("onnxruntime", "ReduceMin"): [(has_nan, DROPS_NAN)],
    ("onnxruntime", "Resize"): [
        (shrinks, "onnxruntime rounds up where nearest of opset 10 shrinks; torch rounds down"),
        (reads_with_weight_zero, WEIGHT_ZERO),
    ],
    ("onnxruntime", "Sigmoid"): [
        (
            is_small_sigmoid,
            "onnxruntime's Sigmoid has an absolute error of 4e-8, much below exp(-9)",
        )
    ],
    ("torch", "Upsample"): [(meets_whole_coordinates, RECIPROCAL)],
    ("onnxruntime", "LRN"): [(has_nan, RUNNING_SUM), (has_infinity, RUNNING_SUM)],
    ("torch", "Clip"): [(has_infinity, CLIP_OF_INFINITY)],
    ("torch", "Resize"): [
        (reads_with_weight_zero, WEIGHT_ZERO),
        (
            shrinks_to_one,
            "ONNX's pytorch_half_pixel reads element 0 for one output, torch the middle",
        ),
        (meets_whole_coordinates, RECIPROCAL),
        (keeps_an_extent, "torch copies along an axis whose extent stays, whatever its scale"),
    ],
    ("onnxruntime", "ArgMax"): [(has_nan, IGNORES_NAN)],
    ("onnxruntime", "ArgMin"): [(has_nan, IGNORES_NAN)],
}
EVERYWHERE = [
    (nears_overflow, "sums of values above 1e36 overflow 32 bits in one order or another")
]


def explanation(peer, node, opset, inputs):
    attributes = {x.name: helper.get_attribute_value(x) for x in node.attribute}
    attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
    for holds, reason in EXPLANATIONS.get((peer, node.op_type), []) + EVERYWHERE:
        if holds(node, {**attributes, "opset": opset}, inputs):
            return reason
    return None


# ---- the peers ---------------------------------------------------------------------------------


def onnxruntime_values(model, inputs, optimised):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimised:
        level = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_DISABLE_ALL
    text = model.SerializeToString()
    session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def with_inner_outputs(model):
    """The model with every value that its nodes write as an output."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    judged = onnx.ModelProto.FromString(inferred.SerializeToString())
    own = {output.name for output in judged.graph.output}
    judged.graph.output.extend(v for v in inferred.graph.value_info if v.name not in own)
    return judged


def single_node(model, node, values):
    """A model of the node alone, and its inputs: the first FLOAT one is live if any is."""
    arrays = {name: values[name] for name in node.input if name}
    live = next((name for name in node.input if name and arrays[name].dtype == np.float32), None)
    constants = [
        numpy_helper.from_array(value, name) for name, value in arrays.items() if name != live
    ]
    infos = [helper.make_tensor_value_info(live, TensorProto.FLOAT, arrays[live].shape)]
    outputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape
        )
        for name in node.output
    ]
    graph = helper.make_graph([node], "node", infos, outputs, constants)
    opset = [helper.make_opsetid("", model.opset_import[0].version)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8), [arrays[live]]


WITHOUT_VALUES = ("Constant", "If", "Shape")  # nodes that are not run alone


def explained(reference, peer, model, values):
    """Reasons for the difference to a peer, whose `values` are known for all nodes.

    Returns (reasons, what no reason explains).
    """
    reasons = set()
    opset = model.opset_import[0].version
    for node in model.graph.node:
        known = all(name in values for name in [*filter(None, node.input), *node.output])
        floats = known and any(
            values[name].dtype == np.float32 and values[name].size for name in node.input if name
        )
        if node.op_type in WITHOUT_VALUES or not floats or 0 in values[node.output[0]].shape:
            continue
        alone, inputs = single_node(model, node, values)
        try:
            results = reference.run(alone, inputs)
        except Refused as refused:
            if "constant" in str(refused):  # the node reads two live tensors, made constants here
                continue
            return reasons, f"{node.op_type} alone is refused: {refused}"
        wrong = [difference(r, values[name]) for r, name in zip(results, node.output)]
        if not any(wrong):
            continue
        reason = explanation(peer, node, opset, [values[name] for name in node.input if name])
        if reason is None:
            return reasons, f"{node.op_type} {node.output[0]}: {next(filter(None, wrong))}"
        reasons.add(reason)
    return reasons or {f"{peer}: every node agrees, roundings grow between them"}, ""


# ---- one seed ----------------------------------------------------------------------------------


class Judge:
    def __init__(self, arguments):
        self.arguments = arguments
        self.reference = ReferenceOperators(arguments.reference)
        self.counts = collections.Counter()
        self.reasons = collections.Counter()
        self.recorded = {}
        if arguments.recorded and torch_nodes is None:
            with open(arguments.recorded) as file:
                self.recorded = json.load(file)
        self.to_record = {}

    def differs(self, peer, model, found, expected, all_values):
        """What is unexplained in the difference of the outputs, or an empty text."""
        wrong = [difference(f, e) for f, e in zip(found, expected)]
        self.counts[f"compared with {peer}"] += 1
        if not any(wrong):
            return ""
        reasons, left = explained(self.reference, peer, model, all_values())
        self.reasons.update(reasons)
        self.counts[f"differ from {peer}"] += 1
        return f"{peer}: {next(filter(None, wrong))}; {left}" if left else ""

    def against_torch(self, seed, model, inputs, found):
        names = [output.name for output in model.graph.output]
        if torch_nodes is not None:
            values = torch_nodes.evaluate(model, inputs)
            if values is None:
                return ""
            expected = [values[name] for name in names]
            if self.arguments.record and not any(map(difference, found, expected)):
                self.to_record[seed] = [self.sample(value) for value in expected]
            return self.differs("torch", model, found, expected, lambda: values)
        record = self.recorded.get(str(seed))
        if record is None:
            return ""
        self.counts["compared with recorded values of torch"] += 1
        for name, value, (shape, places, numbers) in zip(names, found, record):
            wrong = difference(value.reshape(-1)[places], np.array(numbers, np.float32))
            if wrong or list(value.shape) != shape:
                return f"recorded torch: {name}: {wrong or value.shape}"
        return ""

    @staticmethod
    def sample(expected):
        """Shape, places and values of some elements; the extremes keep the range."""
        flat = expected.reshape(-1).astype(np.float32)
        places = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(int)
        finite = np.where(np.isfinite(flat), flat, 0)
        places = sorted({*places.tolist(), int(finite.argmax()), int(finite.argmin())})
        return [list(expected.shape), places, [float(str(value)) for value in flat[places]]]

    def run(self, seed, directory):
        """What is wrong and unexplained, or an empty text."""
        model, shapes = random_models.make(seed)
        if model is None:
            return ""
        inputs = random_models.inputs_of(seed, shapes)
        try:
            expected = onnxruntime_values(model, inputs, optimised=True)
        except Exception:  # not supported, or invalid after all
            self.counts["not taken by onnxruntime"] += 1
            return ""
        for output in model.graph.output:
            rule = [d.dim_value for d in output.type.tensor_type.shape.dim]
            if list(expected[output.name].shape) != rule:
                self.counts["shaped by onnxruntime against onnx's rule"] += 1
                return ""
        try:
            found = self.reference.run(model, list(inputs.values()))
        except Refused as refused:
            if "window spans" in str(refused):
                self.reasons["onnxruntime counts a window that does not fit, torch does not"] += 1
                return ""
            if "lies wholly in the padding" in str(refused):
                self.reasons["a pooling window without any input has no value"] += 1
                return ""
            return f"refused: {refused}"
        wrong = self.differs(
            "onnxruntime",
            model,
            found,
            list(expected.values()),
            lambda: {
                **{c.name: numpy_helper.to_array(c) for c in model.graph.initializer},
                **inputs,
                **onnxruntime_values(with_inner_outputs(model), inputs, optimised=False),
            },
        )
        wrong = wrong or self.against_torch(seed, model, inputs, found)
        every = self.arguments.compiled
        if not wrong and every and seed % every == 0:
            wrong = self.compiled(seed, model, inputs, found, directory)
        return wrong

    def compiled(self, seed, model, inputs, found, directory):
        """Generated code against the reference operators; of specials, strict code."""
        path = os.path.join(directory, "net.onnx")
        onnx.save(model, path)
        is_strict = random_models.has_specials(seed)
        self.counts["compared as generated code"] += 1
        self.counts["compared as strict code, with specials"] += is_strict
        options = ["--strict"] if is_strict else []
        try:
            compare_model(self.arguments.laminate, path, inputs, directory, options)
        except SystemExit as stopped:
            return str(stopped)
        for k, value in enumerate(found):
            wrong = difference(np.load(os.path.join(directory, f"out{k}.npy")), value)
            if wrong:
                return f"generated code: output {k}: {wrong}"
        return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--compiled", type=int, default=0)
    parser.add_argument("--recorded")
    parser.add_argument("--record")
    parser.add_argument("--keep")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    judge = Judge(arguments)
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        with tempfile.TemporaryDirectory() as directory:
            wrong = judge.run(seed, directory)
        if wrong:
            failed += 1
            print(f"{seed}: {wrong}", flush=True)
            if arguments.keep:
                os.makedirs(arguments.keep, exist_ok=True)
                onnx.save(random_models.make(seed)[0], os.path.join(arguments.keep, f"{seed}.onnx"))
    if arguments.record:
        lines = [f'"{seed}": {json.dumps(record)}' for seed, record in judge.to_record.items()]
        with open(arguments.record, "w") as file:
            file.write("{" + ",\n".join(lines) + "}\n")
    for text, count in sorted({**judge.counts, **judge.reasons}.items()):
        print(f"{count:6} {text}")
    print(f"{arguments.count} models, {failed} with an unexplained difference")
    # A generator whose models onnxruntime does not take would show nothing.
    compared = judge.counts["compared with onnxruntime"]
    sys.exit(1 if failed or compared < arguments.count // 2 else 0)


if __name__ == "__main__":
    main()
