"""What of the paper's claims about curvature the models make, and what its eight samples make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from palrnn.paper.claim import TRUE, Listing
from palrnn.paper.statistics import association, median
from palrnn.paper.studies.gap.claims import overlap_column

if TYPE_CHECKING:
    import pandas as pd

MODEL = ["process_std", "observation_std", "tau", "seed"]
SAMPLES = "eight samples"
NAMES = {"paper": "exact given the gates, the paper's target", "exact": "exact given the gates, exact target"}
_MODELS, _SAMPLES_ONLY, _NOBODY = "the models", "the eight samples", "neither"
_LEAST = 0.95


class Answer(NamedTuple):
    """What one estimate says to a question, and whether the paper says so, too; None: it says nothing."""

    words: str
    agrees: bool | None


class Estimates(NamedTuple):
    """The same models by several estimates: the paper's first, then closed forms by target."""

    tables: Mapping[str, pd.DataFrame]
    overlap: str
    resamples: int

    @property
    def models(self) -> int:
        """The number of models."""
        return len(next(iter(self.tables.values())))


def estimates(readings: pd.DataFrame, truth: pd.DataFrame, resamples: int) -> Estimates:
    """Return the models that have all estimates; samples are those of the first reading and its like."""
    first = readings[readings["reading"] == readings["reading"].iloc[0]]
    alike = readings[
        (readings["entropy_bound"] == first["entropy_bound"].iloc[0])
        & readings["reading"].str.endswith(first["reading"].iloc[0].rpartition(", ")[2])
    ].drop_duplicates(MODEL)
    truth = truth[truth["again"] == 0]
    exact = {NAMES[target]: part for target, part in truth.groupby("target", sort=False)}
    tables = {SAMPLES: alike} | exact
    both = alike[MODEL]
    for part in exact.values():
        both = both.merge(part[MODEL], on=MODEL)
    kept = {name: both.merge(part, on=MODEL) for name, part in tables.items()}
    return Estimates(kept, overlap_column(truth), resamples)


def truth_listing(found: Estimates) -> Listing:
    """Return each claim about the matrices by each estimate, and whose property it is."""
    questions: dict[str, tuple[str, Callable[[pd.DataFrame], Answer]]] = {
        "gap in decades": ("1 to 3, all above 0", lambda t: _gap(t, found.resamples)),
        "missing-information ratio": ("", lambda t: _median(t, "mir", found.resamples)),
        "log-det gap": ("negative", lambda t: _negative(t, "logdet_gap", found.resamples)),
        "q90 of log10 gamma, all directions": ("negative", lambda t: _negative(t, "q90", found.resamples)),
        "q90 without null directions": (
            "negative",
            lambda t: _negative(t, "identifiable_q90", found.resamples),
        ),
        f"overlap of the leading {found.overlap.removeprefix('overlap')} directions": (
            "low",
            lambda t: _low(t, found.overlap, found.resamples),
        ),
        "negative directions": ("", lambda t: _median(t, "negative", found.resamples)),
        "overlap against entropy, r by process noise": (
            "decreases",
            lambda t: _trend(t, found.overlap, -1, found.resamples),
        ),
        "gap against entropy, r by process noise": (
            "increases",
            lambda t: _trend(t, "gap", 1, found.resamples),
        ),
        "gap against entropy given observation noise, partial r": (
            "0.016, -0.039, -0.31",
            lambda t: _trend(t, "gap", 0, found.resamples),
        ),
        "share of what is missing that is due to the gates": (
            "",
            lambda t: _median(t, "switching_share", found.resamples),
        ),
    }
    rows = []
    for question, (paper, answer) in questions.items():
        answers = [answer(table) for table in found.tables.values()]
        rows.append([question, paper, *(one.words for one in answers), _whose(answers)])
    words = (
        f"{found.models} models ({_intervals(found)}), each by eight sampled states and 64 particles, as in "
        "the paper, and by "
        "closed forms that sample gate paths only: under the paper's filter, and under the one that targets "
        "the model itself, with gate paths by particle Gibbs. Medians with intervals over models; the last "
        "column says who makes what the paper claims: the models, if the closed forms under the paper's own "
        "target say it as well."
    )
    return Listing(
        TRUE, "Samples and closed forms", words, ["", "paper", *found.tables, "a property of"], rows
    )


