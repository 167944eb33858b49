"""What of the paper's claims about curvature the models make, and what its eight samples make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from palrnn.paper.claim import TRUE, Finding, Listing
from palrnn.paper.statistics import association, median
from palrnn.paper.studies.gap.claims import PAPER_FIXED_Q, overlap_column

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
    """The same models by several estimates: the paper's first, then closed forms by target.

    ``designs`` are the models of each reading: trends over models of several designs are of neither.
    """

    tables: Mapping[str, pd.DataFrame]
    overlap: str
    resamples: int
    designs: Mapping[str, pd.DataFrame]

    @property
    def models(self) -> int:
        """The number of models."""
        return len(next(iter(self.tables.values())))


def estimates(readings: pd.DataFrame, truth: pd.DataFrame, resamples: int) -> Estimates:
    """Return the models that have all estimates; samples are those of the first reading and its like."""
    first = readings[readings["reading"] == readings["reading"].iloc[0]]
    several = readings[
        (readings["entropy_bound"] == first["entropy_bound"].iloc[0])
        & readings["reading"].str.endswith(first["reading"].iloc[0].rpartition(", ")[2])
    ]
    alike = several.drop_duplicates(MODEL).sort_values(MODEL)
    truth = truth[truth["again"] == 0]
    exact = {NAMES[target]: part for target, part in truth.groupby("target", sort=False)}
    tables = {SAMPLES: alike} | exact
    both = alike[MODEL]
    for part in exact.values():
        both = both.merge(part[MODEL], on=MODEL)
    kept = {name: both.merge(part, on=MODEL) for name, part in tables.items()}
    designs = {
        _design(part): part[MODEL].merge(both, on=MODEL) for _, part in several.groupby("reading", sort=False)
    }
    there = {words: models for words, models in designs.items() if len(models)}
    return Estimates(kept, overlap_column(truth), resamples, there)


def _design(models: pd.DataFrame) -> str:
    intervals = ", ".join(f"{tau:g}" for tau in sorted(models["tau"].unique()))
    return f"tau = {intervals} with {models['seed'].nunique()} seeds"


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
        "share of what is missing that is due to the gates": (
            "",
            lambda t: _median(t, "switching_share", found.resamples),
        ),
    }
    rows = []
    for question, (paper, answer) in questions.items():
        answers = [answer(table) for table in found.tables.values()]
        rows.append([question, paper, *(one.words for one in answers), _whose(answers)])
    rows += _trends(found)
    words = (
        f"{found.models} models ({_intervals(found)}), each by eight sampled states and 64 particles, as in "
        "the paper, and by "
        "closed forms that sample gate paths only: under the paper's filter, and under the one that targets "
        "the model itself, with gate paths by particle Gibbs. Medians with intervals over models; the last "
        "column says who makes what the paper claims: the models, if the closed forms under the paper's own "
        "target say it as well. How figures go together over models is told for each design by itself, by "
        "the rules of the tables below, with the models that have a gap."
    )
    return Listing(
        TRUE, "Samples and closed forms", words, ["", "paper", *found.tables, "a property of"], rows
    )


def target_finding(truth: pd.DataFrame, resamples: int) -> Finding | None:
    """Return what changes from the paper's target to the exact one, model by model, by closed forms."""
    once = {str(target): part for target, part in truth[truth["again"] == 0].groupby("target")}
    if once.keys() < {"paper", "exact"}:
        return None
    both = (
        once["paper"]
        .merge(once["exact"], on=MODEL, suffixes=("", "_exact"))
        .dropna(subset=["gap", "gap_exact"])
    )
    change = {
        column: median(both[f"{column}_exact"] - both[column], resamples=resamples)
        for column in ("gap", "entropy_bits", "mir")
    }
    share = median(both["switching_share_exact"], resamples=resamples)
    return Finding(
        "the exact target, beside the paper's",
        f"by closed forms of {len(both)} models, with paths by particle Gibbs, the median change in the gap "
        f"is {change['gap']} decades, in the entropy {change['entropy_bits']} bits, in the "
        f"missing-information ratio {change['mir']}; of what is missing, at most {share.value:.1%} "
        f"[{share.low:.1%}, {share.high:.1%}] in the median is due to not knowing the gates (paths are those "
        "of the gate inputs, which tell more than the gates alone)",
        {name: found._asdict() for name, found in change.items()} | {"switching_share": share._asdict()},
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


def _trends(found: Estimates) -> list[list[str]]:
    """Return rows on how gap and overlap go with entropy, design by design."""
    rows = []
    for design, models in found.designs.items():
        tables = [models.merge(table, on=MODEL).sort_values(MODEL) for table in found.tables.values()]
        for words, paper, column, sign in (
            ("overlap against entropy, r by process noise", "decreases", found.overlap, -1),
            ("gap against entropy, r by process noise", "increases", "gap", 1),
        ):
            answers = [_trend(table, column, sign, found.resamples) for table in tables]
            rows.append([f"{words}; {design}", paper, *(one.words for one in answers), _whose(answers)])
        for process in sorted(set(models["process_std"]) & set(PAPER_FIXED_Q)):
            parts = [table[table["process_std"] == process] for table in tables]
            paper_value = PAPER_FIXED_Q[process].partial
            answers = [_partial(part, paper_value, found.resamples) for part in parts]
            words = f"gap against entropy given observation noise, partial r at process noise {process:g}"
            rows.append(
                [f"{words}; {design}", f"{paper_value:g}", *(one.words for one in answers), _whose(answers)]
            )
    return rows


def _trend(table: pd.DataFrame, column: str, sign: int, resamples: int) -> Answer:
    """Return r of a column with entropy by process noise, and whether all intervals have the ``sign``."""
    words, agree = [], []
    for process, part in table.dropna(subset=["gap", column]).groupby("process_std"):
        one = association(
            part["entropy_bits"], part[column], part["observation_std"], resamples=resamples
        ).spearman
        if not math.isfinite(one.value):
            continue  # too few models so far
        words.append(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}] at {process:g}")
        agree.append(one.low > 0 if sign > 0 else one.high < 0)
    return Answer(", ".join(words), all(agree) if agree else None)


