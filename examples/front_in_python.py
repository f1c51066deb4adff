"""A front in Python: explore, choose by memory, compile, run, and draw it.

    pip install .
    python examples/front_in_python.py zoo:fsrcnn front.svg

Draws with matplotlib where it is installed, else writes the same plot as SVG by itself.
"""

import sys

import laminate
import numpy


def svg(front, file):
    """Accesses against memory, both logarithmic; a dot per schedule."""
    size, margin = 480, 50

    def scale(values):
        low, high = numpy.log(min(values)), numpy.log(max(values))
        return [margin + (size - 2 * margin) * (numpy.log(v) - low) / max(high - low, 1e-9) for v in values]

    xs = scale([p.memory_bytes for p in front])
    ys = scale([p.accesses for p in front])
    dots = "".join(f'<circle cx="{x:.1f}" cy="{size - y:.1f}" r="4"><title>{p.accesses:,} elements, {p.memory_bytes:,} bytes</title></circle>'
                   for x, y, p in zip(xs, ys, front))
    with open(file, "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="13">'
                  f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">memory: {min(p.memory_bytes for p in front):,} to '
                  f'{max(p.memory_bytes for p in front):,} bytes</text><text x="14" y="30">accesses: {min(p.accesses for p in front):,} to '
                  f'{max(p.accesses for p in front):,} elements</text><g fill="#0b62a4">{dots}</g></svg>\n')


def plot(front, file):
    try:
        from matplotlib import pyplot
    except ImportError:
        svg(front, file)
        return
    pyplot.loglog([p.memory_bytes for p in front], [p.accesses for p in front], "o")
    pyplot.xlabel("memory held at once, bytes")
    pyplot.ylabel("external accesses, elements")
    pyplot.title(front.network)
    pyplot.savefig(file)


def main(net, file):
    front = laminate.explore(net)
    print(f"{front.network}: {len(front)} schedules")
    plot(front, file)

    budget = sorted(p.memory_bytes for p in front)[len(front) // 2]
    point = front.within(budget)
    print(f"fused within {budget:,} bytes: {point.accesses:,} elements to and from memory, {point.macs:,} MACs")
    with laminate.compile(net, schedule=point.schedule) as network:
        inputs = [numpy.random.default_rng(1).random(tensor.shape, dtype=numpy.float32) for tensor in network.inputs]
        for tensor, result in zip(network.outputs, network.run(*inputs)):
            print(f"{tensor.name} {tensor.shape}: {result.min():.3g} to {result.max():.3g}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: front_in_python.py NET PLOT.svg")
    main(sys.argv[1], sys.argv[2])
