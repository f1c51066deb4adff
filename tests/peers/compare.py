"""`laminate run` against onnxruntime: with the same model file and random input, outputs are equal
within rtol 1e-3 and 1e-5 of the range.

  compare.py --laminate PROGRAM zoo NAME [HEIGHT WIDTH]
      a zoo network, exported by the program and checked by onnx.checker
  compare.py --laminate PROGRAM random FIRST COUNT
      random networks of seeds FIRST ..., compared bit for bit on integer inputs
  compare.py --laminate PROGRAM operators
      small models made with onnx.helper, as other exporters write them
  compare.py --laminate PROGRAM picture DATA
      the example network on the astronaut: its PSNR of luma equals onnxruntime's

Exit 0: equal; 1: different (the line says where); 77: onnxruntime is not installed (`make test`
installs it).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}; `make test` installs the peers")
    sys.exit(77)

RTOL, ATOL_OF_RANGE = 1e-3, 1e-5


def laminate(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"laminate {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def onnxruntime_session(path, threads=0):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def difference(ours, theirs, exact=False):
    """Empty when equal, else one line. The range is that of the reference output."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, expected {theirs.shape}"
    if not np.all(np.isfinite(ours)):
        return "output is not finite"
    span = float(theirs.max() - theirs.min())
    allowed = np.zeros_like(theirs) if exact else ATOL_OF_RANGE * span + RTOL * np.abs(theirs)
    error = np.abs(ours.astype(np.float64) - theirs)
    worst = np.unravel_index(np.argmax(error - allowed), error.shape)
    if error[worst] <= allowed[worst]:
        return ""
    return (f"{np.count_nonzero(error > allowed)} of {error.size} elements differ; "
            f"worst at {tuple(int(i) for i in worst)}: found {ours[worst]:.8g}, "
            f"expected {theirs[worst]:.8g}, range {span:.3g}")


def compare_model(program, path, inputs, directory, options=(), exact=False, for_onnxruntime=None,
                  renamed=None):
    """Runs both on `inputs` (name -> array). Returns the difference over all outputs, or "".

    for_onnxruntime: a file of the same network that onnxruntime accepts. renamed: our names of
    outputs by their places, where they differ."""
    session = onnxruntime_session(for_onnxruntime or path)
    names = [output.name for output in session.get_outputs()]
    expected = session.run(None, inputs)
    names = [(renamed or {}).get(i, name) for i, name in enumerate(names)]
    arguments = ["run", path, "--quiet", *options]
    for i, (name, value) in enumerate(inputs.items()):
        np.save(os.path.join(directory, f"in{i}.npy"), value)
        arguments += ["--input", f"{name}={os.path.join(directory, f'in{i}.npy')}"]
    for i, name in enumerate(names):
        arguments += ["--output", f"{name}={os.path.join(directory, f'out{i}.npy')}"]
    laminate(program, *arguments)
    for i, name in enumerate(names):
        text = difference(np.load(os.path.join(directory, f"out{i}.npy")), expected[i], exact)
        if text:
            return f"{name}: {text}"
    return ""


def random_inputs(session, rng):
    """Uniform in [-1, 1): signs matter to every activation."""
    return {i.name: rng.uniform(-1, 1, i.shape).astype(np.float32) for i in session.get_inputs()}


def zoo(program, name, height=None, width=None):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "net.onnx")
        size = ["--height", height, "--width", width] if height else []
        laminate(program, "zoo", "export", name, "-o", path, *size)
        onnx.checker.check_model(path)
        inputs = random_inputs(onnxruntime_session(path), np.random.default_rng(1))
        return [(name, compare_model(program, path, inputs, directory))]


def random(program, first, count):
    """All sums in these networks are exact in 32-bit floats, so nothing may differ."""
    results = []
    for seed in range(int(first), int(first) + int(count)):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "net.onnx")
            laminate(program, "zoo", "export", f"random:{seed}", "-o", path)
            onnx.checker.check_model(path, full_check=True)
            rng = np.random.default_rng(seed)
            session = onnxruntime_session(path, threads=1)
            inputs = {i.name: rng.integers(-8, 9, i.shape).astype(np.float32)
                      for i in session.get_inputs()}
            found = compare_model(program, path, inputs, directory, ["--threads", "1"], exact=True)
            results.append((f"random:{seed}", found))
    return results


def single(op, inputs, weights=(), opset=17, **attributes):
    """A model of one operator: `inputs` are shapes, `weights` arrays."""
    names = [f"x{i}" for i in range(len(inputs))]
    constants = [numpy_helper.from_array(np.asarray(w), f"w{i}") for i, w in enumerate(weights)]
    node = helper.make_node(op, names + [c.name for c in constants], ["y"], name="node", **attributes)
    return finish([node], dict(zip(names, inputs)), constants, opset)


