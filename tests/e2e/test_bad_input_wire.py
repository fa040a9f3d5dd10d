"""Every listener of a cluster gets wrong bytes. It answers or closes each connection in bounded
time, and the cluster works on."""

import contextlib
import json
import os
import pathlib
import random
import socket
import time

import pytest

import raw_rpc as raw
from shell import Shell
from ports import free_port
from driver import Driver
from waiting import until

# This is far more than a test that waits for a processor takes from connecting to its hello. Only
# one test waits for the limit.
HELLO_TIMEOUT_MS = 6000
PROTOCOL, UNAUTHENTICATED, WRONG_VERSION, WRONG_CLUSTER, NOT_FOUND, UNSUPPORTED = 9, 6, 7, 8, 2, 21
SEED = int(os.environ.get("RAY_TEST_SEED", "20240601"))
TCP = ["head", "node-manager", "door:store", "door:worker", "door:driver"]
UNIX = ["raylet", "plasma_store", "worker", "driver"]


class Listener:
    """A place to send bytes to: an address, and the preamble that leads to one process behind
    it."""

    def __init__(self, address, token, pid, target="self", identity=""):
        self.address, self.token, self.pid = address, token, pid
        self.preamble = raw.preamble(target, identity)

    def connect(self, timeout=120):
        return contextlib.closing(raw.open_socket(self.address, timeout))

    @contextlib.contextmanager
    def greeted(self):
        """Yields a connection whose hello was accepted."""
        with self.connect() as peer:
            peer.sendall(self.preamble + raw.hello(self.token))
            got = raw.receive(peer)
            assert got and got[0] == raw.HELLO_REPLY, raw.error_of(got)
            yield peer


class World:
    """A head with a node of two CPUs and a driver that lives through all of this file."""

    def __init__(self):
        self.shell = Shell()
        self.port = free_port()
        self.shell.ok(
            "start",
            "--head",
            f"--port={self.port}",
            "--num-cpus=2",
            "--object-store-memory=100000000",
            "--system-config",
            json.dumps({"hello_timeout_ms": HELLO_TIMEOUT_MS}),
        )
        record = json.loads(next(self.shell.root.glob("session_2*/node_*.json")).read_text())
        self.daemons = {process["name"]: process["pid"] for process in record["processes"]}
        self.session = pathlib.Path(record["session_dir"])
        self.driver = Driver(
            self.shell,
            RAY_ADDRESS=f"127.0.0.1:{self.port}",
            RAY_hello_timeout_ms=str(HELLO_TIMEOUT_MS),
        )
        token = (self.shell.scratch / ".ray" / "auth_token").read_text().strip()
        driver = self.driver.run("ray.get_runtime_context().get_worker_id()")
        worker, self.worker = self.driver.run(
            "ray.get(counter.__ray_call__.remote(lambda self: (ray.get_runtime_context().get_worker_id(), __import__('os').getpid())))"
        )
        door, unix = ("127.0.0.1", record["node_manager_port"]), self.session / "sockets"
        manager, store = self.daemons["ray-node-manager"], self.daemons["ray-object-store"]
        self.driver.calls = 0
        self.listeners = {
            "head": Listener(("127.0.0.1", self.port), token, self.daemons["ray-head"]),
            "node-manager": Listener(door, token, manager),
            "door:store": Listener(door, token, store, "store"),
            "door:worker": Listener(door, token, self.worker, "worker", worker),
            "door:driver": Listener(door, token, self.driver.process.pid, "worker", driver),
            "raylet": Listener(unix / "raylet", "", manager),
            "plasma_store": Listener(unix / "plasma_store", "", store),
            "worker": Listener(unix / f"w-{worker[:16]}", "", self.worker),
            "driver": Listener(
                next(unix.glob(f"d-{self.driver.process.pid}-*")), "", self.driver.process.pid
            ),
        }

    def works(self):
        assert self.driver.works()
        for name, pid in {**self.daemons, "the actor": self.worker}.items():
            assert pathlib.Path(f"/proc/{pid}").exists(), f"{name} is gone"
        return True

    def close(self):
        self.driver.close()
        self.shell.stop()


