"""Who hears about progress: the caller's function, a terminal, a log, or nobody."""

from __future__ import annotations

import io
import sys
import time

import pytest

from palrnn.engine.progress import lines, listening, quiet


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_callers_function_hears_every_report():
    heard = []
    with listening(lambda *report: heard.append(report), "training") as report:
        report(1, 2, {"loss": 0.5})
        report(2, 2, {})
    assert heard == [(1, 2, {"loss": 0.5}), (2, 2, {})]


def test_without_a_terminal_nothing_is_printed(capsys):
    with listening(None, "training") as report:
        assert report is quiet
        report(1, 2, {"loss": 0.5})
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_bar_shows_the_count_and_the_figures(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with listening(None, "training") as report:
        report(1, 4, {"loss": 0.125})
        report(4, 4, {"loss": 0.0625})
    shown = terminal.getvalue()
    assert "training" in shown
    assert "4/4" in shown
    assert "loss 0.0625" in shown


def test_lines_come_at_once_then_rarely_then_at_the_end(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    report = lines("training", seconds=20.0)
    for done, elapsed in ((0, 0), (1, 10), (2, 30), (3, 31), (4, 32)):
        now[0] = 100.0 + elapsed
        report(done, 4, {"loss": 0.5})
    assert capsys.readouterr().err.splitlines() == [
        "training 0/4 loss 0.5",
        "training 2/4 loss 0.5 (30 s left)",
        "training 4/4 loss 0.5",
    ]


def test_the_first_line_comes_on_a_machine_that_was_just_started(capsys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    lines("x")(1, 10, {})
    assert capsys.readouterr().err == "x 1/10 (0 s left)\n"


def test_an_error_in_the_work_passes_through_the_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ArithmeticError), listening(None, "training"):
        raise ArithmeticError
