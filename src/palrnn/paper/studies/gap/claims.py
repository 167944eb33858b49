"""What the paper says about the curvature gap (fig. results b, tables fixedQ_strat, fig. matrix_mismatch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from palrnn.paper.claim import Claim
from palrnn.paper.statistics import Interval, association, median

if TYPE_CHECKING:
    import pandas as pd


class Stratum(NamedTuple):
    """A row of the paper's fixed-Q table."""

    n: int
    h_min: float
    h_max: float
    h_span: float
    spearman: float
    p: float
    partial: float
    low: float
    high: float


#: Table fixedQ_strat, by process noise.
PAPER_FIXED_Q = {
    0.1: Stratum(60, 2.173, 4.352, 2.180, 0.630, 2.0e-7, 0.016, 0.426, 0.773),
    0.3: Stratum(60, 4.314, 5.929, 1.615, 0.628, 7.8e-8, -0.039, 0.438, 0.751),
    0.5: Stratum(60, 5.488, 6.443, 0.955, 0.585, 9.3e-7, -0.310, 0.410, 0.717),
}
_TABLE = "Table fixedQ_strat"
MISMATCH = "Fig. matrix_mismatch"
# decades by which the ends of the range may be off
_HALF = 0.5


def fixed_q_rows(gap: pd.DataFrame, resamples: int) -> list[dict[str, Any]]:
    """Return the fixed-Q table: one row per variant and process noise, gap against entropy."""
    rows = []
    overlap = overlap_column(gap)
    for (variant, process), part in gap.groupby(["variant", "process_std"], sort=False):
        kept = part.dropna(subset=["gap"])
        entropy, noise = kept["entropy_bits"], kept["observation_std"]
        found = association(entropy, kept["gap"], noise, resamples=resamples)
        shared = association(entropy, kept[overlap], noise, resamples=resamples)
        row = {
            "variant": variant,
            "process_std": process,
            "n": len(kept),
            "without_gap": len(part) - len(kept),
        }
        low, high = entropy.min(), entropy.max()
        row |= {"h_min": low, "h_max": high, "h_span": high - low}
        row |= _columns("spearman", found.spearman) | {"p": found.p} | _columns("partial", found.partial)
        row |= _columns("overlap_spearman", shared.spearman) | {"overlap_partial": shared.partial.value}
        rows.append(row)
    return rows


def _columns(name: str, found: Interval) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _interval(row: Any, name: str) -> Interval:
    return Interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _by_process_noise(fixed_q: pd.DataFrame, name: str) -> str:
    found = [(row["process_std"], _interval(row, name)) for _, row in fixed_q.iterrows()]
    return ", ".join(f"{r.value:.2f} [{r.low:.2f}, {r.high:.2f}] at {process:g}" for process, r in found)


