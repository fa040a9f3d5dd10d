#!/usr/bin/env python3
"""Measures a head whose history has a million finished tasks.

It prints what filtered lists take over RPC, HTTP and by rayctl, how large the head is, and what the
whole trace takes. It judges nothing.

    build/env; bench/history.py [TASKS] [TASKS_OF_A_BATCH]
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

REPO = pathlib.Path(__file__).resolve().parents[1]
BIN = REPO / "build" / "bin"


def memory_mib(pid):
    """Returns the resident memory of a process, now and at its peak, in MiB."""
    lines = dict(
        line.split(":", 1)
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        if ":" in line
    )
    return [int(lines[name].split()[0]) // 1024 for name in ("VmRSS", "VmHWM")]


FILTERS = [("state", "FAILED"), ("name", "function_7"), ("task_id", "0" * 48)]


def timed(what, ask, rounds=5):
    took_ms = []
    for _ in range(rounds):
        begin = time.perf_counter()
        found = ask()
        took_ms.append(1000 * (time.perf_counter() - begin))
    print(
        f"{what:<44} {found:>9}: {statistics.median(took_ms):>8.1f} ms median of {rounds}, "
        f"{max(took_ms):.1f} ms worst",
        flush=True,
    )


def over_http(address, path, token, query):
    request = urllib.request.Request(
        f"http://{address}{path}?{urllib.parse.urlencode(query)}",
        headers={"Authorization": f"Bearer {token}"},
    )
    return urllib.request.urlopen(request)


def lists(dashboard, token, env):
    for key, value in FILTERS:
        query = [("filter_keys", key), ("filter_predicates", "="), ("filter_values", value)]

        def http():
            with over_http(dashboard, "/api/v0/tasks", token, query) as answer:
                return json.load(answer)["data"]["result"]["num_filtered"]

        def rayctl():
            done = subprocess.run(
                [BIN / "rayctl", "list", "tasks", "--format=json", "--filter", f"{key}={value}"],
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            return len(json.loads(done.stdout))

        timed(f"HTTP: {key}={value[:12]}", http)
        timed(f"rayctl: {key}={value[:12]} (rows)", rayctl)


def traces(dashboard, token, env, scratch):
    def http():
        size = 0
        with over_http(dashboard, "/api/v0/tasks/timeline", token, {}) as answer:
            while piece := answer.read(1 << 20):
                size += len(piece)
        return size

    def rayctl():
        subprocess.run(
            [BIN / "rayctl", "timeline", "--output", f"{scratch}/trace.json"],
            env=env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return os.path.getsize(f"{scratch}/trace.json")

    timed("the trace over HTTP (bytes)", http, 1)
    timed("rayctl timeline (bytes)", rayctl, 1)


def main():
    tasks, batch = (sys.argv[1:] + ["1000000", "2000"][len(sys.argv) - 1 :])[:2]
    with tempfile.TemporaryDirectory(prefix="rt-history-") as scratch:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "HOME": scratch,
            "RAY_TMPDIR": f"{scratch}/ray",
            "RAY_NODE_IP_ADDRESS": "127.0.0.1",
        }
        settings = json.dumps({"task_events_max_bytes": 1 << 30})
        started = subprocess.run(
            [
                BIN / "rayctl",
                "start",
                "--head",
                "--port=0",
                "--num-cpus=1",
                "--dashboard-port=0",
                "--object-store-memory=80000000",
                "--system-config",
                settings,
            ],
            env=env,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        try:
            [record] = pathlib.Path(f"{scratch}/ray").glob("session_2*/node_*.json")
            [head] = [
                process["pid"]
                for process in json.loads(record.read_text())["processes"]
                if process["name"] == "ray-head"
            ]
            address = pathlib.Path(f"{scratch}/ray/ray_current_cluster").read_text().split()[0]
            dashboard = next(
                word[7:].split("/")[0] for word in started.split() if word.startswith("http://")
            )
            token = pathlib.Path(f"{scratch}/.ray/auth_token").read_text().strip()
            print("ray-head: {} MiB (most {} MiB) before".format(*memory_mib(head)), flush=True)
            subprocess.run([BIN / "history_bench", address, tasks, batch], env=env, check=True)
            print("ray-head: {} MiB (most {} MiB) after".format(*memory_mib(head)), flush=True)
            lists(dashboard, token, env)
            print(
                "ray-head: {} MiB (most {} MiB) after lists over HTTP".format(*memory_mib(head)),
                flush=True,
            )
            traces(dashboard, token, env, scratch)
            print(
                "ray-head: {} MiB (most {} MiB) after the traces".format(*memory_mib(head)),
                flush=True,
            )
            history = sum(
                path.stat().st_size
                for path in pathlib.Path(f"{scratch}/ray").glob("session_2*/history*")
            )
            print(f"history on disk: {history >> 20} MiB")
        finally:
            subprocess.run(
                [BIN / "rayctl", "stop", "--force"], env=env, check=False, stdout=subprocess.DEVNULL
            )


if __name__ == "__main__":
    main()
