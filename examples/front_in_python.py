"""A front in Python: explore, choose by memory, compile, run, and draw it.

    pip install .
    python examples/front_in_python.py zoo:fsrcnn front.svg

Jupyter, VS Code and Spyder open this script of cells (`# %%`) as a notebook. It draws with
matplotlib where that is installed, and otherwise writes the same plot as SVG.
"""

# %% What it works on
import sys

import laminate
import numpy

in_notebook = "ipykernel" in sys.modules
if not in_notebook and len(sys.argv) != 3:
    sys.exit("usage: front_in_python.py NET PLOT.svg")
net, file = ("zoo:l3net", "front.svg") if in_notebook else sys.argv[1:]

# %% Explore: the schedules that none beats in accesses, memory and work together
front = laminate.explore(net)
print(f"{front.network}: {len(front)} schedules")
for point in front.points[:: max(1, len(front) // 8)]:
    print(f"{point.memory_bytes:>12,} bytes {point.accesses:>12,} elements moved {point.macs:>14,} MACs")


# %% Plot: accesses against memory, both logarithmic; a dot per schedule
def svg():
    size, margin = 480, 50

    def scale(values):
        low, high = numpy.log(min(values)), numpy.log(max(values))
        scale = (size - 2 * margin) / max(high - low, 1e-9)
        return [margin + scale * (numpy.log(v) - low) for v in values]

    memory, accesses = [p.memory_bytes for p in front], [p.accesses for p in front]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{size - y:.1f}" r="4">'
                   f'<title>{a:,} elements, {m:,} bytes</title></circle>'
                   for x, y, a, m in zip(scale(memory), scale(accesses), accesses, memory))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" '
            f'font-family="sans-serif" font-size="13">'
            f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">'
            f'memory: {min(memory):,} to {max(memory):,} bytes</text>'
            f'<text x="14" y="30">accesses: {min(accesses):,} to {max(accesses):,} elements</text>'
            f'<g fill="#0b62a4">{dots}</g></svg>\n')


try:
    from matplotlib import pyplot
except ImportError:
    with open(file, "w", encoding="utf-8") as out:
        out.write(svg())
else:
    pyplot.loglog([p.memory_bytes for p in front], [p.accesses for p in front], "o")
    pyplot.xlabel("memory held at once, bytes")
    pyplot.ylabel("external accesses, elements")
    pyplot.title(front.network)
    pyplot.savefig(file)

# %% Choose by memory
budget = sorted(p.memory_bytes for p in front)[len(front) // 2]
point = front.within(budget)
print(f"fused within {budget:,} bytes: {point.accesses:,} elements to and from memory, "
      f"{point.macs:,} MACs")

# %% Compile and run
with laminate.compile(net, schedule=point.schedule) as network:
    inputs = [numpy.random.default_rng(1).random(tensor.shape, dtype=numpy.float32)
              for tensor in network.inputs]
    for tensor, result in zip(network.outputs, network.run(*inputs)):
        print(f"{tensor.name} {tensor.shape}: {result.min():.3g} to {result.max():.3g}")
