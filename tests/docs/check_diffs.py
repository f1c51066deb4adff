#!/usr/bin/env python3
"""Checks that every diff that a page shows (```diff) is what the sources have: reversed, it applies.

    check_diffs.py SOURCE PAGE.md...
"""

import re
import shutil
import subprocess
import sys


def diffs_of(text):
    """(line, diff) of each block."""
    for block in re.finditer(r"^```diff\n(.*?)^```", text, re.S | re.M):
        yield text.count("\n", 0, block.start()) + 1, block.group(1)


def main():
    source, pages = sys.argv[1], sys.argv[2:]
    if shutil.which("git") is None:
        print("check_diffs: skipped, git is not installed")
        return 77
    checked, wrong = 0, 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for line, diff in diffs_of(text):
            done = subprocess.run(["git", "apply", "--reverse", "--check", "-"], input=diff,
                                  cwd=source, text=True, stderr=subprocess.PIPE, check=False)
            checked += 1
            if done.returncode != 0:
                wrong += 1
                print(f"{page}:{line}: is not what the sources have: {done.stderr.strip()}")
    print(f"{checked} diffs, {wrong} of them wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
