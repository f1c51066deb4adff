"""The program `laminate` as a function: options in, its JSON out, its errors as exceptions."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


class Error(RuntimeError):
    """A failure inside the program."""


class UsageError(Error, ValueError):
    """Options that do not exist or exclude each other."""


class InputError(Error, ValueError):
    """A wrong or unsupported network, file or machine."""


class Infeasible(Error):
    """No schedule fits in the given memory. The message names the smallest that works."""


class ComparisonFailed(Error):
    """Counts or results that must be equal differ; `answer` is the program's JSON."""

    answer: dict = {}


# Exit codes: cli/README.md.
_ERRORS = {1: ComparisonFailed, 2: UsageError, 3: InputError, 4: Infeasible}


def installed_root():
    """The tree of `make install` inside this package, or None in a checkout."""
    root = pathlib.Path(__file__).parent / "installed"
    return root if root.is_dir() else None


def _checkout():
    return pathlib.Path(__file__).parents[2]


def find_program():
    """The program of this package, of its checkout, or on the search path, in this order."""
    candidates = [_checkout() / "build" / "bin" / "laminate"]
    if installed_root():
        candidates.insert(0, installed_root() / "bin" / "laminate")
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("laminate")
    if not found:
        raise Error(
            "the program laminate was not found: neither beside this package nor on the search path"
        )
    return found


def find_runtime():
    """liblaminate.so: of this package, of the checkout's build, or by the system's search."""
    root = installed_root()
    places = (
        [*root.glob("lib*/liblaminate.so"), *root.glob("lib*/*/liblaminate.so")] if root else []
    )
    # The presets that make build/bin/laminate.
    places += [
        path
        for preset in ("release", "ci")
        for path in _checkout().glob(f"build/{preset}/runtime/liblaminate.so")
    ]
    # Beside a program that was installed by `make install`.
    program = pathlib.Path(find_program()).resolve()
    places += [
        *program.parents[1].glob("lib*/liblaminate.so"),
        *program.parents[1].glob("lib*/*/liblaminate.so"),
    ]
    places += program.parents[1].glob("runtime/liblaminate.so")
    return str(places[0]) if places else "liblaminate.so.0"


def _words(options):
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            yield option
        else:
            for one in value if isinstance(value, (list, tuple)) else [value]:
                yield f"{option}={one}"


@contextlib.contextmanager
def network_argument(net):
    """NET as the program takes it. An onnx.ModelProto is written to a temporary file."""
    if hasattr(net, "SerializeToString"):
        with tempfile.TemporaryDirectory(prefix="laminate-") as directory:
            file = pathlib.Path(directory) / (
                (net.graph.name or "network").replace("/", "_")[:60] + ".onnx"
            )
            file.write_bytes(net.SerializeToString())
            yield str(file)
    else:
        yield os.fspath(net)


def call(*words, **options):
    """Runs `laminate WORDS OPTIONS` and returns its JSON answer as a dict. Raises an Error."""
    verbose = options.pop("verbose", False)
    command = [find_program(), *map(os.fspath, words), *_words(options), "--json", "-"] + (
        [] if verbose else ["--quiet"]
    )
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=None if verbose else subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = (done.stderr or "").strip().splitlines() or [
        f"laminate ended with code {done.returncode}"
    ]
    error = _ERRORS.get(done.returncode, Error)(said[-1].removeprefix("laminate: error: "))
    if isinstance(error, ComparisonFailed) and done.stdout:
        error.answer = json.loads(done.stdout)
    raise error


def main():
    """The command `laminate` of a Python environment."""
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])
