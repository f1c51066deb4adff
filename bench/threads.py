"""How much faster several threads are than one, beside what the machine gives to several processes that share nothing.

  threads.py --laminate PROGRAM [--net NETWORK]... [--threads 2] [--rounds 7] [--seconds 1] [--json FILE]

Per network, `rounds` times in turn: one thread alone; as many processes of one thread each at the same time as there are threads; one
process of so many threads.

  threads    median time of one thread over that of several
  processes  what the machine has to give: the runs of all processes at once over those of one alone. Below the number of threads,
             cores share caches, memory or clock with each other or with somebody else
  part       the first over the second
"""

import argparse
import json
import os
import subprocess
import tempfile

from peers import laminate_round, run, summary

DEFAULT_NETS = ["zoo:fsrcnn?height=540&width=960", "zoo:fsrcnn-x2?height=1080&width=1920", "zoo:mc-cnn?height=540&width=960",
                "zoo:mobilenetv1", "zoo:mobilenetv2", "zoo:resnet18", "zoo:resnet50", "zoo:vgg16", "zoo:squeezenet", "zoo:inceptionv3"]


def together(program, directory, processes, seconds):
    command = [program, "bench", directory, "--threads", "1", "--seconds", str(seconds), "--json", "-"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(processes)]
    answers = [json.loads(one.communicate()[0])["compiled"] for one in started]
    return {"times_ms": [time for answer in answers for time in answer["times_ms"]],
            "peak_rss_bytes": max(answer["peak_rss_bytes"] for answer in answers)}


def measure(program, net, options, directory):
    compiled = {}
    for threads in {1, options.threads}:
        compiled[threads] = os.path.join(directory, f"threads{threads}")
        run([program, "compile", net, "-o", compiled[threads], "--threads", str(threads), "--quiet"])
    ways = {"one": lambda: laminate_round(program, compiled[1], 1, options.seconds),
            "processes": lambda: together(program, compiled[1], options.threads, options.seconds),
            "threads": lambda: laminate_round(program, compiled[options.threads], options.threads, options.seconds)}
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
    print(f"{net:40}{rows['one']['median_ms']:10.2f}{rows['threads']['median_ms']:10.2f}{rows['threads']['spread']:8.0%}"
          f"{median[0]:9.2f}{median[1]:11.2f}{median[2]:7.2f}   {least[0]:.2f} {least[1]:.2f} {least[2]:.2f}", flush=True)
    return {"net": net, **rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laminate", required=True, help="the program")
    parser.add_argument("--net", action="append", help="default: ten networks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="timed runs per way and round")
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'':40}{'one ms':>10}{'both ms':>10}{'spread':>8}{'threads':>9}{'processes':>11}{'part':>7}   of least times")
    answers = []
    for net in options.net or DEFAULT_NETS:
        with tempfile.TemporaryDirectory() as directory:
            answers.append(measure(options.laminate, net, options, directory))
    if options.json:
        aside = options.json + ".partial"
        with open(aside, "w") as out:
            json.dump({"schema": "laminate.threads", "version": 1, "networks": answers}, out, indent=2)
        os.replace(aside, options.json)


if __name__ == "__main__":
    main()
