"""How the driver prints workers' lines, tested without a cluster."""

import io
import sys

import pytest

from ray._private import session
from ray._private.log_print import Deduplicator, LogLine, LogPrinter


def line(text, pid, name="f", stderr=False, ip="127.0.0.1"):
    return LogLine(name, ip, text, pid, stderr, False)


def test_lines_of_other_processes_are_counted():
    dedup = Deduplicator(5, None, None)
    assert dedup.feed(line("step 1 of 10", 1), 0.0) == [(line("step 1 of 10", 1), "")]
    assert dedup.feed(line("step 2 of 10", 2), 0.1) == []
    assert dedup.feed(line("step 3 of 10", 3), 0.2) == []
    assert dedup.flush(1.0) == []
    ((printed, suffix),) = dedup.flush(6.0)
    assert (
        printed == line("step 3 of 10", 3)
        and suffix.startswith(" [repeated 2x across cluster]")
        and "RAY_DEDUP_LOGS=0" in suffix
    )


def test_one_process_may_repeat_itself():
    dedup = Deduplicator(5, None, None)
    for i in range(5):
        assert dedup.feed(line("same", 1), i * 0.1) == [(line("same", 1), "")]


def test_processes_of_two_nodes_may_have_one_pid():
    dedup = Deduplicator(5, None, None)
    assert dedup.feed(line("same", 1), 0.0) and not dedup.feed(line("same", 1, ip="10.0.0.2"), 0.1)


@pytest.mark.parametrize(
    "first, second, are_equal",
    [
        ("obj at 0xab12cd", "obj at 0xff12ee", True),
        ("took 1.5e-3 s", "took 20 s", True),
        ("obj at ab", "obj at cd", False),
    ],
)
def test_lines_that_differ_in_numbers_are_equal(first, second, are_equal):
    dedup = Deduplicator(5, None, None)
    dedup.feed(line(first, 1), 0.0)
    assert (dedup.feed(line(second, 2), 0.1) == []) == are_equal


def test_allowed_and_skipped():
    dedup = Deduplicator(5, "^progress", "^noise|2$")
    assert dedup.feed(line("noise 1", 1), 0.0) == []
    for text in ("progress 1", "progress 2"):
        for pid in (1, 2):
            assert dedup.feed(line(text, pid), 0.0) == [(line(text, pid), "")]


def test_when_counted_lines_are_due():
    dedup = Deduplicator(5, None, None)
    assert dedup.seconds_until_flush(0.0) == -1
    dedup.feed(line("step 1", 1), 0.0)
    assert dedup.seconds_until_flush(1.0) == -1, "nothing was kept back"
    dedup.feed(line("step 2", 2), 1.0)
    wait = dedup.seconds_until_flush(2.0)
    assert 3 <= wait < 3.1 and dedup.flush(2.0 + wait)
    assert dedup.seconds_until_flush(6.0) == -1


@pytest.mark.parametrize("encoding, shown", [("latin-1", "caf\xe9 ?"), ("ascii", "caf? ?")])
def test_a_line_that_the_stream_cannot_encode_is_printed(monkeypatch, encoding, shown):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    printer = LogPrinter.__new__(LogPrinter)
    printer.prefixed = False
    printer.write([(line("caf\xe9 \u2713", 1), "")])
    assert written.getvalue().decode(encoding) == shown + "\n"


class Replaced:
    """A program may put such an object in the place of sys.stdout; it only collects lines."""

    def __init__(self, failure=None):
        self.written, self.failure = [], failure

    def write(self, text):
        self.written.append(text)
        if self.failure:
            raise self.failure


@pytest.mark.parametrize("failure", [None, RuntimeError("broken"), AttributeError("broken")])
def test_a_stream_of_the_program_does_not_end_the_printing(monkeypatch, failure):
    stream = Replaced(failure)
    monkeypatch.setattr(sys, "stdout", stream)
    printer = LogPrinter.__new__(LogPrinter)
    printer.prefixed = False
    printer.write([(line("one", 1), ""), (line("two", 1), "")])
    assert stream.written == ["one\n", "two\n"]


def test_shutdown_stops_the_cluster_when_printing_fails(monkeypatch):
    class Printer:
        def stop(self):
            raise ArithmeticError

    stopped = []
    monkeypatch.setattr(session.global_worker, "log_printer", Printer())
    monkeypatch.setattr(session.global_worker, "stop_node", stopped.append)
    with pytest.raises(ArithmeticError):
        session.shutdown()
    assert stopped == [False] and session.global_worker.log_printer is None
