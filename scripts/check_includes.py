#!/usr/bin/env python3
"""Checks that #include directives follow the directions in docs/architecture.md.

Usage: check_includes.py [ROOT]

Prints each violation as file:line. The exit code is 1 if there are any.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = ("*.cc", "*.h", "*.def")
FLOORS = ("common", "observability", "launch", "daemons", "worker", "cli", "python")
TREES = (*FLOORS[:-1], "cpp", "python/binding", "bench")

BELOW_DAEMONS = ["common/", "observability/", "launch/"]
# (directory, prefixes of the project's files it may include besides its own). The first entry
# whose directory is a prefix of a file's path applies.
ALLOWED = [
    ("common/base/", []),
    ("common/config/", ["common/base/"]),
    ("common/resources/", ["common/base/", "common/proto/"]),
    ("common/scheduling/", ["common/base/", "common/proto/", "common/resources/"]),
    ("observability/events/", ["common/base/", "common/proto/"]),
    ("common/net/", ["common/base/"]),
    ("common/tls/", ["common/base/", "common/net/"]),
    ("common/http/lazy/", ["common/base/", "common/http/module/endpoint.h", "common/net/"]),
    ("common/http/", ["common/base/", "common/net/", "common/tls/"]),
    ("observability/metrics/", ["common/base/", "common/proto/"]),
    ("common/rpc/", ["common/base/", "common/net/", "common/proto/", "common/tls/"]),
    ("launch/daemon/", ["common/base/", "common/config/", "common/net/"]),
    (
        "observability/state/",
        [
            "common/base/",
            "common/http/client_tls.h",
            "observability/profile/render.h",
            "common/proto/",
            "observability/api_json/",
            "observability/events/",
            "observability/metrics/",
            "common/resources/",
            "common/net/address.h",
            "common/net/poll_loop.h",
            "common/rpc/",
        ],
    ),
    ("observability/api_json/", ["common/base/", "common/proto/", "common/resources/"]),
    ("observability/profile/", ["common/base/", "common/proto/"]),
    (
        "observability/profile_service/",
        ["common/base/", "common/proto/", "observability/profile/", "common/net/", "common/rpc/"],
    ),
    (
        "observability/command_service/",
        ["common/base/", "common/proto/", "common/net/", "common/rpc/"],
    ),
    (
        "launch/node/",
        [
            "common/base/",
            "common/config/",
            "common/resources/",
            "common/net/address.h",
            "common/net/listen.h",
            "common/net/probe.h",
        ],
    ),
    ("common/", []),
    ("daemons/object_store/client/", ["common/", "daemons/object_store/"]),
    ("daemons/", BELOW_DAEMONS),
    ("worker/", ["common/", "observability/", "daemons/object_store/client/"]),
    ("cli/terminal/", ["common/", "observability/api_json/"]),
    ("cli/client/", [*BELOW_DAEMONS, "cli/terminal/"]),
    (
        "cli/commands/",
        [*BELOW_DAEMONS, "cli/commands.h", "cli/terminal/", "cli/client/"],
    ),
    ("cli/jobs/", [*BELOW_DAEMONS, "cli/commands.h", "cli/terminal/", "cli/client/"]),
    ("cli/debug/", [*BELOW_DAEMONS, "cli/commands.h", "cli/terminal/", "cli/client/"]),
    ("cli/", BELOW_DAEMONS),
    ("python/binding/", [*BELOW_DAEMONS, "worker/"]),
]
# A core/ directory only makes decisions, without sockets, RPC, threads, files or clocks. Atomics
# are allowed, because a reference may be released in any thread.
CORE_FORBIDDEN_OURS = ("common/net/", "common/rpc/", "launch/node/")
CORE_FORBIDDEN_SYSTEM = {
    "thread",
    "mutex",
    "shared_mutex",
    "condition_variable",
    "future",
    "chrono",
    "fstream",
    "filesystem",
    "iostream",
    "ctime",
    "random",
    "unistd.h",
    "fcntl.h",
    "poll.h",
    "pthread.h",
    "time.h",
    "signal.h",
    "sqlite3.h",
}
CORE_FORBIDDEN_PREFIXES = ("sys/", "boost/asio", "netinet/", "arpa/", "linux/")
CORE_CALLS = re.compile(
    r"\b(?:steady_now_us|wall_now_us|system_now|from_system|std::this_thread|std::chrono)\b"
)


def component_of(path):
    """Returns the component that a file belongs to: each daemon is one, any other tree is one.

    Daemons are siblings that must not include each other.
    """
    parts = path.split("/")
    return "/".join(parts[:2]) + "/" if parts[0] == "daemons" else parts[0] + "/"


def check_include(path, kind, target, is_core):
    ours = kind == '"' or target.split("/")[0] in FLOORS
    may_have_asio = path.startswith("common/net/") or path == "bench/net_bench.cc"
    if target.startswith("boost/asio") and not may_have_asio:
        return "Asio belongs to common/net"
    if is_core and target.startswith(CORE_FORBIDDEN_OURS):
        return "core/ decides, it does no I/O"
    if is_core and (target in CORE_FORBIDDEN_SYSTEM or target.startswith(CORE_FORBIDDEN_PREFIXES)):
        return "core/ has no threads, files, clocks or sockets"
    if not ours or "/" not in target:
        return None
    if target.endswith(".pb.h") and not target.startswith("common/proto/"):
        return None
    if target.startswith(component_of(path)) and path.startswith("daemons/"):
        return None
    for prefix, allowed in ALLOWED:
        if not path.startswith(prefix):
            continue
        # component_of() decides for daemons.
        own = prefix != "daemons/" and target.startswith(prefix)
        if (
            own
            or any(target.startswith(a) for a in allowed)
            or not target.startswith(tuple(f"{floor}/" for floor in FLOORS))
        ):
            return None
        return f"{prefix} may include {', '.join(allowed) or 'nothing of the project'}"
    return None


def check_file(root, file):
    path = file.relative_to(root).as_posix()
    is_core = "/core/" in path
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        reason = check_include(path, *match.groups(), is_core) if match else None
        if not reason and is_core and CORE_CALLS.search(line.split("//")[0]):
            reason = "core/ gets time and randomness as arguments"
        if reason:
            yield f"{path}:{number}: {line.strip()}: {reason}"


def violations(root):
    root = pathlib.Path(root).resolve()
    for tree in TREES:
        for pattern in SOURCES:
            for file in sorted((root / tree).rglob(pattern)):
                yield from check_file(root, file)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = list(violations(root))
    print("\n".join(found) or "include directions are right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
