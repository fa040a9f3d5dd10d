"""Stands in for systemd where it is not process 1: reads the units, starts their commands, listens
to them, and decides on restarts (systemd.service(5))."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import threading
import time

from shell import BIN, REPO
from waiting import PATIENCE_S

RENDERED = REPO / "build" / "systemd"
HEAD, STORE, NODE = "ray-head", "ray-object-store", "ray-node-manager"
TOKEN = "a" * 64
CLEAN = (0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE)


class Unit:
    """A unit file that the build has rendered: all values of every name."""

    def __init__(self, name):
        self.values = {}
        for line in (RENDERED / f"{name}.service").read_text().splitlines():
            if match := re.match(r"(\w+)=(.*)", line):
                self.values.setdefault(match[1], []).append(match[2])

    def one(self, name):
        (value,) = self.values[name]
        return value

    def environment(self):
        return dict(
            word.split("=", 1) for line in self.values["Environment"] for word in shlex.split(line)
        )

    def command(self, variables):
        """Returns ExecStart with its variables filled in: ${NAME} within a word, $NAME as any
        number of words."""
        words = []
        for word in self.one("ExecStart").split()[1:]:
            if match := re.fullmatch(r"\$(\w+)", word):
                words += shlex.split(variables[match[1]])
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word))
        return [str(BIN / words[0]), *words[1:]]

    def restarts_after(self, code):
        """Tells whether systemd starts the unit again when its process ended by itself with this
        code of Popen."""
        assert self.one("Restart") == "on-failure"
        return code not in CLEAN and str(code) not in self.one("RestartPreventExitStatus").split()


class Service:
    """One start of a unit's command, or of another command, with systemd's end of the notification
    socket. A thread reads the socket at once, as systemd does."""

    def __init__(self, host, name, command, env, watchdog_ms=None):
        self.name, self.messages, self.heard, self.news = name, [], 0, threading.Condition()
        path = str(host.scratch / f"{name}.{time.monotonic_ns()}.notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        env = {**env, "NOTIFY_SOCKET": path}
        if watchdog_ms:
            env["WATCHDOG_USEC"] = str(watchdog_ms * 1000)
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=host.scratch,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read(self):
        # finish() sends an empty message to end this thread.
        while message := self.socket.recv(4096):
            with self.news:
                self.messages += message.decode().split("\n")
                self.news.notify()

    def hear(self, wanted, seconds=PATIENCE_S):
        """Waits for the next assignment that begins with `wanted`, after the one that was heard
        before."""

        def found():
            return (
                next(
                    (
                        at
                        for at in range(self.heard, len(self.messages))
                        if self.messages[at].startswith(wanted)
                    ),
                    None,
                )
                is not None
            )

        with self.news:
            assert self.news.wait_for(found, seconds), (
                f"{self.name} did not say {wanted}; it said {self.messages}; {self.process.stderr.read() if self.process.poll() is not None else 'it runs'}"
            )
            self.heard = (
                next(
                    at
                    for at in range(self.heard, len(self.messages))
                    if self.messages[at].startswith(wanted)
                )
                + 1
            )

    def settled(self):
        """Returns everything that the service has said, once it is stopped or ended and cannot say
        more."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mark:
            mark.sendto(b"mark", self.socket.getsockname())
        with self.news:
            self.news.wait_for(lambda: "mark" in self.messages)
            self.messages.remove("mark")
            return list(self.messages)

    def end(self, signals=(signal.SIGTERM,), seconds=PATIENCE_S):
        """Ends the service by these signals; returns its exit code and what it wrote."""
        for number in signals:
            self.process.send_signal(number)
        _, written = self.process.communicate(timeout=seconds)
        self.finish()
        return self.process.returncode, written

    def end_by_itself(self, seconds=PATIENCE_S):
        return self.end((), seconds)

    def finish(self):
        """Ends the thread that reads."""
        if self.reader.is_alive():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"", self.socket.getsockname())
            self.reader.join()
        self.socket.close()


class Machine:
    """The units of one machine, with session and state directories of their own."""

    def __init__(self, shell, port):
        self.scratch, self.address, self.started = shell.scratch, f"127.0.0.1:{port}", []
        for name in ("head", "node", "run"):
            (self.scratch / name).mkdir()
        self.given = {
            "RAY_HEAD_PORT": str(port),
            "RAY_HEAD_ADDRESS": self.address,
            "RAY_HEAD_OPTIONS": "--host 127.0.0.1 --dashboard-port 0",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_NODE_IP_ADDRESS": "127.0.0.1",
            "RAY_object_store_memory": "100000000",
            "RAY_prestart_workers": "1",
            # The daemons of a test start at the same time. On a busy machine a node may have to
            # wait for its head and its store for longer than the default of 5 s.
            "RAY_connect_timeout_ms": "60000",
        }
        self.env = shell.env

    def start(self, name, watchdog_ms=None, within=(), **given):
        """Starts a unit. given: variables for /etc/ray/ray.env beside the usual ones; None leaves a
        usual one out."""
        unit = Unit(name)
        variables = {
            **unit.environment(),
            **self.given,
            **given,
            "RUNTIME_DIRECTORY": str(self.scratch / "run"),
            "STATE_DIRECTORY": str(self.scratch / ("head" if name == HEAD else "node")),
        }
        variables = {key: value for key, value in variables.items() if value is not None}
        env = {**self.env, **variables, "PATH": os.environ["PATH"]}
        service = Service(self, name, [*within, *unit.command(variables)], env, watchdog_ms)
        self.started.append(service)
        return service

    def up(self, *names, **options):
        services = [self.start(name, **options) for name in names]
        for service in services:
            service.hear("READY=1")
        return services

    def stop(self):
        for service in self.started:
            service.process.kill()
            service.process.communicate()
            service.finish()


@contextlib.contextmanager
def machine(shell, port):
    running = Machine(shell, port)
    try:
        yield running
    finally:
        running.stop()
