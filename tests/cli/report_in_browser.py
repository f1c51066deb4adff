"""Opens the page of a front in headless Chromium: it draws every point, reports nothing on the
console, and looks like a page.

  report_in_browser.py --laminate PROGRAM [--keep DIRECTORY]

Fronts of 1, about 70 and 2000 points, on a screen, on a phone, in the dark and on paper; the files that
the page saves; measurements; and of the pages of every model and of a sweep, that no text lies on
another, is cut off or cannot be read. Exit 0: all right; 1: a line says what is wrong; 77: Chromium or
Pillow is missing (`make test` installs both). --keep leaves pages and screenshots in the directory.
"""

import argparse
import csv
import html.parser
import io
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}; `make test` installs it")
    sys.exit(77)

from browser import CHROMIUM, Browser

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


def shown(browser, page, **screen):
    """Opens the page, which must leave the console empty; its elements as HTML, without scripts."""
    browser.open(page, **screen)
    dom = browser.value(
        "(() => { const copy = document.documentElement.cloneNode(true);"
        "copy.querySelectorAll('script').forEach(s => s.remove()); return copy.outerHTML; })()"
    )
    expect(not browser.console, f"{page}: console: {browser.console}")
    return dom


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


def boxes(browser, *selectors):
    """Left, top, right and bottom of every element of each selector."""
    script = (
        "(names => names.map(name => { const all = [...document.querySelectorAll(name)]"
        ".map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom].map(Math.round)); return all; }))("
        + json.dumps(selectors)
        + ")"
    )
    return browser.value(script)


def region(pixels, box):
    left, top, right, bottom = box
    return pixels[top:bottom, left:right]


def check_picture(browser, path, points):
    pixels = np.asarray(Image.open(io.BytesIO(browser.picture(path))).convert("RGB"))
    expect(pixels.shape == (HEIGHT, WIDTH, 3), f"screenshot is {pixels.shape}")
    corners = [tuple(pixels[y, x]) for y in (2, HEIGHT - 3) for x in (2, WIDTH - 3)]
    expect(
        all(corner == (255, 255, 255) for corner in corners),
        f"the margins are not white: {corners}",
    )
    plots, [timeline], [traffic], [graph] = boxes(
        browser, "#plots svg", "#timeline", "#traffic", "#graph"
    )
    expect(len(plots) == (3 if points > 1 else 0), f"{len(plots)} drawings of a front of {points}")
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


def check_page(browser, directory, page, points):
    check_markup(page)
    dom = shown(browser, page, width=WIDTH, height=HEIGHT)
    found = len(re.findall(r'<circle class="point"', dom))
    expect(
        found == (3 * points if points > 1 else 0), f"{found} dots of {points} points in drawings"
    )
    rows = len(re.findall(r"<tr data-point=", dom))
    expect(rows == points, f"{rows} rows, expected {points}")
    expect("layer by layer moves" in dom or points == 1, "no headline")
    expect(
        'id="timeline"' in dom and 'id="traffic"' in dom and 'class="box"' in dom,
        "no memory over time, no traffic, or no groups on the network",
    )
    check_picture(browser, os.path.join(directory, f"report-{points}.png"), points)
    print(f"{points} points: drawn, console empty")


def check_files(browser, page):
    """What the buttons save: caught before it becomes a file."""
    browser.open(page)
    texts = browser.value(
        """(() => { const blobs = [];
        URL.createObjectURL = b => { blobs.push(b); return "data:,"; };
        HTMLAnchorElement.prototype.click = () => {};
        document.querySelectorAll("#files button").forEach(b => b.click());
        return Promise.all(blobs.map(b => b.text())); })()"""
    )
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


def check_small_dark_and_paper(browser, directory, page):
    """Nothing is wider than a phone, and texts are as large as on a screen. Colours follow the system.
    On paper, in grey, the three kinds of traffic stay distinct."""
    browser.open(page, width=500, height=900)
    needed, given, smallest = browser.value(
        """(() => { const scale = [...document.querySelectorAll("svg[width]")]
            .map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width);
        return [document.documentElement.scrollWidth, innerWidth, Math.min(...scale)]; })()"""
    )
    expect(needed <= given <= 500, f"{needed} pixels wide on a screen of {given}")
    expect(smallest > 0.85, f"a drawing is shrunk to {smallest:.0%} on a phone")
    check_light_and_dark(browser, directory, page, "front")
    browser.open(page)
    pages = len(re.findall(rb"/Type\s*/Page\b", browser.paper()))
    expect(2 <= pages <= 40, f"printed on {pages} pages")
    style = browser.value(
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
    marks = browser.value(
        """[...document.querySelectorAll("#colours rect")]
            .map(r => r.getAttribute("fill").match(/\\d+/g).map(Number))""",
    )
    levels = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in marks]
    expect(levels == sorted(levels), f"the colours of the front do not rise in grey: {levels}")
    print(f"phone, dark, {pages} pages of paper: readable")


