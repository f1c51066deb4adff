#!/usr/bin/env python3
"""bench/tables.py: documents and data that disagree are refused, and it reads what peers.py writes.

    tables_test.py BENCH_DIRECTORY
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import tables  # noqa: E402

PAGE = """# Page

**Registers.** Tiles that spill ran at 45 GFLOP/s.

<!-- table: race today -->
<!-- end of table -->

<!-- table: notes -->
<!-- end of table -->
"""
RACE = {"schema": "laminate.peers", "version": 1, "races": [
    {"net": "zoo:fsrcnn?height=540&width=960", "threads": 2, "contestants": {
        "laminate fused": {"median_ms": 50.0, "min_ms": 40.0, "peak_rss_bytes": 3 << 20},
        "onnxruntime 1.0": {"median_ms": 250.0, "min_ms": 100.0, "peak_rss_bytes": 30 << 20},
        "OpenVINO 2.0": {"median_ms": 200.0, "min_ms": 160.0, "peak_rss_bytes": 60 << 20}}}]}
NOTE = """date,machine,rule,what,before,after,unit,how
2026-01-01,zen3,Registers,tiles,45,90,GFLOP/s,timed
"""


class Tables(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        tables.RESULTS = pathlib.Path(scratch.name)
        (tables.RESULTS / "today.json").write_text(json.dumps(RACE))
        (tables.RESULTS / "today-notes.csv").write_text(NOTE)
        self.page = tables.RESULTS / "page.md"
        self.page.write_text(PAGE)

    def run_on_page(self, *options):
        said = io.StringIO()
        sys.argv = ["tables.py", *options, str(self.page)]
        with contextlib.redirect_stderr(said):
            return tables.main(), said.getvalue()

    def test_rows_are_computed_from_the_file(self):
        self.assertEqual(self.run_on_page(), (0, ""))
        # The better peer over ours: 200 / 50 of medians, 100 / 40 of least times.
        self.assertIn("| fsrcnn 960x540 | 50.0 (40.0) | 250 (100) | 200 (160) "
                      "| 4.00 | 2.50 | 3.00 / 30.0 / 60.0 |", self.page.read_text())
        self.assertIn("| Registers | tiles | 45 | 90 | GFLOP/s | zen3 |", self.page.read_text())
        self.assertEqual(self.run_on_page("--check"), (0, ""))

    def test_generators_beside_our_kernels(self):
        row = {"laminate": {"median_ms": 2.0, "min_ms": 1.5},
               "Halide": {"median_ms": 7.0, "min_ms": 6.0}}
        chain = {"net": "two 3x3", "macs": 354_000_000, "contestants": row}
        self.write_chain(chain)
        self.assertEqual(self.run_on_page(), (0, ""))
        self.assertIn("| two 3x3 | 354 | 2.00 (1.50) | 7.00 (6.00) | 3.5 |\n",
                      self.page.read_text())
        for contestant, spread in (("laminate", 0.05), ("Halide", 0.1)):
            row[contestant]["spread"] = spread
        self.write_chain(chain)
        self.assertEqual(self.run_on_page(), (0, ""))
        self.assertIn("| 7.00 (6.00) | 3.5 | 5 % / 10 % |\n", self.page.read_text())

    def write_chain(self, chain):
        (tables.RESULTS / "today.json").write_text(
            json.dumps({"schema": "laminate.halide", "chains": [chain]}))
        self.page.write_text("<!-- table: halide today -->\n<!-- end of table -->\n")

    def test_an_edited_cell_is_found_by_line(self):
        self.run_on_page()
        text = self.page.read_text()
        self.page.write_text(text.replace("50.0 (40.0)", "49.0 (40.0)"))
        status, said = self.run_on_page("--check")
        self.assertEqual(status, 1)
        self.assertIn("page.md:8: found '| fsrcnn 960x540 | 49.0", said)
        self.assertEqual(self.run_on_page(), (0, ""))
        self.assertEqual(self.page.read_text(), text)

    def check_refused(self, why):
        status, said = self.run_on_page("--check")
        self.assertEqual(status, 1)
        self.assertIn(why, said)

    def test_a_figure_without_a_note_is_refused(self):
        self.page.write_text(PAGE.replace("45 GFLOP/s", "46 GFLOP/s"))
        self.check_refused("rule Registers: 46 stands in none of its notes")

    def test_a_note_without_a_rule_is_refused(self):
        self.page.write_text(PAGE.replace("**Registers.**", "**Lanes.**"))
        self.check_refused("notes of rules that the page does not have: Registers")

    def test_pages_without_tables_and_unknown_tables_are_refused(self):
        self.page.write_text("# Page\n")
        self.check_refused("no table begins here")
        self.page.write_text("<!-- table: guess today -->\n<!-- end of table -->\n")
        self.check_refused("found table guess, expected notes, race")
        self.page.write_text("<!-- table: threads today -->\n<!-- end of table -->\n")
        self.check_refused("found schema laminate.peers, expected laminate.threads")
        self.page.write_text("<!-- table: race today -->\n")
        self.check_refused("a table without its end")


if __name__ == "__main__":
    unittest.main()
