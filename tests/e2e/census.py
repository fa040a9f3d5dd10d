"""Counts what a cluster on this machine holds: memory, descriptors and threads of its processes,
its stores' contents, its head's tables."""

import contextlib
import os
import pathlib

import raw_rpc as raw
from cluster import alive, processes_below

DAEMONS = ("ray-head", "ray-node-manager", "ray-object-store")


def status(pid):
    """Returns memory in KiB, descriptors and threads of a process, or None when it is gone. `own`
    counts memory that no file or arena backs; `pss` divides shared pages among their users."""
    base = pathlib.Path(f"/proc/{pid}")
    try:
        fields = dict(
            line.split(":", 1) for line in (base / "status").read_text().splitlines() if ":" in line
        )
        rollup = dict(
            line.split(":", 1) for line in (base / "smaps_rollup").read_text().splitlines()[1:]
        )
        number = lambda text: int(text.split()[0])
        return {
            "own": number(fields["RssAnon"]),
            "rss": number(fields["VmRSS"]) - number(fields["RssShmem"]),
            "pss": number(rollup["Pss"]),
            "arena": number(fields["RssShmem"]),
            "fds": len(os.listdir(base / "fd")),
            "threads": number(fields["Threads"]),
        }
    except (OSError, KeyError, ValueError):
        return None


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def cpu_seconds(pid):
    """Returns the CPU time that a process used, including its reaped children."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


class Line:
    """A connection to a daemon, on which questions are asked by the name of the RPC."""

    def __init__(self, address, token=""):
        self.socket = raw.open_socket(address)
        self.socket.sendall(raw.preamble() + raw.hello(token))
        got = raw.receive(self.socket)
        assert got and got[0] == raw.HELLO_REPLY, raw.error_of(got)
        self.calls = 0

    def ask(self, method, message=b""):
        self.calls += 1
        self.socket.sendall(
            raw.frame(
                raw.REQUEST, message, method=raw.method(f"rt.proto.{method}"), call=self.calls
            )
        )
        while True:
            got = raw.receive(self.socket)
            assert got, f"{method}: the connection ended"
            assert raw.error_of(got) is None, raw.error_of(got)
            if got[0] == raw.RESPONSE and got[2] == self.calls:
                return got[3] + got[4]


def repeated(message, field):
    """Returns the elements of a repeated field."""
    return [value for number, value in raw.fields_of(message) if number == field]


class Census:
    """Counts the head's node, and this process as the driver. running: a cluster.Cluster."""

    def __init__(self, running):
        self.running = running
        session = running.head_node
        self.daemons = {name: running.pid(session, name) for name in DAEMONS}
        record = running.records()[session]
        token = (running.shell.scratch / ".ray" / "auth_token").read_text().strip()
        self.store_line = Line(record["object_store_socket"])
        self.head_line = Line(("127.0.0.1", running.port), token)

    def store(self):
        fields = raw.parse(self.store_line.ask("ObjectStoreService.GetStats"))
        return {"used": fields.get(2, 0), "objects": fields.get(3, 0), "pinned": fields.get(4, 0)}

    def functions(self):
        return len(repeated(self.head_line.ask("HeadService.KvList", raw.field(1, "fun")), 1))

    def tables(self):
        """Counts the rows of the head's tables: actors by state (3: dead), jobs, functions, keys
        that programs put."""
        actors = [
            raw.parse(actor).get(2, 0)
            for actor in repeated(self.head_line.ask("HeadService.ListActors"), 1)
        ]
        jobs = [
            raw.parse(job).get(9, 0)
            for job in repeated(self.head_line.ask("HeadService.GetJobs"), 1)
        ]
        return {
            "actors": sum(state != 3 for state in actors),
            "dead actors": sum(state == 3 for state in actors),
            "jobs": sum(not done for done in jobs),
            "finished jobs": sum(map(bool, jobs)),
            "functions": self.functions(),
            "keys": len(
                repeated(self.head_line.ask("HeadService.KvList", raw.field(1, "churn")), 1)
            ),
        }

    def workers(self):
        """Returns the pids of the fork servers and of the workers of the head's node."""
        servers = children(self.daemons["ray-node-manager"])
        return servers, [pid for server in servers for pid in children(server)]

    def sample(self):
        """Returns the status of each daemon and the driver by name. For the fork servers and the
        workers it returns the largest of each figure, and their number as `processes`."""
        servers, workers = self.workers()
        found = {
            **{name: status(pid) for name, pid in self.daemons.items()},
            "driver": status(os.getpid()),
        }
        for name, pids in (("fork server", servers), ("workers", workers)):
            each = [one for one in map(status, pids) if one]
            found[name] = {key: max(one[key] for one in each) for key in each[0]} if each else None
            if found[name]:
                found[name]["processes"] = len(each)
        return {name: one for name, one in found.items() if one}


def leftovers(root, before):
    """Lists as text what the machine has now and did not have `before`, a result of machine()."""
    return [
        f"{what}: {item}"
        for what, items in machine(root).items()
        for item in sorted(items - before[what])
    ]


def shared_memory():
    """Returns names of shared memory objects. It leaves out those of Python's multiprocessing and
    of Chromium, which tests make that run at the same time."""
    foreign = ("sem.", "psm_", "pym-", ".org.chromium.", ".com.google.")
    return {name for name in os.listdir("/dev/shm") if not name.startswith(foreign)}


def machine(root):
    """Returns the shared memory objects, the socket files below `root`, and the processes whose
    temp root is `root`."""
    processes = {
        f"{pid} {words}" for pid, words in processes_below(root).items() if pid != os.getpid()
    }
    processes |= {f"{pid} (not reaped)" for pid in children(os.getpid()) if not alive(pid)}
    sockets = (
        {str(path) for path in pathlib.Path(root).rglob("*") if path.is_socket()}
        if pathlib.Path(root).exists()
        else set()
    )
    return {"shared memory": shared_memory(), "socket": sockets, "process": processes}