def check_measured(browser, directory, program):
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
    dom = shown(browser, os.path.join(front, "report.html"))
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
    expect("DIFFERENT" not in dom, "measured: something differs")

    # A bench that left out the network layer by layer, which did not fit.
    timed = os.path.join(front, "timed.json")
    with open(timed) as file:
        answer = json.load(file)
    del answer["layer_by_layer"]
    answer["left_out"] = "layer by layer is left out: no room"
    with open(timed, "w") as file:
        json.dump(answer, file)
    laminate(program, "report", front, "-q")
    dom = shown(browser, os.path.join(front, "report.html"))
    for text in (
        "layer by layer left out",
        "layer by layer is left out: no room",
        "Measured: time",
    ):
        expect(text in dom, f'measured, left out: "{text}" is not on the page')
    print("measured beside predicted: shown")


def check_times(browser, directory, program):
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
    browser.open(page)
    [predicted], measured, rings = browser.value(drawn)
    expect(not measured and not rings, "measured times are drawn where none are")
    # Every point of such a front is a step: a line across and one down to each but the first.
    steps = re.findall("V", predicted)
    expect(len(steps) == len(points) - 1, f"{predicted} has {len(steps)} steps, {len(points)} points")
    times = os.path.join(front, "timed.json")
    laminate(program, "bench", network, "--front", front, "--points", "3", "--seconds", "0",
             "-q", "--json", times)  # fmt: skip
    laminate(program, "report", front, "-q")
    dom = shown(browser, page)
    _, [steps], rings = browser.value(drawn)
    expect(len(rings) == 3 and steps, f"{len(rings)} points measured, expected 3; steps {steps}")
    for text in ("none beaten by another in memory and time together", "least time predicted",
                 "time as predicted for", "Rings and the dashed steps: measured"):  # fmt: skip
        expect(text in dom, f'times: "{text}" is not on the page')
    print(f"time over memory: {len(points)} steps, 3 measured")


def check_click(browser, page, row, title, contains):
    """What a click on a row of the table shows."""
    browser.open(page)
    browser.value(f"document.querySelector('tr[data-point=\"{row}\"]').click()")
    heading, text = browser.value(
        "[document.getElementById('point-heading').textContent, document.body.textContent]"
    )
    expect(heading == f"Schedule {title}", f"a click on row {row} shows {heading}, not {title}")
    expect(contains in text, f'a click on row {row} does not show "{contains}"')
    expect(not browser.console, f"click: console: {browser.console}")
    print(f"click on {title}: shown")


def check_keyboard(browser, page):
    """Tab reaches a drawing, whose arrow keys choose schedules, and a group, which Enter opens."""
    browser.open(page)
    heading = "document.getElementById('point-heading').textContent"
    focused = "document.activeElement.getAttribute('class') || document.activeElement.localName"

    def tab_to(*names):
        for _ in range(200):
            browser.press("Tab", 9)
            if browser.value(focused) in names:
                return
        fail(f"Tab does not reach {names[0]}")

    tab_to("plot")
    before = browser.value(heading)
    browser.press("ArrowRight", 39)
    expect(browser.value(heading) != before, f"an arrow key leaves {before}")
    tab_to("pick", "pick chosen")
    browser.press("Enter", 13, "\r")
    group = browser.value("document.activeElement.getAttribute('aria-label')").split()[-1]
    inside = f"Inside group {group} of"
    expect(inside in browser.value("document.body.textContent"), f"Enter does not show {inside}")
    print("keyboard: schedules and groups")


def check_that_the_console_is_heard(browser, directory):
    """Else an empty console would mean nothing."""
    page = os.path.join(directory, "broken.html")
    with open(page, "w", encoding="utf-8") as file:
        file.write(
            "<!doctype html><title>broken</title><script>console.warn('careful'); missing();</script>"
        )
    browser.open(page)
    heard = "\n".join(browser.console)
    expect(
        "careful" in heard and "missing is not defined" in heard,
        f"the console of a broken page: {browser.console}",
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


def check_light_and_dark(browser, directory, page, name):
    for scheme in ("light", "dark"):
        browser.open(page, dark=scheme == "dark")
        picture = browser.picture(os.path.join(directory, f"{name}-{scheme}.png"))
        corner = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))[2, 2]
        light = scheme == "light"
        expect(
            (corner > 200) == light and (corner < 60) != light,
            f"{name}: the {scheme} page's corner has grey level {corner}",
        )


