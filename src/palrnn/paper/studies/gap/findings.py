"""What the paper's numbers do not show: our own findings, from the same tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from palrnn.paper.claim import Finding
from palrnn.paper.statistics import Interval, association, bootstrap, median, rank_correlations, spearman

if TYPE_CHECKING:
    import pandas as pd

_MODEL = ["process_std", "observation_std", "tau", "seed"]
Median: TypeAlias = Callable[[Any], Interval]


def gap_findings(gap: pd.DataFrame, values: int, tau: int | None, resamples: int) -> list[Finding]:
    """Return what the gap depends on, and what other estimators of the observed information say.

    ``values`` is (T - 1) N, which evidence is divided by; models with the forcing interval ``tau`` are also
    looked at alone.
    """
    middle: Median = partial(median, resamples=resamples)
    variants = {str(name): part for name, part in gap.groupby("variant", sort=False)}
    first = next(iter(variants))
    findings = [
        _entropy_bound(variants),
        _negative_directions(variants, middle),
        _coalescence(variants, middle),
    ]
    if tau is not None:
        findings.insert(0, _forcing_intervals(variants[first].dropna(subset=["gap"]), tau, resamples))
    for name, part in variants.items():
        if part["trace_missing_switching"].notna().any():
            findings.append(_split(name, part, middle))
        if name != first:
            findings += _beside(first, variants[first], name, part, values, middle)
    return findings


def _forcing_intervals(models: pd.DataFrame, tau: int, resamples: int) -> Finding:
    words, numbers = [], {}
    for process, stratum in models.groupby("process_std"):
        gap, entropy, noise = stratum["gap"], stratum["entropy_bits"], stratum["observation_std"]
        alone = stratum[stratum["tau"] == tau]
        if len(stratum) < 3 or len(alone) < 3:
            continue
        with_tau = [spearman(values, stratum["tau"])[0] for values in (gap, entropy)]
        given_tau = bootstrap(
            np.column_stack([entropy, gap, noise, stratum["tau"]]),
            lambda rows: rank_correlations(*np.moveaxis(rows, -1, 0)),
            resamples=resamples,
        )
        one = association(alone["entropy_bits"], alone["gap"], alone["observation_std"], resamples=resamples)
        words.append(
            f"at {process:g}: {with_tau[0]:.2f} and {with_tau[1]:.2f}; partial r {given_tau}; tau = {tau} "
            f"alone ({len(alone)} models): r {one.spearman}, partial r {one.partial}"
        )
        numbers[f"{process:g}"] = {
            "gap_with_tau": with_tau[0],
            "entropy_with_tau": with_tau[1],
            "partial": given_tau._asdict(),
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


def _negative_directions(variants: dict[str, pd.DataFrame], middle: Median) -> Finding:
    words, numbers = [], {}
    for name, part in variants.items():
        samples = int(part["paths"].iloc[0] * part["states_per_path"].iloc[0])
        found = middle(part["negative"])
        words.append(f"{name} ({samples} samples): {found}")
        numbers[name] = {"samples": samples, "negative": found._asdict()}
    first = next(iter(variants.values()))
    missing, informed = middle(first["missing_dimensions"]), first["informed_dimensions"].median()
    text = (
        f"the missing information is worth {missing} of {informed:.0f} directions. Teacher forcing "
        "does not maximise this likelihood, which need not be concave where it ends; but how many directions "
        "are negative cannot be told from samples of states, whose noise hides some and makes others (closed "
        "forms tell, in the first table). Median number by samples: "
    )
    return Finding("negative directions", text + "; ".join(words), numbers)


def _coalescence(variants: dict[str, pd.DataFrame], middle: Median) -> Finding:
    counts = {
        name: (int(part["paths"].iloc[0]), middle(part["distinct_first"])) for name, part in variants.items()
    }
    by_method: dict[str, list[str]] = {}
    for name, (paths, found) in counts.items():
        method = str(variants[name]["method"].iloc[0])
        by_method.setdefault(method, []).append(f"{name}: {found.value:g} of {paths}")
    text = "ancestor tracing leaves few different gate paths at the start of the segment, in the median "
    text += "; ".join(by_method.get("ancestors", []))
    if "gibbs" in by_method:
        text += ". By particle Gibbs it is " + "; ".join(by_method["gibbs"])
    numbers = {name: {"paths": paths, "distinct": found._asdict()} for name, (paths, found) in counts.items()}
    return Finding("coalescence", text, numbers)


def _split(name: str, part: pd.DataFrame, middle: Median) -> Finding:
    missing = part["trace_missing_state"] + part["trace_missing_switching"]
    share = middle(part["trace_missing_switching"] / missing)
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
    first: str, paper: pd.DataFrame, name: str, other: pd.DataFrame, values: int, middle: Median
) -> list[Finding]:
    both = paper.merge(other, on=_MODEL, suffixes=("", "_other")).dropna(subset=["gap", "gap_other"])
    if both.empty:
        return []
    gap = middle(both["gap_other"] - both["gap"])
    entropy = middle(both["entropy_bits_other"] - both["entropy_bits"])
    evidence = middle((both["log_evidence_other"] - both["log_evidence"]) / values)
    return [
        Finding(
            f"{name}, beside {first}",
            f"over {len(both)} models, the median change in the gap is {gap} decades, in the entropy "
            f"{entropy} bits, in the log evidence {evidence} nats per step and dimension",
            {"gap": gap._asdict(), "entropy": entropy._asdict(), "evidence": evidence._asdict()},
        )
    ]