@pytest.fixture(scope="module")
def world():
    world = World()
    yield world
    world.close()


@pytest.fixture(autouse=True)
def the_cluster_works_on(world):
    yield
    world.works()


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def everywhere(*kinds):
    return pytest.mark.parametrize("name", [name for kind in kinds for name in kind])


# ---- hellos


@everywhere(TCP, UNIX)
def test_a_right_hello_is_accepted(world, name):
    with world.listeners[name].greeted():
        pass


@everywhere(TCP)
@pytest.mark.parametrize(
    "token, said",
    [
        ("", "demands a token"),
        ("f" * 64, "not the one of this cluster"),
        ("x" * 60_000, "not the one of this cluster"),
    ],
)
def test_a_wrong_token_is_answered_and_the_connection_closed(world, name, token, said):
    listener = world.listeners[name]
    with listener.connect() as peer:
        peer.sendall(
            listener.preamble
            + raw.hello(token)
            + raw.frame(raw.REQUEST, method=raw.method("rt.proto.HeadService.GetNodes"), call=1)
        )
        code, text = raw.error_of(raw.receive(peer))
        assert code == UNAUTHENTICATED and said in text and "RAY_AUTH_TOKEN" in text
        assert raw.receive(peer) is None


@everywhere(["head", "node-manager", "door:store"])
def test_a_stranger_s_name_makes_no_lines_in_our_logs(world, name):
    listener = world.listeners[name]
    with listener.connect() as peer:
        peer.sendall(
            listener.preamble
            + raw.hello("wrong", role=f"x\nall is well at the {name}\x1b[31m" + "x" * 50_000)
        )
        assert raw.error_of(raw.receive(peer))[0] == UNAUTHENTICATED
        me = "%s:%s" % peer.getsockname()[:2]
    logs = {log.name: log.read_text() for log in (world.session / "logs").glob("*.log")}
    assert [log for log, text in logs.items() if f"refused a peer {me}: " in text]
    assert not [
        log for log, text in logs.items() if "all is well" in text or len(text) >= 1_000_000
    ]


@everywhere(TCP, UNIX)
@pytest.mark.parametrize("version", [0, raw.VERSION + 1, 2**32 - 1])
def test_another_protocol_version(world, name, version):
    listener = world.listeners[name]
    with listener.connect() as peer:
        peer.sendall(listener.preamble + raw.hello(listener.token, version))
        code, text = raw.error_of(raw.receive(peer))
        assert (
            code == WRONG_VERSION
            and f"protocol version {version} was offered, version {raw.VERSION} is spoken here: install the same release on every machine"
            in text
        )
        assert raw.receive(peer) is None
        me = "%s:%s" % peer.getsockname()[:2] if name == "head" else ""
    if name == "head":
        assert f"refused client {me}: {text}\n" in (world.session / "logs" / "head.log").read_text()


@everywhere(
    ["head", "node-manager", "door:worker", "door:driver"],
    ["raylet", "worker", "driver"],
    # The store is left out, since it knows its node but no cluster.
)
def test_another_cluster(world, name):
    listener = world.listeners[name]
    with listener.connect() as peer:
        peer.sendall(listener.preamble + raw.hello(listener.token, cluster=b"c" * 28))
        code, text = raw.error_of(raw.receive(peer))
        assert code == WRONG_CLUSTER and "another cluster" in text


@everywhere(TCP, UNIX)
@pytest.mark.parametrize(
    "bytes_, said",
    [
        (raw.frame(raw.REQUEST, method=1, call=1), "not a hello"),
        (raw.frame(raw.HELLO, b"\xff" * 40), "cannot be parsed"),
        (raw.frame(raw.HELLO, body_bytes=1 << 20, message_bytes=1 << 20), "1048576"),
        (raw.frame(raw.HELLO, body_bytes=2**32 - 1, message_bytes=2**32 - 1), "4294967295"),
        (
            raw.frame(raw.HELLO, body_bytes=4, message_bytes=5, attachment=b"1234"),
            "malformed frame",
        ),
        (raw.frame(99), "malformed frame"),
        (b"\xff" * 24, "malformed frame"),
    ],
    ids=[
        "no hello",
        "not a message",
        "too large",
        "4 GiB",
        "contradiction",
        "unknown kind",
        "ones",
    ],
)
def test_a_wrong_first_frame(world, name, bytes_, said):
    listener = world.listeners[name]
    with listener.connect() as peer:
        peer.sendall(listener.preamble + bytes_)
        code, text = raw.error_of(raw.receive(peer))
        assert code == PROTOCOL and said in text
        assert raw.receive(peer) is None


