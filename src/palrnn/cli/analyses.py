"""What `palrnn demo` and `palrnn report` share: the analyses of a run, one after the other, announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palrnn.cli.app import Voice

if TYPE_CHECKING:
    from palrnn.report.view import Run
    from palrnn.runs import Reconstruction, ReportSettings

_WORDS = {
    "invariants": "the invariants of a free run",
    "diagnostics": "filter and smoother over the gates",
    "geometry": "the two geometries",
    "tuning": "calibration and full tuning by evidence",
}


def report_view(result: Reconstruction, settings: ReportSettings, voice: Voice, *, tune: bool = True) -> Run:
    """Return all that the report shows of ``result``; what its folder holds already takes no time."""

    def announce(name: str) -> None:
        voice.say(f"{result.name}: {_WORDS.get(name, name)}")

    without = () if tune else ("tuning",)
    return result.view(settings, progress=voice.progress("tuning"), announce=announce, without=without)
