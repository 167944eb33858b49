"""Progress as a small interface: work reports, the caller decides who listens.

Long work takes a ``progress`` argument:

- ``None`` (the default): a bar on the terminal, nothing if standard error is not a terminal;
- ``quiet``: nothing;
- ``lines()``: a plain line now and then, for logs;
- any callable ``progress(done, total, figures)``.

The time that is left is told from the speed since the first report of something done, without what was spent
compiling kernels (`compile_time`): a first start takes longer than what follows, and a continued run has not
done all of its steps now.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import IO

from palrnn.engine import compile_time

Progress = Callable[[int, int, Mapping[str, float]], None]


def quiet(done: int, total: int, figures: Mapping[str, float]) -> None:
    """Say nothing."""


class TimeLeft:
    """Tells how long work will go on, from its reports."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int) -> float | None:
        """Return the seconds left now that ``done`` of ``total`` is done, or None if that cannot be told."""
        now = time.monotonic() - compile_time.spent()
        if self._first is None or done < self._first[0]:
            self._first = (done, now) if done > 0 else None
            return None
        before, begun = self._first
        return (now - begun) * (total - done) / (done - before) if before < done else None


class lines:
    """Print a line to standard error at most every ``seconds``, and one at the end."""

    def __init__(self, what: str = "", seconds: float = 20.0) -> None:
        self._what, self._seconds, self._left = what, seconds, TimeLeft()
        self._last = -math.inf

    def __call__(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Hear that ``done`` of ``total`` is done."""
        now, left = time.monotonic(), self._left(done, total)
        if done < total and now - self._last < self._seconds:
            return
        self._last = now
        words = [self._what, f"{done}/{total}", *(f"{name} {value:.4g}" for name, value in figures.items())]
        if left is not None and done < total:
            words.append(f"({left:.0f} s left)")
        _say(" ".join(word for word in words if word))


def _say(words: str) -> None:
    """Print a line to standard error as far as it goes: work is not lost because nobody listens."""
    stream = sys.stderr
    if stream is not None:
        encoding = getattr(stream, "encoding", None) or "ascii"
        with contextlib.suppress(OSError, ValueError):  # closed, or a pipe that nobody reads any more
            print(words.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether somebody may be looking at ``stream``, which is None or closed where it was closed."""
    return stream is not None and not stream.closed and stream.isatty()


@contextmanager
def listening(progress: Progress | None, what: str) -> Iterator[Progress]:
    """Yield the callable that work reports to, with a terminal bar where ``progress`` is None."""
    if progress is not None:
        yield progress
    elif is_terminal(sys.stderr):
        with _bar(what) as report:
            yield report
    else:
        yield quiet


@contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=False) as bar:
        task, time_left = bar.add_task(what, total=None, figures="", left=""), TimeLeft()

        def report(done: int, total: int, figures: Mapping[str, float]) -> None:
            words = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            left = time_left(done, total)
            told = "" if left is None or done >= total else f"{timedelta(seconds=round(left))} left"
            bar.update(task, completed=done, total=total, figures=words, left=told)

        yield report
