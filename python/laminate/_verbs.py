"""explore, compile, run and validate."""

import os
import pathlib
import tempfile
from typing import NamedTuple

from . import _program
from ._runtime import Network


class Point(NamedTuple):
    """One schedule of a front. All counts as docs/counting.md defines them."""

    accesses: int  #: elements to and from external memory
    memory_bytes: int  #: held on chip at once, as the front's footprint counts it
    macs: int
    groups: int
    schedule: str  #: text, for compile(schedule=...)


class Front:
    """The best schedules that `explore` found; `answer` is the program's JSON, with bounds, gaps and energies."""

    def __init__(self, answer):
        self.answer = answer
        self.network = answer["network"]
        self.is_complete = answer["complete"]  #: False when interrupted
        memory = "live_bytes" if answer["footprint"] == "live" else "sum_total_elements"
        scale = 1 if answer["footprint"] == "live" else 4
        texts = answer["group_schedules"]  # points share most of their groups
        self.points = [
            Point(p["accesses_elements"], scale * p[memory], p["macs"], p["groups"], " ".join(texts[g] for g in p["schedule"])) for p in answer["points"]
        ]

    def within(self, memory_bytes):
        """The point of fewest accesses that holds no more; None when there is none."""
        return min((p for p in self.points if p.memory_bytes <= memory_bytes), key=lambda p: (p.accesses, p.macs), default=None)

    def __len__(self):
        return len(self.points)

    def __iter__(self):
        return iter(self.points)

    def __repr__(self):
        return f"<laminate.Front of {self.network}: {len(self.points)} schedules>"


def explore(net, output=None, **options):
    """The Pareto front of schedules (cost model two-level). output: directory that keeps front.json, with the schedules, and report.html."""
    with _program.network_argument(net) as name, tempfile.TemporaryDirectory(prefix="laminate-") as directory:
        output = os.fspath(output) if output is not None else str(pathlib.Path(directory) / "front")
        return Front(_program.call("explore", name, output=output, **options))


class _Temporary(Network):
    """A compiled network in a directory that goes with it."""

    def __init__(self, directory, threads):
        self._directory = directory
        super().__init__(pathlib.Path(directory.name) / "network", threads)

    def close(self):
        super().close()
        self._directory.cleanup()


def compile(net, output=None, threads=0, **options):
    """Compiles and opens a network. output: directory for libraries, C header and manifest; without it they last as long as the Network."""
    with _program.network_argument(net) as name:
        if output is not None:
            _program.call("compile", name, output=os.fspath(output), threads=threads, **options)
            return Network(output, threads)
        directory = tempfile.TemporaryDirectory(prefix="laminate-")
        try:
            _program.call("compile", name, output=str(pathlib.Path(directory.name) / "network"), threads=threads, **options)
            return _Temporary(directory, threads)
        except BaseException:
            directory.cleanup()
            raise


def open(directory, threads=0):
    """A directory that compile() or `laminate compile` made."""
    return Network(directory, threads)


def run(net, *inputs, **options):
    """One run: a list of output arrays. For several runs, compile() once. net may be a Network or a compiled directory; both take no options but threads."""
    if isinstance(net, Network):
        if options:
            raise _program.UsageError(f"{next(iter(options))}: the network is compiled already")
        return net.run(*inputs)
    if not hasattr(net, "SerializeToString") and pathlib.Path(net).is_dir():
        with Network(net, **options) as network:
            return network.run(*inputs)
    shapes = [getattr(array, "shape", ()) for array in inputs[:1]]
    if shapes and len(shapes[0]) == 4:
        # Sizes that the network leaves open are those of the first input, as in `laminate run`. Others refuse them or agree.
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
    """Model, interpreter and generated code must count the same; returns the program's answer, raises ComparisonFailed when they do not."""
    with _program.network_argument(net) as name:
        return _program.call("validate", name, **options)
