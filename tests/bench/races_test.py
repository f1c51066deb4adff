"""bench/peers.py and bench/threads.py: one round of one tiny network, and networks and contestants
that fail.

  races_test.py --laminate PROGRAM --bench DIRECTORY

Exit 0: passed; 1: failed; 77: onnxruntime is not installed (`make test` installs it).
"""

import argparse
import contextlib
import datetime
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

try:
    import numpy
    import onnx
    import onnxruntime  # noqa: F401  (the races' reference)
    from onnx import TensorProto, helper
except ImportError as error:
    print(f"skipped: {error}; `make test` installs the peers")
    sys.exit(77)

OURS = ["laminate fused", "laminate layer by layer"]


def described(name, element_type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element_type, [1, 2])


def model(inputs, nodes, outputs):
    return helper.make_model(helper.make_graph(nodes, "net", inputs, outputs),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Races(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)

    def file(self, name, content):
        path = self.directory / name
        path.write_bytes(content)
        return str(path)

    def race(self, script, nets, *options):
        """Exit status, what was said, the file of answers."""
        command = [sys.executable, str(ARGUMENTS.bench / script), "--laminate", str(ARGUMENTS.laminate),
                   "--rounds", "1", "--seconds", "0.01",
                   "--json", str(self.directory / "answers.json"), *options]
        for net in nets:
            command += ["--net", net]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([p.name for p in self.directory.iterdir() if p.suffix == ".partial"], [])
        answers = json.loads((self.directory / "answers.json").read_text())
        self.assertGreater(len(answers["cpu"]), 0)
        self.assertGreater(answers["cores"], 0)
        self.assertIn("--rounds 1", answers["command"])
        begin = datetime.datetime.fromisoformat(answers["date"])
        age = datetime.datetime.now(datetime.timezone.utc) - begin
        self.assertLess(abs(age), datetime.timedelta(hours=1))
        self.assertIn(answers["date"], done.stdout)
        return done.returncode, done.stdout, answers

    def check_row(self, row):
        self.assertGreater(row["runs"], 0)
        self.assertGreater(row["min_ms"], 0)
        self.assertGreaterEqual(row["median_ms"], row["min_ms"])
        self.assertGreater(row["peak_rss_bytes"], 0)

    def test_race_with_peers(self):
        garbage = self.file("garbage.onnx", b"no model")
        sum_of_two = model([described("a"), described("b")],
                           [helper.make_node("Add", ["a", "b"], ["y"])], [described("y")])
        two_of_one = model([described("a")],
                           [helper.make_node("Relu", ["a"], ["y"]),
                            helper.make_node("Neg", ["a"], ["z"])],
                           [described("y"), described("z")])
        two_inputs = self.file("two_inputs.onnx", sum_of_two.SerializeToString())
        two_outputs = self.file("two_outputs.onnx", two_of_one.SerializeToString())
        missing = str(self.directory / "missing.onnx")
        failing = {garbage: "expected zoo:NAME or an ONNX file",
                   missing: "expected zoo:NAME or an ONNX file",
                   "zoo:nothing": "zoo:nothing: no such network",
                   two_inputs: "2 inputs, 1 outputs, of tensor(float); expected one of each",
                   two_outputs: "1 inputs, 2 outputs"}
        status, said, answers = self.race("peers.py", [garbage, "zoo:l2net", *list(failing)[1:]],
                                          "--threads", "1")
        self.assertEqual(status, 1)
        self.assertEqual(answers["schema"], "laminate.peers")
        self.assertEqual([(r["net"], r["threads"]) for r in answers["races"]], [("zoo:l2net", 1)])
        race = answers["races"][0]
        self.assertEqual(race["macs"], 18 * 18 * 4 * 3 * 9 + 16 * 16 * 4 * 4 * 9)
        contestants = list(race["contestants"])
        self.assertEqual(contestants[:2], OURS)
        self.assertTrue(contestants[2].startswith("onnxruntime "), contestants)
        for name, row in race["contestants"].items():
            self.check_row(row)
            self.assertGreater(row["gflops"], 0)
            self.assertLess(row["error"], 1e-5)
            self.assertIn(name, said)
        installed = set(runtimes.installed_peers())
        self.assertEqual(installed, set(contestants[2:]) | set(race["skipped"]))
        self.assertEqual([f["net"] for f in answers["failed"]], list(failing))
        for one in answers["failed"]:
            self.assertIn(failing[one["net"]], one["error"])
            self.assertNotIn("\n", one["error"])
            self.assertIn(f"{one['net']}, 1 thread: failed: {one['error']}", said)

    def test_threads_against_processes(self):
        status, said, answers = self.race("threads.py", ["zoo:nothing", "zoo:l2net"])
        self.assertEqual(status, 1)
        self.assertEqual(answers["schema"], "laminate.threads")
        self.assertEqual([n["net"] for n in answers["networks"]], ["zoo:l2net"])
        for way in ("one", "processes", "threads"):
            self.check_row(answers["networks"][0][way])
        self.assertEqual([(f["net"], f["threads"]) for f in answers["failed"]], [("zoo:nothing", 2)])
        self.assertIn("zoo:nothing: no such network", answers["failed"][0]["error"])
        self.assertIn("zoo:nothing, 2 threads: failed: ", said)

    def test_compile_times(self):
        answers = self.directory / "times.json"
        done = subprocess.run(
            [sys.executable, ARGUMENTS.bench / "compile_times.py", "--laminate",
             ARGUMENTS.laminate,
             "--rounds", "1", "--json", answers, "--net", "zoo:nothing", "--net", "zoo:l2net"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(answers.read_text())
        self.assertEqual(found["schema"], "laminate.compile_times")
        self.assertIn("zoo:nothing: no such network", found["failed"][0]["error"])
        [row] = found["networks"]
        self.assertGreater(row["cpu_seconds"]["without"]["llvm"], 0)
        self.assertGreater(row["cpu_seconds"]["cold"]["compiled_groups"], 0)
        self.assertEqual(row["cpu_seconds"]["warm"]["compiled_groups"], 0)
        self.assertEqual(row["cpu_seconds"]["warm"]["check"], 0)

    def test_staircase(self):
        answers = self.directory / "staircase.json"
        done = subprocess.run(
            [sys.executable, ARGUMENTS.bench / "staircase.py", "--laminate", ARGUMENTS.laminate,
             "--seconds", "0.01", "--memory", "3KiB", "--memory", "64KiB", "--json", answers,
             "--net", "zoo:nothing", "--net", "zoo:l2net"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(answers.read_text())
        self.assertIn("zoo:nothing: no such network", found["failed"][0]["error"])
        less, more = found["networks"][0]["steps"]
        self.assertLessEqual(less["live_bytes"], 3 * 1024)
        self.assertLessEqual(more["predicted_ms"], less["predicted_ms"])
        self.assertGreater(more["measured_ms"], 0)

    def test_all_well(self):
        status, _, answers = self.race("threads.py", ["zoo:l2net"], "--threads", "1")
        self.assertEqual((status, answers["failed"]), (0, []))


class Parts(unittest.TestCase):
    def test_a_runtime_that_cannot_convert_or_is_wrong_takes_no_part(self):
        def refuse(model, directory, shape):
            raise peers.Failed(f"no layer for {pathlib.Path(model).name} of {shape}")

        def broken(model, directory, shape):
            path = pathlib.Path(directory) / "broken.onnx"
            path.write_bytes(other)
            return str(path)

        same, other = (model([described("a")], [helper.make_node(kind, ["a"], ["y"])],
                             [described("y")]).SerializeToString() for kind in ("Relu", "Neg"))
        reference = runtimes.PEERS["onnxruntime"]
        rows = {"reference": reference, "refuses": reference._replace(convert=refuse),
                "is wrong": reference._replace(convert=broken)}
        with tempfile.TemporaryDirectory() as scratch, \
                unittest.mock.patch.object(peers, "installed_peers", lambda: rows):
            path = pathlib.Path(scratch) / "net.onnx"
            path.write_bytes(same)
            value = numpy.array([[-1, 2]], numpy.float32)
            numpy.save(path.with_name("input.npy"), value)
            numpy.save(path.with_name("output.npy"), numpy.maximum(value, 0))
            options = argparse.Namespace(seconds=0.01)
            raced, skipped = peers.peer_contestants(str(path), value.shape, options, 1)
            self.assertEqual(list(raced), ["reference"])
            error, one_round = raced["reference"]
            self.assertEqual(error, 0)
            self.assertGreater(min(one_round()["times_ms"]), 0)
        self.assertEqual(list(skipped), ["refuses", "is wrong"])
        self.assertEqual(skipped["refuses"], "no layer for net.onnx of (1, 2)")
        # (1, -2) for (0, 2): off by 4, twice the range.
        self.assertIn("exit 1: differs from float64 by 2 of the range", skipped["is wrong"])

    def test_answers_are_there_before_the_last_network_is_measured(self):
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
            path = pathlib.Path(scratch) / "answers.json"
            written = []
            measurements = [
                ({"net": "a", "threads": 1}, lambda: "first"),
                ({"net": "b", "threads": 1}, lambda: written.append(json.loads(path.read_text())))]
            status = peers.measure_all({}, "races", measurements, str(path))
        self.assertEqual((status, written), (0, [{"races": ["first"], "failed": []}]))

    def test_a_process_that_fails_among_several_says_why(self):
        with self.assertRaises(peers.Failed) as raised:
            threads.together(str(ARGUMENTS.laminate), "/nowhere", 2, 0.01)
        self.assertIn("exit 3: laminate: error: /nowhere", str(raised.exception))
        self.assertNotIn("\n", str(raised.exception))

    def test_memory_that_the_system_does_not_tell(self):
        known = {"times_ms": [1, 2], "peak_rss_bytes": 2**20}
        unknown = {"times_ms": [3], "peak_rss_bytes": None}
        self.assertEqual(peers.summary([unknown, known])["peak_rss_bytes"], 2**20)
        self.assertIsNone(peers.summary([unknown])["peak_rss_bytes"])
        self.assertEqual(peers.memory_cells(unknown, known), (f"{'-':>12}", "-"))
        self.assertEqual(peers.memory_cells(known, unknown), (f"{'1.00':>12}", "-"))
        self.assertEqual(peers.memory_cells(known, {"peak_rss_bytes": 2**22}),
                         (f"{'1.00':>12}", "1/4.0"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True, type=pathlib.Path)
    parser.add_argument("--bench", required=True, type=pathlib.Path)
    ARGUMENTS, rest = parser.parse_known_args()
    sys.dont_write_bytecode = True  # not into the checkout
    sys.path.insert(0, str(ARGUMENTS.bench))
    import peers
    import runtimes
    import threads
    unittest.main(argv=[sys.argv[0], *rest])
