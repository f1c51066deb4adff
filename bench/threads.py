"""How much faster several threads are than one, beside what the machine gives to several processes
that share nothing.

  threads.py --laminate PROGRAM [--net NETWORK]... [--threads 2] [--rounds 7] [--seconds 1]
             [--json FILE]

Each round of a network measures in turn one thread alone, as many processes of one thread each as
there are threads, and one process with all the threads.

  threads    median time of one thread over that of several
  processes  runs per second of all processes together over those of one alone: what the machine can
             give. Below the number of threads, cores share caches, memory or clock with each other
             or with other programs
  part       the first over the second

FILE is rewritten after each network. A network that fails is named there and in the table, and the
exit status is 1.
"""

import argparse
import os
import sys
import tempfile

from peers import (bench_command, described_run, known_peaks, laminate_round, measure_all, output_of,
                   round_of, run, start, summary)

DEFAULT_NETS = ["zoo:fsrcnn?height=540&width=960", "zoo:fsrcnn-x2?height=1080&width=1920",
                "zoo:mc-cnn?height=540&width=960", "zoo:mobilenetv1", "zoo:mobilenetv2",
                "zoo:resnet18", "zoo:resnet50", "zoo:vgg16", "zoo:squeezenet", "zoo:inceptionv3"]


def together(program, directory, processes, seconds):
    started = [start(bench_command(program, directory, 1, seconds)) for _ in range(processes)]
    try:
        answers = [round_of(output_of(one)) for one in started]
    finally:
        for one in started:  # after a failure the others would disturb the next measurement
            one.kill()
            one.wait()
    return {"times_ms": [time for answer in answers for time in answer["times_ms"]],
            "peak_rss_bytes": max(known_peaks(answers), default=None)}


def measure(program, net, options, directory):
    compiled = {}
    for threads in {1, options.threads}:
        compiled[threads] = os.path.join(directory, f"threads{threads}")
        run([program, "compile", net, "-o", compiled[threads], "--threads", str(threads), "--quiet"])
    ways = {"one": lambda: laminate_round(program, compiled[1], 1, options.seconds),
            "processes": lambda: together(program, compiled[1], options.threads, options.seconds),
            "threads": lambda: laminate_round(program, compiled[options.threads], options.threads,
                                              options.seconds)}
    rounds = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            rounds[name].append(way())
    rows = {name: summary(r) for name, r in rounds.items()}

    def ratios(field):
        threads = rows["one"][field] / rows["threads"][field]
        processes = options.threads * rows["one"][field] / rows["processes"][field]
        return threads, processes, threads / processes

    median, least = ratios("median_ms"), ratios("min_ms")
    print(f"{net:40}{rows['one']['median_ms']:10.2f}{rows['threads']['median_ms']:10.2f}"
          f"{rows['threads']['spread']:8.0%}{median[0]:9.2f}{median[1]:11.2f}{median[2]:7.2f}   "
          f"{least[0]:.2f} {least[1]:.2f} {least[2]:.2f}", flush=True)
    return {"net": net, **rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True, help="the program")
    parser.add_argument("--net", action="append", help="default: ten networks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="timed runs per way and round")
    parser.add_argument("--json")
    options = parser.parse_args()
    answer = described_run("laminate.threads")
    print(f"{'':40}{'one ms':>10}{'both ms':>10}{'spread':>8}{'threads':>9}{'processes':>11}"
          f"{'part':>7}   of least times", flush=True)

    def in_scratch(net):
        with tempfile.TemporaryDirectory() as directory:
            return measure(options.laminate, net, options, directory)

    return measure_all(answer, "networks",
                       [({"net": net, "threads": options.threads}, lambda net=net: in_scratch(net))
                                            for net in options.net or DEFAULT_NETS], options.json)


if __name__ == "__main__":
    sys.exit(main())
