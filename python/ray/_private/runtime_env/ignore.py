"""Selects the files of a folder to upload, by patterns as in .gitignore files."""

from __future__ import annotations

import os
import re

_DEFAULT_EXCLUDES = (".git", ".venv", "venv", "__pycache__")


def default_excludes() -> list[str]:
    """Patterns that every upload leaves out.

    RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES (separated by commas) replaces them.
    """
    given = os.environ.get("RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES")
    if given is None:
        return list(_DEFAULT_EXCLUDES)
    return [pattern.strip() for pattern in given.split(",") if pattern.strip()]


def _regex(pattern: str) -> str:
    out, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            out, at = out + "(?:.*/)?", at + 3
        elif (
            pattern.startswith("**", at)
            and at + 2 == len(pattern)
            and at > 0
            and pattern[at - 1] == "/"
        ):
            out, at = out + ".+", at + 2
        elif char == "*":
            out, at = out + "[^/]*", at + 1
        elif char == "?":
            out, at = out + "[^/]", at + 1
        elif char == "[" and "]" in pattern[at + 2 :]:
            end = pattern.index("]", at + 2)
            inner = pattern[at + 1 : end].replace("\\", "\\\\")
            out, at = out + "[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]", end + 1
        elif char == "\\" and at + 1 < len(pattern):
            out, at = out + re.escape(pattern[at + 1]), at + 2
        else:
            out, at = out + re.escape(char), at + 1
    return out


class Rules:
    """The patterns of one list or file; the last that matches decides."""

    def __init__(self, base: str, lines: list[str]):
        # The folder of the patterns relative to the uploaded one: "" or "a/b/".
        self._base = base
        self._rules = [rule for rule in map(self._parse, lines) if rule]

    @staticmethod
    def _parse(line: str):
        line = line.rstrip("\r\n")
        if not line.endswith("\\ "):
            line = line.rstrip(" ")
        if not line or line.startswith("#"):
            return None
        negated = line.startswith("!")
        if negated:
            line = line[1:]
        only_folders = line.endswith("/")
        line = line.rstrip("/")
        if not line:
            return None
        anchored = "/" in line
        regex = _regex(line.lstrip("/"))
        try:
            return negated, only_folders, re.compile(regex if anchored else "(?:.*/)?" + regex)
        except re.error:
            return None  # As in git, an invalid pattern matches nothing.

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True excludes `path`, False includes it again, None means that no pattern matches."""
        if not path.startswith(self._base):
            return None
        said = None
        for negated, only_folders, regex in self._rules:
            if (is_folder or not only_folders) and regex.fullmatch(path[len(self._base) :]):
                said = not negated
        return said


def _rules_of_folder(folder: str, base: str) -> list[Rules]:
    names = (
        [".rayignore"]
        if os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE") == "1"
        else [".gitignore", ".rayignore"]
    )
    found = []
    for name in names:
        try:
            with open(
                os.path.join(folder, name), encoding="utf-8", errors="surrogateescape"
            ) as file:
                found.append(Rules(base, file.readlines()))
        except OSError:
            continue
    return found


def files_of(root: str, excludes: list[str]) -> list[tuple[str, str]]:
    """Returns (path in the package, path here) of every regular file to upload, sorted.

    A folder in which nothing is, is there, too, with a path that ends with "/". Links are
    followed, except to a folder that contains the link.
    """
    found: list[tuple[str, str]] = []
    always = Rules("", default_excludes() + list(excludes))

    def walk(folder: str, base: str, rules: list[Rules], parents: tuple[str, ...]):
        rules = rules + _rules_of_folder(folder, base)
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
        if base and not entries:
            found.append((base, folder))
        for entry in entries:
            path, is_folder = base + entry.name, entry.is_dir()
            left_out = False
            for one in rules:
                said = one.verdict(path, is_folder)
                left_out = left_out if said is None else said
            if left_out or always.verdict(path, is_folder):
                continue
            if is_folder:
                real = os.path.realpath(entry.path)
                if real not in parents:
                    walk(entry.path, path + "/", rules, (*parents, real))
            elif entry.is_file():
                found.append((path, entry.path))

    walk(root, "", [], (os.path.realpath(root),))
    return found
