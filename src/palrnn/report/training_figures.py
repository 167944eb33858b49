"""Figures of a training run."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from palrnn.engine.checks import Floats
from palrnn.engine.style import BLUE, GREEN, VERMILION, styled
from palrnn.forcing import History

_POINTS = 2000


def training_figure(history: History, *, floor: float | None = None, lyapunov: float | None = None) -> Figure:
    """Return the course of training: loss, gradient norm, and the free-running model where it was measured.

    Single batches are drawn as a pale band (lowest to highest of neighbouring updates) around their mean.
    ``floor`` is the true-versus-true D_stsp and ``lyapunov`` the true exponent, drawn as reference lines.
    """
    measured = bool(history.evaluations)
    with styled():
        figure = Figure(figsize=(6.4, 6.8 if measured else 4.2), layout="constrained")
        axes = figure.subplots(4 if measured else 2, 1, sharex=True, squeeze=False)[:, 0]
        _band(axes[0], history.loss, BLUE)
        axes[0].set(title="Teacher-forced loss", ylabel="loss")
        _band(axes[1], history.gradient_norm, GREEN)
        axes[1].set(title="Length of the gradient", ylabel="norm")
        if measured:
            _evaluations(axes[2], axes[3], history, floor, lyapunov)
        axes[-1].set(xlabel="update", xlim=(0, len(history)))
    return figure


def _band(axes: Axes, values: Floats, colour: str) -> None:
    pieces = np.array_split(values, min(len(values), _POINTS // 5))
    ends = np.cumsum([len(piece) for piece in pieces])
    axes.fill_between(
        ends, [p.min() for p in pieces], [p.max() for p in pieces], color=colour, alpha=0.25, linewidth=0
    )
    axes.plot(ends, [p.mean() for p in pieces], color=colour)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _evaluations(
    top: Axes, bottom: Axes, history: History, floor: float | None, lyapunov: float | None
) -> None:
    updates = [e.update for e in history.evaluations]
    dstsp = np.array([e.dstsp for e in history.evaluations])
    top.plot(
        updates,
        np.where(np.isfinite(dstsp), dstsp, np.nan),
        "o-",
        color=VERMILION,
        markersize=3,
        clip_on=False,
    )
    gone = [u for u, d in zip(updates, dstsp, strict=True) if not np.isfinite(d)]
    top.plot(gone, np.full(len(gone), 0.95), "x", color="black", transform=top.get_xaxis_transform())
    top.set(
        title="Free-running model, state space" + (" (x: diverged)" if gone else ""), ylabel="D_stsp, nats"
    )
    bottom.plot(
        updates, [e.lyapunov for e in history.evaluations], "o-", color=VERMILION, markersize=3, clip_on=False
    )
    bottom.set(title="Free-running model, largest Lyapunov exponent", ylabel="exponent")
    top.set_ylim(bottom=0)
    for axes, value, words in ((top, floor, "true against true"), (bottom, lyapunov, "true system")):
        if value is not None:
            axes.axhline(value, color="black", linestyle="--", linewidth=0.8, label=words)
            axes.legend(loc="best")
