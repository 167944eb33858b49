"""What the paper says about the toy, fine-tuning and the pictures of its appendix."""

from __future__ import annotations

import numpy as np
import pandas as pd

from palrnn.engine.checks import Floats
from palrnn.experiments.claim import Claim, judged
from palrnn.experiments.statistics import Interval, bootstrap, spearman


def toy_claims(toy: pd.DataFrame, resamples: int) -> list[Claim]:
    """Compare the switching AR(1) with the paper's statements; whole seeds are resampled."""
    pairs = (
        ("sigma_g", "entropy_bits", "more gate noise means more entropy", 1),
        ("entropy_bits", "mir", "more entropy means more missing information", 1),
        ("entropy_bits", "log10_trace", "more entropy means less observed curvature", -1),
    )
    claims = []
    for a, b, words, sign in pairs:
        found = bootstrap(
            toy[[a, b]],
            lambda rows: spearman(rows[:, 0], rows[:, 1])[0],
            groups=toy["seed"],
            resamples=resamples,
        )
        agrees = found.low > 0 if sign > 0 else found.high < 0
        claims.append(
            judged(
                "Fig. results a",
                words,
                "increases" if sign > 0 else "decreases",
                found,
                bool(agrees),
                "the interval of Spearman r is on the side of the claim",
            )
        )
    return claims


def evidence_claims(evidence: pd.DataFrame, resamples: int) -> list[Claim]:
    """Compare fine-tuning with the paper's statements; whole initialisations are resampled."""
    where = "Fig. results c"
    claims = [
        _evidence_order(
            evidence, "baseline", "calib", "calib has more held-out evidence than baseline", resamples
        ),
        _evidence_order(evidence, "calib", "full", "full SAEM has the most held-out evidence", resamples),
    ]
    worse = Change(evidence, "dstsp", "baseline", "full", resamples)
    claims.append(
        judged(
            where,
            "full SAEM degrades D_stsp",
            "higher than baseline",
            worse.median,
            worse.median.low > 0,
            "the interval of the median change is above 0",
            f"{worse.share:.1%} of {worse.count} settings worse",
        )
    )
    levels = {
        name: _median(evidence[evidence["configuration"] == name], "lyapunov_error", resamples)
        for name in ("baseline", "full")
    }
    claims.append(
        judged(
            where,
            "the signed Lyapunov error of baseline is near zero",
            "near zero",
            levels["baseline"],
            bool(abs(levels["baseline"].value) < 0.25),
            "the median is within 0.25 per unit of time, about a quarter of the exponent",
        )
    )
    claims.append(
        judged(
            where,
            "full SAEM drives the signed Lyapunov error to strongly negative values",
            "strongly negative",
            levels["full"],
            bool(levels["full"].high < -0.5),
            "the interval of the median is below -0.5, which is more than half of the exponent",
        )
    )
    moved = [_paired(evidence, column, "baseline", "calib") for column in ("dstsp", "lyapunov")]
    most = max((float(np.abs(change).max()) for _, change in moved if len(change)), default=float("nan"))
    claims.append(
        judged(
            where,
            "calib leaves both hard-gated invariants unchanged",
            "unchanged by construction",
            f"largest change {most:g}",
            most == 0.0,
            "no change at all",
        )
    )
    return claims


def diagnostics_claims(diagnostics: pd.DataFrame) -> list[Claim]:
    """Compare the filter's traces with the statement that particles do not collapse."""
    first = diagnostics[diagnostics["particles"] == diagnostics["particles"].iloc[0]]
    ess, resampled = first["ess"], first["resampled"].astype(float).mean()
    return [
        judged(
            "Fig. rbpf_diagnostics",
            "particle degeneracy is controlled",
            "controlled",
            f"ESS / particles: mean {ess.mean():.2f}, least {ess.min():.3f}; "
            f"resampled after {resampled:.0%} of steps",
            bool(ess.mean() > 0.25 and ess.min() > 0.02),
            "mean above a quarter, and never below 2 % of the particles",
        )
    ]


def attractor_claims(attractor: pd.DataFrame) -> list[Claim]:
    """Compare the rollouts with what the picture of the attractors is said to show."""
    second_half = attractor.iloc[len(attractor) // 2 :]

    def spread(name: str) -> float:
        columns = [f"{name}_{axis}" for axis in "xyz"]
        size = (
            second_half[columns].std().to_numpy()
            / second_half[[f"truth_{axis}" for axis in "xyz"]].std().to_numpy()
        )
        return float(np.mean(size))

    baseline, full = spread("baseline"), spread("full")
    return [
        judged(
            "Fig. attractor_overlays",
            "the baseline keeps the attractor's geometry",
            "closely matches",
            f"its deviation is {baseline:.2f} of the true one",
            bool(abs(baseline - 1) < 0.1),
            "within 10 %, second half of the rollout, mean over coordinates",
        ),
        judged(
            "Fig. attractor_overlays",
            "the tuned model collapses to a strongly contracted orbit",
            "collapses",
            f"its deviation is {full:.3f} of the true one",
            bool(full < 0.5),
            "less than half, second half of the rollout, mean over coordinates",
        ),
    ]


class Change:
    """The change of a column between two configurations, over models and window lengths."""

    def __init__(self, evidence: pd.DataFrame, column: str, before: str, after: str, resamples: int) -> None:
        models, change = _paired(evidence, column, before, after)
        self.count, self.share = len(change), float((change > 0).mean()) if len(change) else float("nan")
        self.median = bootstrap(
            change, lambda rows: float(np.median(rows)), groups=models, resamples=resamples
        )


def _evidence_order(evidence: pd.DataFrame, before: str, after: str, words: str, resamples: int) -> Claim:
    change = Change(evidence, "evidence", before, after, resamples)
    return judged(
        "Fig. results c",
        words,
        f"{after} above {before}",
        change.median,
        change.median.low > 0,
        "the interval of the median gain is above 0",
        f"{change.share:.1%} of {change.count} settings" + _deaths(evidence, before, after),
    )


def _deaths(evidence: pd.DataFrame, *configurations: str) -> str:
    died = int(evidence[evidence["configuration"].isin(configurations)]["died"].sum())
    return f"; the filter died in {died} evaluations, which are left out" if died else ""


def _paired(evidence: pd.DataFrame, column: str, before: str, after: str) -> tuple[Floats, Floats]:
    keys = ["process_std", "observation_std", "length"]
    wide = evidence.pivot(index=keys, columns="configuration", values=column)
    wide = wide.reindex(columns=[before, after]).dropna().reset_index()
    models = wide.groupby(["process_std", "observation_std"]).ngroup().to_numpy(dtype=np.float64)
    return models, (wide[after] - wide[before]).to_numpy(dtype=np.float64)


def _median(rows: pd.DataFrame, column: str, resamples: int) -> Interval:
    kept = rows.dropna(subset=[column])
    models = kept.groupby(["process_std", "observation_std"]).ngroup()
    return bootstrap(kept[column], lambda v: float(np.median(v)), groups=models, resamples=resamples)
