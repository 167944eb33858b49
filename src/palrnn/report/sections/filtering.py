"""Filter diagnostics: is the cloud of particles healthy, and how unsure is it about the gates?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from palrnn.report.blocks import Figure, Note, Section, csv_download, number
from palrnn.report.view import Filtering, Run
from palrnn.report.drawing import axis, line, per_run, percent


def section(runs: Sequence[Run]) -> Section | None:
    """Return the section with the effective sample size and the code entropy of each run."""
    having = [run for run in runs if run.filtering is not None]
    if not having:
        return None
    return Section(
        "filter",
        "Which gates were open",
        "A Rao-Blackwellised particle filter guesses the gates of a held-out stretch: particles carry gate "
        "paths, and "
        "given its path each has an exact Gaussian belief about the state.",
        per_run(
            having,
            lambda run, key: [
                sample_size(run, f"{key}-ess"),
                entropy(run, f"{key}-entropy"),
                *_warnings(run),
            ],
        ),
    )


def sample_size(run: Run, key: str) -> Figure:
    """Return the effective sample size as a share of the particles, and the steps of resampling."""
    found = _of(run)
    share = np.array(found.ess) / found.particles
    steps = np.arange(1, len(share) + 1)
    when = np.flatnonzero(found.resampled)
    limit = found.ess_threshold
    traces = (
        line(steps.tolist(), share.tolist(), "effective sample size", "@blue", width=1.8),
        {
            "type": "scatter",
            "mode": "markers",
            "x": steps[when].tolist(),
            "y": share[when].tolist(),
            "name": "resampled",
            "marker": {"color": "@vermilion", "size": 6},
        },
        line([1, len(share)], [limit, limit], "threshold", "@soft", width=1, hoverinfo="skip")
        | {"line": {"color": "@soft", "width": 1, "dash": "dot"}},
    )
    summary = (
        f"The effective sample size is {percent(float(share.mean()))} of {found.particles} particles in the "
        "mean and "
        f"{percent(float(share.min()))} at worst; the particles were resampled at {len(when)} of "
        f"{len(share)} steps."
    )
    rows = zip(
        steps.tolist(), found.ess, (int(flag) for flag in found.resampled), found.entropy_bits, strict=True
    )
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


def entropy(run: Run, key: str) -> Figure:
    """Return the entropy of the switching code over time, below the most that the particles can show."""
    found = _of(run)
    steps = list(range(1, len(found.entropy_bits) + 1))
    bound = entropy_bound(found)
    mean = float(np.mean(found.entropy_bits))
    dashed = {"line": {"color": "@soft", "width": 1, "dash": "dash"}}
    traces = (
        line(steps, found.entropy_bits, "code entropy", "@green", width=1.8),
        line([1, len(steps)], [bound, bound], "largest possible", "@soft", hoverinfo="skip") | dashed,
    )
    gates = (
        f"{found.gated} gates"
        if bound < math.log2(found.particles)
        else f"log₂ of {found.particles} particles"
    )
    summary = (
        f"The filter is unsure about {number(mean)} bits of the code in the mean, at most "
        f"{number(max(found.entropy_bits))}. "
        f"An estimate from particles cannot exceed {number(bound)} bits ({gates}); close to that line it "
        "says little."
    )
    return Figure(
        key,
        "Entropy of the switching code",
        summary,
        traces,
        {"xaxis": axis("step", range=[0, len(steps) + 1]), "yaxis": axis("bits", rangemode="tozero")},
        height=320,
    )


def entropy_bound(found: Filtering) -> float:
    """Return the largest entropy, in bits, that so many particles over so many gates can show."""
    return min(math.log2(found.particles), float(found.gated))


def _warnings(run: Run) -> list[Note]:
    found = _of(run)
    notes = []
    if found.entropy_bits and np.mean(found.entropy_bits) > 0.85 * entropy_bound(found) > 0:
        notes.append(Note("The entropy is close to its bound: take more particles before believing it."))
    if found.paths and found.distinct_first < 0.25 * found.paths:
        notes.append(
            Note(
                f"Only {found.distinct_first} of {found.paths} sampled gate paths differ at the first step: "
                "ancestors have "
                "coalesced there, and what is said about early gates rests on few paths."
            )
        )
    return notes


def _of(run: Run) -> Filtering:
    assert run.filtering is not None
    return run.filtering
