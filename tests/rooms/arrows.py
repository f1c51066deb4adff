#!/usr/bin/env python3
"""Checks the arrows between rooms, read from the includes of the sources.

    arrows.py ROOT [--modules] [--self-test]

Fails if a room includes a header of a room that comes later in ROOMS. With --modules it also fails
if modules (a header and the source of the same name) include each other in a circle.
"""

import argparse
import pathlib
import re
import sys
import tempfile

# Each room may include the rooms before it. Folders of a room follow the same rule: a listed folder
# may include the folders listed before it.
ROOMS = [
    "base",
    "nets/network",
    "nets/operators",
    "nets/random",
    "nets/zoo",
    "nets",
    "runtime/media",
    "runtime",
    "scheduler/schedule",
    "scheduler/machine",
    "scheduler/counts",
    "scheduler/explore",
    "generators/lowering",
    "generators",
    "instrumentation",
    "answers",
    "papers",  # what the four papers share
    "papers/layer_optimum",
    "papers/depth_first",
    "papers/dag_groups",
    "papers/spatial_fusion",
    "cli",
]
# Headers that CMake generates, and a header of verbs that the papers' folders implement.
GENERATED = {"onnx.pb.h", "compiled_network_text.h", "source_version.h"}
DECLARATIONS = {"papers/verbs.h"}


def room_of(path):
    """The most specific room that holds a file, or None."""
    inside = [room for room in ROOMS if path.startswith(room + "/")]
    return max(inside, key=len) if inside else None


def includes_of(root):
    """{file: [included file]} for every source in a room, by paths from the root."""
    found = {}
    for room in sorted({room.split("/")[0] for room in ROOMS}):
        for file in sorted((root / room).rglob("*")):
            if file.suffix in (".h", ".cpp", ".c"):
                name = file.relative_to(root).as_posix()
                found[name] = re.findall(r'^#include "([^"]+)"', file.read_text(), re.M)
    return found


def upward(includes):
    """Lines about includes of a room that comes later."""
    for file, others in includes.items():
        if file in DECLARATIONS:
            continue
        for other in others:
            if other in GENERATED or other in DECLARATIONS:
                continue
            here, there = room_of(file), room_of(other)
            if here is None or there is None:
                yield f'{file}: includes "{other}"; expected a header of a room in {__file__}'
            elif ROOMS.index(there) > ROOMS.index(here):
                yield (
                    f'{file}: includes "{other}"; expected only rooms before {here}, '
                    f"and {there} comes later"
                )


def circles(includes):
    """Lines about modules that need each other."""
    stem = lambda file: file.rsplit(".", 1)[0]
    needs = {}
    for file, others in includes.items():
        needs.setdefault(stem(file), set()).update(stem(o) for o in others if o not in GENERATED)
    done, path = set(), []

    def visit(module):
        if module in path:
            yield "circle: " + " -> ".join(path[path.index(module) :] + [module])
            return
        if module in done:
            return
        path.append(module)
        for other in sorted(needs.get(module, ())):
            if other != module:
                yield from visit(other)
        path.pop()
        done.add(module)

    for module in sorted(needs):
        yield from visit(module)


def problems_of(root, of_modules):
    includes = includes_of(root)
    if not includes:
        return [f"{root}: no sources found"]
    return [*upward(includes), *(circles(includes) if of_modules else ())]


def self_test():
    """Finds the one upward arrow and the one circle of a small tree, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {
            "base/a.h": '#include "cli/b.h"\n',
            "cli/b.h": "",
            "scheduler/explore/c.h": '#include "scheduler/explore/d.h"\n',
            "scheduler/explore/d.cpp": '#include "scheduler/explore/c.h"\n',
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = problems_of(root, of_modules=True)
    expected = ['base/a.h: includes "cli/b.h"', "circle: scheduler/explore/c"]
    return len(found) == 2 and all(f.startswith(e) for f, e in zip(found, expected))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 0 if self_test() else 1
    problems = problems_of(arguments.root, arguments.modules)
    print("\n".join(problems) or "every arrow points one way")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