def _intervals(found: Estimates) -> str:
    counts = next(iter(found.tables.values()))["tau"].value_counts().sort_index()
    return ", ".join(f"{count} with tau = {tau:g}" for tau, count in counts.items())


def _whose(answers: list[Answer]) -> str:
    samples, exact = answers[0].agrees, answers[1].agrees if len(answers) > 1 else None
    if samples is None and exact is None:
        return ""
    return _MODELS if exact else _SAMPLES_ONLY if samples else _NOBODY


def _gap(table: pd.DataFrame, resamples: int) -> Answer:
    kept = table["gap"].dropna()
    none = f"; {len(table) - len(kept)} without" if len(kept) < len(table) else ""
    words = f"{median(kept, resamples=resamples)}, {kept.min():.2f} to {kept.max():.2f}{none}"
    return Answer(words, bool((kept > 0).all()))


def _median(table: pd.DataFrame, column: str, resamples: int) -> Answer:
    if column not in table or table[column].isna().all():
        return Answer("", None)
    return Answer(str(median(table[column].dropna(), resamples=resamples)), None)


def _negative(table: pd.DataFrame, column: str, resamples: int) -> Answer:
    if column not in table:
        return Answer("", None)
    values = table[column].dropna()
    share = float((values < 0).mean())
    return Answer(f"{median(values, resamples=resamples)}, {share:.0%} negative", share >= _LEAST)


def _low(table: pd.DataFrame, column: str, resamples: int) -> Answer:
    middle = median(table[column], resamples=resamples)
    return Answer(str(middle), middle.high < 0.5)


def _trend(table: pd.DataFrame, column: str, sign: int, resamples: int) -> Answer:
    """Return r of a column with entropy by stratum; for sign 0 the partial one given observation noise."""
    words, agree = [], []
    for process, part in table.dropna(subset=[column]).groupby("process_std"):
        found = association(part["entropy_bits"], part[column], part["observation_std"], resamples=resamples)
        one = found.spearman if sign else found.partial
        if not math.isfinite(one.value):
            continue  # too few models so far
        words.append(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}] at {process:g}")
        agree.append(one.low > 0 if sign > 0 else one.high < 0 if sign else one.low <= 0 <= one.high)
    return Answer(", ".join(words), all(agree) if agree else None)


def errors_listing(repeats: pd.DataFrame, truth: pd.DataFrame) -> Listing:
    """Return the Monte Carlo deviation of each number beside that between models of equal settings."""
    overlap = overlap_column(truth)
    again = truth[truth["target"] == "paper"]
    closed = again[again.groupby(MODEL)["again"].transform("nunique") > 1]
    alike = again[again["again"] == 0]
    rows = []
    for column, words in (
        ("entropy_bits", "entropy, bits"),
        ("gap", "gap, decades"),
        ("mir", "missing-information ratio"),
        ("logdet_gap", "log-det gap, decades"),
        ("q90", "q90 of log10 gamma"),
        ("overlap", "overlap"),
        ("negative", "negative directions"),
    ):
        own = overlap if column == "overlap" else column
        between = _within(alike, own, ["process_std", "observation_std", "tau"])
        samples, exact = _within(repeats, column, MODEL), _within(closed, own, MODEL)
        cells = ["" if math.isnan(value) else f"{value:.2g}" for value in (between, samples, exact)]
        rows.append([words, *cells])
    seeds = repeats.groupby(MODEL)["again"].nunique()
    models, runs = int((seeds > 1).sum()), repeats["again"].nunique()
    columns = ["", "between models", "Monte Carlo, eight samples", "Monte Carlo, closed forms"]
    words = (
        "Standard deviations: between models that differ in their seed only, by closed forms under the "
        f"paper's target ({len(alike)} models); of one model over up to {runs} seeds of the filter, by eight "
        f"samples ({models} models); and over two seeds by closed forms "
        f"({closed.groupby(MODEL).ngroups} models). What is larger than the first column cannot "
        "tell one model from another."
    )
    return Listing(TRUE, "How far one number can be trusted", words, columns, rows)


def _within(table: pd.DataFrame, column: str, keys: list[str]) -> float:
    """Return the pooled deviation within groups that have at least two values; NaN without any."""
    kept = table.dropna(subset=[column]).groupby(keys)[column]
    squares, freedom = kept.var(ddof=1) * (kept.size() - 1), kept.size() - 1
    total = float(freedom[freedom > 0].sum())
    return math.sqrt(float(squares[freedom > 0].sum()) / total) if total else math.nan
