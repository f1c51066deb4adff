#!/usr/bin/env python3
"""Compares the figures of a document's tables with what the program answers today.

    check_figures.py --laminate PROGRAM [--slow] [--write] DOCUMENT.md

A table is checked when a comment with a line for each of its rows, in order, stands before it:

    <!-- figures
    explore zoo:vgg16 --model dag-groups | groups_examined | {:,}
    -->

that is: the command (run in an empty directory, with --json -), a Python expression over the keys
of its answer, and the format of the cell in the column "ours". Other lines:

    slow LINE                      any of these, only with --slow
    faster COMMAND | EXPRESSION    a time in the unit of the cell "paper", which it must undercut in one
                                   of three runs; the cell is not compared
    in FILE | TEXT | TEXT ...      a test holds the figure: FILE of the checkout contains each TEXT
    none                           words, no figure

A column "ratio" is ours over paper, to three significant digits, wherever both cells begin with a
number. --write puts what was found into the document instead of complaining.
"""

import argparse
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPRESSION_NAMES = {"sum": sum, "max": max, "min": min, "len": len, "next": next, "round": round,
                    "set": set, "abs": abs, "math": math}


class Answers:
    """Answers of the program, each command run once."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def of(self, command, again=False):
        if again or command not in self.known:
            with tempfile.TemporaryDirectory(prefix="laminate-figures-") as directory:
                (pathlib.Path(directory) / "machines").symlink_to(ROOT / "machines")
                result = subprocess.run([self.program, *shlex.split(command), "--json", "-"],
                                        cwd=directory, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                said = result.stderr.strip()
                raise ValueError(f"laminate {command}: exit code {result.returncode}: {said}")
            self.known[command] = json.loads(result.stdout,
                                             object_hook=lambda d: types.SimpleNamespace(**d))
        return self.known[command]

    def value(self, command, expression, again=False):
        names = {"__builtins__": {}, **EXPRESSION_NAMES, **vars(self.of(command, again))}
        return eval(expression, names)  # noqa: S307: our own documents


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(cell):
    found = re.match(r"[*<>≤ ]*(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)", cell)
    return float(found.group(1).replace(",", "")) if found else None


def ratio(paper, ours):
    if number(paper) in (None, 0) or number(ours) is None:
        return ""
    value = number(ours) / number(paper)
    return f"{value:.3g}" if 1e-3 <= value < 1000 else f"{value:.2e}"


def expected_cell(line, paper, cell, answers, slow):
    """What the cell of the column "ours" should say, or None if it is not compared. Raises ValueError."""
    if line == "none" or (line.startswith("slow ") and not slow):
        return None
    command, *parts = [part.strip() for part in line.removeprefix("slow ").split(" | ")]
    word, _, rest = command.partition(" ")
    if word == "in":
        text = (ROOT / rest).read_text()
        missing = [part for part in parts if part not in text]
        if missing:
            raise ValueError(f"{rest} has no {missing[0]}")
        return None
    if word == "faster":
        times = [answers.value(rest, parts[0], again=True) for _ in range(3)]
        if min(times) >= number(paper):
            raise ValueError(f"took {min(times):.3g}, the paper's {paper}")
        return None
    expression, form = parts
    return form.format(answers.value(command, expression))


def check(document, answers, slow, write):
    lines = document.read_text().splitlines()
    problems, compared, at = [], 0, 0
    while at < len(lines):
        if not lines[at].startswith("<!-- figures"):
            at += 1
            continue
        end = lines.index("-->", at)
        # A rule that ends in \ goes on in the next line, without the spaces that begin it.
        block = re.sub(r"\\\n\s*", "", "\n".join(lines[at + 1:end]))
        rules = [line for line in block.splitlines() if line.strip()]
        at = next(n for n in range(end + 1, len(lines)) if lines[n].startswith("|"))
        columns = {name.strip("*"): n for n, name in enumerate(cells_of(lines[at]))}
        at += 2
        rows = [n for n in range(at, len(lines))
                if all(line.startswith("|") for line in lines[at:n + 1])]
        if len(rows) != len(rules):
            problems.append(f"{document.name}:{at}: {len(rows)} rows, {len(rules)} lines of figures")
        for row, rule in zip(rows, rules):
            cells = cells_of(lines[row])
            wanted = list(cells)
            try:
                ours = expected_cell(rule, cells[columns["paper"]], cells[columns["ours"]], answers,
                                     slow)
            except Exception as error:  # whatever the expression does: the row is wrong
                problems.append(f"{document.name}:{row + 1}: {cells[0]}: {error}")
                continue
            compared += ours is not None
            if ours is not None:
                wanted[columns["ours"]] = ours
            if "ratio" in columns:
                wanted[columns["ratio"]] = ratio(wanted[columns["paper"]], wanted[columns["ours"]])
            if wanted != cells:
                problems.append(f"{document.name}:{row + 1}: found {cells}, expected {wanted}")
                lines[row] = "| " + " | ".join(wanted) + " |"
        at = rows[-1] + 1 if rows else at
    if write:
        document.write_text("\n".join(lines) + "\n")
    print("\n".join(problems))
    print(f"{document.name}: {compared} figures compared with the program, {len(problems)} problems")
    return compared > 0 and (write or not problems)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True, type=pathlib.Path)
    parser.add_argument("--slow", action="store_true", help="the rows marked slow as well")
    parser.add_argument("--write", action="store_true",
                        help="put what the program answers into the document")
    parser.add_argument("document", type=pathlib.Path)
    arguments = parser.parse_args()
    ok = check(arguments.document, Answers(arguments.laminate.resolve()), arguments.slow,
               arguments.write)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
