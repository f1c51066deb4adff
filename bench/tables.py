#!/usr/bin/env python3
"""Writes the tables of measurements into documents, from the data files under bench/results/.

    tables.py [--check] DOCUMENT.md...

A document says where a table belongs and from which file it comes; the lines between the two
comments are this program's:

    <!-- table: KIND FILE -->
    <!-- end of table -->

KIND is a function of TABLES below, FILE a name under bench/results/ without its ending (notes and
machines take none). --check changes nothing and exits with 1 where a document differs.

A document with the table of notes also has the rules that the notes support. A rule is a paragraph
that begins with its name in bold. Every note must belong to a rule of the document, and every
figure with a unit in a rule must stand in one of its notes.
"""

import argparse
import csv
import itertools
import json
import pathlib
import re
import statistics
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
BEGIN = re.compile(r"<!-- table: (\S+)(?: (\S+))? -->")
END = "<!-- end of table -->"
OURS = "laminate fused"
LAYERS = "laminate layer by layer"
BEFORE = "laminate before"


class Problem(Exception):
    """What is wrong with a document or a data file, in one line."""


def figure(value):
    """Three significant digits, or all of them before the point."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.{1 if value >= 9.995 else 2}f}"


def network(net):
    """The published name of a network: zoo:fsrcnn?height=540&width=960 is fsrcnn 960x540."""
    name, _, query = net.removeprefix("zoo:").removeprefix("picture:").partition("?")
    size = dict(part.split("=") for part in query.split("&")) if query else {}
    columns, rows = size.pop("width", None), size.pop("height", None)
    others = "".join(f", {key} {value}" for key, value in size.items())
    return pathlib.PurePath(name).name + others + (f" {columns}x{rows}" if columns else "")


def data(file, schema):
    content = json.loads((RESULTS / f"{file}.json").read_text())
    if content["schema"] != schema:
        raise Problem(f"{file}.json: found schema {content['schema']}, expected {schema}")
    return content


def peers_of(races):
    """Contestants that are not ours, in the order of their first appearance."""
    return [name for name in dict.fromkeys(n for race in races for n in race["contestants"])
            if not name.startswith("laminate ")]


def best_peer_over_ours(contestants, field):
    peers = [row[field] for name, row in contestants.items()
             if not name.startswith("laminate ") and field in row]
    ours = contestants.get(OURS, {}).get(field)
    return f"{min(peers) / ours:.2f}" if peers and ours else ""


def memory_cell(contestants, names):
    """A dash for those who took no part; nothing where memory was not measured at all."""
    bytes_of = [contestants.get(name, {}).get("peak_rss_bytes") for name in names]
    if bytes_of[0] is None:
        return ""
    return " / ".join("-" if b is None else figure(b / 2**20) for b in bytes_of)


def least_memory_cell(contestants, names):
    ours, *others = (contestants.get(name, {}).get("peak_rss_bytes") for name in names)
    others = [b for b in others if b is not None]
    return f"{figure(ours / 2**20)} / {figure(min(others) / 2**20)}" if ours and others else ""


def error_cell(contestants, names):
    """Ours, and the others' from the least to the largest. Races that compared with onnxruntime have none."""
    ours, *others = (contestants[name].get("error") for name in names if name in contestants)
    if None in (ours, *others) or not others:
        return ""
    return f"{ours:.0e} / {min(others):.0e} to {max(others):.0e}"


def race_columns(races, with_least):
    """(heading, cell of a race) of each column; columns without a cell are left out."""
    def time(name):
        def cell(contestants):
            row = contestants.get(name, {})
            least = f" ({figure(row['min_ms'])})" if with_least and "min_ms" in row else ""
            return figure(row.get("median_ms")) + least
        return cell

    peers = peers_of(races)
    columns = [("ours", time(OURS))]
    if with_least:
        columns += [("before", time(BEFORE)), ("layer by layer", time(LAYERS))]
    columns += [(name, time(name)) for name in peers]
    columns.append(("times", lambda c: best_peer_over_ours(c, "median_ms")))
    if with_least:
        columns.append(("of least", lambda c: best_peer_over_ours(c, "min_ms")))
        columns.append(("MiB", lambda c: memory_cell(c, [OURS, *peers])))
    else:
        columns.append(("MiB", lambda c: least_memory_cell(c, [OURS, *peers])))
        columns.append(("error", lambda c: error_cell(c, [OURS, *peers])))
    return columns


def race(file, with_least=True):
    races = data(file, "laminate.peers")["races"]
    columns = [(heading, [cell(one["contestants"]) for one in races])
               for heading, cell in race_columns(races, with_least)]
    columns = [(heading, cells) for heading, cells in columns if any(cells)]
    yield ["Network", *(heading for heading, _ in columns)]
    for row, one in enumerate(races):
        yield [network(one["net"]), *(cells[row] for _, cells in columns)]


def short_race(file):
    return race(file, with_least=False)


def pairs(file):
    """A race without least times, and the geometric mean of how far ours is ahead."""
    rows = list(short_race(file))
    times = rows[0].index("times")
    mean = statistics.geometric_mean(float(row[times]) for row in rows[1:] if row[times])
    yield from rows
    yield [f"{mean:.2f}" if n == times else "geometric mean" if n == 0 else ""
           for n in range(len(rows[0]))]