# ---- preambles


@everywhere(["head", "node-manager"], UNIX)
@pytest.mark.parametrize(
    "bytes_",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0" * 80,
        b"\n",
        raw.preamble(magic="RAY2"),
        raw.preamble()[:-1] + b"x",
    ],
    ids=["http", "tls", "ssh", "zeros", "newline", "RAY2", "no end"],
)
def test_other_protocols_are_closed_at_once(world, name, bytes_):
    listener = world.listeners[name]
    with listener.connect(timeout=HELLO_TIMEOUT_MS / 1000 - 0.5) as peer:
        peer.sendall(bytes_)
        assert raw.ends(peer)


@everywhere(["head", "node-manager"], UNIX)
@pytest.mark.parametrize(
    "target, identity",
    [
        ("nobody", ""),
        ("worker", "ab" * 28),
        ("worker", ""),
        ("worker", "zz" * 28),
        ("worker", "../" * 9),
    ],
)
def test_a_target_that_is_not_there(world, name, target, identity):
    is_refused(world.listeners[name], target, identity)


@everywhere(["head"], UNIX)
def test_a_store_is_reached_through_its_node_manager_only(world, name):
    is_refused(world.listeners[name], "store", "x")


def is_refused(listener, target, identity):
    with listener.connect() as peer:
        peer.sendall(raw.preamble(target, identity) + raw.hello(listener.token))
        got = raw.receive(peer)
        assert got is None or raw.error_of(got)[0] in (NOT_FOUND, PROTOCOL)


@everywhere(TCP)
@pytest.mark.parametrize("target", ["handoff", "arena"])
def test_what_only_unix_sockets_carry(world, name, target):
    with world.listeners[name].connect() as peer:
        peer.sendall(raw.preamble(target))
        got = raw.receive(peer)
        assert got is None or "Unix sockets only" in raw.error_of(got)[1]


@everywhere(UNIX)
def test_a_hand_over_of_nothing(world, name):
    with world.listeners[name].connect() as peer:
        peer.sendall(raw.preamble("handoff"))
        assert raw.ends(peer)
    with world.listeners[name].connect() as peer, open(os.devnull) as null:
        socket.send_fds(peer, [raw.preamble("handoff")], [null.fileno()] * 3)
        assert raw.ends(peer)


# ---- frames of a peer that introduced itself


@everywhere(TCP, UNIX)
@pytest.mark.parametrize(
    "bytes_",
    [
        raw.frame(raw.REQUEST, body_bytes=257 << 20, message_bytes=1),
        raw.frame(raw.REQUEST, body_bytes=2**32 - 1, message_bytes=2**32 - 1),
        raw.frame(raw.REQUEST, attachment=b"1234", message_bytes=5),
        raw.frame(7, call=1),
        raw.frame(255),
        raw.frame(raw.REQUEST, padding=b"\1" + bytes(6)),
        raw.hello(""),
        raw.frame(raw.HELLO_REPLY),
        raw.frame(raw.ERROR, b"\xff\xff\xff", call=0),
    ],
    ids=[
        "too large",
        "4 GiB",
        "contradiction",
        "kind 7",
        "kind 255",
        "padding",
        "second hello",
        "hello reply",
        "broken error",
    ],
)
def test_a_malformed_frame_ends_its_connection_only(world, name, bytes_):
    with world.listeners[name].greeted() as peer:
        peer.sendall(bytes_)
        code, text = raw.error_of(raw.receive(peer))
        assert code == PROTOCOL and text
        assert raw.receive(peer) is None


