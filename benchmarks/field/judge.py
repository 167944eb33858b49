"""One judge for every method: does the free run live, is it the same attractor, are the exponents right?

A method hands over a `Surrogate`, or anything that `palrnn.viability` can run, and its exponents. It is
judged against later stretches of the truth: from ten starts 100,000 steps (`viability`), D_stsp and D_H of
20,000 steps each, and exponents along 50,000 steps. *Good* is: all ten move on, the median D_stsp is within
0.5 nats of its floor, and the largest exponent within 15 %. As in palrnn's verdict, a cycle is no end where
it is the truth's own, and a run of length T cannot tell an exponent below 1 / T from none. That verdict asks
for more: D_H, too, within 0.1 of its floor, and, where no true exponent is known, a positive one unless the
data repeat themselves. It asks for less where stretches of the truth differ much (D_stsp and D_H up to the
largest distance of two) and where exponents have large errors. The definition here is that of the tables.

Exponents are told twice: those of the map, and those that a score card has, which are of the flow that it
samples (`palrnn.lyapunov_spectrum`, ``flow=True``) where samples are fine enough to tell the path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from palrnn.data import Standardizer
from palrnn.invariants import (
    dstsp,
    kaplan_yorke_dimension,
    lyapunov_spectrum,
    samples_flow,
    spectrum_distance,
    spread_starts,
    viability,
)
from palrnn.invariants.verdict import ended_fates
from palrnn.model import Surrogate
from palrnn.model.engine import advance

from .systems import Flow

STARTS, LONG, DISCARD = 10, 100_000, 1000
GOOD_EXCESS, GOOD_EXPONENT, EXPONENT_STEPS = 0.5, 0.15, 50_000


def scored(
    model: Surrogate,
    scale: Standardizer,
    starts: np.ndarray,
    stretches: Sequence[np.ndarray],
    delay: int | None = None,
) -> dict[str, Any]:
    """Return D_stsp and D_H of free runs from ``starts`` against the first of ``stretches`` of the truth.

    The floors are what the other stretches score. A truth in fewer columns than the model has is that of the
    first; ``delay`` is for one column.
    """
    truth, *others = stretches
    runs = advance(model, model.embed(starts), DISCARD + len(truth))[DISCARD:, :, : model.observed_dim]
    states, spectra = [], []
    for run in runs.swapaxes(0, 1):
        whole = np.isfinite(run).all() and np.abs(run).max() < 1e6
        raw = scale.inverse(run)[:, : truth.shape[1]] if whole else None
        moves = raw is not None and (raw.std(axis=0) > 0).all()
        states.append(dstsp(raw, truth, delay=delay).value if moves else np.inf)
        spectra.append(spectrum_distance(raw, truth) if moves else 1.0)
    return {
        "dstsp": float(np.median(states)),
        "dstsp_range": [float(np.min(states)), float(np.max(states))],
        "floor": float(np.median([dstsp(each, truth, delay=delay).value for each in others])),
        "spectrum_distance": float(np.median(spectra)),
        "spectrum_floor": float(np.median([spectrum_distance(each, truth) for each in others])),
    }


def exponents_of(model: Surrogate, flow: Flow) -> Callable[[np.ndarray, bool], np.ndarray]:
    """Return what gives as many exponents of a surrogate as ``flow`` has, for `judged`."""

    def exponents(start: np.ndarray, flowing: bool) -> np.ndarray:
        how = {"steps": EXPONENT_STEPS, "dt": flow.dt, "k": flow.rows.shape[1], "flow": flowing}
        return lyapunov_spectrum(model, start, **how).exponents

    return exponents


def judged(
    model: Surrogate, scale: Standardizer, flow: Flow, exponents: Callable[[np.ndarray, bool], np.ndarray]
) -> dict[str, Any]:
    """Return what becomes of a model of ``flow`` in the coordinates of ``scale``, in plain values.

    ``exponents`` gives those of the model from a start, per unit of time: of the map, or of the flow.
    """
    truth = flow.stretches[0]
    starts = spread_starts(scale.transform(truth), STARTS)
    life = viability(model, starts, LONG, data=scale.transform(flow.rows))
    true = flow.spectrum.exponents
    stays, nothing = life.counts.get("diverges", 0) == 0, np.full(len(true), np.nan)
    own = exponents(starts[0], False) if stays else nothing
    card = exponents(starts[0], True) if stays and samples_flow(model, flow.rows, starts[0]) else own
    scores = scored(model, scale, starts, flow.stretches)
    found = {
        "fates": life.counts,
        "alive": not ended_fates(life, scores["dstsp"] - scores["floor"], scale.transform(flow.rows)),
        **scores,
        "exponents": own.tolist(),
        "card_exponents": card.tolist(),
        "true_exponents": true.tolist(),
        "exponent_error": float(abs((own[0] - true[0]) / true[0])),
        "card_exponent_error": float(abs((card[0] - true[0]) / true[0])),
        "all_exponents_error": float(np.abs(own - true).max() / np.abs(true).max()),
        "kaplan_yorke": _dimension(own),
        "true_kaplan_yorke": flow.spectrum.kaplan_yorke,
    }
    enough = max(GOOD_EXPONENT * abs(true[0]), 1.0 / (EXPONENT_STEPS * flow.dt))
    near = found["alive"] and found["dstsp"] <= found["floor"] + GOOD_EXCESS
    for of, values in (("", own), ("card_", card)):
        found[f"{of}exponent_right"] = bool(abs(values[0] - true[0]) <= enough)  # NaN is not
        found[f"{of}good"] = bool(near and found[f"{of}exponent_right"])
    return found


def _dimension(exponents: np.ndarray) -> float | None:
    if not np.isfinite(exponents).all():
        return None
    return kaplan_yorke_dimension(exponents, len(exponents))
