#!/usr/bin/env python3
"""Checks the rules of style that need no formatter.

These are: no tabs, no trailing blanks, a newline at the end of a file, a README for each directory
of sources, and no output of rayctl that bypasses cli/terminal/print.h. Prints each finding. The
exit code is 1 if there are any.
"""

import pathlib
import subprocess
import sys

from check_includes import FLOORS

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".cc", ".h", ".def", ".py", ".proto", ".cmake", ".sh", ".service"}
COMPONENTS = (*FLOORS, "cpp", "tests")


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
                f"{name}:{number}: fmt::print throws where the output cannot be written: "
                "print() of cli/terminal/print.h does not"
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
    sources = {
        file.parent
        for file in files
        if file.suffix in (".cc", ".h") and file.relative_to(ROOT).parts[0] in COMPONENTS
    }
    for directory in sorted(sources):
        if directory.relative_to(ROOT).parts[0] != "tests" and not any(
            (parent / "README.md").exists() for parent in (directory, directory.parent)
        ):
            found.append(f"{directory.relative_to(ROOT)}: no README.md")
    print("\n".join(found) or "style is right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
