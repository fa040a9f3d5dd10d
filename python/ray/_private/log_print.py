"""Workers' output on the driver's terminal: prefix, colours and deduplication of lines."""

from __future__ import annotations

import collections
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
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
# Hexadecimal numbers come first, as the "0" of "0x" is a number, too.
_NUMBERS = re.compile(r"(0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)")


def _shown(text: str) -> str:
    """Escapes control characters, as names of tasks, nodes or resources may contain them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


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


# A line to print. `notice` is 0 for output, 1 for a notice and 2 for an error of this process.
LogLine = collections.namedtuple("LogLine", ("name", "ip", "text", "pid", "is_stderr", "notice"))


class _Repeated:
    """Equal lines of one window: who printed them, and what is held back."""

    def __init__(self, line: LogLine, now: float):
        # Processes of several nodes may have the same pid.
        self.processes = {(line.ip, line.pid)}
        # When one of these lines was last printed at once.
        self.printed_s = now
        # The number of lines that are held back.
        self.held = 0
        # The last of the lines that are held back.
        self.last: LogLine | None = None


class Deduplicator:
    """Suppresses lines that several processes print within a window.

    Lines count as equal when they differ only in numbers, decimal or hexadecimal (0xab). The first
    is printed at once; when the window ends, the last one is printed with the count of those left
    out. Lines that match `allow` are printed as they come, even if they match `skip`; other lines
    that match `skip` are left out.
    """

    def __init__(
        self, window_s: float, allow: str | re.Pattern | None, skip: str | re.Pattern | None
    ):
        self.window_s = window_s
        self.allow = re.compile(allow) if allow else None
        self.skip = re.compile(skip) if skip else None
        # Maps (is stderr, text without numbers) to what is known of such lines.
        self.seen: dict[tuple[bool, str], _Repeated] = {}
        self.noticed = False

    def feed(self, line: LogLine, now: float):
        """Takes a line; returns the (line, suffix) pairs to print now."""
        text = line.text
        if self.allow and self.allow.search(text):
            return [(line, "")]
        if self.skip and self.skip.search(text):
            return []
        if not text.strip():
            return [(line, "")]
        pattern = (line.is_stderr, _NUMBERS.sub("", text))
        entry = self.seen.get(pattern)
        if entry is None or now - entry.printed_s > self.window_s:
            out = self.flush_entry(entry) if entry else []
            self.seen[pattern] = _Repeated(line, now)
            return out + [(line, "")]
        process = (line.ip, line.pid)
        if entry.processes == {process}:
            entry.printed_s = now
            # A process may repeat itself.
            return [(line, "")]
        entry.processes.add(process)
        entry.held += 1
        entry.last = line
        return []

    def flush_entry(self, entry: _Repeated):
        if not entry.held:
            return []
        if entry.held == 1:
            entry.held = 0
            return [(entry.last, "")]
        suffix = f" [repeated {entry.held}x across cluster]"
        if not self.noticed:
            self.noticed = True
            suffix += (
                " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log "
                "deduplication, or see "
                "https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#log-deduplication "
                "for more options.)"
            )
        out = [(entry.last, suffix)]
        entry.held = 0
        return out

    def seconds_until_flush(self, now: float) -> float:
        """Seconds until flush() has something to print; -1 when no line is held back."""
        ends = [entry.printed_s + self.window_s for entry in self.seen.values() if entry.held]
        return max(0.001, min(ends) - now + 0.001) if ends else -1

    def flush(self, now: float, everything: bool = False):
        out = []
        for pattern, entry in list(self.seen.items()):
            if everything or now - entry.printed_s > self.window_s:
                out += self.flush_entry(entry)
                del self.seen[pattern]
        return out


class LogPrinter:
    """Owns the thread that prints. stop() prints what has arrived and ends the thread."""

    def __init__(self, node_ip: str, prefixed: bool = True):
        self.node_ip = node_ip
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

    def prefix(self, line: LogLine) -> str:
        name, ip, pid = line.name and _shown(line.name), line.ip, line.pid
        if line.notice:
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
            out = sys.stderr if line.is_stderr else sys.stdout
            if out is None:
                continue  # The program was started without this stream.
            text = line.text + suffix + "\n"
            if self.prefixed or line.notice:
                text = self.prefix(line) + text
            try:
                try:
                    out.write(text)
                except UnicodeEncodeError:
                    # The stream has an encoding without some of the characters.
                    out.write(text.encode(out.encoding, "replace").decode(out.encoding))
                if hasattr(out, "flush"):
                    out.flush()
            # The terminal is gone, or the program closed the stream, or it put an object of its own
            # in the stream's place. That may raise anything, but must not end the printing.
            except Exception:
                pass

    def print(self, lines):
        now = time.monotonic()
        for line in map(LogLine._make, lines):
            # The task of this program has failed, and nobody holds its result any more.
            if line.notice == 2:
                import logging

                logging.getLogger("ray").error("%s", line.text)
                continue
            # The line is the state of a progress bar.
            if line.text.startswith("__ray_tqdm_magic_token__"):
                from ray.experimental.tqdm_ray import receive

                if receive(line.text):
                    continue
            self.write(
                self.dedup.feed(line, now) if self.dedup and not line.notice else [(line, "")]
            )
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
        """Waits at the end of a program for what its workers have printed."""
        _raylet.await_output()

    def stop(self):
        self.stopping = True
        _raylet.wake_log_reader()
        self.thread.join(2)
        self.print(_raylet.take_log_lines(0))
        if self.dedup:
            self.write(self.dedup.flush(time.monotonic(), everything=True))