# Every text on the page that can be seen, with its box, whether its drawing or table cuts it off, and
# the contrast of its colour to the page's or to the background that it lies on.
TEXTS = """(() => {
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(v => v / 255)
        .map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || /^(script|style|title|noscript)$/.test(element.localName)) continue;
    if (!element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const seen = {left: -1e9, right: 1e9, top: -1e9, bottom: 1e9};  // in what scrolls
    for (let at = element; at; at = at.parentElement) {
      if (at.closest("svg") || getComputedStyle(at).overflowY === "visible") continue;
      const box = at.getBoundingClientRect();
      for (const side of ["left", "top"]) seen[side] = Math.max(seen[side], box[side]);
      for (const side of ["right", "bottom"]) seen[side] = Math.min(seen[side], box[side]);
    }
    const drawing = element.closest("svg"), style = getComputedStyle(element);
    const frame = drawing && drawing.getBoundingClientRect();
    const colour = drawing ? style.fill : style.color;
    const [a, b] = [luminance(colour), luminance(background(element))].sort((x, y) => y - x);
    for (const box of range.getClientRects()) {
      const [left, top] = [Math.max(box.left, seen.left), Math.max(box.top, seen.top)];
      const [right, bottom] = [Math.min(box.right, seen.right), Math.min(box.bottom, seen.bottom)];
      if (right - left < 1 || bottom - top < 1) continue;
      const cut = frame && (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                            box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
      texts.push([node.data.trim().slice(0, 40), left, top, right, bottom, Boolean(cut),
                  (a + 0.05) / (b + 0.05)]);
    }
  }
  return texts;
})()"""


def check_texts(browser, page, name):
    """No text lies on another, is cut off by its drawing, or is hardly darker than what it lies on."""
    for width, dark in ((WIDTH, False), (WIDTH, True), (500, False)):
        browser.open(page, width=width, height=900, dark=dark)
        texts = sorted(browser.value(TEXTS), key=lambda text: text[2])
        where = f"{name}, {width} pixels wide, {'dark' if dark else 'light'}"
        expect(len(texts) > 10, f"{where}: {len(texts)} texts")
        for n, (text, left, top, right, bottom, is_cut, contrast) in enumerate(texts):
            expect(not is_cut, f'{where}: "{text}" is cut off')
            expect(contrast > 3, f'{where}: "{text}" has a contrast of {contrast:.2f}')
            for other in texts[n + 1 :]:
                if other[2] > bottom - 2:
                    break
                expect(
                    min(right, other[3]) - max(left, other[1]) < 1.5
                    or min(bottom, other[4]) - max(top, other[2]) < 2,
                    f'{where}: "{text}" and "{other[0]}" overlap',
                )
        needed, given = browser.value("[document.documentElement.scrollWidth, innerWidth]")
        expect(needed <= given, f"{where}: {needed} pixels wide on a screen of {given}")
        expect(not browser.console, f"{where}: console: {browser.console}")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    expect(
        not re.search(r"(src|href)=[\"']?(https?:|//)|url\([\"']?https?:|@import", text),
        f"{name}: loads something from elsewhere",
    )


def check_models(browser, directory, program):
    """The pages of every model and of a sweep, for several inputs."""
    jobs = os.path.join(directory, "jobs.json")
    with open(jobs, "w", encoding="utf-8") as file:
        sweeps = [
            {"networks": ["zoo:l2net", "zoo:l3net"], "memory": ["16B", "1KiB", "8KiB"]},
            {"networks": ["zoo:l3net"], "arguments": ["--tiles=all", "--no-recompute"]},
            {"networks": ["zoo:l2net-4k"], "arguments": ["--tiles=pow2"]},
        ]
        json.dump({"schema": "laminate.jobs", "version": 1, "name": "two", "sweeps": sweeps}, file)
    depth_first = ["--model", "depth-first", "--machine", "meta_proto_df"]
    small = "?height=64&width=64"
    inputs = [
        ("time", ["explore", "zoo:resnet18" + small, "--axes", "accesses,memory,time"]),
        ("energy", ["explore", "zoo:l2net", "--machine", "convfusion-40nm"]),
        ("no-mac-axis", ["explore", "zoo:fsrcnn?height=12&width=24", "--tiles", "pow2",
                         "--max-depth", "2"]),  # fmt: skip
        ("groups", ["explore", "zoo:resnet18" + small, "--model", "dag-groups"]),
        ("branches", ["explore", "zoo:squeezenet?height=96&width=96", "--model", "dag-groups"]),
        ("optimum", ["explore", "zoo:alexnet", "--model", "layer-optimum", "--curve", "--fuse"]),
        ("alone", ["explore", "zoo:l3net", "--model", "layer-optimum"]),
        ("stacks", ["explore", "zoo:vgg16", "--model", "spatial-fusion"]),
        ("tiles", ["explore", "zoo:fsrcnn-defines", *depth_first]),
        ("few-tiles", ["explore", "zoo:l3net", *depth_first, "--stacks", "all",
                       "--columns", "3,8", "--rows", "2,5"]),  # fmt: skip
        ("one-tile", ["cost", "zoo:fsrcnn-defines", *depth_first, "--tile", "4x72"]),
        ("jobs", ["sweep", jobs]),
    ]
    pages = 0
    for name, command in inputs:
        made = os.path.join(directory, name)
        laminate(program, *command, "-q", "-o", made)
        for file in sorted(os.listdir(made)):
            if file.endswith(".html"):
                check_markup(os.path.join(made, file))
                check_texts(browser, os.path.join(made, file), f"{name}/{file}")
                pages += 1
    expect(pages == len(inputs) + 3, f"{pages} pages")  # curves.html and two of schedules
    print(f"{pages} pages of models and sweeps: texts apart, in the frame and readable")
    check_what_they_say(browser, directory)


