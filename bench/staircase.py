"""The staircase of time over memory: what `explore --objective time --memory M` expects of a
network, and how long the schedule runs.

  staircase.py --laminate PROGRAM [--net NETWORK]... [--memory SIZE]... [--threads 1] [--seconds 1]
               [--json FILE]

Each schedule is compiled and timed by `laminate bench DIR`, whose median is shown. FILE is rewritten
after each network. A network that fails is named there and in the table, and the exit status is 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from peers import Failed, described_run, measure_all

DEFAULT_NETS = ["zoo:fsrcnn?height=270&width=480", "zoo:mc-cnn?height=270&width=480",
                "zoo:dmcnn-vd?height=90&width=160", "zoo:resnet18", "zoo:mobilenetv2"]
DEFAULT_MEMORIES = ["32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "4MiB"]


def answer_of(program, *arguments):
    done = subprocess.run([program, *arguments, "--json", "-", "--quiet"], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    return json.loads(done.stdout)


def step(options, net, memory, directory):
    threads = ["--threads", str(options.threads)]
    front = os.path.join(directory, "front")
    compiled = os.path.join(directory, "compiled")
    answer_of(options.laminate, "explore", net, "--objective", "time", "--memory", memory, *threads,
              "-o", front)
    with open(os.path.join(front, "front.json")) as file:
        point = json.load(file)["points"][0]
    answer_of(options.laminate, "compile", net, "--schedule", front + "#0", *threads, "-o",
              compiled)
    timed = answer_of(options.laminate, "bench", compiled, *threads, "--seconds",
                      str(options.seconds))["compiled"]
    print(f"{net:40}{memory:>8}{point['live_bytes']:>12}{point['time_ms']:>10.3f}"
          f"{timed['median_ms']:>10.3f}{point['time_ms'] / timed['median_ms']:>8.2f}", flush=True)
    return {"memory": memory, "live_bytes": point["live_bytes"],
            "accesses_elements": point["accesses_elements"], "predicted_ms": point["time_ms"],
            "measured_ms": timed["median_ms"], "least_ms": timed["min_ms"]}


def measure(options, net):
    steps = []
    for memory in options.memory or DEFAULT_MEMORIES:
        with tempfile.TemporaryDirectory() as directory:
            steps.append(step(options, net, memory, directory))
    return {"net": net, "threads": options.threads, "steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True, help="the program")
    parser.add_argument("--net", action="append", help="default: five networks of the zoo")
    parser.add_argument("--memory", action="append", help="default: 32KiB to 4MiB, doubled")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    answer = described_run("laminate.staircase")
    print(f"{'':40}{'within':>8}{'live bytes':>12}{'predicted':>10}{'median ms':>10}{'ratio':>8}",
          flush=True)
    return measure_all(answer, "networks",
                       [({"net": net, "threads": options.threads},
                         lambda net=net: measure(options, net))
                        for net in options.net or DEFAULT_NETS], options.json)


if __name__ == "__main__":
    sys.exit(main())
