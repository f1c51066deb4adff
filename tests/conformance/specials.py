"""Generated code against the reference operators on NaN, infinities and values near overflow.

  specials.py --laminate PROGRAM --reference PROGRAM [CASE ...] [--options=--no-winograd,...]

Each case is a convolution, an operator and a convolution, so that the operator is fused; the inputs
have a few special values. A line says where `laminate run` differs from the reference operators,
whose values are compared with onnxruntime's as well. Exit 0: equal; 1: different; 77: onnxruntime
is not installed.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
from compare import laminate  # noqa: E402  (exits 77 without its packages)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import random_models  # noqa: E402
from random_exports import EXPLANATIONS, difference, onnxruntime_values  # noqa: E402
from reference import ReferenceOperators  # noqa: E402

# The functions that also stand fused behind a convolution, without those of analysis.
ACTIVATIONS = {
    name: attributes
    for name, attributes in random_models.ACTIVATIONS.items()
    if name not in ("Exp", "Erf", "Sin", "Cos")
}
POOLS = {
    "MaxPool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "AveragePool": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "GlobalAveragePool": {},
}
KINDS = {
    "nan": [np.nan],
    "infinity": [np.inf],
    "both_infinities": [np.inf, -np.inf],
    "large": [3e37, -3e37],
    "all": [np.nan, np.inf, -np.inf, 1e8, 1e-40],
}


def chain(operator, attributes):
    rng = np.random.default_rng(4)
    weights = [
        rng.normal(0, 0.3, shape).astype(np.float32) for shape in ((8, 3, 3, 3), (4, 8, 3, 3))
    ]
    constants = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(weights)]
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], **same),
        helper.make_node(operator, ["a"], ["b"], **attributes),
        helper.make_node("Conv", ["b", "w1"], ["y"], **same),
    ]
    tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        nodes, "g", [tensor("x", [1, 3, 20, 24])], [tensor("y", [1, 4, None, None])], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def picture(values):
    """Whole numbers, with each special value once, away from the borders and from each other."""
    x = np.random.default_rng(5).integers(-4, 5, (1, 3, 20, 24)).astype(np.float32)
    for k, value in enumerate(values):
        x[0, k % 3, 4 + 3 * k % 13, 3 + 5 * k % 19] = value
    return x


def run_case(arguments, reference, model, x, folder):
    """Lines that say what differs."""
    path = os.path.join(folder, "net.onnx")
    onnx.save(model, path)
    np.save(os.path.join(folder, "in.npy"), x)
    inputs, outputs = (os.path.join(folder, name) for name in ("in.npy", "out.npy"))
    options = [option for option in arguments.options.split(",") if option]
    laminate(
        arguments.laminate,
        *("run", path, "--quiet", "--input", f"x={inputs}", "--output", f"y={outputs}", *options),
    )
    [expected] = reference.run(model, [x])
    theirs = onnxruntime_values(model, {"x": x}, optimised=True)["y"]
    lines = []
    if wrong := difference(np.load(outputs), expected):
        lines.append(f"generated code, expected the reference operators': {wrong}")
    wrong = difference(expected, theirs)
    if wrong and ("onnxruntime", model.graph.node[1].op_type) not in EXPLANATIONS:
        lines.append(f"reference operators, expected onnxruntime's: {wrong}")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--options", default="")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    reference = ReferenceOperators(arguments.reference)
    failed = 0
    for operator, attributes in {**ACTIVATIONS, **POOLS}.items():
        for kind, values in KINDS.items():
            name = f"{operator}.{kind}"
            if arguments.cases and not any(name.startswith(case) for case in arguments.cases):
                continue
            with tempfile.TemporaryDirectory() as folder:
                model = chain(operator, attributes)
                lines = run_case(arguments, reference, model, picture(values), folder)
            failed += bool(lines)
            for line in lines:
                print(f"{name}: {line}", flush=True)
    print(f"{failed} of {len({**ACTIVATIONS, **POOLS}) * len(KINDS)} cases differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
