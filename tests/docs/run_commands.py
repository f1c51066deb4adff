#!/usr/bin/env python3
"""Runs the commands that a document shows, in order, in an empty directory that sees examples/,
machines/ and a few more folders of the checkout.

    run_commands.py --build BUILD --cmake CMAKE --laminate PROGRAM [--slow] [--sanitized] DOCUMENT.md

A command is a line that begins with one of COMMANDS, in a fenced block of sh or in an indented
block; a line that ends in \\ continues on the next. A fenced block whose head is "c file=main.c" is
written to main.c. A comment before a block says more:

    <!-- run: slow -->              only with --slow, the label `long`
    <!-- run: no, REASON -->        shown, not run
    <!-- run: exit 4 -->            each of its commands must end with this code
    <!-- run: form -->              its files do not exist: only verb, options and values are checked

`make install PREFIX=P` installs BUILD there. Other `make TARGET`s are not run, but the Makefile must
have the target. mpirun is not run where it is missing. A line with a word in capitals that stands
for a value (VERB, DIR), with [OPTIONS] or with "..." is a form, not a command.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = {"laminate", "build/bin/laminate", "make", "cmake", "cc", "python", "./main", "mpirun",
            "cmp", "cp", "mkdir", "sh"}

# A C program is built without the sanitizer, so it cannot link the library of a sanitizer's build.
WITHOUT_SANITIZER = {"cc", "./main"}


class Block:
    def __init__(self, line, file=None, mark=""):
        self.line, self.file, self.mark, self.text = line, file, mark, []


def blocks_of(text):
    """Blocks of a document: fenced ones of sh or with a file, and indented ones."""
    mark, fence, block = "", None, None
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if line.strip() == fence:
                if block:
                    yield block
                fence, block, mark = None, None, ""
            elif block:
                block.text.append(line)
        elif line.startswith("```"):
            fence, head = "```", line[3:].split()
            file = next((word[5:] for word in head if word.startswith("file=")), None)
            block = Block(number, file, mark) if file or head[:1] == ["sh"] else None
        elif line.startswith("    "):
            block = block or Block(number - 1, None, mark)
            block.text.append(line[4:])
        else:
            if block:
                yield block
                block, mark = None, ""
            found = re.fullmatch(r"<!-- run: (.*) -->", line.strip())
            if found:
                mark = found.group(1)
            elif line.strip():
                mark = ""
    if block:
        yield block


def commands_of(block):
    """(line, command) of a block."""
    number = block.line
    lines = iter(block.text)
    for line in lines:
        number += 1
        start, command = number, line.removeprefix("$ ")
        while command.endswith("\\"):
            command = command[:-1] + next(lines, "")
            number += 1
        first = re.sub(r"^(\w+=\S* )+", "", command).split(" ")[0]
        is_form = re.search(r"\.\.\.|\[OPTIONS\]|\b(NET|VERB|DIR|FORMAT|TARGET)\b",
                            command.split(" #")[0])
        if first in COMMANDS and not is_form:
            yield start, command


def missing_target(command):
    """Why `make` cannot run this command; "" if it can."""
    targets = [word for word in shlex.split(command, comments=True)[1:] if "=" not in word]
    text = (ROOT / "Makefile").read_text()
    return next((f"the Makefile has no target {t}" for t in targets
                 if not re.search(rf"^{re.escape(t)}:", text, re.M)), "")


def wrong_form(command, program, environment):
    """Why the program would refuse `laminate ...` before it opens any file; "" if it would not."""
    words = shlex.split(command, comments=True)
    # --help is answered after values are checked, and before files are opened.
    help_text = subprocess.run([program, *words[words.index("laminate") + 1:], "--help"],
                               env=environment, capture_output=True, text=True, check=False)
    if help_text.returncode != 0:
        return help_text.stderr.strip()
    options = [re.match(r"--?[a-z][a-z-]*", word).group() for word in words
               if re.match(r"--?[a-z]", word)]
    return next((f"no option {option}" for option in options
                 if not re.search(rf"(^|[\s,]){re.escape(option)}\b", help_text.stdout, re.M)), "")


def run(document, program, build, cmake, slow, sanitized):
    done = failed = 0
    with tempfile.TemporaryDirectory(prefix="laminate-docs-") as directory:
        here = pathlib.Path(directory)
        for name in ("examples", "machines", "docs", "runtime", "nets", "base"):
            (here / name).symlink_to(ROOT / name)
        (here / "build" / "bin").mkdir(parents=True)
        (here / "build" / "bin" / "laminate").symlink_to(program)
        # The Python package, as if it were installed.
        package = here / "site" / "laminate"
        for link, target in [("bin/laminate", program),
                             ("lib/liblaminate.so", build / "runtime" / "liblaminate.so")]:
            (package / "installed" / link).parent.mkdir(parents=True)
            (package / "installed" / link).symlink_to(target)
        for file in (ROOT / "python" / "laminate").glob("*.py"):
            (package / file.name).symlink_to(file)
        # Open MPI in a container: as root, on any number of cores.
        launcher = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        path = [str(here / "build" / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
        environment = dict(os.environ, **launcher, PYTHONPATH=str(package.parent), PATH=":".join(path))
        for block in blocks_of(document.read_text()):
            if block.file:
                (here / block.file).write_text("\n".join(block.text) + "\n")
                continue
            if block.mark.startswith("no,") or (block.mark == "slow" and not slow):
                continue
            expected = int(block.mark.split()[1]) if block.mark.startswith("exit ") else 0
            for line, command in commands_of(block):
                first = command.split()[0]
                if sanitized and first in WITHOUT_SANITIZER:
                    print(f"{document.name}:{line}: not run: {first} has no sanitizer, the library has")
                    continue
                if first == "mpirun" and block.mark != "form" and not shutil.which("mpirun"):
                    print(f"{document.name}:{line}: not run: no mpirun here")
                    break  # what follows in the block looks at its results
                done += 1
                prefix = re.fullmatch(r"make install PREFIX=(\S+)", command)
                message = missing_target(command) if first == "make" else ""
                if prefix:
                    # The prefix stays unquoted: it may be $PWD/...
                    command = f"{shlex.join([cmake, '--install', str(build)])} --prefix {prefix[1]}"
                if block.mark == "form":
                    message = wrong_form(command, program, environment)
                elif first != "make" or prefix:
                    result = subprocess.run(["bash", "-c", command], cwd=here, env=environment,
                                            stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                            check=False)
                    if result.returncode != expected:
                        said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
                        message = f"exit code {result.returncode}, expected {expected}: {''.join(said)}"
                if message:
                    failed += 1
                    print(f"{document.name}:{line}: {command}\n    {message}")
    print(f"{document.name}: {done} commands, {failed} failed")
    return failed == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laminate", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path,
                        help="build directory, for `make install`")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--slow", action="store_true", help="the commands marked slow as well")
    parser.add_argument("--sanitized", action="store_true",
                        help="BUILD has a sanitizer: programs that link its library are not run")
    parser.add_argument("document", type=pathlib.Path)
    arguments = parser.parse_args()
    if not shutil.which("bash"):
        return 77
    ok = run(arguments.document, arguments.laminate.resolve(), arguments.build.resolve(),
             arguments.cmake, arguments.slow, arguments.sanitized)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
