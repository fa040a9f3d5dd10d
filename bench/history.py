#!/usr/bin/env python3
"""A million finished tasks in the head's history: what filtered lists take, and how large the head is. Prints; decides nothing.

    build/env; bench/history.py [TASKS] [TASKS_OF_A_BATCH]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[1]
BIN = REPO / "build" / "bin"


def memory_mib(pid):
    """What this process alone holds, and the most it ever held."""
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return [int(lines[name].split()[0]) // 1024 for name in ("VmRSS", "VmHWM")]


def main():
    tasks, batch = (sys.argv[1:] + ["1000000", "2000"][len(sys.argv) - 1:])[:2]
    with tempfile.TemporaryDirectory(prefix="rt-history-") as scratch:
        env = {**{name: value for name, value in os.environ.items() if not name.startswith("RAY_")}, "HOME": scratch, "RAY_TMPDIR": f"{scratch}/ray", "RAY_NODE_IP_ADDRESS": "127.0.0.1"}
        settings = json.dumps({"task_events_max_bytes": 1 << 30})
        subprocess.run([BIN / "rayctl", "start", "--head", "--port=0", "--num-cpus=1", "--dashboard-port=0", "--object-store-memory=80000000", "--system-config", settings],
                       env=env, check=True, stdout=subprocess.DEVNULL)
        try:
            [record] = pathlib.Path(f"{scratch}/ray").glob("session_2*/node_*.json")
            [head] = [process["pid"] for process in json.loads(record.read_text())["processes"] if process["name"] == "ray-head"]
            address = pathlib.Path(f"{scratch}/ray/ray_current_cluster").read_text().split()[0]
            print("ray-head: {} MiB (most {} MiB) before".format(*memory_mib(head)), flush=True)
            subprocess.run([BIN / "history_bench", address, tasks, batch], env=env, check=True)
            print("ray-head: {} MiB (most {} MiB) after".format(*memory_mib(head)))
            history = sum(path.stat().st_size for path in pathlib.Path(f"{scratch}/ray").glob("session_2*/history*"))
            print(f"history on disk: {history >> 20} MiB")
        finally:
            subprocess.run([BIN / "rayctl", "stop", "--force"], env=env, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
