"""Opens the page of a front in headless Chromium: it draws every point, reports nothing on the
console, and looks like a page.

  report_in_browser.py --laminate PROGRAM [--keep DIRECTORY]

Fronts of 1, about 70 and 2000 points, on a screen, on a phone, in the dark and on paper; the files that
the page saves; measurements; the pages of a depth-first sweep. Exit 0: all right; 1: a line says what
is wrong; 77: Chromium or Pillow is missing (`make test` installs both). --keep leaves pages and
screenshots in the directory.
"""

import argparse
import csv
import html
import html.parser
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}; `make test` installs it")
    sys.exit(77)

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WIDTH, HEIGHT = 1360, 2000


def fail(text):
    sys.exit(f"wrong: {text}")


def expect(condition, text):
    if not condition:
        fail(text)


def laminate(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    expect(
        done.returncode == 0,
        f"laminate {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}",
    )


def chromium(directory, page, *options):
    """stdout and the console lines of one run."""
    command = [
        CHROMIUM,
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={directory}/profile",
        f"--window-size={WIDTH},{HEIGHT}",
        "--virtual-time-budget=10000",
        "--enable-logging=stderr",
        *options,
        f"file://{page}",
    ]
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")  # Chromium's sandbox refuses to run as root
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    expect(done.returncode == 0, f"chromium: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


class Balance(html.parser.HTMLParser):
    """Every element that must be closed is, in order."""

    VOID = {"meta", "link", "br", "img", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        expect(len(names) == len(set(names)), f"<{tag}> has an attribute twice")
        identifier = dict(attributes).get("id")
        expect(identifier is None or identifier not in self.ids, f"id {identifier} is there twice")
        self.ids.add(identifier)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        expect(self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}")
        self.open.pop()


def check_markup(page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    expect(text.startswith("<!doctype html>"), "no doctype")
    balance = Balance()
    balance.feed(text)
    expect(not balance.open, f"not closed: {balance.open}")


def colour_count(pixels, colour):
    return int(np.count_nonzero(np.all(np.abs(pixels.astype(int) - colour) <= 6, axis=-1)))


def copy_with(directory, page, script):
    """A copy of the page that runs a script, in a block of its own, when it has loaded."""
    copy = os.path.join(directory, "copy.html")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", f"<script>{{ {script} }}</script></body>"))
    return copy


def answer_of(directory, page, script, *options):
    """The value of an expression on the page, computed by a copy of the page."""
    copy = copy_with(
        directory,
        page,
        f"const answer = {script}; document.body.replaceChildren(); "
        "document.title = JSON.stringify(answer);",
    )
    dom, console = chromium(directory, copy, "--dump-dom", *options)
    expect(not console, f"{script}: console: {console}")
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.S).group(1)))


def boxes(directory, page, *selectors):
    """Left, top, right and bottom of every element of each selector."""
    script = (
        "(names => names.map(name => { const all = [...document.querySelectorAll(name)]"
        ".map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom].map(Math.round)); return all; }))("
        + json.dumps(selectors)
        + ")"
    )
    return answer_of(directory, page, script)


def region(pixels, box):
    left, top, right, bottom = box
    return pixels[top:bottom, left:right]


def check_picture(directory, page, path, points):
    pixels = np.asarray(Image.open(path).convert("RGB"))
    expect(pixels.shape == (HEIGHT, WIDTH, 3), f"screenshot is {pixels.shape}")
    corners = [tuple(pixels[y, x]) for y in (2, HEIGHT - 3) for x in (2, WIDTH - 3)]
    expect(
        all(corner == (255, 255, 255) for corner in corners),
        f"the margins are not white: {corners}",
    )
    plots, [timeline], [traffic], [graph] = boxes(
        directory, page, "#plots svg", "#timeline", "#traffic", "#graph"
    )
    expect(len(plots) == 3, f"{len(plots)} drawings of the front, expected 3")
    for n, box in enumerate(plots):
        drawing = region(pixels, box)
        saturation = drawing.max(axis=-1).astype(int) - drawing.min(axis=-1)
        dots = int(
            np.count_nonzero(saturation > 50)
        )  # a dot alone has about 50 pixels, and a ring around it
        expect(
            dots >= min(40, 40 * points), f"drawing {n + 1} of the front has {dots} coloured pixels"
        )
        blank = np.mean(np.all(drawing == 255, axis=-1))
        expect(
            blank > 0.5, f"drawing {n + 1} of the front is {blank:.0%} white, expected most of it"
        )
    live = region(pixels, timeline)
    filled = colour_count(live, (181, 203, 230)) + colour_count(live, (201, 220, 242))
    expect(filled > 10000, f"memory over time has {filled} pixels")
    for name, colour in (("X", (31, 78, 133)), ("W", (200, 116, 26)), ("Y", (140, 203, 150))):
        bars = max(
            colour_count(region(pixels, traffic), tint(colour, share)) for share in (0, 0.13)
        )
        expect(bars > 60, f"bars of {name} have {bars} pixels")
    lines = colour_count(region(pixels, graph), (39, 96, 163))
    expect(lines > 100, f"the boxes and dots of the groups have {lines} pixels")


def tint(colour, share):
    """Under the mark of the group that is chosen."""
    return [round(c + (m - c) * share) for c, m in zip(colour, (39, 96, 163))]


def check_page(directory, page, points):
    check_markup(page)
    dom, console = chromium(directory, page, "--dump-dom")
    expect(not console, f"{points} points: console: {console}")
    found = len(re.findall(r'<circle class="point"', dom))
    expect(found == 3 * points, f"{found} dots, expected 3 drawings of {points}")
    rows = len(re.findall(r"<tr data-point=", dom))
    expect(rows == points, f"{rows} rows, expected {points}")
    expect(
        'id="timeline"' in dom and 'id="traffic"' in dom and 'class="box"' in dom,
        "no memory over time, no traffic, or no groups on the network",
    )
    picture = os.path.join(directory, f"report-{points}.png")
    _, console = chromium(directory, page, f"--screenshot={picture}")
    expect(not console, f"{points} points: console: {console}")
    check_picture(directory, page, picture, points)
    print(f"{points} points: drawn, console empty")


def check_files(directory, page):
    """What the buttons save: caught before it becomes a file."""
    copy = os.path.join(directory, "saved.html")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    script = """<script>{ const blobs = [];
        URL.createObjectURL = b => { blobs.push(b); return "data:,"; };
        HTMLAnchorElement.prototype.click = () => {};
        document.querySelectorAll("#files button").forEach(b => b.click());
        Promise.all(blobs.map(b => b.text())).then(texts => {
            document.body.replaceChildren(); document.title = JSON.stringify(texts); });
        }</script></body>"""
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", script))
    dom, _ = chromium(directory, copy, "--dump-dom")
    texts = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.S).group(1)))
    with open(os.path.join(os.path.dirname(page), "front.json"), encoding="utf-8") as file:
        front = json.load(file)["points"]
    schedules = list(csv.DictReader(io.StringIO(texts[0])))
    expect(
        [int(line["accesses_elements"]) for line in schedules]
        == [point["accesses_elements"] for point in front],
        "schedules.csv is not the front",
    )
    moved = {}
    for line in csv.DictReader(io.StringIO(texts[1])):
        moved[line["schedule"]] = (
            moved.get(line["schedule"], 0)
            + int(line["reads_elements"])
            + int(line["writes_elements"])
        )
    expect(
        moved == {f"#{n}": point["accesses_elements"] for n, point in enumerate(front)},
        "the sums of traffic.csv are not the accesses of the front",
    )
    held = {}
    for line in csv.DictReader(io.StringIO(texts[2])):
        held[line["schedule"]] = max(held.get(line["schedule"], 0), int(line["live_elements"]))
    expect(
        held == {f"#{n}": point["live_total_elements"] for n, point in enumerate(front)},
        "the largest of memory.csv is not what the front says",
    )
    expect(len(json.loads(texts[-1])["points"]) == len(front), "report.json lacks points")
    print(f"{len(texts)} files: as the front")