@everywhere(TCP, UNIX)
def test_unknown_methods_and_answers_nobody_waits_for(world, name):
    with world.listeners[name].greeted() as peer:
        peer.sendall(
            raw.frame(raw.ONE_WAY, b"x", method=12345)
            + raw.frame(raw.RESPONSE, b"\xff", call=77)
            + raw.frame(raw.ERROR, call=78)
            + raw.frame(raw.REQUEST, b"x", b"attachment", method=12345, call=9)
        )
        # The head or node-manager may push messages of its own before it answers.
        while (got := raw.receive(peer))[0] != raw.ERROR:
            assert got is not None
        assert got[2] == 9 and raw.error_of(got)[0] == UNSUPPORTED


@everywhere(TCP, UNIX)
def test_announced_bytes_take_no_memory(world, name):
    listener = world.listeners[name]
    before = resident_bytes(listener.pid)
    with contextlib.ExitStack() as peers:
        for _ in range(10):
            peer = peers.enter_context(listener.greeted())
            peer.sendall(
                raw.frame(
                    raw.REQUEST,
                    b"x" * 1000,
                    method=1,
                    call=1,
                    body_bytes=256 << 20,
                    message_bytes=256 << 20,
                )
            )
        world.works()
        assert resident_bytes(listener.pid) - before < 60_000_000


def methods_of(*services):
    """Returns the full names of the methods in the .proto files, without those whose purpose is to
    end something."""
    import re

    names, service = [], None
    for path in sorted((pathlib.Path(__file__).parents[2] / "common" / "proto").glob("*.proto")):
        for line in path.read_text().splitlines():
            if found := re.match(r"service (\w+)", line):
                service = found[1]
            elif (
                (found := re.match(r"\s*rpc (\w+)", line))
                and service in services
                and not found[1].startswith(("Stop", "Kill", "Exit", "Unregister"))
            ):
                names.append(f"rt.proto.{service}.{found[1]}")
    return names


SERVICES = {
    "head": ["HeadService"],
    "node-manager": ["NodeManagerService", "HeadClientService"],
    "raylet": ["NodeManagerService", "HeadClientService"],
    "door:store": ["ObjectStoreService"],
    "plasma_store": ["ObjectStoreService"],
    "worker": ["WorkerService", "NodeClientService"],
    "door:worker": ["WorkerService", "NodeClientService"],
    "driver": ["WorkerService", "NodeClientService"],
}


def random_message(rng, depth=2):
    """Returns well-formed Protobuf of random fields: the parser accepts it, so the code behind the
    parser must check it."""
    out = b""
    for _ in range(rng.randrange(5)):
        number = rng.randrange(1, 16)
        kind = rng.randrange(4)
        if kind == 0:
            out += raw.field(
                number, rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, rng.randrange(1000)])
            )
        elif kind == 1:
            out += raw.field(number, rng.randbytes(rng.choice([0, 1, 4, 16, 24, 28, 1000])))
        elif kind == 2 and depth:
            out += raw.field(number, random_message(rng, depth - 1))
        else:
            out += raw.varint(number << 3 | 1) + rng.randbytes(8)
    return out


@everywhere(SERVICES)
def test_methods_with_nonsense_in_them(world, name):
    print("seed", SEED)
    rng = random.Random(f"{SEED} {name}")
    listener = world.listeners[name]
    for method in methods_of(*SERVICES[name]):
        for message in [b"", b"\xff" * 9, *(random_message(rng) for _ in range(6))]:
            with listener.greeted() as peer:
                peer.settimeout(0.05)
                with contextlib.suppress(OSError):
                    peer.sendall(
                        raw.frame(
                            raw.REQUEST,
                            message,
                            rng.randbytes(rng.choice([0, 100])),
                            method=raw.method(method),
                            call=1,
                        )
                    )
                    # An answer, an error and silence are all correct.
                    raw.receive(peer)
    world.works()


