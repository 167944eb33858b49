"""The two geometries: how sharp the forcing objective and the marginal likelihood are in the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.report.blocks import Block, Figure, Note, Section, Table, csv_download, number, typed_array
from palrnn.report.view import Geometry, Run
from palrnn.report.drawing import axis, colour, line, log_axis, percent, sentence


def section(runs: Sequence[Run]) -> Section | None:
    """Return the measures of mismatch, the spectra, the overlap and the split of missing information."""
    having = [run for run in runs if run.geometry is not None]
    if not having:
        return None
    blocks: list[Block] = [table(having)]
    if any(_has_matrices(_of(run)) for run in having):
        blocks.append(spectra(having))
    if any(_of(run).overlap for run in having):
        blocks.append(overlap(having))
    blocks.append(split(having))
    blocks += [_warning(run) for run in having if _of(run).negative]
    blocks += [_without_matrices(run) for run in having if not _has_matrices(_of(run))]
    return Section(
        "geometry",
        "Two geometries",
        "Teacher forcing follows one path of gates and takes it for certain; the marginal likelihood weighs "
        "all paths that "
        "explain the data. Both have a curvature around the trained parameters, which says how precisely "
        "the data "
        "determine them. They need not agree.",
        tuple(blocks),
    )


def table(runs: Sequence[Run]) -> Table:
    """Return the measures of mismatch, a column per run."""
    found = [_of(run) for run in runs]
    rows = [
        ("Forcing interval τ", *(str(part.tau) for part in found), ""),
        (
            "Curvature gap g, decades",
            *(number(part.gap) for part in found),
            "> 0: forcing is sharper in total",
        ),
        ("Trace, forcing (per step)", *(number(part.trace_itf) for part in found), ""),
        ("Trace, marginal likelihood (per step)", *(number(part.trace_observed) for part in found), ""),
        (
            "Missing-information ratio",
            *(percent(part.mir) for part in found),
            "share of the complete-data information",
        ),
        (
            "Log-determinant gap, decades",
            *(number(part.logdet_gap) for part in found),
            "< 0: forcing is flatter in most directions",
        ),
        (
            "90 % quantile of log₁₀ γ",
            *(number(part.q90) for part in found),
            "< 0: so in nine of ten directions",
        ),
        (
            "Directions with negative γ",
            *(_negative(part) for part in found),
            "0 for a definite estimate",
        ),
        (
            "Mean code entropy, bits",
            *(number(part.entropy_bits) for part in found),
            f"at most {number(np.log2(found[0].particles))} with {found[0].particles} particles",
        ),
    ]
    names = [run.name for run in runs] if len(runs) > 1 else ["Model"]
    first = found[0]
    caption = (
        f"Mismatch on {first.steps} held-out steps: {first.particles} particles, {first.samples} smoothing "
        "samples, "
        f"target {first.target}"
    )
    return Table(
        caption,
        ("", *names, "How to read it"),
        tuple(rows),
        (csv_download("geometry.csv", ("measure", *names, "note"), rows),),
    )


def spectra(runs: Sequence[Run]) -> Figure:
    """Return both eigenvalue spectra of each run, largest first, on a logarithmic scale."""
    traces: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    words = []
    for i, run in enumerate(runs):
        found = _of(run)
        if not _has_matrices(found):
            continue
        of = f"{run.name}, " if len(runs) > 1 else ""
        shades = (colour(0), colour(1)) if len(runs) == 1 else (colour(i), colour(i))
        pairs = (
            ("forcing", found.eigenvalues_itf, shades[0], "solid"),
            ("marginal likelihood", found.eigenvalues_observed, shades[1], "dot"),
        )
        for name, values, shade, dash in pairs:
            positive = [value if value > 0 else np.nan for value in values]
            style = {"line": {"color": shade, "width": 2, "dash": dash if len(runs) > 1 else "solid"}}
            traces.append(
                line(typed_array(np.arange(1, len(values) + 1)), typed_array(positive), f"{of}{name}", shade) | style
            )
            rows += [(run.name, name, k + 1, value) for k, value in enumerate(values)]
        words.append(
            f"{of}the largest eigenvalue is {number(found.eigenvalues_itf[0])} under forcing and "
            f"{number(found.eigenvalues_observed[0])} under the marginal likelihood"
        )
    return Figure(
        "spectra",
        "Eigenvalues of the two information matrices, per step",
        sentence(words, "Negative eigenvalues, which a noisy estimate can have, are left out."),
        tuple(traces),
        {"xaxis": axis("number"), "yaxis": log_axis("eigenvalue", np.array([row[-1] for row in rows]))},
        downloads=(csv_download("eigenvalues.csv", ("run", "matrix", "number", "eigenvalue"), rows),),
    )


def overlap(runs: Sequence[Run]) -> Figure:
    """Return how much of the k sharpest directions the two geometries share, for each k."""
    traces, rows, words = [], [], []
    for i, run in enumerate(runs):
        found = _of(run)
        if not found.overlap:
            continue
        name = run.name if len(runs) > 1 else "overlap"
        order, shared = [k for k, _ in found.overlap], [value for _, value in found.overlap]
        # a large network has one number, for which a line is too short
        marks = {"mode": "markers"} if len(order) == 1 else {}
        traces.append(line(order, shared, name, colour(i), width=2) | marks)
        rows += [(run.name, k, value) for k, value in found.overlap]
        of = f"{run.name}: " if len(runs) > 1 else ""
        words.append(f"{of}the {order[-1]} sharpest directions overlap by {number(shared[-1])}")
    first = next((_of(run) for run in runs if _of(run).overlap), None)
    if first is not None:
        order = list(range(1, first.overlap[-1][0] + 1))
        chance = [k / first.dimension for k in order]
        by_chance = {"line": {"color": "@soft", "width": 1, "dash": "dash"}}
        traces.append(line(order, chance, "by chance", "@soft", hoverinfo="skip") | by_chance)
    return Figure(
        "overlap",
        "Overlap of the sharpest directions",
        sentence(
            words, "One means the same subspace; the dashed line is what two random subspaces would share."
        ),
        tuple(traces),
        {"xaxis": axis("number of directions k"), "yaxis": axis("overlap", range=[0, 1.02])},
        height=340,
        downloads=(csv_download("overlap.csv", ("run", "k", "overlap"), rows),),
    )


def split(runs: Sequence[Run]) -> Figure:
    """Return the complete-data information of each run: what is observed, and the two missing parts."""
    names = [run.name if len(runs) > 1 else "model" for run in runs]
    found = [_of(run) for run in runs]
    parts = (
        ("observed", [part.trace_observed / part.trace_complete for part in found], "@blue"),
        (
            "missing: the state is not seen",
            [part.trace_state / part.trace_complete for part in found],
            "@orange",
        ),
        (
            "missing: the gates are not seen",
            [part.trace_switching / part.trace_complete for part in found],
            "@vermilion",
        ),
    )
    traces = tuple(
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": shares,
            "name": name,
            "marker": {"color": shade},
            "hovertemplate": "%{x:.1%}<extra>%{fullData.name}</extra>",
        }
        for name, shares, shade in parts
    )
    words = [
        f"{f'{name}: ' if len(runs) > 1 else ''}{percent(parts[0][1][i])} of the complete-data information "
        "is observed, "
        f"{percent(parts[1][1][i])} is lost to the unseen state and {percent(parts[2][1][i])} to switching "
        "ambiguity"
        for i, name in enumerate(names)
    ]
    rows = [(name, label, shares[i]) for i, name in enumerate(names) for label, shares, _ in parts]
    return Figure(
        "missing",
        "Where the information goes",
        sentence(
            words,
            "Shares of traces; they add up to one, and the observed one can be negative with few samples.",
        ),
        traces,
        {
            "barmode": "relative",
            "xaxis": axis("share of the complete-data information", tickformat=".0%"),
            "yaxis": {"automargin": True, "autorange": "reversed"},
        },
        height=190 + 40 * len(runs),
        downloads=(csv_download("missing-information.csv", ("run", "part", "share"), rows),),
    )


def _warning(run: Run) -> Note:
    found = _of(run)
    why = "its Monte Carlo error exceeds its smallest eigenvalues"
    if found.samples <= found.dimension:
        rank = f"its missing part has rank at most {found.samples - 1}"
        why = f"with {found.samples} smoothing samples {rank} and exceeds the complete part there"
    return Note(
        f"{run.name}: the estimated marginal-likelihood information is indefinite in {found.negative} of "
        f"{found.dimension} directions: {why}. Take more samples before reading single directions."
    )


def _without_matrices(run: Run) -> Note:
    found = _of(run)
    if found.trace_itf is None:
        return Note(
            f"{run.name}: the forced rollout diverges on these steps, so that forcing has no curvature there "
            "to compare with."
        )
    return Note(
        f"{run.name}: no matrices were computed for its {found.dimension} parameters, so there is nothing to "
        "say about single directions."
    )


def _negative(found: Geometry) -> str:
    if found.negative is None or not _has_matrices(found):
        return "not computed"
    return f"{found.negative} of {found.dimension}"


def _has_matrices(found: Geometry) -> bool:
    return bool(found.eigenvalues_itf)


def _of(run: Run) -> Geometry:
    assert run.geometry is not None
    return run.geometry
