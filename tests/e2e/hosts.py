"""Two hosts for tests of nodes on machines of their own: network namespaces with a cable between
them. Making them needs root."""

import contextlib
import os
import shutil
import subprocess

from waiting import until

HEAD, NODE = "10.213.7.1", "10.213.7.2"
PORT = 6379


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def namespaces_work():
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("ss"):
        return False
    name = f"rt-try-{os.getpid()}"
    made = ip("netns", "add", name).returncode == 0
    works = (
        made
        and ip("netns", "exec", name, "true").returncode == 0
        and ip(
            "-n", name, "link", "add", "wire", "type", "veth", "peer", "name", "other"
        ).returncode
        == 0
    )
    ip("netns", "del", name)
    return works


class Hosts:
    """Two hosts, `head` and `node`. What they start is ended by the shell."""

    def __init__(self, shell):
        self.shell = shell
        self.head, self.node = (f"rt-{os.getpid()}-{name}" for name in ("h", "n"))
        self.link("netns", "add", self.head)
        self.link("netns", "add", self.node)
        self.link(
            "-n",
            self.head,
            "link",
            "add",
            "wire",
            "type",
            "veth",
            "peer",
            "name",
            "wire",
            "netns",
            self.node,
        )
        for host, address in ((self.head, HEAD), (self.node, NODE)):
            self.link("-n", host, "addr", "add", f"{address}/24", "dev", "wire")
            self.link("-n", host, "link", "set", "lo", "up")
            self.link("-n", host, "link", "set", "wire", "up")
        # The kernel marks the cable as working a moment later. Before that, a head finds no address
        # of its own but the loopback one.
        for host in (self.head, self.node):
            until(lambda: " UP " in ip("-n", host, "-brief", "link", "show", "wire").stdout)

    @staticmethod
    def link(*words):
        done = ip(*words)
        assert done.returncode == 0, (words, done.stderr)

    def remove(self):
        for host in (self.head, self.node):
            ip("netns", "del", host)

    def environment(self):
        env = {**self.shell.env, "RAY_ADDRESS": f"{HEAD}:{PORT}"}
        # There is no default route; the address is detected nevertheless.
        del env["RAY_NODE_IP_ADDRESS"]
        return env

    def on(self, host, *words, **options):
        return subprocess.Popen(
            ["ip", "netns", "exec", host, *map(str, words)],
            env=self.environment(),
            cwd=self.shell.scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def rayctl(self, host, *words):
        process = self.on(host, *self.shell.command(*words))
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said

    def break_connections_to_head(self):
        for host, ends in (
            (self.node, ("dport", "=", f":{PORT}")),
            (self.head, ("sport", "=", f":{PORT}", "and", "dst", NODE)),
        ):
            assert self.on(host, "ss", "-K", *ends).wait(timeout=120) == 0

    @contextlib.contextmanager
    def unplugged(self):
        self.link("-n", self.node, "link", "set", "wire", "down")
        yield
        self.link("-n", self.node, "link", "set", "wire", "up")
