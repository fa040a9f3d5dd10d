#!/usr/bin/env python3
"""Checks that the modules of the Python package do not import each other in circles.

Usage: check_imports.py [ROOT]

Imports inside functions count like those at the top of a module: they hide a circle, but do not
undo it. Those for type checkers only (`if TYPE_CHECKING:`) do not count, nor those by a name in a
string, as the tables of a package's __getattr__() have. An import of `ray.a.b` counts as one of
that module only, not as one of `ray` and `ray.a`.

Prints a shortest way around a circle (others that share a module with it are printed once it is
gone), and what a module at the bottom imports although it must not; the exit code is 1 if there is
anything.
"""

import ast
import collections
import pathlib
import sys

PACKAGE = pathlib.PurePosixPath("python/ray")
# Maps a module at the bottom to the only modules of the package that it may import.
BOTTOM = {
    "ray._private.session": {"ray._private.ids", "ray._private.interrupts"},
    "ray._private.ids": set(),
    "ray._private.interrupts": set(),
    "ray._private.reducers": set(),
    "ray._private.error_codes": set(),
    "ray._private.amounts": set(),
    "ray._private.environment": set(),
}


def modules_of(root):
    """The files of the package by the names of their modules."""
    top = root / PACKAGE.parent
    found = {}
    for file in sorted((root / PACKAGE).rglob("*.py")):
        parts = file.relative_to(top).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


class Imports(ast.NodeVisitor):
    """Collects the imports of one module: a dict of imported module and line of its first
    import."""

    def __init__(self, name, is_package, modules):
        self._package = name if is_package else name.rpartition(".")[0]
        self._name, self._modules = name, modules
        self.lines = {}

    def visit_If(self, node):
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node):
        source = node.module or ""
        if node.level:
            parts = self._package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            source = ".".join([*parts, *([source] if source else [])])
        for alias in node.names:
            part = f"{source}.{alias.name}"
            # `from ray import _raylet` imports the binding, not the package `ray`.
            if part != "ray._raylet":
                self._add(part if part in self._modules else source, node.lineno)

    def _add(self, target, line):
        if target in self._modules and target != self._name:
            self.lines.setdefault(target, line)


def graph_of(root):
    """Returns a dict that maps each module to {imported module: line}."""
    modules = modules_of(root)
    graph = {}
    for name, file in modules.items():
        imports = Imports(name, file.name == "__init__.py", modules)
        imports.visit(ast.parse(file.read_text(), str(file)))
        graph[name] = imports.lines
    return graph


def way_back(graph, start):
    """Returns the modules of a shortest circle that begins with `start`, or an empty list."""
    before, todo = {start: None}, collections.deque([start])
    while todo:
        module = todo.popleft()
        for target in graph[module]:
            if target == start:
                way = []
                while module is not None:
                    way.append(module)
                    module = before[module]
                return way[::-1]
            if target not in before:
                before[target] = module
                todo.append(target)
    return []


def violations(root):
    root = pathlib.Path(root).resolve()
    modules, graph = modules_of(root), graph_of(root)
    for module, allowed in BOTTOM.items():
        for target, line in graph.get(module, {}).items():
            if target not in allowed:
                place = f"{modules[module].relative_to(root)}:{line}"
                yield f"{place}: {module} is at the bottom and must not import {target}"
    told = set()
    for start in sorted(graph):
        way = way_back(graph, start)
        if not way or told.intersection(way):
            continue
        told.update(way)
        steps = [
            f"{modules[module].relative_to(root)}:{graph[module][target]}"
            for module, target in zip(way, [*way[1:], start])
        ]
        yield f"modules import each other: {', '.join(steps)}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = list(violations(root))
    if len(sys.argv) == 1:
        # A module that was renamed would silently lose its rule.
        gone = BOTTOM.keys() - modules_of(root).keys()
        found += [
            f"scripts/check_imports.py: BOTTOM names {module}, which is gone" for module in gone
        ]
    print("\n".join(found) or "imports are free of circles")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