def first_variant(gap: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first variant, which has the paper's own settings."""
    return gap[gap["variant"] == gap["variant"].iloc[0]]


def overlap_column(gap: pd.DataFrame) -> str:
    """The name of the column of the leading-subspace overlap, which holds its k."""
    return next(name for name in gap.columns if name.startswith("overlap"))


def gap_claims(gap: pd.DataFrame, fixed_q: pd.DataFrame, resamples: int) -> list[Claim]:
    """Compare the first variant, the paper's own settings, with the paper."""
    gap, fixed_q = first_variant(gap), first_variant(fixed_q)
    claims = [*_range(gap, resamples), _trend(fixed_q)]
    for _, row in fixed_q.iterrows():
        if row["process_std"] in PAPER_FIXED_Q:
            claims += _stratum(row, PAPER_FIXED_Q[row["process_std"]], gap["entropy_bound"].iloc[0])
    return [*claims, *_mismatch(gap, fixed_q, resamples)]


def _decades(value: float, around: float) -> str:
    """``value`` with as many digits as it takes to be on its side of the half decades around a number."""
    beyond = abs(value - around) > _HALF
    shown = (f"{value:.{digits}f}" for digits in range(2, 9))
    return next((words for words in shown if (abs(float(words) - around) > _HALF) == beyond), f"{value:g}")


def _range(gap: pd.DataFrame, resamples: int) -> list[Claim]:
    values = gap["gap"].dropna()
    low, high, count = values.min(), values.max(), len(gap) - len(values)
    ends = f"10^{_decades(low, 1)} to 10^{_decades(high, 3)}"
    note = (
        f"; {count} models have no gap, because their estimate of tr I_obs is not positive" if count else ""
    )
    middle = median(values, resamples=resamples)
    above = float((values > 0).mean())
    return [
        Claim.compare(
            "Fig. results b",
            "the gap ranges from about 10 up to about 1000",
            "10 to 1000",
            f"{ends}, median 10^{middle.value:.2f} [10^{middle.low:.2f}, 10^{middle.high:.2f}]{note}",
            bool(abs(low - 1) <= _HALF and abs(high - 3) <= _HALF),
            "both ends within half a decade",
        ),
        Claim.compare(
            "Fig. results b",
            "teacher-forcing curvature exceeds the observed information",
            "gap > 1 for all models",
            f"{above:.1%} of {len(values)} models",
            above == 1.0,
            "true of all models",
        ),
    ]


def _trend(fixed_q: pd.DataFrame) -> Claim:
    return Claim.compare(
        "Fig. results b",
        "at fixed Q the gap tends to increase with entropy",
        "Spearman r > 0 in each stratum",
        _by_process_noise(fixed_q, "spearman"),
        bool((fixed_q["spearman_low"] > 0).all()),
        "all three intervals are above 0",
    )


def _stratum(row: Any, paper: Stratum, bound: float) -> list[Claim]:
    where = f"{_TABLE}, process noise {row['process_std']:g}"
    claims = [
        Claim.compare(where, "n", f"{paper.n}", f"{row['n']:.0f}", row["n"] == paper.n, "equal"),
    ]
    for name, value in (("h_min", paper.h_min), ("h_max", paper.h_max), ("h_span", paper.h_span)):
        # more than log2(particles) bits cannot come from particles: the paper's number is of something else
        impossible = paper.h_max > bound and name != "h_min"
        claims.append(
            Claim.compare(
                where,
                {"h_min": "lowest entropy", "h_max": "highest entropy", "h_span": "entropy span"}[name],
                f"{value:g} bits",
                f"{row[name]:.3f} bits",
                None if impossible else bool(abs(row[name] - value) <= 0.5),
                f"the paper's highest entropy exceeds log2({2**bound:.0f}) = {bound:g} bits, the most that "
                f"{2**bound:.0f} particles can show"
                if impossible
                else "within half a bit",
            )
        )
    r, partial = _interval(row, "spearman"), _interval(row, "partial")
    return [
        *claims,
        Claim.compare(
            where,
            "Spearman r",
            f"{paper.spearman:g} [{paper.low:g}, {paper.high:g}]",
            r,
            bool(r.low <= paper.high and paper.low <= r.high and r.value * paper.spearman > 0),
            "same sign, and the intervals overlap",
        ),
        Claim.compare(
            where,
            "Spearman p",
            f"{paper.p:.1e}",
            f"{row['p']:.1e}",
            bool((row["p"] < 0.001) == (paper.p < 0.001)),
            "both below 0.001, or neither",
        ),
        Claim.compare(
            where,
            "partial r given observation noise",
            f"{paper.partial:g}",
            partial,
            bool(partial.low <= paper.partial <= partial.high),
            "our interval contains the paper's value",
        ),
    ]


def _mismatch(gap: pd.DataFrame, fixed_q: pd.DataFrame, resamples: int) -> list[Claim]:
    overlap = overlap_column(gap)
    claims = []
    for column, words in (
        ("logdet_gap", "the log-det gap is negative"),
        ("q90", "q90 of log10 gamma is negative"),
    ):
        values = gap[column].dropna()
        middle = median(values, resamples=resamples)
        share = float((values < 0).mean())
        claims.append(
            Claim.compare(
                MISMATCH,
                words,
                "negative",
                middle,
                share >= 0.95,
                "true of at least 95 % of models",
                f"{share:.1%} negative",
            )
        )
    middle = median(gap[overlap], resamples=resamples)
    claims.append(
        Claim.compare(
            MISMATCH,
            "the leading-subspace overlap is low",
            "low",
            middle,
            middle.high < 0.5,
            "the interval of the median is below 0.5",
        )
    )
    claims.append(
        Claim.compare(
            MISMATCH,
            "the overlap decreases with entropy",
            "decreases",
            "Spearman r " + _by_process_noise(fixed_q, "overlap_spearman"),
            bool((fixed_q["overlap_spearman_high"] < 0).all()),
            "all three intervals are below 0",
        )
    )
    return claims
