"""The two geometries: how sharp the forcing objective and the marginal likelihood are in the same place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from palrnn.geometry import GeometryComparison, InvariantErrorBars
from palrnn.model import Forcing
from palrnn.report.blocks import (
    Block,
    Card,
    Figure,
    Note,
    Table,
    csv_download,
    number,
    typed_array,
    with_error,
)
from palrnn.report.drawing import axis, colour, line, log_axis, percent, sentence
from palrnn.report.registry import headline, section
from palrnn.report.view import Run

Measures = Mapping[str, Any]


@section(
    "geometry",
    "Two geometries",
    order=70,
    needs="geometry",
    lead="Teacher forcing follows one path of gates and takes it for certain; the marginal likelihood weighs "
    "all paths that explain the data. Both have a curvature around the trained parameters, which says how "
    "precisely the data determine them. They need not agree.",
)
def geometry(runs: Sequence[Run]) -> list[Block]:
    """Return the measures of mismatch, the spectra, the overlap and the split of missing information."""
    pairs = [(run.name, run["geometry"].to_dict()) for run in runs]
    names = [name for name, _ in pairs]
    blocks: list[Block] = [geometry_table([run["geometry"] for run in runs], names)]
    if any(_has_matrices(measures) for _, measures in pairs):
        blocks.append(spectra(pairs))
    if any(_overlaps(measures) for _, measures in pairs):
        blocks.append(overlap(pairs))
    blocks.append(split(pairs))
    blocks += [_warning(name, measures) for name, measures in pairs if measures.get("negative")]
    blocks += [_without_matrices(name, measures) for name, measures in pairs if not _has_matrices(measures)]
    return blocks


@headline(order=30, needs="geometry")
def gap(run: Run) -> Card | None:
    """Return the curvature gap in words."""
    measures = run["geometry"].to_dict()
    if measures["gap"] is None:
        return None
    side = "as sharp" if measures["gap"] >= 0 else "as flat"
    return Card(
        "Curvature gap g",
        number(measures["gap"]),
        "By trace, ruled by the sharpest directions, the forcing objective is "
        f"{number(10 ** abs(measures['gap']))} times {side} around the trained parameters as the marginal "
        "likelihood of the same model, which allows for gate paths other than the forced one.",
        "decades",
    )


@headline(order=40, needs="geometry")
def missing(run: Run) -> Card | None:
    """Return the share of information that is missing, and how much of that is due to the gates."""
    measures = run["geometry"].to_dict()
    switching, lost = measures["trace_missing_switching"], measures["trace_missing"]
    share = ""
    if switching is not None and lost > 0:
        share = f" {percent(switching / lost)} of that is switching ambiguity, the rest the unseen state."
    words = (
        "What the data would tell about the parameters if states and gates were seen, and does not tell as"
    )
    return Card("Missing information", percent(measures["mir"]), f"{words} it is.{share}")


def geometry_table(found: Sequence[GeometryComparison], names: Sequence[str] = ("Model",)) -> Table:
    """Return the measures of mismatch, a column per run; traces are per step."""
    all_measures = [comparison.to_dict() for comparison in found]
    first = all_measures[0]

    def row(label: str, cells: Any, note: str = "") -> tuple[str, ...]:
        return label, *(cells(measures) for measures in all_measures), note

    def trace(name: str) -> Any:
        return lambda m: with_error(m.get(name), m.get(f"{name}_stderr"))

    rows = [
        row("Forcing", lambda m: repr(Forcing.from_dict(m["forcing"]))),
        row(
            "Curvature gap g, decades",
            lambda m: with_error(m["gap"], m["gap_stderr"]),
            "> 0: forcing is sharper in total",
        ),
        row(
            "Trace, forcing", lambda m: number(m["trace_itf"]), f"per step, {first['parameters']} parameters"
        ),
        row("Trace, marginal likelihood", trace("trace_observed"), "per step: complete minus missing"),
        row("Trace, complete data", trace("trace_complete"), "if states and gates were seen"),
        row("Trace, missing", trace("trace_missing"), ""),
        row("  by the unseen state", trace("trace_missing_state"), "given the gates"),
        row("  by the unseen gates", trace("trace_missing_switching"), "switching ambiguity"),
        row(
            "Missing-information ratio",
            lambda m: percent(m["mir"]) + (f" ± {percent(m['mir_stderr'])}" if m.get("mir_stderr") else ""),
            "share of the complete-data information",
        ),
        row(
            "Log-determinant gap, decades",
            lambda m: with_error(m.get("logdet_gap"), m.get("logdet_gap_stderr")),
            "< 0: forcing is flatter in most directions",
        ),
        row(
            "90 % quantile of log₁₀ γ",
            lambda m: with_error(m.get("q90"), m.get("q90_stderr")),
            "< 0: so in nine of ten directions",
        ),
        row("Directions with negative γ", _negative, "where the log evidence is not concave"),
        row(
            f"Overlap of the leading {first['k']}",
            lambda m: with_error(m["overlap"], m.get("overlap_stderr")),
            "mean squared cosine",
        ),
        row(
            "Mean code entropy, bits",
            lambda m: with_error(m["entropy_bits"], m.get("entropy_bits_stderr")),
            f"at most {number(first['entropy_bound'])} with {first['particles']} particles",
        ),
        row(
            "Effective sample size",
            lambda m: with_error(m["ess"], m.get("ess_stderr")),
            f"of {first['particles']}",
        ),
    ]
    caption = (
        f"Mismatch on {first['steps']} steps: {first['particles']} particles, {_samples(first)}, target "
        f"{first['target']}; errors over independent passes of the filter."
    )
    header = ("", *names, "How to read it")
    return Table(caption, header, tuple(rows), (csv_download("geometry.csv", header, rows),))


def error_bars_table(bars: Mapping[str, InvariantErrorBars], prior_std: float) -> Table:
    """Return 90 % intervals of invariants under the posterior of each geometry."""
    rows = []
    for name, bar in bars.items():
        intervals = [
            " to ".join(number(end) for end in bar.interval(which)) for which in ("lyapunov", "dstsp")
        ]
        rows.append((name, *intervals, f"{bar.diverged} of {len(bar.dstsp)}"))
    header = ("Models drawn under", "λ₁", "D_stsp", "Diverged")
    return Table(f"90 % intervals, prior deviation {prior_std:g}", header, tuple(rows))


def spectra(pairs: Sequence[tuple[str, Measures]]) -> Figure:
    """Return both eigenvalue spectra of each run, largest first, on a logarithmic scale."""
    traces: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    words, several = [], len(pairs) > 1
    for i, (run, measures) in enumerate(pairs):
        if not _has_matrices(measures):
            continue
        of = f"{run}, " if several else ""
        kinds = (
            ("forcing", measures["eigenvalues_itf"], colour(i if several else 0), "solid"),
            ("marginal likelihood", measures["eigenvalues_observed"], colour(i if several else 1), "dot"),
        )
        for name, values, shade, dash in kinds:
            positive = [value if value > 0 else np.nan for value in values]
            style = {"line": {"color": shade, "width": 2, "dash": dash if several else "solid"}}
            order = typed_array(np.arange(1, len(values) + 1))
            traces.append(line(order, typed_array(positive), f"{of}{name}", shade) | style)
            rows += [(run, name, k, value) for k, value in enumerate(values, start=1)]
        words.append(
            f"{of}the largest eigenvalue is {number(measures['eigenvalues_itf'][0])} under forcing and "
            f"{number(measures['eigenvalues_observed'][0])} under the marginal likelihood"
        )
    return Figure(
        "spectra",
        "Eigenvalues of the two information matrices, per step",
        sentence(words, "Negative eigenvalues are left out."),
        tuple(traces),
        {"xaxis": axis("number"), "yaxis": log_axis("eigenvalue", np.array([row[-1] for row in rows]))},
        downloads=(csv_download("eigenvalues.csv", ("run", "matrix", "number", "eigenvalue"), rows),),
    )


def overlap(pairs: Sequence[tuple[str, Measures]]) -> Figure:
    """Return how much of the k sharpest directions the two geometries share, for each k."""
    having = [(run, measures, _overlaps(measures)) for run, measures in pairs if _overlaps(measures)]
    traces, rows, words, several = [], [], [], len(pairs) > 1
    for i, (run, _, shared) in enumerate(having):
        order, values = [k for k, _ in shared], [value for _, value in shared]
        # a large network has one number, for which a line is too short
        marks = {"mode": "markers"} if len(order) == 1 else {}
        traces.append(line(order, values, run if several else "overlap", colour(i), width=2) | marks)
        rows += [(run, k, value) for k, value in shared]
        of = f"{run}: " if several else ""
        words.append(f"{of}the {order[-1]} sharpest directions overlap by {number(values[-1])}")
    _, measures, shared = having[0]
    order = list(range(1, shared[-1][0] + 1))
    chance = [k / measures["parameters"] for k in order]
    by_chance = {"line": {"color": "@soft", "width": 1, "dash": "dash"}}
    traces.append(line(order, chance, "by chance", "@soft", hoverinfo="skip") | by_chance)
    tail = "One means the same subspace; the dashed line is what two random subspaces would share."
    return Figure(
        "overlap",
        "Overlap of the sharpest directions",
        sentence(words, tail),
        tuple(traces),
        {"xaxis": axis("number of directions k"), "yaxis": axis("overlap", range=[0, 1.02])},
        height=340,
        downloads=(csv_download("overlap.csv", ("run", "k", "overlap"), rows),),
    )


def split(pairs: Sequence[tuple[str, Measures]]) -> Figure:
    """Return the complete-data information of each run: what is observed, and the missing parts."""
    names = [run if len(pairs) > 1 else "model" for run, _ in pairs]
    kinds = (
        ("observed", "trace_observed", "@blue", "is observed"),
        ("missing: the state is not seen", "trace_missing_state", "@orange", "is lost to the unseen state"),
        (
            "missing: the gates are not seen",
            "trace_missing_switching",
            "@vermilion",
            "is lost to switching ambiguity",
        ),
    )
    shares = {label: [(m[name] or 0.0) / m["trace_complete"] for _, m in pairs] for label, name, *_ in kinds}
    bar = {"type": "bar", "orientation": "h", "y": names}
    traces = tuple(
        bar
        | {"x": shares[label], "name": label, "marker": {"color": shade}}
        | {"hovertemplate": "%{x:.1%}<extra>%{fullData.name}</extra>"}
        for label, _, shade, _ in kinds
    )
    words = []
    for i, name in enumerate(names):
        parts = ", ".join(f"{percent(shares[label][i])} {said}" for label, _, _, said in kinds)
        words.append(f"{f'{name}: ' if len(pairs) > 1 else ''}of the complete-data information {parts}")
    rows = [(name, label, shares[label][i]) for i, name in enumerate(names) for label, *_ in kinds]
    tail = "Shares of traces; they add up to one. Under the exact target gates are known by their inputs."
    return Figure(
        "missing",
        "Where the information goes",
        sentence(words, tail),
        traces,
        {
            "barmode": "relative",
            "xaxis": axis("share of the complete-data information", tickformat=".0%"),
            "yaxis": {"automargin": True, "autorange": "reversed"},
        },
        height=190 + 40 * len(pairs),
        downloads=(csv_download("missing-information.csv", ("run", "part", "share"), rows),),
    )


def _warning(name: str, measures: Measures) -> Note:
    if measures.get("states") == "exact":
        why = (
            "given the gates it is exact, so that trained parameters are no maximum of this likelihood there"
        )
    else:
        why = "from sampled states, which make directions negative that are not; states='exact' needs none"
    return Note(
        f"{name}: the marginal-likelihood information is negative in {measures['negative']} of "
        f"{measures['parameters']} directions: {why}."
    )


def _without_matrices(name: str, measures: Measures) -> Note:
    if measures["trace_itf"] is None:
        return Note(
            f"{name}: the forced rollout diverges on these steps, so that forcing has no curvature there to "
            "compare with."
        )
    return Note(
        f"{name}: no matrices were computed for its {measures['parameters']} parameters, which takes "
        "minutes, so there is nothing to say about single directions; palrnn geometry --most-dense "
        f"{measures['parameters']} does that, and here a --config file with that setting under [geometry]."
    )


def _negative(measures: Measures) -> str:
    if measures.get("negative") is None or not _has_matrices(measures):
        return "not computed"
    return f"{with_error(measures['negative'], measures.get('negative_stderr'))} of {measures['parameters']}"


def _has_matrices(measures: Measures) -> bool:
    return bool(measures.get("eigenvalues_itf"))


def _overlaps(measures: Measures) -> list[tuple[int, float]]:
    """Return (k, overlap) for every k that is known."""
    if measures.get("overlaps"):
        return [(k, value) for k, value in enumerate(measures["overlaps"], start=1)]
    return [] if measures.get("overlap") is None else [(measures["k"], measures["overlap"])]


def _samples(measures: Measures) -> str:
    passes = measures.get("passes", 1)
    paths = f"{measures['paths']} gate paths"
    return paths if passes == 1 else f"{passes} passes of {paths} each"
