"""Notebooks: cells executed one after another in __main__, some with a top-level await in a loop
that is already running; definitions made again."""

import os
import subprocess
import sys

import pytest

# Behaves like a notebook's kernel: cells are compiled one by one, names live in __main__, and one
# asyncio loop runs all the time.
KERNEL = r"""
import ast, asyncio, inspect, linecache, sys, traceback, types

async def run_cell(number, text, space):
    name = f"<ipython-input-{number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    tree = ast.parse(text, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    for part, mode in ((tree, "exec"), (last, "eval")):
        if part is None:
            continue
        value = eval(compile(part, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
        if inspect.iscoroutine(value):
            value = await value
        if mode == "eval" and value is not None:
            print(repr(value), flush=True)

async def main(cells):
    space = sys.modules["__main__"].__dict__
    for number, text in enumerate(cells):
        try:
            await run_cell(number, text, space)
        except BaseException as error:
            print(type(error).__name__, flush=True)
            traceback.print_exc()

asyncio.run(main(%r))
"""


def notebook(*cells, **environment):
    done = subprocess.run(
        [sys.executable, "-c", KERNEL % (cells,)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1], done.stderr


def test_functions_and_classes_made_again():
    said, errors = notebook(
        "import ray\nray.init(num_cpus=2, log_to_driver=False).address_info['node_ip_address']",
        "@ray.remote\ndef f(x):\n    return x + step\nstep = 1\nray.get(f.remote(1))",
        "step = 10\nray.get(f.remote(1))",
        "@ray.remote\ndef f(x):\n    return x + step\nray.get(f.remote(1))",
        "class Point:\n    def __init__(self, x):\n        self.x = x\n    def twice(self):\n        return self.x * 2\np = ray.put(Point(3))\nray.get(p).twice()",
        "ray.get(ray.remote(lambda point: type(point).__name__ + str(point.twice())).remote(p))",
        "old = Point(1)\nclass Point:\n    def __init__(self, x):\n        self.x = x\n    def twice(self):\n        return self.x * 200\n"
        "ray.get(ray.remote(lambda: Point(1).twice()).remote())",
        "isinstance(ray.get(ray.remote(lambda: Point(1)).remote()), Point)",
        "ray.get(ray.remote(lambda point: point.twice()).remote(old))",
        "@ray.remote\nclass Actor:\n    def version(self):\n        return 1\na = Actor.remote()\nray.get(a.version.remote())",
        "@ray.remote\nclass Actor:\n    def version(self):\n        return 2\n    def more(self):\n        return 'more'\nb = Actor.remote()\n"
        "ray.get([a.version.remote(), b.version.remote(), b.more.remote()])",
        "a.more",
        "ray.get(f.remote('text'))",
        "ray.get(f.remote(5))",
        "ray.init(ignore_reinit_error=True) and ray.init()",
        "ray.shutdown()",
    )
    assert said == [
        "'127.0.0.1'",
        "2",
        "2",
        "11",
        "6",
        "'Point6'",
        "200",
        "True",
        "2",
        "1",
        "[1, 2, 'more']",
        "AttributeError",
        "RayTaskError(TypeError)",
        "15",
        "RuntimeError",
    ], errors
    assert '"<ipython-input-3>", line 3, in f' in errors, "a task's traceback names the cell"


def test_awaiting_in_the_running_loop():
    said, errors = notebook(
        "import asyncio, ray\nf = ray.remote(lambda x: x + 1)",
        "await f.remote(1)",
        "await asyncio.gather(*[f.remote(i) for i in range(5)])",
        "ray.get(f.remote(2))",
        "async def later(x):\n    return await f.remote(x) + await f.remote(x)\nawait later(1)",
        "asyncio.create_task(later(2))\nready, rest = await asyncio.wait([asyncio.ensure_future(later(i)) for i in range(3)])\nlen(ready), len(rest)",
        "@ray.remote\nclass Slow:\n    async def wait(self, s):\n        import asyncio\n        await asyncio.sleep(s)\n        return s\nslow = Slow.remote()\n"
        "await asyncio.wait_for(slow.wait.remote(0.01), 30)",
        "await asyncio.wait_for(slow.wait.remote(60), 0.1)",
        "await f.remote('text')",
        "f.remote(7).future().result()",
        "ray.shutdown()\nray.init(num_cpus=1, log_to_driver=False)\nawait f.remote(3)",
        "ray.shutdown()",
    )
    assert said == [
        "2",
        "[1, 2, 3, 4, 5]",
        "3",
        "4",
        "(3, 0)",
        "0.01",
        "TimeoutError",
        "RayTaskError(TypeError)",
        "8",
        "4",
    ], errors


@pytest.mark.parametrize(
    "source",
    [
        "import ray\nf = ray.remote(lambda x: x + 1)\nprint(ray.get(f.remote(1)))\n",
        "import ray\n@ray.remote\nclass A:\n    def m(self):\n        return 2\n\nprint(ray.get(A.remote().m.remote()))\n",
    ],
)
def test_an_interpreter_that_reads_its_input(source):
    """Programs read from standard input, as by python -i or from a pipe: there is no file, and
    perhaps no source."""
    for flags in ([], ["-i", "-q"]):
        done = subprocess.run(
            [sys.executable, *flags],
            input=source,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONSTARTUP": ""},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == "2\n", done.stderr
