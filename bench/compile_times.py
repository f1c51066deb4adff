"""From a file to a result: what `laminate run NET` takes without a cache and with a warm one.

  compile_times.py --laminate PROGRAM [--net zoo:NAME|FILE.onnx[?height=..&width=..]]...
                   [--threads 2] [--rounds 3] [--json FILE]

A round of a network runs the program as a user would, from its start to the written output: with
--no-cache, with an empty cache, and with the cache that this filled. The table shows the least
seconds of all rounds, and the CPU seconds of each stage of the quickest run without a cache.

FILE is rewritten after each network. A network that fails is named there and in the table, and the
exit status is 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from peers import Failed, described_run, measure_all

DEFAULT_NETS = ["zoo:mobilenetv2", "zoo:resnet18", "zoo:fsrcnn?height=540&width=960",
                "zoo:resnet50", "zoo:inceptionv3", "zoo:nasnet-a"]
STAGES = ("import", "planning", "halide", "llvm", "check", "session")


def network_arguments(net):
    """A file's symbolic sizes are options of the program, those of the zoo are in the name."""
    file, _, sizes = net.partition("?")
    if not file.endswith(".onnx"):
        return [net]
    return [file, *("--" + size for size in sizes.split("&") if size)]


def run_once(program, net, threads, directory, *options):
    answer = os.path.join(directory, "answer.json")
    begin = time.monotonic()
    done = subprocess.run(
        [program, "run", *network_arguments(net), "--output", os.path.join(directory, "y.npy"),
         "--json", answer, "--quiet", "--threads", str(threads), *options],
        env={**os.environ, "LAMINATE_CACHE": os.path.join(directory, "cache")},
        capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    with open(answer) as file:
        cpu_seconds = json.load(file)["cpu_seconds"]
    # The groups themselves are hundreds of lines; `run -v` prints them.
    groups = cpu_seconds.pop("groups")
    cpu_seconds["compiled_groups"] = sum(not (g["cached"] or g["equal"]) for g in groups)
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def measure(program, net, options):
    runs = {"without": [], "cold": [], "warm": []}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as directory:
            one = lambda *more: run_once(program, net, options.threads, directory, *more)
            runs["without"].append(one("--no-cache"))
            runs["cold"].append(one())
            runs["warm"].append(one())
    least = {way: min(of_way, key=lambda run: run["seconds"]) for way, of_way in runs.items()}
    cpu = least["without"]["cpu_seconds"]
    print(f"{net:40}" + "".join(f"{least[way]['seconds']:9.2f}" for way in runs)
          + "".join(f"{cpu[stage]:10.3f}" for stage in STAGES), flush=True)
    return {"net": net, "threads": options.threads,
            "seconds": {way: [run["seconds"] for run in of_way] for way, of_way in runs.items()},
            "cpu_seconds": {way: run["cpu_seconds"] for way, run in least.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True, help="the program")
    parser.add_argument("--net", action="append", 
                        help="a network of the zoo, or a file with its sizes (default: six)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    answer = described_run("laminate.compile_times")
    print(f"{'':40}{'without':>9}{'cold':>9}{'warm':>9}"
          + "".join(f"{stage:>10}" for stage in STAGES), flush=True)
    return measure_all(answer, "networks",
                       [({"net": net, "threads": options.threads},
                         lambda net=net: measure(options.laminate, net, options))
                        for net in options.net or DEFAULT_NETS], options.json)


if __name__ == "__main__":
    sys.exit(main())