def _partial(table: pd.DataFrame, paper: float, resamples: int) -> Answer:
    """Return partial r of gap and entropy, and whether its interval contains the paper's."""
    kept = table.dropna(subset=["gap"])
    one = association(kept["entropy_bits"], kept["gap"], kept["observation_std"], resamples=resamples).partial
    if not math.isfinite(one.value):
        return Answer("", None)
    return Answer(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]", one.low <= paper <= one.high)


_FIGURES = {
    "entropy_bits": "entropy, bits",
    "gap": "gap, decades",
    "mir": "missing-information ratio",
    "logdet_gap": "log-det gap, decades",
    "q90": "q90 of log10 gamma, all directions",
    "overlap": "overlap",
    "negative": "negative directions",
}
_TARGETS = {"paper": "the paper's target", "exact": "exact target"}


def errors_listing(repeats: pd.DataFrame, truth: pd.DataFrame, tau: int) -> Listing:
    """Return the Monte Carlo deviation of each number beside that between models of equal settings.

    All models have the forcing interval ``tau``, which is that of the repetitions.
    """
    overlap, samples = overlap_column(truth), repeats[repeats["particles"] == repeats["particles"].iloc[0]]
    rows, counts, whole = [], {}, truth[truth["tau"] == tau]
    for target, part in whole.groupby("target", sort=False):
        once = part[part["again"] == 0]
        again = part[part.groupby(MODEL)["again"].transform("nunique") > 1]
        counts[str(target)] = len(once), again.groupby(MODEL).ngroups
        for column, words in _FIGURES.items():
            own, stderr = overlap if column == "overlap" else column, f"{column}_stderr"
            errors = once[stderr].dropna() if stderr in once else once[own].iloc[:0]
            values = (
                _within(once, own, ["process_std", "observation_std"]),
                _within(samples, column, MODEL) if target == "paper" else math.nan,
                _within(again, own, MODEL),
                math.sqrt(float((errors**2).mean())) if len(errors) else math.nan,
            )
            cells = ["" if math.isnan(value) else f"{value:.2g}" for value in values]
            rows.append([words, _TARGETS[str(target)], *cells])
    seeds = samples.groupby(MODEL)["again"].nunique()
    numbers = ", ".join(
        f"{_TARGETS[name]}: {models} models, {twice} of them twice"
        for name, (models, twice) in counts.items()
    )
    columns = [
        "",
        "",
        "between models",
        "seeds, eight samples",
        "seeds, closed forms",
        "passes, closed forms",
    ]
    words = (
        f"Standard deviations, all at tau = {tau}: between models of equal noise that differ in their seed "
        "only, by closed forms; of one model over seeds of the filter, by eight samples "
        f"({int((seeds > 1).sum())} models, up to {seeds.max()} seeds) and by closed forms; and what closed "
        "forms say of their own error, from how their passes of the filter differ (the root of the mean "
        f"square over models). By closed forms under {numbers}. What is larger than the first column cannot "
        "tell one model from another."
    )
    return Listing(TRUE, "How far one number can be trusted", words, columns, rows)


def particles_listing(repeats: pd.DataFrame, resamples: int) -> Listing:
    """Return entropy, gap and missing-information ratio by the particles of the paper's estimator.

    With intervals over models of the means over seeds, and the deviation over seeds of one model.
    """
    parts = {int(number): part for number, part in repeats.groupby("particles")}
    first, last = min(parts), max(parts)
    rows = []
    for column in ("entropy_bits", "gap", "mir"):
        means = {number: part.groupby(MODEL)[column].mean().dropna() for number, part in parts.items()}
        cells = [str(median(values, resamples=resamples)) for values in means.values()]
        change = (means[last] - means[first]).dropna()
        rows.append([_FIGURES[column], *cells, str(median(change, resamples=resamples))])
        spread = [f"{_within(part, column, MODEL):.2g}" for part in parts.values()]
        rows.append([f"{_FIGURES[column]}: over seeds", *spread, ""])
    models = repeats.groupby(MODEL).ngroups
    seeds = ", ".join(f"{part['again'].nunique()} with {number}" for number, part in parts.items())
    words = (
        f"The paper's estimator with eight samples: {models} models, seeds of the filter: {seeds}. Medians "
        "over models of the mean over seeds, with intervals over models; below each the deviation of one "
        "model over seeds. The last column is the median change over the same models."
    )
    columns = ["", *(f"{number} particles" for number in parts), f"{last} less {first}"]
    return Listing(TRUE, "Particles, seeds and models", words, columns, rows)


def _within(table: pd.DataFrame, column: str, keys: list[str]) -> float:
    """Return the pooled deviation within groups that have at least two values; NaN without any."""
    kept = table.dropna(subset=[column]).groupby(keys)[column]
    squares, freedom = kept.var(ddof=1) * (kept.size() - 1), kept.size() - 1
    total = float(freedom[freedom > 0].sum())
    return math.sqrt(float(squares[freedom > 0].sum()) / total) if total else math.nan
