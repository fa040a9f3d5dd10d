"""A driver in a process of its own, told what to do line by line: it lives through what a test does
to its cluster."""

import ast
import json
import os
import select
import subprocess
import sys
import time

PROGRAM = r"""
import sys, json, time
import ray
import numpy as np
namespace = {"ray": ray, "np": np, "time": time}
exec('''
@ray.remote
def echo(x): return x
@ray.remote
def ones(n): return np.ones(n, dtype=np.uint8)
@ray.remote
class Counter:
    def __init__(self): self.n = 0
    def add(self): self.n += 1; return self.n
''', namespace)
for line in sys.stdin:
    code, answer = json.loads(line), {}
    try:
        try:
            answer["value"] = repr(eval(compile(code, "<driver>", "eval"), namespace))
        except SyntaxError:
            answer["value"] = repr(exec(compile(code, "<driver>", "exec"), namespace))
    except BaseException as error:
        answer = {"error": [[c.__name__ for c in type(error).__mro__], str(error)]}
    # In one piece: print() would write the end of the line by itself, and what another thread prints
    # for a worker could come in between.
    sys.stdout.write("\x00" + json.dumps(answer) + "\n")
    sys.stdout.flush()
"""


class Failed(Exception):
    """The driver raised an exception; this one has the names of its class and bases, and its
    text."""

    def __init__(self, classes, text):
        super().__init__(f"{classes[0]}: {text}")
        self.classes, self.text = classes, text


class Driver:
    def __init__(self, shell, init="ray.init(log_to_driver=True)", **env):
        self.errors = open(shell.scratch / "driver.err", "a+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**shell.env, **env},
            cwd=shell.scratch,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.received = b""
        if init:
            self.run(init)
            self.run("counter = Counter.options(num_cpus=0).remote()")
            self.calls = 0

    def run(self, code, timeout=180):
        """Runs code in the driver. Returns the value of an expression, or None after statements."""
        self.process.stdin.write(json.dumps(code).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self._answer(code, timeout))
        if "error" in answer:
            raise Failed(*answer["error"])
        try:
            return ast.literal_eval(answer["value"])
        except (ValueError, SyntaxError):
            return answer["value"]

    def _answer(self, code, timeout):
        deadline = time.monotonic() + timeout
        while b"\n" not in self.received.partition(b"\x00")[2]:
            ready = select.select(
                [self.process.stdout], [], [], max(0, deadline - time.monotonic())
            )[0]
            assert ready, f"{code}: no answer within {timeout} s"
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, f"{code}: the driver ended with {self.process.wait()}: {self.said()}"
            self.received += piece
        # The output of workers and of the code comes before the mark of the answer.
        answer, _, self.received = self.received.split(b"\x00", 1)[1].partition(b"\n")
        return answer

    def raises(self, code, kind, timeout=180):
        """Checks that the code raises an exception of this class, and returns its text."""
        try:
            value = self.run(code, timeout)
        except Failed as failed:
            assert kind in failed.classes, failed
            return failed.text
        raise AssertionError(f"{code}: no {kind}, but {value}")

    def works(self):
        """Checks that the driver's cluster runs a task, moves a large result through shared memory,
        and calls an actor that has kept its state."""
        assert self.run("ray.get(echo.remote('here'), timeout=180)") == "here"
        assert self.run("int(ray.get(ones.remote(300_000), timeout=180).sum())") == 300_000
        self.calls += 1
        assert self.run("ray.get(counter.add.remote(), timeout=180)") == self.calls
        return True

    def said(self):
        """Returns what the driver's stderr shows: warnings of the cluster, output of workers."""
        self.errors.flush()
        self.errors.seek(0)
        return self.errors.read()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
