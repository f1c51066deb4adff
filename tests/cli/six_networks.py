"""Takes the six networks of ConvFusion from search to execution.

  six_networks.py --laminate PROGRAM [NETWORK...] [--tiles divisors|pow2|all] [--max-depth N]
                  [--keep DIRECTORY]

For each network: `explore` at its real size. For a tight, a middle and a large budget (3/10, 6/10 and
all of the way, by factors, from the least memory to the most that the front uses), the schedule with
the fewest accesses within it goes through `validate` (every group's instrumented code is compiled and
executed at real size: predicted = measured, and its result is the reference operators') and
`compile`, and the compiled network's output is compared with onnxruntime's. DMCNN-VD is counted at
3840x2160 by its loops alone, without arithmetic, and executed on a part of a picture: 5.5 tera-MACs
would take a day in code that follows a schedule literally.
Exit 0: everything agrees; 1: a line says what differs; 77: onnxruntime is not installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import compare  # leaves with 77 when onnxruntime is missing

import numpy as np

NETWORKS = ("mobilenetv2", "xception", "resnet50", "inceptionv3", "vgg16", "dmcnn-vd")
COUNTED = {"dmcnn-vd": "zoo:dmcnn-vd?height=2160&width=3840"}
RUN = {"dmcnn-vd": "zoo:dmcnn-vd?height=68&width=84"}
ALL_MACS = 10**15


def timed(program, *arguments):
    """Seconds, and stdout; leaves when the program fails."""
    begin = time.monotonic()
    text = compare.laminate(program, *arguments)
    return time.monotonic() - begin, text


def chosen(points, budget):
    """As scheduler/explore/explore.h choose(): points come by accesses, fewest first."""
    return next(point for point in points if point["live_bytes"] <= budget)


def budgets(points):
    least = min(point["live_bytes"] for point in points)
    most = max(point["live_bytes"] for point in points)
    # The very least would step through single elements, hours of counting at 4K.
    return {
        label: round(least ** (1 - part) * most**part)
        for label, part in (("tight", 0.3), ("middle", 0.6), ("large", 1))
    }


def front_of(program, network, directory, search):
    seconds, _ = timed(program, "explore", network, "-q", *search, "-o", directory)
    with open(os.path.join(directory, "front.json"), encoding="utf-8") as file:
        points = json.load(file)["points"]
    return seconds, [dict(point, schedule=f"{directory}#{n}") for n, point in enumerate(points)]


def counts_differ(program, network, schedule, execute_macs):
    """The difference between model and generated code ("" for none), and the number of groups whose
    results were computed."""
    done = subprocess.run(
        [
            program,
            "validate",
            network,
            "--schedule",
            schedule,
            "--walker-calls",
            "10000",
            "--execute-macs",
            str(execute_macs),
            "--json",
            "-",
            "-q",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}: {done.stderr.strip()}", 0
    answer = json.loads(done.stdout)
    entry = answer["schedules"][0]
    if done.returncode == 1 or entry["model"] != entry["measured"]:
        return (
            entry.get("difference", "model and measured counts differ"),
            answer["executed_groups"],
        )
    return "", answer["executed_groups"]


def output_differs(program, network, schedule, directory):
    """Empty when the compiled network's output is onnxruntime's, else where not."""
    path, library = os.path.join(directory, "net.onnx"), os.path.join(directory, "compiled")
    if not os.path.exists(path):
        compare.laminate(program, "zoo", "export", network, "-o", path)
    compare.laminate(program, "compile", network, "-q", "--schedule", schedule, "-o", library)
    session = compare.onnxruntime_session(path)
    inputs = compare.random_inputs(session, np.random.default_rng(1))
    ((name, value),) = inputs.items()
    given, found = os.path.join(directory, "in.npy"), os.path.join(directory, "out.npy")
    np.save(given, value)
    compare.laminate(program, "run", library, "-q", "--input", given, "--output", found)
    return compare.difference(np.load(found), session.run(None, inputs)[0])


def check(program, name, search, directory):
    wrong = 0
    counted, run = COUNTED.get(name, f"zoo:{name}"), RUN.get(name, f"zoo:{name}")
    seconds, points = front_of(program, counted, os.path.join(directory, "front"), search)
    print(f"{counted}: {len(points)} schedules in {seconds:.1f} s", flush=True)
    run_points = (
        points
        if run == counted
        else front_of(program, run, os.path.join(directory, "run-front"), search)[1]
    )
    for (label, budget), run_budget in zip(budgets(points).items(), budgets(run_points).values()):
        point, run_point = chosen(points, budget), chosen(run_points, run_budget)
        begin = time.monotonic()
        difference, executed = counts_differ(
            program, counted, point["schedule"], ALL_MACS if run == counted else 1
        )
        counting, begin = time.monotonic() - begin, time.monotonic()
        print(
            f"  {label:6} {budget:>10} B: {point['accesses_elements']:>14} accesses, "
            f"{point['live_bytes']:>10} B, {point['macs']} MACs, {point['groups']} groups, "
            f"{executed} executed; predicted "
            f"{'= measured' if not difference else '!= measured: ' + difference} "
            f"({counting:.0f} s)",
            flush=True,
        )
        wrong += bool(difference)
        if run != counted:
            difference, executed = counts_differ(program, run, run_point["schedule"], ALL_MACS)
            print(
                f"         {run}: {run_point['groups']} groups, {executed} executed; predicted "
                f"{'= measured' if not difference else '!= measured: ' + difference}",
                flush=True,
            )
            wrong += bool(difference)
            begin = time.monotonic()
        difference = output_differs(program, run, run_point["schedule"], directory)
        print(
            f"         output {'= onnxruntime' if not difference else 'differs: ' + difference} "
            f"({time.monotonic() - begin:.0f} s, compiled and run{'' if run == counted else ' as ' + run})",
            flush=True,
        )
        wrong += bool(difference)
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--tiles", default="divisors")
    parser.add_argument("--max-depth", default="3")
    parser.add_argument("--keep")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    options = parser.parse_args()
    search = ["--tiles", options.tiles, "--max-depth", options.max_depth]
    wrong = 0
    for name in options.networks:
        with tempfile.TemporaryDirectory() as temporary:
            directory = os.path.join(options.keep, name) if options.keep else temporary
            os.makedirs(directory, exist_ok=True)
            wrong += check(options.laminate, name, search, directory)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