@everywhere(["worker", "door:worker", "driver", "raylet", "head", "plasma_store"])
def test_flat_frames_with_nonsense_in_them(world, name):
    rng = random.Random(f"{SEED} flat {name}")
    for kind in range(6):
        for body in [
            b"",
            b"\1",
            b"\2" + bytes(100),
            *(bytes([rng.choice([1, 2])]) + rng.randbytes(rng.randrange(300)) for _ in range(10)),
        ]:
            with world.listeners[name].greeted() as peer, contextlib.suppress(OSError):
                peer.sendall(raw.frame(raw.FLAT, body, method=kind))


# ---- connections that never finish what they began


def test_half_open_connections_are_closed_and_keep_nobody_out(world):
    beginnings = [
        b"",
        b"R",
        raw.preamble()[:40],
        raw.preamble(),
        raw.preamble() + raw.hello("")[:20],
        raw.preamble() + raw.hello("x" * 100)[:-1],
    ]
    with contextlib.ExitStack() as stack:
        peers = []
        for listener in world.listeners.values():
            for beginning in beginnings * 5:
                peer = stack.enter_context(listener.connect(timeout=HELLO_TIMEOUT_MS / 1000 + 5))
                peer.sendall(
                    beginning
                    if listener.preamble == raw.preamble()
                    else beginning.replace(raw.preamble(), listener.preamble)
                )
                peers.append(peer)
        world.works()
        for peer in peers:
            assert raw.ends(peer)
    log = (world.session / "logs" / "node-manager.log").read_text()
    assert "did not introduce itself" in log


def test_peers_that_never_read(world):
    """A peer that takes no answers makes the server keep no more than it has asked for, and the
    other peers do not wait for it."""
    method = raw.method("rt.proto.HeadService.GetNodes")
    with world.listeners["head"].greeted() as peer:
        peer.settimeout(2)
        with contextlib.suppress(OSError):
            peer.sendall(
                b"".join(
                    raw.frame(raw.REQUEST, method=method, call=call) for call in range(1, 5000)
                )
            )
        world.works()


# ---- garbage


def garbage(rng, listener):
    """Returns random bytes, or right bytes with wrong ones in between."""
    right = (
        listener.preamble
        + raw.hello(listener.token)
        + raw.frame(raw.REQUEST, rng.randbytes(20), method=rng.getrandbits(32), call=1)
    )
    choice = rng.randrange(4)
    if choice == 0:
        return rng.randbytes(rng.randrange(1, 5000))
    if choice == 1:
        return listener.preamble + rng.randbytes(rng.randrange(1, 2000))
    if choice == 2:
        return listener.preamble + raw.hello(listener.token) + rng.randbytes(rng.randrange(1, 5000))
    mutated = bytearray(right)
    for _ in range(rng.randrange(1, 6)):
        mutated[rng.randrange(len(mutated))] = rng.randrange(256)
    return bytes(mutated[: rng.randrange(1, len(mutated) + 1)])


def test_garbage_everywhere(world):
    print("seed", SEED)
    rng = random.Random(SEED)
    deadline, rounds = time.monotonic() + 3, 0
    while time.monotonic() < deadline or rounds <= 10:
        for listener in world.listeners.values():
            with contextlib.suppress(OSError), listener.connect(timeout=0.02) as peer:
                peer.sendall(garbage(rng, listener))
                if rng.randrange(2):
                    peer.recv(4096)
        rounds += 1
        if rounds % 20 == 0:
            world.works()


def test_daemons_said_what_they_refused_and_nothing_is_left_open(world):
    door = world.listeners["node-manager"]
    with door.connect() as peer:
        peer.sendall(door.preamble + raw.hello("wrong"))
        assert raw.error_of(raw.receive(peer))[0] == UNAUTHENTICATED
    log = (world.session / "logs" / "node-manager.log").read_text()
    assert "refused client 127.0.0.1:" in log and "the token is not the one of this cluster" in log

    def open_files():
        folders = [pathlib.Path(f"/proc/{pid}/fd") for pid in world.daemons.values()]
        return [len(list(folder.iterdir())) for folder in folders]

    # A daemon may have yet to notice that the peers of the tests before have gone.
    until(open_files, lambda counts: max(counts) < 100)
