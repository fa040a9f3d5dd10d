"""How the driver prints workers' lines, tested without a cluster."""

import io
import sys

import pytest

from ray._private.log_print import Deduplicator, LogLine, LogPrinter


def line(text, pid, name="f", stderr=False):
    return LogLine(name, "127.0.0.1", text, pid, stderr, False)


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


def test_allowed_and_skipped():
    dedup = Deduplicator(5, "^progress", "^noise")
    assert dedup.feed(line("noise 1", 1), 0.0) == []
    for pid in (1, 2):
        assert dedup.feed(line("progress 1", pid), 0.0) == [(line("progress 1", pid), "")]


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
