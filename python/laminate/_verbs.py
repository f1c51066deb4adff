"""explore, compile, run and validate."""

import os
import pathlib
import tempfile
from typing import NamedTuple

from . import _program
from ._runtime import Network


class Point(NamedTuple):
    """One schedule of a front. docs/counting.md defines the counts."""

    accesses: int  #: elements to and from external memory
    memory_bytes: int  #: held on chip at once, as the front's footprint counts it
    macs: int
    groups: int
    schedule: str  #: text, for compile(schedule=...)


class Front:
    """The best schedules that `explore` found.

    `answer` is the program's JSON, with bounds, gaps and energies.
    """

    def __init__(self, answer):
        self.answer = answer
        self.network = answer["network"]
        self.is_complete = answer["complete"]  #: False when interrupted
        memory = "live_bytes" if answer["footprint"] == "live" else "sum_total_elements"
        scale = 1 if answer["footprint"] == "live" else 4
        texts = answer["group_schedules"]  # points share most of their groups
        self.points = [
            Point(
                p["accesses_elements"],
                scale * p[memory],
                p["macs"],
                p["groups"],
                " ".join(texts[g] for g in p["schedule"]),
            )
            for p in answer["points"]
        ]

    def within(self, memory_bytes):
        """The point with the fewest accesses within this memory, or None."""
        return min(
            (p for p in self.points if p.memory_bytes <= memory_bytes),
            key=lambda p: (p.accesses, p.macs),
            default=None,
        )

    def __len__(self):
        return len(self.points)

    def __iter__(self):
        return iter(self.points)

    def __repr__(self):
        return f"<laminate.Front of {self.network}: {len(self.points)} schedules>"


def explore(net, output=None, **options):
    """The Pareto front of schedules under the cost model two-level.

    output: directory that keeps front.json, with the schedules, and report.html.
    """
    with (
        _program.network_argument(net) as name,
        tempfile.TemporaryDirectory(prefix="laminate-") as directory,
    ):
        output = os.fspath(output) if output is not None else str(pathlib.Path(directory) / "front")
        return Front(_program.call("explore", name, output=output, **options))


class _Temporary(Network):
    """A compiled network in a temporary directory, which closing removes."""

    def __init__(self, directory, threads):
        self._directory = directory
        super().__init__(pathlib.Path(directory.name) / "network", threads)

    def close(self):
        super().close()
        self._directory.cleanup()


def compile(net, output=None, threads=0, **options):
    """Compiles and opens a network.

    output: directory for libraries, C header and manifest. Without it they last as long as the
    Network.
    """
    with _program.network_argument(net) as name:
        if output is not None:
            _program.call("compile", name, output=os.fspath(output), threads=threads, **options)
            return Network(output, threads)
        directory = tempfile.TemporaryDirectory(prefix="laminate-")
        try:
            _program.call(
                "compile",
                name,
                output=str(pathlib.Path(directory.name) / "network"),
                threads=threads,
                **options,
            )
            return _Temporary(directory, threads)
        except BaseException:
            directory.cleanup()
            raise


def open(directory, threads=0):
    """Opens a directory that compile() or `laminate compile` made."""
    return Network(directory, threads)


def run(net, *inputs, **options):
    """Runs a network once and returns a list of output arrays. For several runs, compile() once.

    net may also be a Network, which takes no options, or a compiled directory, which takes threads.
    """
    if isinstance(net, Network):
        if options:
            raise _program.UsageError(f"{next(iter(options))}: the network is compiled already")
        return net.run(*inputs)
    if not hasattr(net, "SerializeToString") and pathlib.Path(net).is_dir():
        with Network(net, **options) as network:
            return network.run(*inputs)
    shapes = [getattr(array, "shape", ()) for array in inputs[:1]]
    if shapes and len(shapes[0]) == 4:
        # Sizes that the network leaves open are those of the first input, as in `laminate run`. A
        # network of fixed sizes refuses others.
        sized = {"batch": shapes[0][0], "height": shapes[0][2], "width": shapes[0][3], **options}
        try:
            network = compile(net, **sized)
        except _program.InputError:
            network = compile(net, **options)
    else:
        network = compile(net, **options)
    with network:
        return network.run(*inputs)


def validate(net, **options):
    """Checks that model, walker and generated code count the same.

    Returns the program's answer. Raises ComparisonFailed when they differ.
    """
    with _program.network_argument(net) as name:
        return _program.call("validate", name, **options)
