#!/usr/bin/env python3
"""Counts what should become less, and compares it with scripts/ratchets.json.

    ratchets.py                     prints every figure beside the kept one; exit code 1 when one
                                    has grown, or when the file keeps a larger one than it did in
                                    any commit of HEAD's history
    ratchets.py --write             keeps today's figures, as long as none of them has grown
    ratchets.py --rename OLD NEW    moves the kept entries of a file, folder, function or class

A figure may only go down. Whoever makes one smaller writes the new one in the same commit. Whoever
changes what a figure counts gives it a new name, under which --write keeps it. C++ is read by
Universal Ctags (Debian: universal-ctags), Python by its own parser.
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
CODE = CPP + PYTHON + (".js", ".css", ".def", ".proto", ".sh", ".cmake")
CODE_NAMES = ("CMakeLists.txt", "Makefile")
LONG_STRING = 60
# Annotations for clang behind declarations (common/base/mutex.h), which Ctags would take for names.
ANNOTATIONS = ("GUARDED_BY", "PT_GUARDED_BY", "REQUIRES", "EXCLUDES", "ACQUIRE", "RELEASE")
# Marks the `def` line of a function whose parameters Ray's public interface fixes.
RAYS = re.compile(r"#\s*Ray's signature\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
# Strings of a test count, too: the programs in them wait as long as their test does.
SLEEP = re.compile(
    r"\b(?:sleep|usleep|nanosleep|sleep_for|sleep_until)\(|\bEvent\(\)\.wait\((?:timeout=)?[\d.]+\)"
)
# How a comment or docstring begins that is seldom a sentence, and how one ends.
FRAGMENT = re.compile(
    r'(?i)(?://+|/\*+|#|""")\s*(?:(?:Of|What|Whoever|Those|Likewise|Some|That there|As many'
    r"|is how|is for|Which is)\b|\.\.\.)"
)
SENTENCE_END = re.compile(r"""[.!?]["'`)]*$|^[/#]+$""")
# Comments and string literals, so that neither is found within the other. A string that a script
# continues on the next line is not seen as one.
STRING = r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
SLASHES = re.compile(
    rf"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R"(\w*)\(.*?\)\3"|`(?:\\.|[^`\\])*`|{STRING})""",
    re.S,
)
HASHES = re.compile(
    rf"""(?P<comment>(?<!\S)\#[^\n]*)|(?P<string>\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'|{STRING})""", re.S
)


def git(*words):
    """The lines that git prints, or none if it fails: there is no git, or no commit yet."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def ours():
    """The names of the tree's files: those that git tracks or would add."""
    names = sorted(set(git("ls-files", "-co", "--exclude-standard")))
    if not names:
        sys.exit("ratchets: works in a git repository only")
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
        command += [word for name in ANNOTATIONS for word in ("-D", f"{name}(x)=")]
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
                re.sub(r"\[\[.*?\]\]|\s|=[^,)]*|\w+(?=\s*[,)=])", "", tag.get("signature", "")),
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
        self.inner_imports = collections.defaultdict(list)
        self._path, self._lines, self._depth = "", [], 0

    def add(self, name):
        self._path = name
        text = (ROOT / name).read_text()
        self._lines = text.split("\n")
        try:
            self.visit(ast.parse(text))
        except SyntaxError as error:
            sys.exit(f"ratchets: {name}:{error.lineno}: {error.msg}")

    def visit_FunctionDef(self, node):
        if (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
            self.long_functions[f"{self._path}:{node.name}"] = lines
        args = node.args
        count = len(args.posonlyargs + args.args + args.kwonlyargs)
        if count > PARAMETERS and not RAYS.search(self._lines[node.lineno - 1]):
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
        if self._depth > 0:
            self.inner_imports[self._path].append(node.lineno)

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


def is_code(name):
    """Whether the figures of all code count the file: by its suffix, its name or its first line."""
    path = ROOT / name
    if name.endswith(CODE) or path.name in CODE_NAMES:
        return True
    if "." in path.name:
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def is_python(name, text):
    return name.endswith(PYTHON) or text.startswith("#!") and "python" in text.split("\n", 1)[0]


def tokens(name, text):
    """Yields (whether it is a comment, offset, text) of comments and strings; a docstring is a
    comment."""
    python = is_python(name, text)
    docstrings = set()
    if python:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                if ast.get_docstring(node, clean=False) is not None:
                    docstrings.add(node.body[0].lineno)
    slashes = name.endswith((*CPP, ".js", ".css", ".def", ".proto"))
    for match in (SLASHES if slashes else HASHES).finditer(text):
        comment = match["comment"] is not None
        if docstrings and not comment:
            comment = text.count("\n", 0, match.start()) + 1 in docstrings
        yield comment, match.start(), match[0]


def long_lines(texts):
    """The lines with too many columns that hold no long string: a string cannot be broken
    everywhere, such as a URL or a text that tests compare. In .def files an entry is one line."""
    found = {}
    for name, text in texts.items():
        if name.endswith(".def"):
            continue
        beyond = {n for n, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS}
        if not beyond:
            continue
        for comment, offset, token in tokens(name, text):
            if not comment and len(token) > LONG_STRING:
                first = text.count("\n", 0, offset) + 1
                for number, piece in enumerate(token.split("\n"), first):
                    if len(piece) > LONG_STRING:
                        beyond.discard(number)
        if beyond:
            found[name] = sorted(beyond)
    return found


def fragments(texts):
    """The comments and docstrings that begin as fragments. A line of its own that continues the
    comment of the line before begins none."""
    found = collections.defaultdict(list)
    for name, text in texts.items():
        open_line = None  # The last line with a comment whose sentence goes on.
        number, counted = 1, 0
        for comment, offset, token in tokens(name, text):
            number += text.count("\n", counted, offset)
            counted = offset
            if not comment:
                continue
            is_line = token.startswith(("//", "#"))
            is_alone = not text[text.rfind("\n", 0, offset) + 1 : offset].strip()
            continues = is_line and is_alone and open_line == number - 1
            if FRAGMENT.match(token) and not continues:
                found[name].append(number)
            ends = not is_line or SENTENCE_END.search(token.rstrip())
            open_line = None if ends else number
    return found


def lines_with(texts, counts):
    """Maps each file to the numbers of its lines, once for each hit that `counts(line)` returns."""
    found = {}
    for name, text in texts.items():
        hits = [
            number
            for number, line in enumerate(text.split("\n"), 1)
            for _ in range(counts(name, line))
        ]
        if hits:
            found[name] = hits
    return found


def figures():
    """Every figure: the entries beyond a limit with their sizes, the members of circles, or, where
    only the sum is kept, the numbers of the lines by file (a `Hits`)."""
    names = [n for n in ours() if is_code(n) and not is_program_of_users(n)]
    cpp = [n for n in names if n.endswith(CPP)]
    product = [n for n in cpp if not n.startswith("tests/")]
    texts = {name: (ROOT / name).read_text(errors="replace") for name in names}
    tests = {name: text for name, text in texts.items() if name.startswith("tests/")}
    seen, python = CppFigures(product), PythonFigures()
    for name in names:
        if name.endswith(".py") and not name.startswith("tests/"):
            python.add(name)
    lines = {name: text.count("\n") for name, text in texts.items()}

    def sleeps(is_cpp):
        chosen = {name: text for name, text in tests.items() if name.endswith(CPP) == is_cpp}
        return Hits(lines_with(chosen, lambda _, line: len(SLEEP.findall(line))))

    return {
        f"lines beyond {COLUMNS} columns that hold no string of {LONG_STRING}": Hits(
            long_lines(texts)
        ),
        f"files beyond {FILE_LINES} lines": {n: c for n, c in lines.items() if c > FILE_LINES},
        f"C++ functions beyond {FUNCTION_LINES} lines": seen.long_functions,
        f"C++ classes beyond {METHODS} methods": over(seen.methods, METHODS),
        f"C++ classes beyond {FIELDS} fields": over(seen.fields, FIELDS),
        f"C++ functions beyond {PARAMETERS} parameters": seen.many_parameters,
        "folders that include each other": circles(product),
        f"Python functions beyond {FUNCTION_LINES} lines": python.long_functions,
        f"Python classes beyond {METHODS} methods": python.many_methods,
        f"Python functions beyond {PARAMETERS} parameters, Ray's apart": python.many_parameters,
        "Python imports inside functions": Hits(python.inner_imports),
        "sleeps and timed waits in tests, C++": sleeps(True),
        "sleeps and timed waits in tests, Python": sleeps(False),
        "comments that begin as fragments, also behind code": Hits(fragments(texts)),
    }


class Hits(dict):
    """Maps files to the numbers of the lines where something was found. Only its sum is kept."""

    def total(self):
        return sum(map(len, self.values()))

    def places(self):
        """One line for each of the five files with the most hits, of those that changed since HEAD
        if one of these has any."""
        changed = {
            *git("diff", "--name-only", "HEAD"),
            *git("ls-files", "-o", "--exclude-standard"),
        }
        chosen = {name: hits for name, hits in self.items() if name in changed} or self
        for name in sorted(chosen, key=lambda name: (-len(chosen[name]), name))[:5]:
            numbers = ", ".join(map(str, chosen[name][:10]))
            more = ", ..." if len(chosen[name]) > 10 else ""
            yield f"    {name}: {len(chosen[name])} (lines {numbers}{more})"


def over(counts, limit):
    return {name: count for name, count in counts.items() if count > limit}


def kept_form(now):
    """The figures as the file keeps them: a sum instead of places."""
    return {
        name: figure.total() if isinstance(figure, Hits) else figure for name, figure in now.items()
    }


def entries(figure):
    """A figure that is no number, as a count for each entry; entries of a list count once."""
    return figure if isinstance(figure, dict) else dict.fromkeys(figure, 1)


def grown(now, kept):
    """One line for every figure that is larger than the kept one."""
    for name, figure in kept_form(now).items():
        before = kept.get(name)
        if before is None:
            continue
        if isinstance(figure, int):
            if figure > before:
                yield f"{name}: {figure}, kept is {before}; they are in"
                yield from now[name].places()
        else:
            before = entries(before)
            for item, count in sorted(entries(figure).items()):
                if count > before.get(item, 0):
                    yield f"{name}: {item} has {count}, kept is {before.get(item, 'none')}"


def committed():
    """Yields the commits in HEAD's history that changed the kept figures, with what each kept.

    HEAD alone would not do: in a clone, a commit that raised a figure is HEAD itself.
    """
    file = str(KEPT.relative_to(ROOT))
    for commit in git("log", "--format=%h", "--", file):
        # The commit may have removed the file.
        yield commit, json.loads("\n".join(git("show", f"{commit}:{file}")) or "{}")


def raised(kept, earlier, commit):
    """One line for every kept figure that is larger than in an earlier version of the file.

    An entry that is new may take the place of one that is gone and was not smaller: that is how a
    renamed file or function looks.
    """
    for name, figure in kept.items():
        before = earlier.get(name)
        if before is None:
            continue
        if isinstance(figure, int):
            if figure > before:
                yield f"{name}: {figure} is kept, in {commit} it was {before}"
            continue
        figure, before = entries(figure), entries(before)
        free = sorted((count for item, count in before.items() if item not in figure), reverse=True)
        for item, count in sorted(figure.items(), key=lambda pair: -pair[1]):
            if item in before:
                if count > before[item]:
                    yield f"{name}: {item} is kept with {count}, in {commit} it was {before[item]}"
            elif free and free[0] >= count:
                free.pop(0)
            else:
                yield f"{name}: {item} is kept with {count}, in {commit} it was not there"


def renamed(kept, old, new):
    """The figures with the entries of `old` moved to `new`, and how many these are."""
    moved = 0

    def moved_name(item):
        nonlocal moved
        if item != old and not item.startswith((f"{old}:", f"{old}/")):
            return item
        moved += 1
        return new + item[len(old) :]

    result = {}
    for name, figure in kept.items():
        if isinstance(figure, list):
            figure = sorted(map(moved_name, figure))
        elif isinstance(figure, dict):
            figure = {moved_name(item): count for item, count in figure.items()}
        result[name] = figure
    return result, moved


def size(figure):
    return figure if isinstance(figure, int) else len(figure)


def write(figures_to_keep):
    KEPT.write_text(json.dumps(figures_to_keep, indent=2, sort_keys=True) + "\n")


def rename(kept, old, new):
    result, moved = renamed(kept, old, new)
    if not moved:
        print(f"ratchets: {KEPT.relative_to(ROOT)} has no entry of {old}", file=sys.stderr)
        return 1
    write(result)
    print(f"{moved} entries moved from {old} to {new}")
    return 0


def main():
    words = sys.argv[1:]
    if not (words in ([], ["--write"]) or words[:1] == ["--rename"] and len(words) == 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    if not KEPT.exists():
        file = KEPT.relative_to(ROOT)
        print(f"ratchets: {file} is missing: git checkout HEAD {file}", file=sys.stderr)
        return 1
    kept = json.loads(KEPT.read_text())
    if words[:1] == ["--rename"]:
        return rename(kept, *words[1:])
    now = figures()
    today = kept_form(now)
    for name, figure in today.items():
        print(f"{size(figure):6d}  {name}, kept: {size(kept[name]) if name in kept else 'not yet'}")
    worse = list(grown(now, kept))
    proposed = today if words == ["--write"] else kept
    if not worse:
        # One commit that kept less is enough to tell: older ones would repeat it.
        found = (list(raised(proposed, earlier, commit)) for commit, earlier in committed())
        worse = next(filter(None, found), [])
    if worse:
        print("\nratchets only go down:\n  " + "\n  ".join(worse))
        print("entries of what was renamed move with scripts/ratchets.py --rename OLD NEW")
        return 1
    if words == ["--write"]:
        write(today)
    elif missing := sorted(today.keys() - kept.keys()):
        print(f"\nnot kept yet: {', '.join(missing)}: keep it with scripts/ratchets.py --write")
        return 1
    elif today != kept:
        print("\nsome figures went down: keep them with scripts/ratchets.py --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
