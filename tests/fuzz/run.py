#!/usr/bin/env python3
"""Runs the fuzzer on each target, several at a time, and prints a table.

    run.py BUILD/tests/fuzz --seconds 600 [--jobs 2] [TARGET...]

Useful inputs stay in BUILD/tests/fuzz/corpus/TARGET for the next run. An input that does harm goes to
.../findings/TARGET, and the exit code is 1.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("targets", nargs="*")
parser.add_argument("--seconds", type=int, default=60, help="for each target")
parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
options = parser.parse_intermixed_args()


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(name):
    corpus, findings = (place / kind / name for kind in ("corpus", "findings"))
    findings.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    run = subprocess.run(
        [
            program,
            f"--target={name}",
            f"-max_total_time={options.seconds}",
            "-timeout=30",
            "-rss_limit_mb=4096",
            "-max_len=65536",
            "-print_final_stats=1",
            f"-artifact_prefix={findings}/",
            corpus,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    log = findings.parent / f"{name}.log"
    log.write_text(run.stdout)
    new = sorted(set(findings.iterdir()) - before)
    verdict = (
        "clean"
        if run.returncode == 0
        else ", ".join(f"FOUND {file}" for file in new) or f"FAILED, see {log}"
    )
    row = (
        name,
        number(r"stat::number_of_executed_units:\s*(\d+)", run.stdout),
        number(r"cov: (\d+)", run.stdout),
        number(r"ft: (\d+)", run.stdout),
        len(list(corpus.iterdir())),
    )
    print("{:14} {:>12,} {:>8,} {:>9,} {:>7,}".format(*row), verdict, flush=True)
    return run.returncode == 0


place = options.build.resolve()
program = place / "fuzzer"
if not program.exists():
    sys.exit(f"run.py: {program} is not there; `make fuzz` builds it")
names = subprocess.run(
    [program, f"--seeds={place / 'corpus'}"], stdout=subprocess.PIPE, text=True, check=True
).stdout.split()
if unknown := set(options.targets) - set(names):
    sys.exit(f"run.py: no target {', '.join(sorted(unknown))}; there are {', '.join(names)}")
print(
    "{:14} {:>12} {:>8} {:>9} {:>7}".format("target", "inputs run", "edges", "features", "corpus")
)
with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
    clean = list(pool.map(fuzz, options.targets or names))
sys.exit(0 if all(clean) else 1)
