"""Writes the backend tests of the installed `onnx` package that Laminate runs.

  backend_tests.py DIRECTORY

Each test becomes DIRECTORY/SET/NAME/model.onnx with test_data_set_0/input_K.pb and output_K.pb, the
layout of the package's own data. The sets `pytorch-converted`, `pytorch-operator` and `simple` are
copied. The set `node` (one operator each, or the operators that define it, `_expanded`) is made by
the package's generators, because the package does not carry its files; NODES below selects among
them. Only tests on the float path are taken: every output is FLOAT, and every input is FLOAT or a
type of shapes and flags (INT64, INT32, BOOL).

Does nothing if DIRECTORY is complete and of this version. Exit 77 if onnx is not installed (`make
test` installs it).
"""

import hashlib
import importlib
import os
import shutil
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")
try:
    import onnx
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.case import node
except ImportError as error:
    print(f"skipped: {error}; `make test` installs the peers")
    sys.exit(77)

# Files of onnx.backend.test.case.node: operators of convolutional networks, and operators that
# exporters write around them.
NODES = """
    conv convtranspose batch_normalization instance_normalization layernormalization
    groupnormalization rmsnormalization meanvariancenormalization lpnormalization lrn
    maxpool averagepool lppool globalaveragepool globalmaxpool relu leakyrelu prelu clip
    sigmoid hardsigmoid hardswish tanh elu selu celu softplus softsign mish thresholdedrelu
    shrink gelu swish abs neg exp log sqrt
    reciprocal floor ceil round sign erf sin cos tan add sub mul div pow sum mean max min where
    concat split slice reshape flatten squeeze unsqueeze transpose expand tile gather pad
    depthtospace spacetodepth resize upsample gemm matmul softmax logsoftmax hardmax reducemean
    reducesum reducemax reducemin reduceprod reducel1 reducel2 reduce_log_sum reduce_log_sum_exp
    reducesumsquare dropout identity constant constantofshape shape size cast mod einsum cumsum
    gridsample rangeop scatternd
""".split()
COPIED_SETS = ["pytorch-converted", "pytorch-operator", "simple"]
INPUT_TYPES = {TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}


def is_float_path(model):
    def type_of(value):
        return value.type.tensor_type.elem_type

    return all(type_of(v) == TensorProto.FLOAT for v in model.graph.output) and all(
        type_of(v) in INPUT_TYPES for v in model.graph.input
    )


def tensor_proto(value, info):
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(value, info.name)


def write_node_tests(directory):
    for name in NODES:
        importlib.import_module(f"onnx.backend.test.case.node.{name}")
    left_out = 0
    for case in node._NodeTestCases:
        if not is_float_path(case.model):
            left_out += 1
            continue
        data = os.path.join(directory, case.name, "test_data_set_0")
        os.makedirs(data)
        onnx.save(case.model, os.path.join(directory, case.name, "model.onnx"))
        inputs, outputs = case.data_sets[0]
        for kind, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for k, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(data, f"{kind}_{k}.pb"), "wb") as file:
                    file.write(tensor_proto(value, info).SerializeToString())
    return left_out


def copy_tests(source, directory):
    left_out = 0
    for name in sorted(os.listdir(source)):
        if is_float_path(onnx.load(os.path.join(source, name, "model.onnx"))):
            shutil.copytree(os.path.join(source, name), os.path.join(directory, name))
        else:
            left_out += 1
    return left_out


def main():
    directory = os.path.abspath(sys.argv[1])
    with open(__file__, "rb") as file:
        version = onnx.__version__ + " " + hashlib.sha256(file.read()).hexdigest()
    stamp = os.path.join(directory, "version")
    if os.path.exists(stamp) and open(stamp).read() == version:
        print("complete already")
        return
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    aside = tempfile.mkdtemp(dir=os.path.dirname(directory))  # renamed when complete
    package = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    left_out = {"node": write_node_tests(os.path.join(aside, "node"))}
    for name in COPIED_SETS:
        left_out[name] = copy_tests(os.path.join(package, name), os.path.join(aside, name))
    for name, count in left_out.items():
        taken = len(os.listdir(os.path.join(aside, name)))
        print(f"{name}: {taken} tests; {count} not on the float path")
    with open(os.path.join(aside, "version"), "w") as file:
        file.write(version)
    shutil.rmtree(directory, ignore_errors=True)
    os.rename(aside, directory)


if __name__ == "__main__":
    main()
