"""What tuning changes, by way, start and window length: medians over models, and counts beyond the spread.

D_stsp of a model is a range over starts. One model is nearer to the true system than another if its whole
range lies below the other's; anything else may be chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.paper.claim import OPEN, Listing

if TYPE_CHECKING:
    from pandas import DataFrame

#: nats: the models of teacher forcing that keep their attractor have about 2
LOST = 5.0
_MODEL, _START = ["process_std", "observation_std"], ["start_process_std", "start_gate_std"]


def ways_listing(noise: DataFrame, exponent: float, words: str) -> Listing:
    """Return one row per way and start: medians over models and lengths, and how often it is on the front."""
    on_front = np.zeros(len(noise), dtype=bool)
    for _, part in noise.groupby([*_MODEL, "length"]):
        on_front[part.index] = front(part["evidence"].to_numpy(), part["dstsp_median"].to_numpy())
    rows = []
    for (way, process, gate), part in noise.groupby(["way", *_START], sort=False):
        middle = part[["evidence", "fitted_process_std"]].median()
        error = (part["lyapunov"] - exponent).median()
        cells = [f"{middle['evidence']:.3f}", _range(part), f"{error:.2f}"]
        cells += [f"{_alive(part)} of {len(part)}", f"{middle['fitted_process_std']:.3f}"]
        cells.append(f"{on_front[part.index].mean():.0%}")
        rows.append([way, f"{process:g}, {gate:g}", f"{len(part)}", *cells])
    text = (
        f"Medians over models and window lengths. D_stsp is the median over {noise['starts'].iloc[0]} "
        "starts, with lowest and highest in brackets; the Lyapunov error is that of one run, one draw: "
        "rows of one and the same drift differ in it. `moves on` counts results whose long "
        "runs move on from all of them. `front`: how often no other way has both more evidence and a "
        f"smaller D_stsp, for the same model and length. {fits_words(noise)}{words}"
    )
    columns = ["way", "start: process, gate", "n", "evidence", "D_stsp", "Lyapunov error", "moves on"]
    columns += ["process noise at the end", "front"]
    return Listing(OPEN, "What the start noise decides", text, columns, rows)


def lengths_listing(noise: DataFrame, tuned: list[str], alone: str, untuned: str) -> Listing:
    """Return ways that tune the drift beside the noise fitted alone from the same start, by window length.

    Every count has that of the ``untuned`` models, held against the same, in brackets.
    """
    keys, columns = [*_MODEL, *_START, "length"], ["evidence", *_RANGE]
    fitted = noise[noise["way"] == alone][[*keys, *columns]]
    both = noise.merge(fitted, on=keys, suffixes=("", "_alone"))
    both["kept"] = both["dstsp_median"] < LOST
    both["alive"] = both["moves_on"] == both["starts"]
    both["more"] = both["evidence"] > both["evidence_alone"]
    both["nearer"] = both["dstsp_high"] < both["dstsp_low_alone"]
    both["further"] = both["dstsp_low"] > both["dstsp_high_alone"]
    both["better"] = both["more"] & both["nearer"]
    counted, groups, rows = ["kept", "alive", "more", "better", "further"], ["way", *_START, "length"], []
    before = {name[1:]: part for name, part in both[both["way"] == untuned].groupby(groups, sort=False)}
    for (way, process, gate, length), part in both[both["way"].isin(tuned)].groupby(groups, sort=False):
        middle = part[["evidence", "evidence_alone", "dstsp_median", "dstsp_median_alone"]].median()
        cells = [f"{middle['evidence']:.3f} ({middle['evidence_alone']:.3f})"]
        cells += [f"{middle['dstsp_median']:.2f} ({middle['dstsp_median_alone']:.2f})"]
        base = before.get((process, gate, length))
        for name in counted:
            beside = "" if base is None else f" ({base[name].sum()} of {len(base)})"
            cells.append(f"{part[name].sum()} of {len(part)}{beside}")
        rows.append([way, f"{process:g}, {gate:g}", f"{length}", *cells])
    words = (
        f"Medians over models, and in brackets those of `{alone}` from the same start, which does not change "
        f"the drift. Counts are of models, and in brackets of the same models `{untuned}`. An attractor is "
        f"kept if the median D_stsp over starts is below {LOST:g}. D_stsp is smaller where the highest over "
        f"starts is below the lowest of `{alone}`, and larger where the lowest is above the highest: less "
        "may be chance."
    )
    heads = ["way", "start: process, gate", "length", "evidence (noise alone)", "D_stsp (noise alone)"]
    heads += ["attractor kept", "moves on from all starts", "more evidence"]
    heads += ["more evidence and smaller D_stsp", "larger D_stsp"]
    return Listing(OPEN, "Tuning the drift, by the length of windows", words, heads, rows)


def fits_words(table: DataFrame) -> str:
    """Say how many fits of the noise converged, and how far the last one moved; nothing without any."""
    if "fit_converged" not in table:
        return ""
    fits, known = table.dropna(subset=["fits"]), table.dropna(subset=["fit_converged"])
    if known.empty:
        return ""
    moved = known["fit_moved"]
    again = (
        "" if len(known) == len(fits) else f"{len(known)} of {len(fits)} fits of the noise were done again. "
    )
    return (
        f"{again}Of {len(known)} fits of the noise {known['fit_converged'].astype(bool).sum()} converged, in "
        f"the median after {known['fit_evaluations'].median():.0f} passes of the last, which changed no "
        f"level by more than {moved.median():.1%} in the median, {moved.quantile(0.9):.1%} in nine of ten "
        f"and {moved.max():.1%} at most. "
    )


def front(evidence: Floats, dstsp: Floats) -> NDArray[np.bool_]:
    """Return which points no other beats: at least as good in both, and better in one."""
    more, nearer = evidence[None, :] >= evidence[:, None], dstsp[None, :] <= dstsp[:, None]
    better = (evidence[None, :] > evidence[:, None]) | (dstsp[None, :] < dstsp[:, None])
    return np.asarray(~(more & nearer & better).any(axis=1))


_RANGE = ("dstsp_median", "dstsp_low", "dstsp_high")


def _range(part: DataFrame) -> str:
    middle, low, high = (part[name].median() for name in _RANGE)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def _alive(part: DataFrame) -> int:
    return int((part["moves_on"] == part["starts"]).sum())
