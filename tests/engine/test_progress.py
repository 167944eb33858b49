"""Who hears about progress: the caller's function, a terminal, a log, or nobody."""

from __future__ import annotations

import io
import sys
import time

import pytest

from palrnn.engine import compile_time
from palrnn.engine.progress import TimeLeft, lines, listening, quiet


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
        "training 2/4 loss 0.5 (40 s left)",
        "training 4/4 loss 0.5",
    ]


def test_the_first_line_comes_on_a_machine_that_was_just_started(capsys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    lines("x")(1, 10, {})
    assert capsys.readouterr().err == "x 1/10\n"


def test_an_error_in_the_work_passes_through_the_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ArithmeticError), listening(None, "training"):
        raise ArithmeticError


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on; compiling takes time of it, too."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(compile_time, "_spent", 0.0)

    def wait(seconds, *, compiling=False):
        now[0] += seconds
        if compiling:
            compile_time.add(seconds)

    return wait


def test_a_first_start_that_compiles_does_not_count_into_the_time_left(clock):
    left = TimeLeft()
    clock(60.0, compiling=True)
    clock(1.0)
    assert left(100, 2000) is None  # the first report: how much of it was the start is not known
    clock(1.0)
    assert left(200, 2000) == pytest.approx(18.0)


def test_kernels_that_are_compiled_on_the_way_do_not_count_either(clock):
    left = TimeLeft()
    left(100, 2000)
    clock(1.0)
    clock(30.0, compiling=True)
    assert left(200, 2000) == pytest.approx(18.0)


def test_a_continued_run_is_timed_by_what_it_does_now(clock):
    left = TimeLeft()
    assert left(1000, 2000) is None
    clock(10.0)
    assert left(1100, 2000) == pytest.approx(90.0)
    assert left(0, 50) is None  # other work begins with the same listener
    assert left(1, 50) is None
    clock(2.0)
    assert left(2, 50) == pytest.approx(96.0)


def test_compilation_is_counted_once_where_a_kernel_calls_another(tmp_path, monkeypatch):
    from palrnn.engine import kernel_cache
    from palrnn.engine.kernel import kernel

    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path))

    @kernel
    def inner(x):
        return x + 1.0

    @kernel
    def outer(x):
        return inner(x) * 2.0

    before, begun = compile_time.spent(), time.monotonic()
    assert outer(1.0) == 4.0
    assert 0.0 < compile_time.spent() - before <= time.monotonic() - begun
    again = compile_time.spent()
    outer(2.0)
    assert compile_time.spent() == again
