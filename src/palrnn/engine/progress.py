"""Progress as a small interface: work reports, the caller decides who listens.

Long work takes a ``progress`` argument:

- ``None`` (the default): a bar on the terminal, nothing if standard error is not a terminal;
- ``quiet``: nothing;
- ``lines()``: a plain line now and then, for logs;
- any callable ``progress(done, total, figures)``.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

Progress = Callable[[int, int, Mapping[str, float]], None]


def quiet(done: int, total: int, figures: Mapping[str, float]) -> None:
    """Say nothing."""


class lines:
    """Print a line to standard error at most every ``seconds``, and one at the end."""

    def __init__(self, what: str = "", seconds: float = 20.0) -> None:
        self._what, self._seconds, self._start = what, seconds, time.monotonic()
        self._last = -math.inf

    def __call__(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Hear that ``done`` of ``total`` is done."""
        now = time.monotonic()
        if done < total and now - self._last < self._seconds:
            return
        self._last = now
        words = [self._what, f"{done}/{total}", *(f"{name} {value:.4g}" for name, value in figures.items())]
        if 0 < done < total:
            words.append(f"({(now - self._start) * (total - done) / done:.0f} s left)")
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
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(what, total=None, figures="")

        def report(done: int, total: int, figures: Mapping[str, float]) -> None:
            words = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            bar.update(task, completed=done, total=total, figures=words)

        yield report
