"""What `palrnn demo` and `palrnn report` share: the analyses of a run, one after the other, announced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from palrnn.cli.app import Voice

if TYPE_CHECKING:
    from palrnn.report.findings import Run
    from palrnn.runs import Reconstruction, ReportSettings


def analysed(result: Reconstruction, settings: ReportSettings, voice: Voice, *, tune: bool = True) -> Run:
    """Return all that the report shows of ``result``; what its folder holds already takes no time."""
    steps: list[tuple[str, Callable[[], object]]] = [
        ("the invariants of a free run", lambda: result.invariants(settings.judge)),
        ("filter and smoother over the gates", lambda: result.filtering(settings.filter)),
        ("the two geometries", lambda: result.geometry(settings.geometry)),
    ]
    if tune:
        listener = voice.progress("tuning")
        words = "calibration and full tuning by evidence"
        steps.append((words, lambda: result.tuning(settings.tune, progress=listener)))
    for number, (words, work) in enumerate(steps, start=1):
        voice.say(f"analysis {number} of {len(steps)}: {words}")
        work()
    return result.findings(settings, tune=tune)
