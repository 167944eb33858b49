"""Filter diagnostics: is the cloud of particles healthy, and how unsure is it about the gates?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from palrnn.inference import FilterDiagnostics
from palrnn.report.blocks import Block, Figure, Note, Table, csv_download, number
from palrnn.report.drawing import axis, line, per_run, percent
from palrnn.report.registry import section
from palrnn.report.view import Run


@section(
    "filter",
    "Which gates were open",
    order=80,
    needs="diagnostics",
    lead="A Rao-Blackwellised particle filter guesses the gates of a held-out stretch: particles carry gate "
    "paths, and given its path each has an exact Gaussian belief about the state.",
)
def filter_health(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return the effective sample size and the code entropy of each run."""
    return per_run(runs, _blocks)


def _blocks(run: Run, key: str) -> list[Block]:
    found: FilterDiagnostics = run["diagnostics"]
    return [sample_size(found, f"{key}-ess"), entropy(found, f"{key}-entropy"), *_warnings(found)]


def filter_table(found: FilterDiagnostics) -> Table:
    """Return the figures of a pass, each with what it is to be read against."""
    config, bound = found.config, number(found.entropy_bound)
    rows = (
        (
            "Log evidence",
            f"{found.log_evidence:.3f}",
            f"{found.evidence_per_number:.4f} per step and dimension",
        ),
        ("Effective sample size", f"{found.ess.mean():.1f}", f"mean, of {config.particles} particles"),
        ("Resampled", f"{int(found.resampled.sum())} times", f"in {found.steps} steps, {config.resampling}"),
        ("Code entropy, bits", f"{found.code_entropy.mean():.3f}", f"mean; at most {bound} can be seen"),
        (
            "Distinct gate paths",
            f"{found.distinct[0]} to {found.distinct[-1]}",
            f"first to last, of {found.paths}",
        ),
    )
    return Table("", ("", "Filter", "How to read it"), rows)


def sample_size(found: FilterDiagnostics, key: str) -> Figure:
    """Return the effective sample size as a share of the particles, and the steps of resampling."""
    particles, limit = found.config.particles, found.config.ess_threshold
    share = found.ess / particles
    steps = np.arange(1, len(share) + 1)
    when = np.flatnonzero(found.resampled)
    events = {"x": steps[when].tolist(), "y": share[when].tolist(), "name": "resampled"}
    traces = (
        line(steps.tolist(), share.tolist(), "effective sample size", "@blue", width=1.8),
        {"type": "scatter", "mode": "markers", "marker": {"color": "@vermilion", "size": 6}} | events,
        line([1, len(share)], [limit, limit], "threshold", "@soft", width=1, hoverinfo="skip")
        | {"line": {"color": "@soft", "width": 1, "dash": "dot"}},
    )
    summary = (
        f"The effective sample size is {percent(float(share.mean()))} of {particles} particles in the mean "
        f"and {percent(float(share.min()))} at worst; the particles were resampled at {len(when)} of "
        f"{len(share)} steps."
    )
    columns = (steps, found.ess, found.resampled.astype(int), found.code_entropy)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Figure(
        key,
        "Effective sample size",
        summary,
        traces,
        {
            "xaxis": axis("step", range=[0, len(share) + 1]),
            "yaxis": axis("share of particles", range=[0, 1.05]),
        },
        height=320,
        downloads=(csv_download("filter.csv", ("step", "ess", "resampled", "entropy_bits"), rows),),
    )


def entropy(found: FilterDiagnostics, key: str) -> Figure:
    """Return the entropy of the switching code over time, below the most that the particles can show."""
    steps, bound = list(range(1, found.steps + 1)), found.entropy_bound
    dashed = {"line": {"color": "@soft", "width": 1, "dash": "dash"}}
    traces = (
        line(steps, found.code_entropy.tolist(), "code entropy", "@green", width=1.8),
        line([1, len(steps)], [bound, bound], "largest possible", "@soft", hoverinfo="skip") | dashed,
    )
    particles = found.config.particles
    why = f"{found.gated} gates" if bound < math.log2(particles) else f"log₂ of {particles} particles"
    summary = (
        f"The filter is unsure about {number(float(found.code_entropy.mean()))} bits of the code in the "
        f"mean, at most {number(float(found.code_entropy.max()))}. An estimate from particles cannot exceed "
        f"{number(bound)} bits ({why}); close to that line it says little."
    )
    return Figure(
        key,
        "Entropy of the switching code",
        summary,
        traces,
        {"xaxis": axis("step", range=[0, len(steps) + 1]), "yaxis": axis("bits", rangemode="tozero")},
        height=320,
    )


def _warnings(found: FilterDiagnostics) -> list[Note]:
    notes = []
    if found.code_entropy.mean() > 0.85 * found.entropy_bound > 0:
        notes.append(Note("The entropy is close to its bound: take more particles before believing it."))
    if found.distinct[0] < 0.25 * found.paths:
        notes.append(
            Note(
                f"Only {found.distinct[0]} of {found.paths} sampled gate paths differ at the first step: "
                "ancestors have coalesced there, and what is said about early gates rests on few paths."
            )
        )
    return notes