def check_small_dark_and_paper(directory, page):
    """Nothing is wider than a phone, and texts are as large as on a screen. Colours follow the system.
    On paper, in grey, the three kinds of traffic stay distinct."""
    needed, given, smallest = answer_of(
        directory,
        page,
        """(() => { const scale = [...document.querySelectorAll("svg")]
            .map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width);
        return [document.documentElement.scrollWidth, innerWidth, Math.min(...scale)]; })()""",
        "--window-size=500,900",
    )
    expect(needed <= given <= 500, f"{needed} pixels wide on a screen of {given}")
    expect(smallest > 0.85, f"a drawing is shrunk to {smallest:.0%} on a phone")
    check_light_and_dark(directory, page, "front")
    paper = os.path.join(directory, "front.pdf")
    chromium(directory, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    with open(paper, "rb") as file:
        pages = len(re.findall(rb"/Type\s*/Page\b", file.read()))
    expect(2 <= pages <= 40, f"printed on {pages} pages")
    style = answer_of(
        directory,
        page,
        """["--i", "--w", "--o"].map(name =>
            getComputedStyle(document.documentElement).getPropertyValue(name).trim())""",
    )
    greys = [
        0.299 * int(c[1:3], 16) + 0.587 * int(c[3:5], 16) + 0.114 * int(c[5:7], 16) for c in style
    ]
    expect(
        all(light - dark > 40 for dark, light in zip(greys, greys[1:])),
        f"colours of X, W and Y are grey levels {greys}",
    )
    marks = answer_of(
        directory,
        page,
        """[...document.querySelectorAll("#colours rect")]
            .map(r => r.getAttribute("fill").match(/\\d+/g).map(Number))""",
    )
    levels = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in marks]
    expect(levels == sorted(levels), f"the colours of the front do not rise in grey: {levels}")
    print(f"phone, dark, {pages} pages of paper: readable")