def check_what_they_say(browser, directory):
    dom = shown(browser, os.path.join(directory, "groups", "report.html"))
    with open(os.path.join(directory, "groups", "groups.json"), encoding="utf-8") as file:
        answer = json.load(file)
    for text in (f"{answer['group_count']} groups", f"({100 * answer['saved']:.1f} % less)",
                 f"of {answer['schedule']['schedule_groups']}: "):  # fmt: skip
        expect(text in dom, f'dag-groups: "{text}" is not on the page')
    page = os.path.join(directory, "tiles", "report.html")
    dom = shown(browser, page)
    with open(os.path.join(directory, "tiles", "sweep.json"), encoding="utf-8") as file:
        answer = json.load(file)
    fronts, beaten = dom.count('class="on-front"'), dom.count('class="beaten"')
    expect(fronts == len(answer["front"]), f"{fronts} points of the front are drawn")
    expect(beaten == len(answer["points"]), f"{beaten} of {len(answer['points'])} points are drawn")
    expect(not re.search(r"\de[+-]\d", re.sub("<[^>]*>", "", dom)), "a number has an exponent")
    best = answer["best"]
    outlined = browser.value(
        """(() => { const cell = document.querySelector("td.best");
        return [cell.closest("table").rows[0].cells[cell.cellIndex].textContent,
                cell.parentElement.cells[0].textContent]; })()"""
    )
    tile = [f"{best['tile_columns']} wide", f"{best['tile_rows']} high"]
    expect(outlined == tile, f"the best tile is {tile}, but {outlined} is outlined")
    dom = shown(browser, os.path.join(directory, "jobs", "report.html"))
    for text in ("--tiles=all --no-recompute", "none fits", "zoo:l3net: accesses against memory"):
        expect(text in dom, f'sweep: "{text}" is not on the page')
    expect(dom.count('<path class="series') == 2 * 6, "not every job is drawn, with its key")


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
    # A helper of the browser may still be writing into its profile.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        directory = os.path.abspath(options.keep) if options.keep else temporary
        os.makedirs(directory, exist_ok=True)
        with Browser(os.path.join(directory, "profile")) as browser:
            check_all(browser, directory, options.laminate)
    return 0


def check_all(browser, directory, program):
    check_that_the_console_is_heard(browser, directory)
    laminate(program, "explore", "zoo:l3net", "-q", "-o", os.path.join(directory, "front"))
    page = os.path.join(directory, "front", "report.html")
    with open(os.path.join(directory, "front", "front.json"), encoding="utf-8") as file:
        points = len(json.load(file)["points"])
    expect(points > 20, f"the front of l3net has {points} points")
    check_models(browser, directory, program)
    check_page(browser, directory, page, points)
    check_page(browser, directory, front_of(program, directory, "one", 1), 1)
    many = front_of(program, directory, "many", 2000)
    check_page(browser, directory, many, 2000)
    check_texts(browser, page, "front")
    check_texts(browser, many, "2000 points")
    check_files(browser, page)
    check_small_dark_and_paper(browser, directory, page)
    check_measured(browser, directory, program)
    check_times(browser, directory, program)
    check_texts(browser, os.path.join(directory, "times", "report.html"), "measured times")
    check_click(browser, page, 5, "#5", "Its loop nest")
    check_click(browser, many, 1, "#1", "laminate show DIR#1")
    check_keyboard(browser, page)


if __name__ == "__main__":
    sys.exit(main())
