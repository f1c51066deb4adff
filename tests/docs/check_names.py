#!/usr/bin/env python3
"""Checks that the tests and files which the pages name exist.

    check_names.py ROOT

Looks at README.md, docs/*.md and the README of every folder. A test is `Suite.Case` in backticks,
both capitalised, with * for any letters; a file is a path in backticks that begins with one of the
repository's folders. Exit 1: something does not exist; a line says what and where.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys


def names_in(text):
    return re.findall(r"`([^`\s]+)`", text)


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print(f"skipped: {listed.stderr.strip()}")
        return 77
    files = set(listed.stdout.splitlines())
    folders = {str(parent) for file in files for parent in pathlib.PurePath(file).parents}
    tops = {folder for folder in folders if "/" not in folder and folder != "."} - {"build"}
    sources = "\n".join((root / file).read_text() for file in files
                        if file.startswith("tests/") and file.endswith(".cpp"))
    tests = {".".join(found) for found in
             re.findall(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)", sources, re.M)}
    checked, missing = 0, []
    for page in sorted(file for file in files if re.fullmatch(r"(docs/.*|(.*/)?README)\.md", file)):
        for number, line in enumerate((root / page).read_text().splitlines(), 1):
            for name in names_in(line):
                if re.fullmatch(r"(\*|[A-Z]\w+)\.[A-Z*][\w*]*", name) and not name.endswith((".md", ".txt")):
                    known = any(fnmatch.fnmatchcase(test, name) for test in tests)
                elif "NAME" in name:
                    continue  # a form, not a file
                elif re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", name) and name.split("/")[0] in tops:
                    known = name.rstrip("/") in files | folders
                else:
                    continue
                checked += 1
                if not known:
                    missing.append(f"{page}:{number}: {name} does not exist")
    print("\n".join(missing))
    print(f"{checked} names checked, {len(missing)} missing")
    return 1 if missing or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
