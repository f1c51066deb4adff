#!/usr/bin/env python3
"""Holds the groupings of `explore --model dag-groups --merge-adds` against another search
(issue 26, 5).

    independent_search.py --laminate PROGRAM [--long]

The search below is written from docs/optimus.md and shares nothing with the program: it builds
ResNet50 and ResNet152 itself, enumerates every group that ends a set of operators, and prices each
with loops over all tiles. Its totals and those of every operator alone must equal the program's.

It has one rule more than the program: whether the smaller of several sinks may have fewer columns
than the array has lanes (docs/optimus.md, "Several sinks"). The totals of that other reading are
held as well, so that the difference stays explained.
"""

import argparse
import functools
import json
import math
import subprocess
import sys
from dataclasses import dataclass, field

# Table 3 of the paper: KiB of buffer, lanes along columns and along channels.
CONFIGURATIONS = {1: (128, 16), 2: (128, 32), 3: (256, 16), 4: (256, 32),
                  5: (512, 8), 6: (512, 16), 7: (512, 32), 8: (512, 64)}
IMAGES = 4
# Entries where the smaller sinks have their share of the tile, however few columns that is.
SHARES_ALONE = {("resnet50", "Q", 4): 96_064_608, ("resnet50", "Q", 6): 62_456_928,
                ("resnet50", "Q", 7): 67_425_376, ("resnet50", "R", 1): 111_412_320,
                ("resnet152", "Q", 4): 257_299_552, ("resnet152", "R", 1): 276_841_568}