def finish(nodes, inputs, constants, opset=17):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_empty_tensor_value_info("y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def f32(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def operator_models():
    """(name, model): attributes and node patterns that exporters write and our own zoo does not."""
    rng = np.random.default_rng(3)
    yield from convolution_models(rng)
    yield from single_models(rng)
    yield from graph_models(rng)


def convolution_models(rng):
    def conv(name, x, w, bias=True, **attributes):
        constants = [f32(rng, *w)] + ([f32(rng, w[0])] if bias else [])
        return name, single("Conv", [x], constants, **attributes)

    yield conv("conv_same_upper_stride_2", [1, 3, 11, 14], (5, 3, 3, 3), auto_pad="SAME_UPPER",
               strides=[2, 2])
    yield conv("conv_same_lower_stride_2", [1, 3, 11, 14], (5, 3, 4, 4), auto_pad="SAME_LOWER",
               strides=[2, 2])
    yield conv("conv_asymmetric_pads", [2, 3, 9, 10], (4, 3, 3, 5), pads=[0, 1, 2, 3])
    yield conv("conv_dilated", [1, 3, 15, 17], (4, 3, 3, 3), dilations=[2, 3], pads=[2, 3, 2, 3])
    yield conv("conv_grouped", [1, 6, 9, 9], (9, 2, 3, 3), group=3, pads=[1, 1, 1, 1])
    yield conv("conv_depthwise_stride_2", [1, 8, 13, 13], (8, 1, 3, 3), group=8, strides=[2, 2],
               pads=[1, 1, 1, 1])
    yield conv("conv_without_bias_kernel_1", [1, 7, 5, 6], (3, 7, 1, 1), bias=False)
    yield conv("conv_stride_larger_than_kernel", [1, 3, 13, 16], (4, 3, 1, 2), strides=[3, 4])

    for name, shape, attributes in (
            ("plain", (3, 4, 3, 3), {}),
            ("stride_2_output_padding", (3, 4, 3, 3),
             dict(strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])),
            ("stride_3_asymmetric", (3, 2, 4, 5), dict(strides=[3, 2], pads=[0, 1, 1, 2])),
            ("grouped", (4, 3, 2, 2), dict(strides=[2, 2], group=2)),
            ("output_shape", (3, 2, 3, 3), dict(strides=[2, 2], output_shape=[12, 14])),
            ("dilated", (3, 2, 3, 3), dict(dilations=[2, 2]))):
        outputs = shape[1] * attributes.get("group", 1)
        yield "conv_transpose_" + name, single("ConvTranspose", [[1, shape[0], 6, 7]],
                                               [f32(rng, *shape), f32(rng, outputs)], **attributes)


def single_models(rng):
    yield "max_pool_ceil", single("MaxPool", [[1, 3, 10, 11]], kernel_shape=[3, 3], strides=[2, 2],
                                  ceil_mode=1)
    yield "max_pool_padded", single("MaxPool", [[1, 3, 10, 11]], kernel_shape=[3, 2], strides=[2, 1],
                                    pads=[1, 0, 1, 1])
    yield "average_pool_excludes_pad", single("AveragePool", [[1, 3, 9, 9]], kernel_shape=[3, 3],
                                              strides=[2, 2], pads=[1, 1, 1, 1])
    yield "average_pool_includes_pad", single("AveragePool", [[1, 3, 9, 9]], kernel_shape=[3, 3],
                                              pads=[1, 1, 1, 1], count_include_pad=1)
    yield "average_pool_ceil", single("AveragePool", [[1, 3, 10, 10]], kernel_shape=[3, 3],
                                      strides=[2, 2], ceil_mode=1)
    yield "global_average_pool", single("GlobalAveragePool", [[2, 5, 7, 6]])
    yield "depth_to_space_dcr", single("DepthToSpace", [[1, 8, 3, 4]], blocksize=2)
    yield "depth_to_space_crd", single("DepthToSpace", [[1, 8, 3, 4]], blocksize=2, mode="CRD")
    yield "concat_channels", single("Concat", [[1, 3, 4, 5], [1, 2, 4, 5]], axis=1)
    yield "concat_rows", single("Concat", [[1, 3, 4, 5], [1, 3, 2, 5]], axis=-2)
    yield "add", single("Add", [[1, 3, 4, 5], [1, 3, 4, 5]])
    yield "softmax_channels", single("Softmax", [[2, 9]], axis=-1)
    yield "leaky_relu", single("LeakyRelu", [[1, 3, 4, 5]], alpha=0.2)
    yield "prelu_per_channel", single("PRelu", [[1, 3, 4, 5]], [f32(rng, 3, 1, 1)])
    yield "clip_relu6_opset_6_style", single("Clip", [[1, 3, 4, 5]], opset=10, min=-0.25, max=0.5)
    yield "clip_inputs", single("Clip", [[1, 3, 4, 5]], [np.float32(-0.25), np.float32(0.5)])
    yield "sigmoid", single("Sigmoid", [[1, 3, 4, 5]])
    yield "tanh", single("Tanh", [[1, 3, 4, 5]])
    yield "gemm_trans_b_alpha_beta", single("Gemm", [[2, 6]], [f32(rng, 4, 6), f32(rng, 4)], transB=1,
                                            alpha=0.5, beta=2.0)
    yield "gemm_plain", single("Gemm", [[2, 6]], [f32(rng, 6, 4), f32(rng, 1, 4)])
    yield "matmul", single("MatMul", [[2, 6]], [f32(rng, 6, 4)])


