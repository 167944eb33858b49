"""The forecasts of a report: from several places of the held-out part, with noise that fits what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.inference import BandCalibration, FilterDiedError, Forecast, rbpf
from palrnn.inference.calibration import spaced
from palrnn.invariants import Scorecard
from palrnn.model import PALRNN
from palrnn.report.view import Fan
from palrnn.runs.bars import kept_ensemble

if TYPE_CHECKING:
    from palrnn.runs.reconstruction import Reconstruction

LEVELS = (0.5, 0.9)
_SEEN, _AHEAD, _LEAST, _MOST = 60, 300, 50, 500
_ORIGINS, _PATHS, _PARTICLES = 6, 200, 32
# forecasts behind the width of the bands
_BEHIND = 12
# Lyapunov times to look ahead
_TIMES = 4.0
# deviations, in standardised units, among which noise is chosen; gates as hard as the model was trained with
_NOISES, _GATE = (0.003, 0.01, 0.03, 0.1, 0.3), 0.01


def fan(run: Reconstruction, card: Scorecard | None) -> Fan | str:
    """Return forecasts of held-out stretches, or words on why there are none.

    Each follows 60 rows that are filtered, and looks four Lyapunov times ahead where there is a positive
    exponent. They are of the second half of the held-out part. The first half says how wide their bands have
    to be (`BandCalibration`), if a forecast fits into it; a model without noise gets the process and
    observation noise, out of a few, under which the first rows are most likely. Nothing that comes after has
    a say in it. Paths are of the ensemble that the folder of the run keeps, if there is one.
    """
    ahead = min(_steps(run, card), len(run.held) // 2)
    seen = min(_SEEN, len(run.held) - ahead)
    half = len(run.held) // 2
    cut = half if half >= seen + ahead else 0
    begins = cut + spaced(run.held[cut:], seen + ahead, _ORIGINS)
    if not len(begins) or seen < 2:
        return f"of {len(run.held)} held-out rows none without gaps has {seen + ahead} after it"
    earlier = spaced(run.held[:cut], seen + ahead, _BEHIND)
    first = int(earlier[0] if len(earlier) else begins[0])
    model, noise = run, "that of the model itself"
    if not isinstance(run.model, PALRNN):
        chosen = likeliest_noise(run, slice(first, first + seen))
        if chosen is None:
            return "the filter loses the model on the rows before, whatever the noise"
        # a first row is a measurement of its state
        model = run.with_noise(chosen[0], chosen[1], _GATE, max(chosen))
        levels = f"process {chosen[0]:g} and observation {chosen[1]:g} deviations"
        noise = f"{levels}, the likeliest for the rows seen"
    kept = kept_ensemble(run)
    found, behind = (
        [
            each
            for each in (_one(model, int(begin), seen, ahead, kept) for begin in places)
            if each is not None
        ]
        for places in (begins, earlier)
    )
    if not found:
        return "the filter loses the model on the rows before"
    if behind:
        widths = BandCalibration.fit((forecast, truth) for _, truth, forecast in behind)
        found = [(past, truth, widths(forecast)) for past, truth, forecast in found]
        low, high = widths.factors.min(), widths.factors.max()
        noise += (
            f"; the first half of the held-out rows says that bands must be {low:.2g} to {high:.2g} times as "
            "wide, and so they are"
        )
    held = {
        level: float(np.nanmean([forecast.coverage(truth, level) for _, truth, forecast in found]))
        for level in LEVELS
    }
    past, truth, forecast = found[0]
    return Fan(past, truth, forecast, held, len(found), noise)


def likeliest_noise(run: Reconstruction, rows: slice) -> tuple[float, float] | None:
    """Return the process and observation noise with the largest evidence on some held-out ``rows``.

    One is changed at a time, to its neighbours, until nothing is gained; None if the filter dies everywhere.
    """
    known: dict[tuple[int, int], float] = {}

    def evidence(at: tuple[int, int]) -> float:
        if at not in known:
            known[at] = _evidence(run, rows, *(_NOISES[i] for i in at))
        return known[at]

    best = (len(_NOISES) // 2,) * 2
    while True:
        near = [(best[0] + i, best[1] + j) for i, j in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))]
        near = [at for at in near if all(0 <= i < len(_NOISES) for i in at)]
        better = max(near, key=evidence)
        if evidence(better) <= evidence(best):
            return None if evidence(best) == -np.inf else (_NOISES[best[0]], _NOISES[best[1]])
        best = better


def _evidence(run: Reconstruction, rows: slice, process: float, observation: float) -> float:
    model = run.with_noise(process, observation, _GATE, max(process, observation)).probabilistic
    inputs = None if run.s is None else run.s[rows]
    try:
        found = rbpf(model, run.x[rows], particles=_PARTICLES, target="exact", inputs=inputs)
    except FilterDiedError:
        return -np.inf
    return found.log_evidence


def _steps(run: Reconstruction, card: Scorecard | None) -> int:
    known = None if card is None else card.lyapunov
    if known is None and card is not None and card.hard.lyapunov is not None:
        known = card.hard.lyapunov.largest
    if known is None or not known > 0:
        return _AHEAD
    return int(np.clip(_TIMES / (known * (run.dt or 1.0)), _LEAST, _MOST))


def _one(
    run: Reconstruction, begin: int, seen: int, ahead: int, posterior: Any
) -> tuple[Floats, Floats, Forecast] | None:
    end = begin + seen
    past, truth = run.held[begin:end], run.held[end : end + ahead]
    inputs = None if run.inputs is None else run.inputs[begin : end + ahead]
    how: dict[str, Any] = {"paths": _PATHS, "particles": _PARTICLES, "inputs": inputs}
    how |= {"posterior": posterior}
    try:
        return past, truth, run.forecast(past, ahead, **how)
    except FilterDiedError:
        return None
