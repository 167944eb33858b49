"""What the paper's numbers do not show: our own findings, from the same tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from palrnn.experiments.statistics import Interval, association, bootstrap, partial_spearman, spearman

_MODEL = ["process_std", "observation_std", "tau", "seed"]
Median = Callable[[Any], Interval]


@dataclass(frozen=True)
class Finding:
    """One of our own findings: what was asked and what came out, with the numbers behind it."""

    about: str
    found: str
    numbers: dict[str, Any]

    def entry(self) -> dict[str, Any]:
        """The finding as plain values."""
        return asdict(self)


def gap_findings(gap: pd.DataFrame, scored: int, tau: int, resamples: int) -> list[Finding]:
    """Return what the gap depends on, and what other estimators of the observed information say.

    ``scored`` is (T - 1) N; the models with the forcing interval ``tau`` are also looked at alone.
    """

    def median(values: Any) -> Interval:
        return bootstrap(values, lambda rows: float(np.median(rows)), resamples=resamples)

    variants = {str(name): part for name, part in gap.groupby("variant", sort=False)}
    first = next(iter(variants))
    findings = [
        _forcing_intervals(variants[first].dropna(subset=["gap"]), tau, resamples),
        _entropy_bound(variants),
        _negative_directions(variants, median),
        _coalescence(variants, median),
    ]
    for name, part in variants.items():
        if part["trace_missing_switching"].notna().any():
            findings.append(_split(name, part, median))
        if name != first:
            findings += _beside(first, variants[first], name, part, scored, median)
    return findings


def floor_finding(floor: pd.DataFrame, checkpoints: pd.DataFrame, tau: int) -> Finding:
    """Return what D_stsp means: true stretches against each other, beside the trained models."""
    true, models = floor["dstsp"], checkpoints[checkpoints["tau"] == tau]["dstsp"]
    low, mid, high = np.percentile(true, [2.5, 50, 97.5])
    within = float((models <= high).mean())
    return Finding(
        "the floor of D_stsp",
        f"two stretches of the true system differ by {mid:.2f} nats in the median ({low:.2f} to {high:.2f} "
        f"in 95 % of {len(true)} pairs); the models with tau = {tau} by {models.median():.2f}, and "
        f"{within:.0%} of them cannot be told from the truth by it",
        {"floor_median": mid, "floor_low": low, "floor_high": high, "models_median": models.median()},
    )


def coordinates_finding(evidence: pd.DataFrame, checkpoints: pd.DataFrame, tau: int, seed: int) -> Finding:
    """Return what the change of coordinates between training and tuning does to D_stsp."""
    keys = ["process_std", "observation_std"]
    before = checkpoints[(checkpoints["tau"] == tau) & (checkpoints["seed"] == seed)]
    after = evidence[evidence["configuration"] == "baseline"].drop_duplicates(keys)
    both = before.merge(after, on=keys, suffixes=("_own", "_tuning"))
    own, tuning = both["dstsp_own"].median(), both["dstsp_tuning"].median()
    return Finding(
        "coordinates of the baseline",
        "the tuning data are standardised by their own statistics, not by those that a model was trained "
        f"with; mapped back this way, the untouched models have a median D_stsp of {tuning:.2f} nats, in "
        f"their own coordinates {own:.2f} ({len(both)} models)",
        {"own": own, "tuning": tuning, "models": len(both)},
    )


def _forcing_intervals(models: pd.DataFrame, tau: int, resamples: int) -> Finding:
    words, numbers = [], {}
    for process, stratum in models.groupby("process_std"):
        gap, entropy, noise = stratum["gap"], stratum["entropy_bits"], stratum["observation_std"]
        alone = stratum[stratum["tau"] == tau]
        if len(stratum) < 3 or len(alone) < 3:
            continue
        with_tau = [spearman(values, stratum["tau"])[0] for values in (gap, entropy)]
        partial = bootstrap(
            np.column_stack([entropy, gap, noise, stratum["tau"]]),
            lambda rows: partial_spearman(*rows.T),
            resamples=resamples,
        )
        one = association(alone["entropy_bits"], alone["gap"], alone["observation_std"], resamples=resamples)
        words.append(
            f"at {process:g}: {with_tau[0]:.2f} and {with_tau[1]:.2f}; partial r {partial}; tau = {tau} "
            f"alone ({len(alone)} models): r {one.spearman}, partial r {one.partial}"
        )
        numbers[f"{process:g}"] = {
            "gap_with_tau": with_tau[0],
            "entropy_with_tau": with_tau[1],
            "partial": partial._asdict(),
            "alone": one._asdict(),
        }
    low, high = np.percentile(models["gap"], [2.5, 97.5])
    return Finding(
        "the forcing interval",
        f"95 % of the gaps lie between 10^{low:.2f} and 10^{high:.2f}. Gap and entropy both rise with tau, "
        "which the paper does not give for its models; so pooled over tau they go together even at fixed "
        "observation noise. By process noise, Spearman r of gap and of entropy with tau, partial r of the "
        f"two given observation noise and tau, and both for one tau: {'; '.join(words)}",
        {"range": [low, high], "strata": numbers},
    )


def _entropy_bound(variants: dict[str, pd.DataFrame]) -> Finding:
    words, numbers = [], {}
    for name, part in variants.items():
        bound, top = part["entropy_bound"].iloc[0], part["entropy_bits"].max()
        full = (part["entropy_bits"] / bound).groupby(part["process_std"]).mean()
        shares = ", ".join(f"{share:.0%} at {process:g}" for process, share in full.items())
        words.append(f"{name}: at most {top:.2f} of {bound:g} bits (mean {shares})")
        numbers[name] = {"bound": bound, "highest": top, "mean_share": {f"{p:g}": s for p, s in full.items()}}
    text = "the plug-in entropy cannot exceed log2(particles), and rises with it; by process noise, "
    return Finding("entropy against its bound", text + "; ".join(words), numbers)


def _negative_directions(variants: dict[str, pd.DataFrame], median: Median) -> Finding:
    words, numbers = [], {}
    for name, part in variants.items():
        samples = int(part["paths"].iloc[0] * part["states_per_path"].iloc[0])
        found = median(part["negative"])
        words.append(f"{name} ({samples} samples): {found}")
        numbers[name] = {"samples": samples, "negative": found._asdict()}
    first = next(iter(variants.values()))
    missing, informed = median(first["missing_dimensions"]), first["informed_dimensions"].median()
    text = (
        f"the missing information is worth {missing} of {informed:.0f} directions. With few samples the "
        "estimate of the observed information is negative where its noise exceeds what little is left; more "
        "samples bring out more such directions: the parameters that teacher forcing finds do not maximise "
        "this likelihood, which need not be concave there. Median number: "
    )
    return Finding("negative directions", text + "; ".join(words), numbers)


def _coalescence(variants: dict[str, pd.DataFrame], median: Median) -> Finding:
    counts = {
        name: (int(part["paths"].iloc[0]), median(part["distinct_first"])) for name, part in variants.items()
    }
    words = "; ".join(f"{name}: {found.value:g} of {paths}" for name, (paths, found) in counts.items())
    numbers = {name: {"paths": paths, "distinct": found._asdict()} for name, (paths, found) in counts.items()}
    text = "ancestor tracing leaves few different gate paths at the start of the segment, in the median "
    return Finding("coalescence", text + words, numbers)


def _split(name: str, part: pd.DataFrame, median: Median) -> Finding:
    missing = part["trace_missing_state"] + part["trace_missing_switching"]
    share = median(part["trace_missing_switching"] / missing)
    # the exact filter's paths are those of the noisy gate inputs, which tell more than the gates alone
    most = "at most " if part["target"].iloc[0] == "exact" else ""
    return Finding(
        f"what is missing ({name})",
        f"of the trace of the missing information, {most}{share.value:.2%} [{share.low:.2%}, "
        f"{share.high:.2%}] in the median is due to not knowing the gates; the rest to not knowing the "
        "continuous state",
        {"switching_share": share._asdict()},
    )


def _beside(
    first: str, paper: pd.DataFrame, name: str, other: pd.DataFrame, scored: int, median: Median
) -> list[Finding]:
    both = paper.merge(other, on=_MODEL, suffixes=("", "_other")).dropna(subset=["gap", "gap_other"])
    if both.empty:
        return []
    gap = median(both["gap_other"] - both["gap"])
    entropy = median(both["entropy_bits_other"] - both["entropy_bits"])
    evidence = median((both["log_evidence_other"] - both["log_evidence"]) / scored)
    return [
        Finding(
            f"{name}, beside {first}",
            f"over {len(both)} models, the median change in the gap is {gap} decades, in the entropy "
            f"{entropy} bits, in the log evidence {evidence} nats per step and dimension",
            {"gap": gap._asdict(), "entropy": entropy._asdict(), "evidence": evidence._asdict()},
        )
    ]
