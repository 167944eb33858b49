"""What the paper says about fine-tuning (fig. results c), and what the coordinates of the tuning data do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.paper.claim import Claim, Finding
from palrnn.paper.statistics import Interval, median

if TYPE_CHECKING:
    import pandas as pd

_WHERE = "Fig. results c"
_MODEL = ["process_std", "observation_std"]


def evidence_claims(evidence: pd.DataFrame, resamples: int) -> list[Claim]:
    """Compare fine-tuning with the paper's statements; whole initialisations are resampled."""
    worse = Change(evidence, "dstsp", "baseline", "full", resamples)
    error = {
        name: _median(evidence[evidence["configuration"] == name], "lyapunov_error", resamples)
        for name in ("baseline", "full")
    }
    moves = [_change(evidence, column, "baseline", "calib")[1] for column in ("dstsp", "lyapunov")]
    most = max((float(np.abs(move).max()) for move in moves if len(move)), default=float("nan"))
    return [
        _evidence_order(
            evidence, "baseline", "calib", "calib has more held-out evidence than baseline", resamples
        ),
        _evidence_order(evidence, "calib", "full", "full SAEM has the most held-out evidence", resamples),
        Claim.compare(
            _WHERE,
            "full SAEM degrades D_stsp",
            "higher than baseline",
            worse.median,
            worse.median.low > 0,
            "the interval of the median change is above 0",
            f"{worse.share:.1%} of {worse.count} settings worse",
        ),
        Claim.compare(
            _WHERE,
            "the signed Lyapunov error of baseline is near zero",
            "near zero",
            error["baseline"],
            bool(abs(error["baseline"].value) < 0.25),
            "the median is within 0.25 per unit of time, about a quarter of the exponent",
        ),
        Claim.compare(
            _WHERE,
            "full SAEM drives the signed Lyapunov error to strongly negative values",
            "strongly negative",
            error["full"],
            bool(error["full"].high < -0.5),
            "the interval of the median is below -0.5, which is more than half of the exponent",
        ),
        Claim.compare(
            _WHERE,
            "calib leaves both hard-gated invariants unchanged",
            "unchanged by construction",
            f"largest change {most:g}",
            most == 0.0,
            "no change at all",
        ),
    ]


def coordinates_finding(evidence: pd.DataFrame, checkpoints: pd.DataFrame, tau: int, seed: int) -> Finding:
    """Return what the change of coordinates between training and tuning does to D_stsp."""
    before = checkpoints[(checkpoints["tau"] == tau) & (checkpoints["seed"] == seed)]
    after = evidence[evidence["configuration"] == "baseline"].drop_duplicates(_MODEL)
    both = before.merge(after, on=_MODEL, suffixes=("_own", "_tuning"))
    own, tuning = both["dstsp_own"].median(), both["dstsp_tuning"].median()
    return Finding(
        "coordinates of the baseline",
        "the tuning data are standardised by their own statistics, not by those that a model was trained "
        f"with; mapped back this way, the untouched models have a median D_stsp of {tuning:.2f} nats, in "
        f"their own coordinates {own:.2f} ({len(both)} models)",
        {"own": own, "tuning": tuning, "models": len(both)},
    )


class Change:
    """The change of a column between two configurations, over models and window lengths."""

    def __init__(self, evidence: pd.DataFrame, column: str, before: str, after: str, resamples: int) -> None:
        models, change = _change(evidence, column, before, after)
        self.count, self.share = len(change), float((change > 0).mean()) if len(change) else float("nan")
        self.median = median(change, groups=models, resamples=resamples)


def _evidence_order(evidence: pd.DataFrame, before: str, after: str, words: str, resamples: int) -> Claim:
    change = Change(evidence, "evidence", before, after, resamples)
    died = int(evidence[evidence["configuration"].isin([before, after])]["died"].sum())
    left_out = f"; the filter died in {died} evaluations, which are left out" if died else ""
    return Claim.compare(
        _WHERE,
        words,
        f"{after} above {before}",
        change.median,
        change.median.low > 0,
        "the interval of the median gain is above 0",
        f"{change.share:.1%} of {change.count} settings{left_out}",
    )


def _change(evidence: pd.DataFrame, column: str, before: str, after: str) -> tuple[Floats, Floats]:
    """Return the model of each setting as a number, and the change of a column there."""
    wide = evidence.pivot(index=[*_MODEL, "length"], columns="configuration", values=column)
    wide = wide.reindex(columns=[before, after]).dropna().reset_index()
    models = wide.groupby(_MODEL).ngroup().to_numpy(dtype=np.float64)
    return models, (wide[after] - wide[before]).to_numpy(dtype=np.float64)


def _median(rows: pd.DataFrame, column: str, resamples: int) -> Interval:
    kept = rows.dropna(subset=[column])
    return median(kept[column], groups=kept.groupby(_MODEL).ngroup(), resamples=resamples)