def check_measured(directory, program):
    """Counts and times beside what was predicted."""
    front = os.path.join(directory, "measured")
    laminate(program, "explore", "zoo:l2net", "--max-depth", "2", "-q", "-o", front)
    laminate(
        program,
        "validate",
        "zoo:l2net",
        "--front",
        front,
        "--points",
        "3",
        "-q",
        "--json",
        os.path.join(front, "counted.json"),
    )
    laminate(
        program,
        "bench",
        "zoo:l2net",
        "--schedule",
        front + "#0",
        "--seconds",
        "0",
        "-q",
        "--json",
        os.path.join(front, "timed.json"),
    )
    laminate(program, "report", front, "-q")
    dom, console = chromium(directory, os.path.join(front, "report.html"), "--dump-dom")
    expect(not console, f"measured: console: {console}")
    for text in (
        "Predicted beside measured: counts",
        "generated code",
        "Measured: time",
        "counted.json",
        "timed.json",
        "3 of 3",
        "= model",
    ):
        expect(text in dom, f'measured: "{text}" is not on the page')
    expect(
        "DIFFERENT" not in re.sub(r"<script.*?</script>", "", dom, flags=re.S),
        "measured: something differs",
    )

    # A bench that left out the network layer by layer, which did not fit.
    timed = os.path.join(front, "timed.json")
    with open(timed) as file:
        answer = json.load(file)
    del answer["layer_by_layer"]
    answer["left_out"] = "layer by layer is left out: no room"
    with open(timed, "w") as file:
        json.dump(answer, file)
    laminate(program, "report", front, "-q")
    dom, console = chromium(directory, os.path.join(front, "report.html"), "--dump-dom")
    expect(not console, f"measured, left out: console: {console}")
    shown = re.sub(r"<script.*?</script>", "", dom, flags=re.S)
    for text in (
        "layer by layer left out",
        "layer by layer is left out: no room",
        "Measured: time",
    ):
        expect(text in shown, f'measured, left out: "{text}" is not on the page')
    print("measured beside predicted: shown")


def check_times(directory, program):
    """Time over memory in steps, measured beside predicted."""
    front = os.path.join(directory, "times")
    network = "zoo:mc-cnn?height=24&width=64"
    laminate(program, "explore", network, "--axes", "memory,time", "-q", "-o", front)
    with open(os.path.join(front, "front.json"), encoding="utf-8") as file:
        points = json.load(file)["points"]
    expect(len(points) > 3, f"the front of time has {len(points)} points")
    page = os.path.join(front, "report.html")
    drawn = """[".stairs:not(.measured)", ".stairs.measured", ".measured-point"]
        .map(name => [...document.querySelectorAll(name)].map(e => e.getAttribute("d") || ""))"""
    [predicted], measured, rings = answer_of(directory, page, drawn)
    expect(not measured and not rings, "measured times are drawn where none are")
    # Every point of such a front is a step: a line across and one down to each but the first.
    steps = re.findall("V", predicted)
    expect(len(steps) == len(points) - 1, f"{predicted} has {len(steps)} steps, {len(points)} points")
    times = os.path.join(front, "timed.json")
    laminate(program, "bench", network, "--front", front, "--points", "3", "--seconds", "0",
             "-q", "--json", times)  # fmt: skip
    laminate(program, "report", front, "-q")
    _, [steps], rings = answer_of(directory, page, drawn)
    expect(len(rings) == 3 and steps, f"{len(rings)} points measured, expected 3; steps {steps}")
    dom, console = chromium(directory, page, "--dump-dom")
    expect(not console, f"times: console: {console}")
    for text in ("none beaten by another in memory and time together", "least time predicted",
                 "time as predicted for", "Rings and the dashed steps: measured"):  # fmt: skip
        expect(text in dom, f'times: "{text}" is not on the page')
    print(f"time over memory: {len(points)} steps, 3 measured")


def check_click(directory, page, row, title, contains):
    """What a click on a row of the table shows, by a copy of the page that clicks it."""
    script = f"document.querySelector('tr[data-point=\"{row}\"]').click();"
    copy = copy_with(directory, page, script)
    dom, console = chromium(directory, copy, "--dump-dom")
    expect(not console, f"click: console: {console}")
    expect(
        f'<h2 id="point-heading">Schedule {title}</h2>' in dom,
        f"a click on row {row} does not show {title}",
    )
    expect(contains in dom, f'a click on row {row} does not show "{contains}"')
    print(f"click on {title}: shown")


