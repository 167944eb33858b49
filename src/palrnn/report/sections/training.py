"""The course of training: the loss, and the free run where it was measured on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.forcing.history import MEASURED
from palrnn.report.blocks import Block, Figure, csv_download, number, typed_array
from palrnn.report.drawing import axis, colour, line, log_axis, sentence, thinned
from palrnn.report.registry import section
from palrnn.report.view import Run


@section(
    "training",
    "Training",
    order=95,
    lead="Mean squared one-step error along forced rollouts, on random stretches of the training data.",
)
def training(runs: Sequence[Run]) -> list[Block]:
    """Return the loss curves of all runs in one figure, and D_stsp on the way in another."""
    trained, measured = [run for run in runs if run.losses], [run for run in runs if run.measured]
    return [*([_losses(trained)] if trained else []), *([_free_runs(measured)] if measured else [])]


def _losses(having: Sequence[Run]) -> Figure:
    traces, words, rows = [], [], []
    for i, run in enumerate(having):
        updates, loss = np.array(run.losses, dtype=np.float64).T
        smooth = running_median(loss)
        keep = thinned(len(loss), 1500)
        if len(having) == 1:
            traces.append(
                line(typed_array(updates[keep]), typed_array(loss[keep]), "each record", "@faint", width=1)
            )
        traces.append(
            line(
                typed_array(updates[keep]),
                typed_array(smooth[keep]),
                run.name if len(having) > 1 else "smoothed",
                colour(i),
                width=2,
            )
        )
        of = f"{run.name}: " if len(having) > 1 else ""
        words.append(
            f"{of}the loss fell from {number(loss[0])} to {number(smooth[-1])} in {updates[-1]:.0f} updates"
        )
        rows += [(run.name, int(update), value) for update, value in run.losses]
    return Figure(
        "loss",
        "Teacher-forcing loss",
        sentence(
            words, "Squared error summed over coordinates, in standardised units.", named=len(having) > 1
        ),
        tuple(traces),
        {"xaxis": axis("update"), "yaxis": log_axis("loss", np.array([value for *_, value in rows]))},
        downloads=(csv_download("loss.csv", ("run", "update", "loss"), rows),),
    )


def _free_runs(having: Sequence[Run]) -> Figure:
    traces, words, rows = [], [], []
    for i, run in enumerate(having):
        updates = np.array([each.update for each in run.measured], dtype=np.float64)
        scores = np.array([each.dstsp for each in run.measured])
        finite = np.isfinite(scores)
        of = f"{run.name}: " if len(having) > 1 else ""
        traces.append(
            line(
                typed_array(updates),
                typed_array(np.where(finite, scores, np.nan)),
                run.name,
                colour(i),
                mode="lines+markers",
                showlegend=len(having) > 1,
            )
        )
        ended = int((~finite).sum())
        missing = f"; the run diverged in {ended} of {len(scores)} measurements, which are not drawn"
        if finite.any():
            lowest = int(np.argmin(np.where(finite, scores, np.inf)))
            said = f"lowest after {updates[lowest]:.0f} updates, {number(scores[lowest])}"
            words.append(f"{of}{said}{missing if ended else ''}")
        else:
            words.append(f"{of}the run diverged in all {len(scores)} measurements")
        rows += [
            (run.name, each.update, each.dstsp, each.outside, each.lyapunov, each.alive)
            for each in run.measured
        ]
    return Figure(
        "measured",
        "D_stsp of the free run in the course of training",
        sentence(words, "Measured at the end of the training data.", named=len(having) > 1),
        tuple(traces),
        {"xaxis": axis("update"), "yaxis": log_axis("D_stsp", np.array([row[2] for row in rows]))},
        height=300,
        downloads=(csv_download("measured.csv", ("run", "update", *MEASURED), rows),),
    )


def running_median(loss: Floats) -> Floats:
    """Return a running median over about a fiftieth of the record: it follows the trend, not the spikes."""
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(loss, size=max(1, len(loss) // 50), mode="nearest"))