def threads(file):
    yield ["Network", "one, ms", "two, ms", "two threads", "two processes", "part"]
    for row in data(file, "laminate.threads")["networks"]:
        one = row["one"]["median_ms"]
        several, processes = one / row["threads"]["median_ms"], 2 * one / row["processes"]["median_ms"]
        yield [network(row["net"]), figure(one), figure(row["threads"]["median_ms"]),
               f"{several:.2f}", f"{processes:.2f}", f"{several / processes:.2f}"]


def choice(file):
    yield ["Network", "Layers", "groups", "alternatives", "chosen, ms", "best, ms", "ratio"]
    for row in data(file, "laminate.choice")["chains"]:
        yield [network(row["net"]), f"{row['from']} .. {row['to']}", str(row["groups"]),
               str(row["alternatives"]), f"{row['chosen_ms']:.3f}", f"{row['best_ms']:.3f}",
               f"{row['chosen_ms'] / row['best_ms']:.3f}"]


def times(file):
    yield ["Network", "points", "within 20 %", "predicted / measured", "fastest, ms",
           "at 60 % of its rate", "slowest"]
    for name, points in itertools.groupby(data(file, "laminate.times_bench")["points"],
                                          key=lambda point: point["network"]):
        points = list(points)
        ratios = [point["predicted_ms"] / point["measured_ms"] for point in points]
        rates = [point["multiplications"] / point["measured_ms"] for point in points]
        fastest = min(range(len(points)), key=lambda n: points[n]["measured_ms"])
        relative = [rate / rates[fastest] for rate in rates]
        yield [network(name), str(len(points)),
               str(sum(abs(ratio - 1) <= 0.2 for ratio in ratios)),
               f"{min(ratios):.2f} to {max(ratios):.2f}",
               figure(points[fastest]["measured_ms"]),
               str(sum(rate >= 0.6 for rate in relative)), f"{min(relative):.2f}"]


def versions(file):
    yield ["Network", "before, ms", "after, ms", "after / before", "spreads", "arena, MiB"]
    for entry in data(file, "laminate.versions")["networks"]:
        yield [network(entry["network"]), figure(entry["old_ms"]), figure(entry["new_ms"]),
               f"{entry['new_ms'] / entry['old_ms']:.3f}",
               f"{100 * entry['old_spread']:.0f} % / {100 * entry['new_spread']:.0f} %",
               f"{entry['old_arena'] / 2**20:.1f} / {entry['new_arena'] / 2**20:.1f}"]


def real(file):
    """Of a busy machine too the least times mean something, so they are in brackets. A run without
    --times has none. Of the others the one with the least median is in the table."""
    networks = data(file, "laminate.real")["networks"]
    timed = all("ours" in row for row in networks)
    yield ["Network", "input", "differs by",
           *(["ours, ms", "theirs, ms", "times", "compiled, s"] if timed else ["from"])]
    for row in networks:
        cells = [row["net"].removesuffix("_model"), row["input"], f"{row['difference']:.1e}"]
        if timed:
            ours = row["ours"]
            name, theirs = min(row["theirs"].items(), key=lambda item: item[1]["median_ms"])
            cells += [f"{figure(ours['median_ms'])} ({figure(ours['min_ms'])})",
                      f"{name} {figure(theirs['median_ms'])} ({figure(theirs['min_ms'])})",
                      f"{theirs['min_ms'] / ours['min_ms']:.2f}", figure(row["compile_s"])]
        else:
            cells.append(row["peer"])
        yield cells


def halide(file):
    chains = data(file, "laminate.halide")["chains"]
    names = list(chains[0]["contestants"])

    def spreads(rows):
        known = all("spread" in rows[name] for name in names)
        return " / ".join(f"{100 * rows[name]['spread']:.0f} %" for name in names) if known else ""

    columns = [(heading, [cell(chain["contestants"]) for chain in chains]) for heading, cell in [
        *((f"{name}, ms",
           lambda rows, name=name: f"{figure(rows[name]['median_ms'])} ({figure(rows[name]['min_ms'])})")
          for name in names),
        ("times", lambda rows: f"{rows[names[1]]['median_ms'] / rows[names[0]]['median_ms']:.1f}"),
        ("spreads", spreads)]]
    columns = [(heading, cells) for heading, cells in columns if any(cells)]
    yield ["Chain", "M MACs", *(heading for heading, _ in columns)]
    for row, chain in enumerate(chains):
        yield [chain["net"], figure(chain["macs"] / 1e6), *(cells[row] for _, cells in columns)]


def machines(_):
    yield ["Name", "Processor", "date", "threads", "GFLOP/s", "L1", "L2", "L3", "memory"]
    for machine in data("machines", "laminate.benched_machines")["machines"]:
        for count, measured in (("1", machine["one"]), ("2", machine["two"])):
            rates = [str(measured.get(level, "")) for level in ("gflops", "l1", "l2", "l3", "memory")]
            processor = f"{machine['name']}, {machine['vectors']}"
            yield [machine["machine"], processor, machine["date"], count, *rates]


