#!/usr/bin/env python3
"""Checks the rules of style that need no formatter.

These are: no tabs, no trailing blanks, a newline at the end of a file, a README for each directory
of C++ sources, in it or in the one above it (the one at the top and tests/ do not count), no output
of rayctl that bypasses cli/terminal/print.h, no mutex that the compiler does not know
(common/base/mutex.h), and no link of a document to a file or heading that does not exist. Prints
each finding. The exit code is 1 if there are any.
"""

import pathlib
import re
import subprocess
import sys

from check_includes import FLOORS

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".cc", ".h", ".def", ".py", ".proto", ".cmake", ".sh", ".service"}
COMPONENTS = (*FLOORS, "cpp", "tests")
# Clang's analysis knows nothing of these; the two files below make them known to it.
MUTEX = re.compile(
    r"\bstd::(?:(?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex\b"
    r"|condition_variable|(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b)"
    r"|\bpthread_(?:mutex|cond|rwlock|spin)_"
)
MUTEX_MAKERS = ("common/base/mutex.h", "worker/service/lock.h")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def ours():
    """The tree's files: those that git tracks or would add."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [ROOT / name for name in sorted(set(names)) if (ROOT / name).is_file()]


def bare_mutex(name, line):
    """Returns the first match of MUTEX in the line, apart from comments and tests, or ""."""
    if name.suffix not in (".cc", ".h") or name.parts[0] in ("tests", "bench"):
        return ""
    if name.as_posix() in MUTEX_MAKERS:
        return ""
    found = MUTEX.search(line.split("//")[0])
    return found[0] if found else ""


def prose(file):
    """The text of a document without its blocks and pieces of code."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", file.read_text(), flags=re.M | re.S)


def anchors(file):
    """The names that links can give to the headings of a document."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ +(.*?) *$", text, re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def dead_links(file, root=ROOT):
    """Yields the links of a document that lead to no file or heading of the tree."""
    name = file.relative_to(root)
    for link in LINK.findall(prose(file)):
        path, _, heading = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = file.parent / path if path else file
        if not target.exists():
            yield f"{name}: the link {link} leads to no file"
        elif heading and target.suffix == ".md" and heading not in anchors(target):
            yield f"{name}: the link {link} leads to no heading"


def findings(file):
    text = file.read_text(errors="replace")
    name = file.relative_to(ROOT)
    lines = text.split("\n")
    if text and not text.endswith("\n"):
        yield f"{name}: no newline at the end"
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield f"{name}:{number}: a tab"
        if name.parts[0] == "cli" and "fmt::print(" in line:
            yield (
                f"{name}:{number}: fmt::print throws if the output cannot be written; "
                "use print() of cli/terminal/print.h"
            )
        if bare := bare_mutex(name, line):
            yield (
                f"{name}:{number}: the compiler's analysis of locks does not know {bare}; "
                "use common/base/mutex.h"
            )
        if line != line.rstrip():
            yield f"{name}:{number}: blanks at the end of the line"


def main():
    files = ours()
    found = [
        finding
        for file in files
        if file.suffix in SUFFIXES or file.name == "CMakeLists.txt"
        for finding in findings(file)
    ]
    found += [link for file in files if file.suffix == ".md" for link in dead_links(file)]
    sources = {
        file.parent
        for file in files
        if file.suffix in (".cc", ".h") and file.relative_to(ROOT).parts[0] in COMPONENTS
    }
    for directory in sorted(sources):
        if directory.relative_to(ROOT).parts[0] != "tests" and not any(
            parent != ROOT and (parent / "README.md").exists()
            for parent in (directory, directory.parent)
        ):
            found.append(f"{directory.relative_to(ROOT)}: no README.md")
    print("\n".join(found) or "style is right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
