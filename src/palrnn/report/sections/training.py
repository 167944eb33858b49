"""The loss in the course of training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palrnn.engine.checks import Floats
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
    """Return the loss curves of all runs in one figure."""
    having = [run for run in runs if run.losses]
    if not having:
        return []
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
    figure = Figure(
        "loss",
        "Teacher-forcing loss",
        sentence(
            words, "Squared error summed over coordinates, in standardised units.", named=len(having) > 1
        ),
        tuple(traces),
        {"xaxis": axis("update"), "yaxis": log_axis("loss", np.array([value for *_, value in rows]))},
        downloads=(csv_download("loss.csv", ("run", "update", "loss"), rows),),
    )
    return [figure]


def running_median(loss: Floats) -> Floats:
    """Return a running median over about a fiftieth of the record: it follows the trend, not the spikes."""
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(loss, size=max(1, len(loss) // 50), mode="nearest"))