def csv_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def plain(file):
    """The cells as the file has them; integers get commas."""
    rows = csv_rows(RESULTS / f"{file}.csv")
    yield list(rows[0])
    for row in rows:
        yield [f"{int(cell):,}" if cell.isdigit() else cell for cell in row.values()]


def all_notes():
    return [row for path in sorted(RESULTS.glob("*-notes.csv")) for row in csv_rows(path)]


def notes_table(rules):
    yield ["Rule", "Measured", "before", "after", "unit", "machine"]
    for note in sorted(all_notes(), key=lambda note: rules.index(note["rule"])):
        yield [note[key] for key in ("rule", "what", "before", "after", "unit", "machine")]


def compile_times(file):
    stages = ["import", "planning", "halide", "llvm", "check", "session"]
    yield ["Network", "no cache, s", "warm, s", *stages]
    for row in data(file, "laminate.compile_times")["networks"]:
        cpu = row["cpu_seconds"]["without"]
        yield [network(row["net"]), f"{min(row['seconds']['without']):.2f}",
               f"{min(row['seconds']['warm']):.2f}", *(f"{cpu[stage]:.2f}" for stage in stages)]


def staircase(file):
    """A cell has the expected and the measured milliseconds within a memory."""
    networks = data(file, "laminate.staircase")["networks"]
    yield ["Network", *(step["memory"] for step in networks[0]["steps"])]
    for row in networks:
        yield [network(row["net"]), *(f"{figure(step['predicted_ms'])}/{figure(step['measured_ms'])}"
                                      for step in row["steps"])]


def accelforge(file):
    """Elements moved and CPU seconds, and how many times ours AccelForge's seconds are."""
    yield ["Chain", "KiB", "compulsory", "AccelForge", "`laminate`", "AccelForge, s", "`laminate`, s",
           "times"]
    for row in data(file, "laminate.accelforge")["rows"]:
        moved = (f"{row[key]:,.0f}" for key in ("compulsory", "accelforge", "laminate"))
        theirs, ours = row["accelforge_s"], row["laminate_s"]
        yield [row["chain"], str(row["words"] // 1024), *moved, f"{theirs:.1f}", f"{ours:.3f}",
               figure(theirs / ours)]


TABLES = {"race": race, "short-race": short_race, "pairs": pairs, "threads": threads,
          "compile-times": compile_times, "choice": choice, "times": times, "versions": versions,
          "staircase": staircase, "real": real,
          "halide": halide, "accelforge": accelforge, "machines": machines, "csv": plain}


def rules_of(text):
    """Name and text of each rule."""
    return {found[1]: found[0] for found in re.finditer(r"^\*\*([^*]+)\.\*\*(?:.+\n)+", text, re.M)}


def check_rules(rules):
    """Notes and rules belong together."""
    notes = all_notes()
    strangers = sorted({note["rule"] for note in notes} - set(rules))
    if strangers:
        raise Problem(f"notes of rules that the page does not have: {', '.join(strangers)}")
    for name, text in rules.items():
        known = " ".join(f"{note['before']} {note['after']} {note['what']}" for note in notes
                         if note["rule"] == name)
        known_numbers = re.findall(r"[\d.]+", known)
        for value in re.findall(r"([\d.,]*\d) (?:ms|GFLOP/s|MiB/s|GB/s|products|lines)\b", text):
            if value.replace(",", "") not in known_numbers:
                raise Problem(f"rule {name}: {value} stands in none of its notes in bench/results")


def lines_of(rows):
    head, *body = rows
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in body)]


def written(text):
    """The text with its tables as the data have them."""
    lines, out, at = text.splitlines(), [], 0
    if not any(BEGIN.fullmatch(line) for line in lines):
        raise Problem("no table begins here: <!-- table: KIND FILE -->")
    while at < len(lines):
        out.append(lines[at])
        begin = BEGIN.fullmatch(lines[at])
        at += 1
        if not begin:
            continue
        kind, file = begin.groups()
        if END not in lines[at:]:
            raise Problem(f"line {at}: a table without its end, {END}")
        if kind == "notes":
            rules = rules_of(text)
            check_rules(rules)
            rows = notes_table(list(rules))
        elif kind in TABLES:
            rows = TABLES[kind](file)
        else:
            raise Problem(f"line {at}: found table {kind}, expected notes, {', '.join(TABLES)}")
        out += [*lines_of(rows), END]
        at = lines.index(END, at) + 1
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="change nothing; exit 1 where a document differs")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    status = 0
    for document in options.documents:
        text = document.read_text()
        try:
            wanted = written(text)
        except Problem as problem:
            print(f"{document}: {problem}", file=sys.stderr)
            status = 1
            continue
        if wanted == text:
            continue
        if not options.check:
            document.write_text(wanted)
            continue
        pairs = itertools.zip_longest(text.splitlines(), wanted.splitlines(), fillvalue="")
        line, found, expected = next((n, *pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        print(f"{document}:{line}: found {found!r}, expected {expected!r}; "
              "bench/tables.py writes it", file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