def check_that_the_console_is_heard(directory):
    """Else an empty console would mean nothing."""
    page = os.path.join(directory, "broken.html")
    with open(page, "w", encoding="utf-8") as file:
        file.write(
            "<!doctype html><title>broken</title><script>console.warn('careful'); missing();</script>"
        )
    _, console = chromium(directory, page, "--dump-dom")
    heard = "\n".join(console)
    expect(
        "careful" in heard and "missing is not defined" in heard,
        f"the console of a broken page: {console}",
    )


def front_of(program, directory, name, points):
    """A copy of the front with this many points: the first, or all repeatedly with other numbers."""
    copy = os.path.join(directory, name)
    os.makedirs(copy, exist_ok=True)
    with open(os.path.join(directory, "front", "front.json"), encoding="utf-8") as file:
        front = json.load(file)
    given = front["points"]
    front["points"] = []
    for n in range(points):
        point = dict(given[n % len(given)])
        point["accesses_elements"] += 7 * (n // len(given))
        point["macs"] += 1000 * (n // len(given))
        front["points"].append(point)
    with open(os.path.join(copy, "front.json"), "w", encoding="utf-8") as file:
        json.dump(front, file)
    laminate(program, "report", copy)
    return os.path.join(copy, "report.html")


def check_light_and_dark(directory, page, name):
    for scheme, setting, light in (("light", 1, True), ("dark", 0, False)):
        picture = os.path.join(directory, f"{name}-{scheme}.png")
        chromium(
            directory,
            page,
            f"--screenshot={picture}",
            f"--blink-settings=preferredColorScheme={setting}",
        )
        corner = np.asarray(Image.open(picture).convert("L"))[2, 2]
        expect(
            (corner > 200) == light and (corner < 60) != light,
            f"{name}: the {scheme} page's corner has grey level {corner}",
        )


def check_plain_page(directory, page, name):
    """Checks a page without scripts: nothing on the console, nothing wider than a phone, colours of
    the system."""
    check_markup(page)
    _, console = chromium(directory, page, "--dump-dom")
    expect(not console, f"{name}: console: {console}")
    needed, given = answer_of(
        directory,
        page,
        "[document.documentElement.scrollWidth, innerWidth]",
        "--window-size=500,900",
    )
    expect(needed <= given <= 500, f"{name}: {needed} pixels wide on a screen of {given}")
    check_light_and_dark(directory, page, name)
    print(f"{name}: screen, phone and dark")


def check_plain_pages(directory, program):
    sweep = os.path.join(directory, "sweep")
    laminate(
        program,
        "explore",
        "zoo:l3net",
        "--model",
        "depth-first",
        "--machine",
        "meta_proto_df",
        "--stacks",
        "all",
        "--columns",
        "3,8",
        "--rows",
        "2,5",
        "-q",
        "-o",
        sweep,
    )
    with open(os.path.join(sweep, "sweep.json"), encoding="utf-8") as file:
        answer = json.load(file)
    page = os.path.join(sweep, "report.html")
    check_plain_page(directory, page, "sweep")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    expect(
        text.count('class="on-front"') == len(answer["front"]),
        "not every point of the front is drawn",
    )
    expect(text.count('class="beaten"') == len(answer["points"]), "not every point is drawn")
    dom, console = chromium(directory, os.path.join(sweep, "schedules.html"), "--dump-dom")
    expect(not console, f"schedules.html: console: {console}")
    expect(
        'id="timeline"' in dom and 'id="traffic"' in dom,
        "schedules.html: no memory over time or no traffic",
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--laminate", required=True)
    parser.add_argument("--keep")
    options = parser.parse_args()
    if CHROMIUM is None:
        print("skipped: no Chromium; `make test` installs the Debian package chromium")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        directory = os.path.abspath(options.keep) if options.keep else temporary
        os.makedirs(directory, exist_ok=True)
        check_that_the_console_is_heard(directory)
        laminate(
            options.laminate, "explore", "zoo:l3net", "-q", "-o", os.path.join(directory, "front")
        )
        page = os.path.join(directory, "front", "report.html")
        with open(os.path.join(directory, "front", "front.json"), encoding="utf-8") as file:
            points = len(json.load(file)["points"])
        expect(points > 20, f"the front of l3net has {points} points")
        check_plain_pages(directory, options.laminate)
        check_page(directory, page, points)
        check_page(directory, front_of(options.laminate, directory, "one", 1), 1)
        many = front_of(options.laminate, directory, "many", 2000)
        check_page(directory, many, 2000)
        check_files(directory, page)
        check_small_dark_and_paper(directory, page)
        check_measured(directory, options.laminate)
        check_times(directory, options.laminate)
        check_click(directory, page, 5, "#5", "Its loop nest")
        check_click(directory, many, 1, "#1", "laminate show DIR#1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
