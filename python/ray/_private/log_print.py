"""Workers' output on the driver's terminal: prefix, colours and deduplication of lines."""

from __future__ import annotations

import os
import re
import sys
import time

from ray import _raylet
from ray._private import service_thread
from ray._private.environment import number_from_environment

_CYAN, _RESET = "\x1b[36m", "\x1b[0m"
_COLORS = (
    "\x1b[32m",
    "\x1b[33m",
    "\x1b[34m",
    "\x1b[35m",
    "\x1b[36m",
    "\x1b[91m",
    "\x1b[92m",
    "\x1b[93m",
)
_SETTLE_S = 0.15  # Seconds; three batches of log_batch_interval_ms.
# A worker's markers (worker_main.MarkedStream), which it also writes without output.
_MARKERS = (b":job_id:", b":task_name:", b":actor_name:", b":task_id:")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_NUMBERS = re.compile(r"(\d+\.?\d*(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+)")


def _shown(text: str) -> str:
    """Escapes control characters, as names of tasks, nodes or resources may contain them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def _holds_output(log: os.DirEntry) -> bool:
    if not 0 < (size := log.stat().st_size) <= 4096:
        return size > 0
    with open(log.path, "rb") as file:
        return any(not line.startswith(_MARKERS) for line in file)


def has_output_since(log_dir: str, since: float) -> bool:
    """Whether a worker of this machine has written output since a time (seconds, epoch)."""
    try:
        return any(
            entry.name.startswith("worker-")
            and entry.name.endswith((".out", ".err"))
            and entry.stat().st_mtime > since
            and _holds_output(entry)
            for entry in os.scandir(log_dir)
        )
    except OSError:
        return False


def _flag(name: str, default: bool) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() not in ("0", "false", "")


def _regex(name: str) -> re.Pattern | None:
    text = os.environ.get(name)
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ValueError(
            f"{name} is {text!r}, which is not a valid regular expression: {error}"
        ) from None


class Deduplicator:
    """Suppresses lines that several processes print within a window.

    Lines count as equal when they differ only in numbers. The first is printed at once; when the
    window ends, the last one is printed with the count of those left out.
    """

    def __init__(
        self, window_s: float, allow: str | re.Pattern | None, skip: str | re.Pattern | None
    ):
        self.window_s = window_s
        self.allow = re.compile(allow) if allow else None
        self.skip = re.compile(skip) if skip else None
        # (is stderr, text without numbers) -> [pids, time when a line was last printed at once,
        # number of lines held back, the last of them]
        self.seen: dict = {}
        self.noticed = False

    def feed(self, line, now: float):
        """Takes a line; returns the (line, suffix) pairs to print now."""
        text = line[2]
        if self.skip and self.skip.search(text):
            return []
        if (self.allow and self.allow.search(text)) or not text.strip():
            return [(line, "")]
        pattern = (line[4], _NUMBERS.sub("", text))
        entry = self.seen.get(pattern)
        if entry is None or now - entry[1] > self.window_s:
            out = self.flush_entry(entry) if entry else []
            self.seen[pattern] = [{line[3]}, now, 0, None]
            return out + [(line, "")]
        if entry[0] == {line[3]}:
            entry[1] = now
            return [(line, "")]  # A process may repeat itself.
        entry[0].add(line[3])
        entry[2] += 1
        entry[3] = line
        return []

    def flush_entry(self, entry):
        if not entry[2]:
            return []
        if entry[2] == 1:
            entry[2] = 0
            return [(entry[3], "")]
        suffix = f" [repeated {entry[2]}x across cluster]"
        if not self.noticed:
            self.noticed = True
            suffix += (
                " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log "
                "deduplication, or see "
                "https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#log-deduplication "
                "for more options.)"
            )
        out = [(entry[3], suffix)]
        entry[2] = 0
        return out

    def seconds_until_flush(self, now: float) -> float:
        """Seconds until flush() has something to print; -1 when no line is held back."""
        ends = [entry[1] + self.window_s for entry in self.seen.values() if entry[2]]
        return max(0.001, min(ends) - now + 0.001) if ends else -1

    def flush(self, now: float, everything: bool = False):
        out = []
        for pattern, entry in list(self.seen.items()):
            if everything or now - entry[1] > self.window_s:
                out += self.flush_entry(entry)
                del self.seen[pattern]
        return out


class LogPrinter:
    """Owns the thread that prints. stop() prints what has arrived and ends the thread."""

    def __init__(self, node_ip: str, session_dir: str, prefixed: bool = True):
        self.node_ip = node_ip
        self.log_dir = os.path.join(session_dir, "logs")
        self.color = os.environ.get("RAY_COLOR_PREFIX", "")
        self.prefixed = prefixed and not _flag("RAY_DISABLE_WORKER_LOG_PREFIX", False)
        self.dedup = None
        if _flag("RAY_DEDUP_LOGS", True):
            self.dedup = Deduplicator(
                number_from_environment("RAY_DEDUP_LOGS_AGG_WINDOW_S", float, 5.0),
                _regex("RAY_DEDUP_LOGS_ALLOW_REGEX"),
                _regex("RAY_DEDUP_LOGS_SKIP_REGEX"),
            )
        self.stopping = False
        self.thread = service_thread.start(self.run, "ray-print-logs")

    def prefix(self, line) -> str:
        name, ip, _, pid, _, notice = line
        name = name and _shown(name)
        if notice:
            text, color = f"({name or 'raylet'})", _CYAN
        else:
            where = f"pid={pid}" + (f", ip={ip}" if ip and ip != self.node_ip else "")
            text = f"({name} {where})" if name else f"({where})"
            color = _COLORS[pid % len(_COLORS)] if self.color == "1" else _CYAN
        if self.color == "0":
            return text + " "
        return f"{color}{text}{_RESET} "

    def write(self, items):
        for line, suffix in items:
            out = sys.stderr if line[4] else sys.stdout
            if out is None:
                continue  # The program was started without this stream.
            text = line[2] + suffix + "\n"
            try:
                out.write(self.prefix(line) + text if self.prefixed or line[5] else text)
                out.flush()
            except (OSError, ValueError):
                pass  # The terminal is gone, or the program closed the stream.

    def print(self, lines):
        now = time.monotonic()
        for line in lines:
            # The task of this program has failed, and nobody holds its result any more.
            if line[5] == 2:
                import logging

                logging.getLogger("ray").error("%s", line[2])
                continue
            # The line is the state of a progress bar.
            if line[2].startswith("__ray_tqdm_magic_token__"):
                from ray.experimental.tqdm_ray import receive

                if receive(line[2]):
                    continue
            self.write(self.dedup.feed(line, now) if self.dedup and not line[5] else [(line, "")])
        if self.dedup:
            self.write(self.dedup.flush(now))

    def run(self):
        while not self.stopping:
            self.print(
                _raylet.take_log_lines(
                    self.dedup.seconds_until_flush(time.monotonic()) if self.dedup else -1
                )
            )

    def settle(self):
        """Waits at the end of a program for output that was written a moment ago.

        Node-managers send output in batches. Programs whose workers print nothing do not wait.
        """
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline and has_output_since(
            self.log_dir, time.time() - _SETTLE_S
        ):
            time.sleep(0.01)

    def stop(self):
        self.stopping = True
        _raylet.wake_log_reader()
        self.thread.join(2)
        self.print(_raylet.take_log_lines(0))
        if self.dedup:
            self.write(self.dedup.flush(time.monotonic(), everything=True))
