#!/usr/bin/env python3
"""Checks the lengths of classes, functions and lines in the files that git tracks.

    lengths.py ROOT [--self-test]

Fails if a class has more than 400 lines or a function more than 80 (generators/kernels excepted),
or if a line has more than 120 columns, not counting URLs.
"""

import argparse
import ast
import pathlib
import re
import subprocess
import sys
import tempfile

LONGEST_CLASS, LONGEST_FUNCTION, WIDEST_LINE = 400, 80, 120
FREE_OF_LIMITS = "generators/kernels/"  # of classes and functions
CPP = {".h", ".cpp", ".c"}
LINES = CPP | {".cmake", ".py", ".md", ".sh"}
LINES_BY_NAME = {"CMakeLists.txt", "Makefile"}
NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'  # strings
    r"|'(?:\\.|[^'\\\n])'"
    r"|^[ \t]*#[^\n]*(?:(?<=\\)\n[^\n]*)*",  # preprocessor
    re.S | re.M,
)
STATEMENTS = r"(else|if|for|while|switch|do|try|catch|return|case|default|namespace|extern|enum)\b"


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_parentheses(head):
    """A declaration without its arguments and the default values in them."""
    while (shorter := re.sub(r"\([^()]*\)", "", head)) != head:
        head = shorter
    return head


def kind_of(head):
    """What the braces after these words hold: "class", "function" or None."""
    head = re.sub(r"^((public|private|protected):\s*)+", "", " ".join(head.split()))
    if re.match(r"(template ?<.*> ?)?(class|struct|union)\b", head) and "(" not in head:
        return "class"
    if "(" not in head or re.match(STATEMENTS, head):
        return None
    declaration = re.sub(r"operator\s*\W+", "", without_parentheses(head))
    return None if re.search(r"(?<![=!<>+\-*/])=", declaration) else "function"


def blocks_of(source):
    """(kind, line, lines, words before the brace) of every class and function in C++ source."""
    code = NOT_CODE.sub(blank, source)
    open_blocks, start, parentheses = [], 0, 0
    for at, char in enumerate(code):
        if char == ";" and parentheses == 0:
            start = at + 1
        elif char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == "{":
            open_blocks.append((start, at, parentheses))
            start, parentheses = at + 1, 0
        elif char == "}" and open_blocks:
            begin, brace, parentheses = open_blocks.pop()
            head = code[begin:brace]
            kind = kind_of(head) if parentheses == 0 else None
            if kind:
                line = code.count("\n", 0, begin + len(head) - len(head.lstrip())) + 1
                yield kind, line, code.count("\n", 0, at) + 2 - line, " ".join(head.split())
            # An argument or a member's initial value: the declaration goes on.
            goes_on = parentheses > 0 or re.match(r"\s*[,{]", code[at + 1 : at + 100])
            start = begin if goes_on else at + 1


def python_blocks_of(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield kind, node.lineno, node.end_lineno - node.lineno + 1, node.name


def problems_of_file(name, text):
    path = pathlib.PurePath(name)
    if path.suffix in LINES or path.name in LINES_BY_NAME:
        for number, line in enumerate(text.splitlines(), 1):
            columns = len(re.sub(r"https?://\S+", "", line))
            if columns > WIDEST_LINE:
                yield f"{name}:{number}: {columns} columns; expected at most {WIDEST_LINE}"
    if name.startswith(FREE_OF_LIMITS):
        return
    blocks_of_suffix = {".py": python_blocks_of} | dict.fromkeys(CPP, blocks_of)
    for kind, line, lines, words in blocks_of_suffix.get(path.suffix, lambda _: ())(text):
        most = LONGEST_CLASS if kind == "class" else LONGEST_FUNCTION
        if lines > most:
            yield f"{name}:{line}: {kind} of {lines} lines; expected at most {most}: {words[:60]}"


def problems_of(root):
    git = ["git", "-c", "safe.directory=*", "-C", root]
    files = subprocess.run([*git, "ls-files"], capture_output=True, text=True, check=True)
    for name in files.stdout.splitlines():
        path = root / name
        if (path.suffix in LINES or path.name in LINES_BY_NAME) and path.is_file():
            yield from problems_of_file(name, path.read_text())


def self_test():
    """Finds every limit that is exceeded by one, and nothing else."""

    def function(head, lines):
        return head + " {\n" + "    f(1);\n" * (lines - 2) + "}\n"

    texts = {
        "a.cpp": function("int g(T a = {}, int b = h(2))", 80)
        + function("int h(T a = {}, int b = g(2))", 81),
        "b.cpp": function("A::A(int n) : one{n}, two(n)", 81)
        + "const auto table = f({\n" + "    1,\n" * 90 + "});\n",
        "c.h": function("class Small", 400)
        + function("template <class T>\nclass Large final : public A", 401),
        "d.cpp": 'void f() { g("{{{"); }  // }\n' + "/* { */\n" * 90 + "#define X {\n",
        "generators/kernels/e.cpp": function("int k()", 500) + "/" * 121 + "\n",
        "f.py": "def f():\n" + "    pass\n" * 80,
        "g.md": "x" * 120 + "\n" + "x" * 121 + "\n" + "x https://a.b/" + "y" * 200 + "\n",
        "h.json": "x" * 200,
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        subprocess.run(["git", "-C", root, "init", "-q"], check=True)
        subprocess.run(["git", "-C", root, "add", "-A"], check=True)
        found = sorted(re.match(r"[^:]*:\d+: \D*\d+", line).group() for line in problems_of(root))
    expected = [
        "a.cpp:81: function of 81",
        "b.cpp:1: function of 81",
        "c.h:401: class of 402",
        "f.py:1: function of 81",
        "g.md:2: 121",
        "generators/kernels/e.cpp:501: 121",
    ]
    if found != expected:
        print("found", found, "expected", expected, sep="\n")
    return found == expected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 0 if self_test() else 1
    problems = list(problems_of(arguments.root))
    print("\n".join(problems) or "nothing is too long")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
