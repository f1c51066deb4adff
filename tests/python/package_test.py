"""Tests the installed Python package. Expected values come from onnx's reference evaluator or from
arithmetic in the test."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import laminate
import laminate.onnx_backend as backend
import numpy
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

DATA = pathlib.Path(os.environ["LAMINATE_DATA"])


def two_layers(height=9, width=11):
    """3x3 convolution, 3 to 4 channels, relu; 1x1 convolution to 2 channels.

    Weights are small integers, so sums are exact.
    """
    rng = numpy.random.default_rng(5)
    weights = {
        "w1": rng.integers(-3, 4, (4, 3, 3, 3)),
        "b1": rng.integers(-3, 4, 4),
        "w2": rng.integers(-3, 4, (2, 4, 1, 1)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["y"], kernel_shape=[1, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "two_layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, height, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, height - 2, width - 2])],
        [
            numpy_helper.from_array(value.astype(numpy.float32), name)
            for name, value in weights.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def integers(shape):
    return numpy.random.default_rng(3).integers(-4, 5, shape).astype(numpy.float32)


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = two_layers()
        cls.x = integers((1, 3, 9, 11))
        cls.expected = ReferenceEvaluator(cls.model).run(None, {"x": cls.x})[0]
        cls.network = laminate.compile(cls.model, threads=2)

    @classmethod
    def tearDownClass(cls):
        cls.network.close()

    def test_gives_what_the_reference_evaluator_gives(self):
        self.assertEqual(self.network.inputs, [laminate.Tensor("x", (1, 3, 9, 11))])
        self.assertEqual(self.network.outputs, [laminate.Tensor("y", (1, 2, 7, 9))])
        [y] = self.network.run(self.x)
        numpy.testing.assert_array_equal(y, self.expected)
        [y] = self.network.run(x=self.x)
        numpy.testing.assert_array_equal(y, self.expected)

    def test_takes_any_layout_and_number_type(self):
        turned = numpy.asfortranarray(self.x.astype(numpy.int64))
        numpy.testing.assert_array_equal(self.network.run(turned)[0], self.expected)
        numpy.testing.assert_array_equal(
            self.network.run(self.x[:, ::-1][:, ::-1])[0], self.expected
        )

    def test_refuses_what_does_not_fit_in_one_line(self):
        for wrong, message in [
            ((self.x[:, :2],), "input x: found shape (1, 2, 9, 11), expected (1, 3, 9, 11)"),
            ((self.x, self.x), "found 2 inputs, expected 1: x"),
            ((self.x.astype(str),), "expected numbers"),
        ]:
            with self.assertRaises(laminate.InputError) as caught:
                self.network.run(*wrong)
            self.assertIn(message, str(caught.exception))
        with self.assertRaises(laminate.InputError):
            self.network.run(z=self.x)

    def test_a_runtime_that_is_not_there_is_an_error_of_the_package(self):
        program = (
            "import laminate, laminate._runtime as runtime\n"
            "runtime.find_runtime = lambda: 'nowhere.so'\n"
            "try: laminate.open('x')\n"
            "except laminate.Error as error: print(error)"
        )
        said = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        self.assertIn("nowhere.so", said)
        self.assertEqual(said.count("\n"), 1)

    def test_bytes_go_in_and_come_out(self):
        nodes = [
            helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Conv", ["f", "w"], ["c"], kernel_shape=[1, 1]),
            helper.make_node("Cast", ["c"], ["y"], to=TensorProto.UINT8),
        ]
        ends = [
            helper.make_tensor_value_info(name, TensorProto.UINT8, [1, 3, 4, 5])
            for name in ("p", "y")
        ]
        weights = numpy.eye(3, dtype=numpy.float32).reshape(3, 3, 1, 1) * numpy.float32(0.5)
        graph = helper.make_graph(
            nodes, "bytes", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        p = numpy.random.default_rng(4).integers(0, 256, (1, 3, 4, 5)).astype(numpy.uint8)
        with laminate.compile(model) as network:
            self.assertEqual(network.inputs, [laminate.Tensor("p", (1, 3, 4, 5), "uint8")])
            [y] = network.run(p)
            self.assertEqual(y.dtype, numpy.uint8)
            numpy.testing.assert_array_equal(y, p // 2)
            with self.assertRaises(laminate.InputError) as caught:
                network.run(p / numpy.float32(255))
            self.assertIn("input p: found float32, expected uint8", str(caught.exception))

    # Issue 26, 2.
    def test_strict_code_keeps_specials(self):
        x = self.x.copy()
        x[0, 0, 4, 5], x[0, 1, 8, 0] = numpy.nan, numpy.inf
        with numpy.errstate(all="ignore"):
            expected = ReferenceEvaluator(self.model).run(None, {"x": x})[0]
        self.assertTrue(numpy.isnan(expected).any() and numpy.isfinite(expected).any())
        with laminate.compile(self.model, strict=True) as network:
            [y] = network.run(x)
        numpy.testing.assert_array_equal(y, expected)

    # Issue 26, 3.
    def test_threads_may_share_a_network(self):
        results = [None] * 8

        def work(k):
            results[k] = self.network.run(self.x)[0]

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            numpy.testing.assert_array_equal(result, self.expected)

    def test_a_closed_network_says_so(self):
        network = laminate.compile(self.model)
        directory = pathlib.Path(network.directory)
        self.assertGreaterEqual(network.arena_bytes, 0)
        network.close()
        self.assertFalse(directory.exists())
        with self.assertRaisesRegex(laminate.Error, "is closed"):
            network.run(self.x)

    def test_closing_waits_for_a_run_of_another_thread(self):
        for _ in range(20):
            network = laminate.open(self.network.directory, threads=2)
            started = threading.Event()
            said = []

            def work():
                try:
                    while True:
                        network.run(self.x)
                        started.set()
                except laminate.Error as error:
                    said.append(str(error))

            worker = threading.Thread(target=work)
            worker.start()
            started.wait()
            network.close()
            worker.join()
            self.assertIn("is closed", said[0])

    def test_run_opens_directories_and_compiles_models(self):
        with tempfile.TemporaryDirectory() as directory:
            target = pathlib.Path(directory) / "net"
            laminate.compile(self.model, target, memory="2KiB").close()
            numpy.testing.assert_array_equal(laminate.run(target, self.x)[0], self.expected)
            library = next(target.glob("*.so"))
            library.write_bytes(library.read_bytes()[:-1])
            with self.assertRaisesRegex(laminate.InputError, "damaged"):
                laminate.open(target)
        numpy.testing.assert_array_equal(laminate.run(self.model, self.x)[0], self.expected)

    def test_run_takes_open_sizes_from_the_input(self):
        [y] = laminate.run(
            DATA / "fsrcnn_x2.onnx", numpy.zeros((1, 1, 20, 30), dtype=numpy.float32)
        )
        self.assertEqual(y.shape, (1, 1, 40, 60))


class Verbs(unittest.TestCase):
    def test_explore_gives_a_front(self):
        front = laminate.explore("zoo:l2net", threads=1)
        self.assertTrue(front.is_complete)
        # Nothing is read or written twice: 20x20x3 in, 16x16x4 out, (3 + 4) * 4 * 9 weights
        # = 1200 + 1024 + 252.
        self.assertEqual(min(p.accesses for p in front), 1200 + 1024 + 252)
        small = front.within(1800)
        self.assertLessEqual(small.memory_bytes, 1800)
        self.assertIsNone(front.within(1))
        with laminate.compile("zoo:l2net", schedule=small.schedule) as network:
            self.assertEqual(network.outputs[0].shape, (1, 4, 16, 16))

    def test_validate_counts_alike(self):
        self.assertEqual(laminate.validate("zoo:l2net", random=3)["equal"], 3)

    def test_errors_are_those_of_the_program(self):
        for error, action in [
            (laminate.InputError, lambda: laminate.explore("zoo:nothing")),
            (laminate.UsageError, lambda: laminate.explore("zoo:l2net", no_such_option=1)),
            (laminate.Infeasible, lambda: laminate.explore("zoo:l2net", memory="16B")),
        ]:
            with self.assertRaises(error) as caught:
                action()
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_the_command_is_there(self):
        said = subprocess.run(
            [sys.executable, "-c", "from laminate._program import main; main()", "--version"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertTrue(said.stdout.startswith("laminate "))


class OnnxBackend(unittest.TestCase):
    def test_prepares_and_runs(self):
        model, x = two_layers(), integers((1, 3, 9, 11))
        [y] = backend.prepare(model).run([x])
        numpy.testing.assert_array_equal(y, ReferenceEvaluator(model).run(None, {"x": x})[0])
        [y] = backend.run_model(model, [x])
        self.assertEqual(y.shape, (1, 2, 7, 9))

    def test_runs_a_node(self):
        x, w = integers((1, 3, 6, 7)), integers((4, 3, 3, 2))
        conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 0, 1, 1])
        clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
        pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2])
        for node, inputs, opset in (
            (conv, [x, w], 23),
            (clip, [x, numpy.float32(2)], 23),
            (pool, [x], 19),
        ):
            [y] = backend.run_node(node, inputs, opset_version=opset)
            names = [name for name in node.input if name]
            numpy.testing.assert_array_equal(
                y, ReferenceEvaluator(node).run(None, dict(zip(names, inputs)))[0], node.op_type
            )
        [y] = backend.run_node(conv, [x, w], outputs_info=[(numpy.float32, (1, 4, 6, 7))])
        self.assertEqual(y.shape, (1, 4, 6, 7))
        with self.assertRaises(laminate.UsageError):
            backend.run_node(conv, [x])
        with self.assertRaises(laminate.InputError):
            backend.run_node(helper.make_node("NonZero", ["x"], ["y"]), [x])

    def test_knows_what_it_cannot(self):
        self.assertTrue(backend.supports_device("CPU"))
        self.assertFalse(backend.supports_device("CUDA:1"))
        self.assertTrue(backend.is_compatible(two_layers()))
        node = helper.make_node("NonZero", ["x"], ["y"])
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
            [helper.make_tensor_value_info("y", TensorProto.INT64, [2, None])],
        )
        self.assertFalse(
            backend.is_compatible(
                helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
            )
        )


if __name__ == "__main__":
    unittest.main()
