"""Draws the picture of README.md: the demo's network on a photograph, and the fronts of its
schedules, layer by layer and fused.

    laminate explore examples/data/fsrcnn_x2.onnx --height 256 --width 256 --space tiling -o ALONE
    laminate explore examples/data/fsrcnn_x2.onnx --height 256 --width 256 -o FUSED
    python readme_picture.py DATA DEMO ALONE FUSED PICTURE.svg

DATA is examples/data, DEMO is build/demo as `make demo` leaves it, ALONE and FUSED are the two
fronts. Needs Pillow. Nothing is drawn by hand, so a change of the network, the search or the code
changes the picture.
"""

import base64
import io
import json
import math
import os
import sys

from PIL import Image

# Left, top, right, bottom in the 512 x 512 original: eyes and hair, where the methods differ.
CROP = (200, 80, 264, 144)
ENLARGED = 3  # pixels of the file for one of the photograph, along each axis
SHOWN = 168  # pixels a side
COLOURS = {"layer by layer": "#b3541e", "fused": "#0b62a4"}


def data_uri(picture):
    """A crop, enlarged without smoothing, so that the pixels are those that were computed."""
    file = io.BytesIO()
    crop = picture.crop(CROP)
    enlarged = crop.resize((ENLARGED * crop.width, ENLARGED * crop.height), Image.NEAREST)
    enlarged.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def photographs(data, demo):
    half = Image.open(os.path.join(data, "astronaut_half.png")).convert("RGB")
    return [("bicubic", half.resize((512, 512), Image.BICUBIC)),
            ("network, fused", Image.open(os.path.join(demo, "astronaut_x2.png")).convert("RGB")),
            ("original", Image.open(os.path.join(data, "astronaut.png")).convert("RGB"))]


def front(directory):
    with open(os.path.join(directory, "front.json"), encoding="utf-8") as file:
        return sorted((p["live_bytes"], 4 * p["accesses_elements"]) for p in json.load(file)["points"])


def plot(fronts, left, top, width, height):
    """Bytes moved against bytes held, both logarithmic. A front is a staircase down to the bound."""
    bytes_held = [m for points in fronts.values() for m, _ in points]
    moved = [a for points in fronts.values() for _, a in points]
    low_x, high_x = math.log2(min(bytes_held)) - 0.3, math.log2(max(bytes_held)) + 0.8
    low_y, high_y = math.log2(min(moved)) - 0.6, math.log2(max(moved)) + 0.3

    def place(held, moves):
        x = left + width * (math.log2(held) - low_x) / (high_x - low_x)
        return x, top + height * (high_y - math.log2(moves)) / (high_y - low_y)

    out = [f'<path d="M{left},{top}v{height}h{width}" fill="none" stroke="#555"/>']
    for power, label in ((9, "512 B"), (12, "4 KiB"), (15, "32 KiB"), (18, "256 KiB")):
        if not low_x < power < high_x:
            continue
        x, _ = place(2**power, moved[0])
        out.append(f'<path d="M{x:.1f},{top + height}v5" stroke="#555"/>'
                   f'<text x="{x:.1f}" y="{top + height + 19}" text-anchor="middle">{label}</text>')
    for power, label in ((20, "1 MiB"), (23, "8 MiB"), (26, "64 MiB"), (29, "512 MiB")):
        if not low_y < power < high_y:
            continue
        _, y = place(bytes_held[0], 2**power)
        out.append(f'<path d="M{left},{y:.1f}h-5" stroke="#555"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for name, points in fronts.items():
        path = ""
        for held, moves in points:
            x, y = place(held, moves)
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f},{y:.1f}"
        path += f"H{left + width}"
        dashes = ' stroke-dasharray="7 4"' if name == "layer by layer" else ""
        out.append(f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2.5"{dashes}/>')
        held, moves = points[-1]
        x, y = place(held, moves)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[name]}"/>'
                   f'<text x="{left + width}" y="{y - 12:.1f}" text-anchor="end" '
                   f'fill="{COLOURS[name]}" font-weight="bold">'
                   f"{name} {moves / 2**20:.1f} MiB</text>")
    return "".join(out)


def main():
    if len(sys.argv) != 6:
        sys.exit("usage: readme_picture.py DATA DEMO ALONE FUSED PICTURE.svg")
    data, demo, alone, fused, file = sys.argv[1:]
    fronts = {"layer by layer": front(alone), "fused": front(fused)}
    top, width, height = 40, 1000, 264
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" font-family="sans-serif" font-size="13" fill="#222">'
             f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for index, (name, picture) in enumerate(photographs(data, demo)):
        x = 16 + index * (SHOWN + 8)
        parts.append(f'<text x="{x + SHOWN / 2}" y="{top - 10}" text-anchor="middle" '
                     f'font-weight="bold">{name}</text>'
                     f'<image x="{x}" y="{top}" width="{SHOWN}" height="{SHOWN}" '
                     f'href="{data_uri(picture)}"/>')
    below = top + SHOWN
    parts.append(f'<text x="16" y="{below + 24}">Twice as large: part of a photograph that the '
                 'network never saw.</text>')
    x = 16 + 3 * (SHOWN + 8) + 76
    parts.append(f'<text x="{x}" y="{top - 10}" font-weight="bold">'
                 'Its schedules: bytes moved, against bytes held</text>'
                 + plot(fronts, x, top, width - 20 - x, SHOWN))
    parts.append(f'<text x="{x}" y="{below + 46}">Each step is a schedule, counted exactly before it '
                 'runs.</text></svg>\n')
    with open(file + ".part", "w", encoding="utf-8") as out:
        out.write("".join(parts))
    os.replace(file + ".part", file)


main()