def graph_models(rng):
    constants = [numpy_helper.from_array(f32(rng, 4, 3, 3, 3), "w"),
                 numpy_helper.from_array(f32(rng, 4) + 2, "scale"),
                 numpy_helper.from_array(f32(rng, 4), "shift"),
                 numpy_helper.from_array(f32(rng, 4), "mean"),
                 numpy_helper.from_array(np.abs(f32(rng, 4)) + 0.5, "variance")]
    batch_norm = lambda x, y: helper.make_node("BatchNormalization", [x, "scale", "shift", "mean",
                                                                      "variance"], [y], epsilon=1e-3)
    yield "conv_batch_norm_relu", finish([helper.make_node("Conv", ["x", "w"], ["a"]),
                                          batch_norm("a", "b"),
                                          helper.make_node("Relu", ["b"], ["y"])], {"x": [1, 3, 8, 9]},
                                         constants)
    yield "batch_norm_after_pool", finish([helper.make_node("Conv", ["x", "w"], ["a"]),
                                           helper.make_node("MaxPool", ["a"], ["b"],
                                                            kernel_shape=[2, 2]), batch_norm("b", "y")],
                                          {"x": [1, 3, 8, 9]}, constants)
    # The convolution has two readers: neither the batch norm nor the activation may be folded into it.
    yield "shared_conv_is_not_folded", finish([helper.make_node("Conv", ["x", "w"], ["a"]),
                                               batch_norm("a", "b"),
                                               helper.make_node("Relu", ["a"], ["c"]),
                                               helper.make_node("Add", ["b", "c"], ["y"])],
                                              {"x": [1, 3, 8, 9]}, constants)
    head = constants[:1] + [numpy_helper.from_array(f32(rng, 5, 4), "v"),
                            numpy_helper.from_array(np.array([1, -1], np.int64), "shape")]
    yield "pool_reshape_gemm", finish([helper.make_node("Conv", ["x", "w"], ["a"]),
                                       helper.make_node("GlobalAveragePool", ["a"], ["b"]),
                                       helper.make_node("Reshape", ["b", "shape"], ["c"]),
                                       helper.make_node("Dropout", ["c"], ["d"]),
                                       helper.make_node("Gemm", ["d", "v"], ["y"], transB=1)],
                                      {"x": [1, 3, 8, 9]}, head)


def operators(program):
    results = []
    for name, model in operator_models():
        onnx.checker.check_model(model)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "net.onnx")
            onnx.save(model, path)
            inputs = random_inputs(onnxruntime_session(path), np.random.default_rng(5))
            try:
                results.append((name, compare_model(program, path, inputs, directory)))
            except SystemExit as error:  # one refused model does not hide the others
                results.append((name, str(error)))
    return results


def picture(program, data):
    def luma(name):
        rgb = np.asarray(Image.open(os.path.join(data, name)).convert("RGB"), dtype=np.float64) / 255
        return (16 + rgb @ [65.481, 128.553, 24.966]) / 255  # ITU-R BT.601

    def psnr(a, b):
        a, b = a[6:-6, 6:-6], b[6:-6, 6:-6]
        return 10 * np.log10(1 / np.mean((np.clip(a, 0, 1) - b) ** 2))

    network = os.path.join(data, "fsrcnn_x2.onnx")
    small, large = luma("astronaut_half.png"), luma("astronaut.png")
    session = onnxruntime_session(network)
    theirs = session.run(None, {"luma": small[None, None].astype(np.float32)})[0][0, 0]
    with tempfile.TemporaryDirectory() as directory:
        answer = json.loads(laminate(program, "run", network, "--input",
                                     os.path.join(data, "astronaut_half.png"), "--output",
                                     os.path.join(directory, "x2.png"), "--compare",
                                     os.path.join(data, "astronaut.png"), "--json", "-"))
        size = Image.open(os.path.join(directory, "x2.png")).size
    ours, reference = answer["psnr_db"], psnr(theirs, large)
    print(f"PSNR {ours:.4f} dB, onnxruntime {reference:.4f} dB, "
          f"bicubic {answer['bicubic_psnr_db']:.4f} dB")
    results = [("picture size", "" if size == (512, 512) else f"found {size}, expected (512, 512)"),
               ("psnr", "" if abs(ours - reference) < 0.01
                else f"found {ours:.4f} dB, expected {reference:.4f} dB within 0.01"),
               ("bicubic", "" if abs(answer["bicubic_psnr_db"] - 32.05) < 0.01
                else f"found {answer['bicubic_psnr_db']}, expected 32.05")]
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True)
    parser.add_argument("case", choices=["zoo", "random", "operators", "picture"])
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    cases = {"zoo": zoo, "random": random, "operators": operators, "picture": picture}
    results = cases[options.case](options.laminate, *options.arguments)
    for name, text in results:
        print(f"{name}: {text or 'equal'}")
    return 1 if any(text for _, text in results) else 0


if __name__ == "__main__":
    sys.exit(main())
