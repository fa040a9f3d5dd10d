#!/usr/bin/env python3
"""Counts what should become less, and compares it with scripts/ratchets.json.

    ratchets.py            prints every figure beside the kept one; exit code 1 when one has grown
    ratchets.py --write    keeps today's figures, as long as none of them has grown

A figure may only go down. Whoever makes one smaller writes the new one in the same commit. C++ is
read by Universal Ctags (Debian: universal-ctags), Python by its own parser.
"""

import ast
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "scripts" / "ratchets.json"
COLUMNS, FILE_LINES, FUNCTION_LINES, METHODS, FIELDS, PARAMETERS = 100, 600, 70, 40, 20, 7
CPP, PYTHON = (".cc", ".h"), (".py", ".pyi")
CODE = CPP + PYTHON + (".js", ".def", ".proto", ".sh")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|(?:time|asyncio)\.sleep)\(")
# How a comment begins that is seldom a sentence.
FRAGMENT = re.compile(
    r"(?:^|\s)(?://|#) (?:Of|What|Who|Whoever|Those|Likewise|Some|That there|As many) "
)
# A line that only holds a string cannot be broken everywhere: a URL, a text that tests compare.
STRING_LINE = re.compile(r"""["'`]""")


def tracked():
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def is_program_of_users(name):
    """Programs whose output is recorded from Ray; they are written as users write them."""
    return name.startswith("tests/conformance/") and name.count("/") > 2


def count_parameters(signature):
    depth, count = 0, 1
    inner = signature[1 : signature.rfind(")")]
    if not inner.strip() or inner.strip() == "void":
        return 0
    for character in inner:
        depth += (character in "<([{") - (character in ">)]}")
        count += character == "," and depth == 0
    return count


class CppFigures:
    """Functions and classes of the C++ files, as Ctags sees them."""

    def __init__(self, names):
        self.long_functions, self.many_parameters = {}, {}
        self.methods, self.fields = collections.Counter(), collections.Counter()
        if not shutil.which("ctags"):
            sys.exit("ratchets: Universal Ctags is missing: apt-get install universal-ctags")
        command = ["ctags", "--output-format=json", "--language-force=C++", "-f", "-", "-L", "-"]
        command += ["--kinds-C++=+p-e", "--fields=+neSZ"]
        out = subprocess.run(
            command, cwd=ROOT, input="\n".join(names), capture_output=True, text=True, check=True
        ).stdout
        seen = set()
        for line in out.splitlines():
            self._add(json.loads(line), seen)

    def _add(self, tag, seen):
        kind, name, path = tag["kind"], tag["name"], tag["path"]
        scope = tag.get("scope", "") if tag.get("scopeKind") in ("class", "struct") else ""
        if kind == "function":
            lines = tag.get("end", tag["line"]) - tag["line"] + 1
            if lines > FUNCTION_LINES:
                self.long_functions[f"{path}:{name}"] = lines
        if kind in ("function", "prototype"):
            count = count_parameters(tag.get("signature", "()"))
            if count > PARAMETERS and path.endswith((".h", ".cc")):
                self.many_parameters[f"{scope or path}:{name}"] = count
            declared = (
                scope,
                name,
                re.sub(r"\[\[.*?\]\]|\s|\w+(?=[,)=])", "", tag.get("signature", "")),
            )
            if scope and declared not in seen:
                seen.add(declared)
                self.methods[scope] += 1
        elif kind == "member" and scope:
            self.fields[scope] += 1


class PythonFigures(ast.NodeVisitor):
    """Functions, classes and imports of one Python file after the other."""

    def __init__(self):
        self.long_functions, self.many_methods, self.many_parameters = {}, {}, {}
        self.inner_imports = 0
        self._path, self._depth = "", 0

    def add(self, name):
        self._path = name
        self.visit(ast.parse((ROOT / name).read_text()))

    def visit_FunctionDef(self, node):
        if (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
            self.long_functions[f"{self._path}:{node.name}"] = lines
        args = node.args
        if (count := len(args.posonlyargs + args.args + args.kwonlyargs)) > PARAMETERS:
            self.many_parameters[f"{self._path}:{node.name}"] = count
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        methods = [n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        if len(methods) > METHODS:
            self.many_methods[f"{self._path}:{node.name}"] = len(methods)
        self.generic_visit(node)

    def visit_Import(self, node):
        self.inner_imports += self._depth > 0

    visit_ImportFrom = visit_Import


def circles(names):
    """Folders that include each other, directly or through others (`tests` aside)."""
    graph = collections.defaultdict(set)
    for name in names:
        folder = str(pathlib.PurePosixPath(name).parent)
        for target in INCLUDE.findall((ROOT / name).read_text(errors="replace")):
            other = str(pathlib.PurePosixPath(target).parent)
            if other not in (folder, ".") and (ROOT / other).is_dir():
                graph[folder].add(other)

    def reaches(start):
        found, todo = set(), list(graph[start])
        while todo:
            folder = todo.pop()
            if folder not in found:
                found.add(folder)
                todo.extend(graph[folder])
        return found

    reach = {folder: reaches(folder) for folder in list(graph)}
    return sorted(folder for folder in reach if folder in reach[folder])


def figures():
    names = tracked()
    ours = [n for n in names if n.endswith(CODE) and not is_program_of_users(n)]
    cpp = [n for n in ours if n.endswith(CPP)]
    product = [n for n in cpp if not n.startswith("tests/")]
    texts = {name: (ROOT / name).read_text(errors="replace") for name in ours}
    seen, python = CppFigures(product), PythonFigures()
    for name in ours:
        if name.endswith(".py") and not name.startswith("tests/"):
            python.add(name)
    lines = {name: text.count("\n") for name, text in texts.items()}
    long_lines = [
        line
        for name, text in texts.items()
        for line in text.split("\n")
        if len(line) > COLUMNS and not STRING_LINE.search(line) and not name.endswith(".def")
    ]
    sleeps = collections.Counter()
    for name, text in texts.items():
        if name.startswith("tests/"):
            sleeps["C++" if name.endswith(CPP) else "Python"] += len(SLEEP.findall(text))
    return {
        f"lines beyond {COLUMNS} columns": len(long_lines),
        f"files beyond {FILE_LINES} lines": {n: c for n, c in lines.items() if c > FILE_LINES},
        f"C++ functions beyond {FUNCTION_LINES} lines": seen.long_functions,
        f"C++ classes beyond {METHODS} methods": over(seen.methods, METHODS),
        f"C++ classes beyond {FIELDS} fields": over(seen.fields, FIELDS),
        f"C++ functions beyond {PARAMETERS} parameters": seen.many_parameters,
        "folders that include each other": circles(product),
        f"Python functions beyond {FUNCTION_LINES} lines": python.long_functions,
        f"Python classes beyond {METHODS} methods": python.many_methods,
        f"Python functions beyond {PARAMETERS} parameters": python.many_parameters,
        "Python imports inside functions": python.inner_imports,
        "sleeps in tests, C++": sleeps["C++"],
        "sleeps in tests, Python": sleeps["Python"],
        "comments that begin as fragments": sum(
            len(FRAGMENT.findall(line)) for text in texts.values() for line in text.split("\n")
        ),
    }


def over(counts, limit):
    return {name: count for name, count in counts.items() if count > limit}


def grown(now, kept):
    """One line for every figure that is larger than the kept one."""
    for name, figure in now.items():
        before = kept.get(name)
        if before is None:
            yield f"{name}: not kept yet"
        elif isinstance(figure, int):
            if figure > before:
                yield f"{name}: {figure}, kept is {before}"
        elif isinstance(figure, list):
            for item in sorted(set(figure) - set(before)):
                yield f"{name}: {item} is new"
        else:
            for item, count in sorted(figure.items()):
                if count > before.get(item, 0):
                    yield f"{name}: {item} has {count}, kept is {before.get(item, 'none')}"


def size(figure):
    return figure if isinstance(figure, int) else len(figure)


def main():
    now = figures()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    worse = list(grown(now, kept)) if kept else []
    for name, figure in now.items():
        print(f"{size(figure):6d}  {name}, kept: {size(kept.get(name, 0))}")
    if worse:
        print("\nratchets only go down:\n  " + "\n  ".join(worse))
        return 1
    if "--write" in sys.argv[1:]:
        KEPT.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n")
    elif now != kept:
        print("\nsome figures went down: keep them with scripts/ratchets.py --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
