#!/usr/bin/env python3
"""Compiles networks for arm-64 with Debian's cross compiler, as docs/install.md shows, runs them
under qemu-user, and compares the outputs with those of this machine.

    arm64.py LAMINATE SOURCE
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

PREFIX = "aarch64-linux-gnu-"
SYSROOT = "/usr/aarch64-linux-gnu"
# Line buffers and transposed convolution; pointwise, depthwise and strided layers, and a sum.
NETWORKS = {"fsrcnn": "zoo:fsrcnn?height=24&width=32",
            "mobilenet": "zoo:mobilenetv2?height=64&width=64"}
MOST = 1e-4  # of the range: other vectors round differently


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False,
                          **options)
    if done.returncode != 0:
        sys.exit(f"arm64: exit {done.returncode} of: {' '.join(map(str, command))}")
    return done.stdout


def runtime_objects(source, directory):
    """The runtime for arm-64, from its sources alone."""
    files = [file for folder in ("base", "runtime", "nets/network", "nets/operators")
             for file in sorted((source / folder).glob("*.cpp"))]
    objects = directory / "runtime"
    objects.mkdir()
    run(PREFIX + "g++", "-std=c++20", "-O2", "-fopenmp", "-I", source, "-idirafter", "/usr/include",
        "-c", *files, cwd=objects)
    return sorted(objects.glob("*.o"))


def main():
    laminate, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    try:
        import numpy
    except ImportError:
        print("arm64: skipped, numpy is not installed")
        return 77
    for tool in (PREFIX + "g++", PREFIX + "ar", "qemu-aarch64"):
        if shutil.which(tool) is None:
            print(f"arm64: skipped, {tool} is not installed")
            return 77
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        runtime = runtime_objects(source, directory)
        for network, spec in NETWORKS.items():
            facts = run(laminate, "info", spec, "--quiet").decode()
            dims = next(line for line in facts.splitlines() if line.startswith("input ")).split()[-1]
            x = numpy.random.default_rng(7).random([int(d) for d in dims.split("x")], "float32")
            numpy.save(directory / "x.npy", x)
            run(laminate, "run", spec, "--input", directory / "x.npy", "--output",
                directory / "y.npy", "--quiet")
            expected = numpy.load(directory / "y.npy")

            compiled = directory / network
            run(laminate, "compile", spec, "--name", network, "--target", "arm-64-linux", "--cc",
                PREFIX + "gcc", "--ar", PREFIX + "ar", "-o", compiled, "--quiet")
            program = directory / (network + ".arm")
            run(PREFIX + "gcc", "-O2", "-I", source, "-I", directory,
                f'-DHEADER="{network}/{network}.h"', f"-DNETWORK={network}_network", "-c",
                source / "examples/floats.c", "-o", directory / "floats.o")
            run(PREFIX + "g++", "-fopenmp", directory / "floats.o", compiled / f"lib{network}.a",
                *runtime, "-o", program)
            found = numpy.frombuffer(
                run("qemu-aarch64", "-L", SYSROOT, program, input=x.tobytes()), "float32")
            if found.size != expected.size:
                sys.exit(f"arm64: {network}: found {found.size} elements, expected {expected.size}")
            error = numpy.abs(found - expected.ravel()).max() / numpy.ptp(expected)
            print(f"arm64: {network}: outputs differ by {error:.1e} of their range")
            if not error <= MOST:
                sys.exit(f"arm64: {network}: expected at most {MOST:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