def ceil_div(a, b):
    return -(-a // b)


@dataclass
class Graph:
    """Operators in an order in which they can run; operator n writes map n. Maps are (channels,
    height, width); the network's input is the last one."""
    inputs: list = field(default_factory=list)   # per operator: (map, kernel, stride)
    weights: list = field(default_factory=list)
    maps: list = field(default_factory=list)

    def add(self, inputs, weights, channels, size):
        self.inputs.append(inputs)
        self.weights.append(weights)
        self.maps.append((channels, size, size))
        return len(self.maps) - 1


def resnet(blocks):
    """Bottleneck blocks, the stride in the 3x3; an Add is part of the convolution before it."""
    graph = Graph()
    picture = -1
    x = graph.add([(picture, 7, 2)], 64 * 3 * 49, 64, 112)
    x = graph.add([(x, 3, 2)], 0, 64, 56)
    size, channels = 56, 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            out = size // stride
            y = graph.add([(x, 1, 1)], channels * width, width, size)
            y = graph.add([(y, 3, stride)], 9 * width * width, width, out)
            if channels != 4 * width or stride != 1:
                x = graph.add([(x, 1, stride)], channels * 4 * width, 4 * width, out)
            x = graph.add([(x, 1, 1), (y, 1, 1)], width * 4 * width, 4 * width, out)
            size, channels = out, 4 * width
    x = graph.add([(x, size, size)], 0, channels, 1)
    graph.add([(x, 1, 1)], channels * 1000, 1000, 1)
    graph.maps.append((3, 224, 224))
    last = len(graph.maps) - 1
    graph.inputs = [[(last if m == picture else m, k, s) for m, k, s in i] for i in graph.inputs]
    return graph


class Search:
    def __init__(self, graph, reading, configuration, smaller_sinks_have_lanes):
        kibibytes, self.lanes = CONFIGURATIONS[configuration]
        self.graph = graph
        self.tile_may_hold_images = reading == "Q"
        self.buffer = kibibytes * 1024 // (1 if reading == "Q" else 2)
        self.smaller_sinks_have_lanes = smaller_sinks_have_lanes
        self.readers = [set() for _ in graph.maps]
        for op, inputs in enumerate(graph.inputs):
            for map_, _, _ in inputs:
                self.readers[map_].add(op)
        self.costs = {}

    def extents(self, group, axis, tile, floors):
        """Rows (axis 1) or columns (2) of every map of a group, for a tile of the largest sink."""
        sinks = [op for op in group if not self.readers[op] & group]
        largest = max(self.graph.maps[op][axis] for op in sinks)
        needed = {}
        for op in sinks:
            size = self.graph.maps[op][axis]
            needed[op] = ceil_div(size * tile, largest)
            is_floored = floors and (size == largest or self.smaller_sinks_have_lanes)
            if is_floored:
                needed[op] = max(needed[op], min(size, self.lanes if axis == 2 else 1))
        for op in sorted(group, reverse=True):
            for map_, kernel, stride in self.graph.inputs[op]:
                rows = min((needed[op] - 1) * stride + kernel, self.graph.maps[map_][axis])
                needed[map_] = max(needed.get(map_, 0), rows)
        return needed

    def streaming(self, group, area):
        """The maps that stream: none reads another, and together they save the most entries."""
        maps = sorted(area)
        saving = {m: self.saved_channels(m) * area[m] for m in maps}
        neighbours = {m: 0 for m in maps}
        bit = {m: 1 << n for n, m in enumerate(maps)}
        for op in group:
            for map_, _, _ in self.graph.inputs[op]:
                neighbours[map_] |= bit[op]
                neighbours[op] |= bit[map_]

        @functools.cache
        def best(left):
            if not left:
                return 0, 0
            last = maps[left.bit_length() - 1]
            rest = left & ~bit[last]
            without = best(rest)
            saved, chosen = best(rest & ~neighbours[last])
            if saving[last] > 0 and saved + saving[last] > without[0]:
                return saved + saving[last], chosen | bit[last]
            return without

        chosen = best((1 << len(maps)) - 1)[1]
        return {m for m in maps if chosen & bit[m]}

    def saved_channels(self, map_):
        return max(0, self.graph.maps[map_][0] - self.lanes)

    def may_fit(self, group):
        """False where the least tile does not fit even if every map streamed, in this group and in
        all that end alike and hold it. In those the largest sink may be another one."""
        extents = [self.extents(group, axis, 1, self.smaller_sinks_have_lanes) for axis in (1, 2)]
        return sum((self.graph.maps[m][0] - self.saved_channels(m)) * rows * extents[1][m]
                   for m, rows in extents[0].items()) <= self.buffer

    def cost(self, group):
        """Entries of Eq. 3; infinite where no tile fits."""
        if group not in self.costs:
            self.costs[group] = self.searched_cost(group)
        return self.costs[group]

    def searched_cost(self, group):
        extents = functools.cache(lambda axis, tile: self.extents(group, axis, tile, True))
        unit = [self.extents(group, axis, 1, False) for axis in (1, 2)]
        streams = self.streaming(group, {m: unit[0][m] * unit[1][m] for m in unit[0]})

        def entries(height, width):
            rows, columns = extents(1, height), extents(2, width)
            return sum((self.graph.maps[m][0] - (self.saved_channels(m) if m in streams else 0)) *
                       rows[m] * columns[m] for m in rows)

        sinks = [op for op in group if not self.readers[op] & group]
        height, width = (max(self.graph.maps[op][axis] for op in sinks) for axis in (1, 2))
        least_width = min(width, self.lanes)
        least = entries(1, least_width)
        if least > self.buffer:
            return math.inf
        crossing = [m for m in extents(1, 1) if m not in group or not self.readers[m] or
                    self.readers[m] - group]
        maps = IMAGES * sum(math.prod(self.graph.maps[m]) for m in crossing)
        weights = sum(self.graph.weights[op] for op in group)
        if weights <= self.buffer - least:
            return maps + weights
        most_images = IMAGES if self.tile_may_hold_images else 1
        passes = min(ceil_div(height, h) * ceil_div(width, w) * ceil_div(most_images, images)
                     for images in range(1, most_images + 1)
                     for w in self.widths(width, least_width)
                     for h in [self.tallest(entries, height, w, images)] if h > 0)
        return maps + passes * weights

    @staticmethod
    def widths(width, least):
        """The narrowest tile for every number of tiles."""
        return sorted({max(least, ceil_div(width, n)) for n in range(1, width + 1)})

    def tallest(self, entries, height, width, images):
        """Rows of the tallest tile that fits, 0 where none does."""
        low, high = 0, height
        while low < high:
            middle = (low + high + 1) // 2
            low, high = ((middle, high) if images * entries(middle, width) <= self.buffer
                         else (low, middle - 1))
        return low

    def best_total(self):
        """The least total of all cuts into groups that can run one after another: for every set of
        operators that holds what it needs, over the group that runs last."""
        count = len(self.graph.inputs)
        needs = [{m for m, _, _ in inputs if m < count} for inputs in self.graph.inputs]
        sets = [frozenset()]
        for done in sets:
            known = set(sets)
            sets += sorted((done | {op} for op in range(count)
                            if op not in done and needs[op] <= done and done | {op} not in known),
                           key=sorted)
        best = {frozenset(): 0}
        for done in sorted(sets[1:], key=len):
            best[done] = math.inf
            waiting, seen = [(done, frozenset())], {done}
            while waiting:
                rest, group = waiting.pop()
                if group:
                    if not self.may_fit(group):
                        continue
                    best[done] = min(best[done], best[rest] + self.cost(group))
                for op in rest:
                    if not self.readers[op] & rest and rest - {op} not in seen:
                        seen.add(rest - {op})
                        waiting.append((rest - {op}, group | {op}))
        return best[frozenset(range(count))]

    def single_total(self):
        return sum(self.cost(frozenset([op])) for op in range(len(self.graph.inputs)))


def answer(program, network, reading, configuration):
    command = [program, "explore", "zoo:" + network, "--model", "dag-groups", "--merge-adds",
               "--machine", f"optimus_{configuration}", "--reading", reading, "--json", "-", "-q"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    if not found["is_exact"]:
        raise SystemExit(f"{' '.join(command)}: not exact")
    return found["dram_bytes"] // 2, found["baseline_bytes"] // 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--long", action="store_true", help="every configuration")
    options = parser.parse_args()
    cases = sorted(SHARES_ALONE)
    if options.long:
        cases = [("resnet50", reading, c) for reading in "QR" for c in CONFIGURATIONS]
        cases += [("resnet152", reading, c) for reading in "QR" for c in (1, 4)]
    graphs = {"resnet50": resnet((3, 4, 6, 3)), "resnet152": resnet((3, 8, 36, 3))}
    failures = 0

    def expect(what, found, expected):
        nonlocal failures
        failures += found != expected
        print(f"{'ok  ' if found == expected else 'FAIL'} {what}: {found:,}"
              f"{'' if found == expected else f', expected {expected:,}'}", flush=True)

    for network, reading, configuration in cases:
        what = f"{network} {reading} {configuration}"
        total, single = answer(options.laminate, network, reading, configuration)
        search = Search(graphs[network], reading, configuration, smaller_sinks_have_lanes=True)
        expect(what, search.best_total(), total)
        expect(what + ", every operator alone", search.single_total(), single)
        if (network, reading, configuration) in SHARES_ALONE:
            other = Search(graphs[network], reading, configuration, smaller_sinks_have_lanes=False)
            expect(what + ", smaller sinks without a least tile", other.best_total(),
                   SHARES_ALONE[network, reading, configuration])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
