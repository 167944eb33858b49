"""Figures of a model's invariants, each with the truth in the same picture: true in black or grey."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.style import BLACK, BLUE, SEQUENTIAL, VERMILION, save_figure, styled
from palrnn.invariants import (
    Floor,
    LyapunovSpectrum,
    Quantities,
    Scorecard,
    SymbolicDynamics,
    power_spectrum,
    spectrum_distances,
)

_MOST_POINTS = 6000
# consecutive states of a map are not neighbours: a line between them would show nothing
_MAP: dict[str, Any] = {"linestyle": "", "marker": ".", "markersize": 1.5}


def lyapunov_figure(model: LyapunovSpectrum, reference: LyapunovSpectrum | None = None) -> Figure:
    """Draw the exponents with their standard errors, the true ones beside them."""
    with styled():
        figure = Figure(figsize=(5.2, 3.0), layout="constrained")
        axes = figure.subplots()
        axes.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        for found, label, color, marker, shift in (
            (reference, "true system", BLACK, "D", -0.1),
            (model, "model", BLUE, "o", 0.1 if reference is not None else 0.0),
        ):
            if found is None:
                continue
            finite = np.isfinite(found.exponents)
            place = np.arange(1, len(found.exponents) + 1)[finite] + shift
            axes.errorbar(
                place,
                found.exponents[finite],
                found.stderr[finite],
                fmt=marker,
                color=color,
                markersize=4,
                capsize=2,
                linewidth=1,
                label=f"{label}{_dimension(found)}",
            )
        axes.set_xticks(_whole_ticks(len(model.exponents)))
        axes.set_xlabel("index")
        axes.set_ylabel("exponent (1 / time)")
        axes.set_title("Lyapunov exponents")
        # on a linear scale, strongly contracting directions would hide the part near zero
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}"))
        )
        drawn = np.concatenate(
            [s.exponents[np.isfinite(s.exponents)] for s in (model, reference) if s is not None]
        )
        axes.set_ylim(1.8 * drawn.min(initial=-1.0), 1.3 * drawn.max(initial=1.0))
        axes.set_xlim(0.5, len(model.exponents) + 0.5)
        axes.legend(loc="upper right")
        return figure


def convergence_figure(
    model: LyapunovSpectrum, reference: LyapunovSpectrum | None = None, *, k: int = 3
) -> Figure:
    """Draw the running estimates of the first ``k`` exponents, with bands of two final standard errors."""
    k = min(as_int(k, "k", least=1), len(model.exponents))
    with styled():
        figure = Figure(figsize=(5.2, 1.3 * k + 0.9), layout="constrained")
        rows = np.atleast_1d(figure.subplots(k, 1, sharex=True))
        for i, axes in enumerate(rows):
            axes.set_ylabel(f"exponent {i + 1}")
            if not np.isfinite(model.exponents[i]):
                axes.text(0.5, 0.5, "minus infinity", transform=axes.transAxes, ha="center", color="0.5")
                continue
            axes.axhspan(*_band(model, i), color=BLUE, alpha=0.15, linewidth=0)
            axes.plot(model.times, model.trace[:, i], color=BLUE, label="model, ± 2 standard errors")
            if reference is not None and i < len(reference.exponents):
                axes.axhline(
                    reference.exponents[i], color=BLACK, linestyle="--", linewidth=1, label="true system"
                )
            # the first few estimates are far off and would set the scale
            settled = model.trace[len(model.trace) // 20 :, i]
            known = [reference.exponents[i]] if reference is not None and i < len(reference.exponents) else []
            _limits(axes, np.concatenate([settled, _band(model, i), known]))
        rows[0].set_title("Convergence of the Lyapunov exponents")
        if rows[0].lines:
            rows[0].legend(loc="upper right", ncols=2)
        rows[-1].set_xlabel("time")
        return figure


def attractor_figure(
    generated: ArrayLike, reference: ArrayLike, *, label: str = "model", title: str = "Attractor"
) -> Figure:
    """Draw the generated trajectory over the true one, in two projections of the first coordinates.

    A series of one column is drawn against its own past.
    """
    truth = as_series(reference, "reference", allow_nan=True)
    model = as_series(generated, "generated", dim=truth.shape[1])
    lag = _lag(truth) if truth.shape[1] == 1 else 0
    if lag:
        truth, model = _delayed(truth, lag), _delayed(model, lag)
    views = [(0, 1)] if truth.shape[1] == 2 else [(0, 1), (0, 2)]
    style = _MAP if lag == 1 else {}
    with styled():
        figure = Figure(figsize=(3.2 * len(views), 3.2), layout="constrained")
        for axes, (a, b) in zip(np.atleast_1d(figure.subplots(1, len(views))), views, strict=True):
            for series, color, name, width in ((truth, "0.6", "true", 0.9), (model, VERMILION, label, 0.4)):
                x, y = series[:_MOST_POINTS, a], series[:_MOST_POINTS, b]
                axes.plot(x, y, color=color, linewidth=width, label=name, alpha=0.8, **style)
            axes.set_xlabel("$x_1$" if lag else f"$x_{a + 1}$")
            axes.set_ylabel(_before(lag) if lag else f"$x_{b + 1}$")
        first = figure.axes[0]
        first.set_title(title)
        for line in first.legend(loc="upper left").get_lines():
            line.set_linewidth(2)
            line.set_markersize(5)
        return figure


def spectra_figure(
    generated: ArrayLike,
    reference: ArrayLike,
    *,
    dt: float = 0.01,
    sigma: float = 20.0,
    floor: Floor | None = None,
    most: int = 6,
) -> Figure:
    """Draw the smoothed power spectra of the first ``most`` dimensions, with their Hellinger distances."""
    truth = as_series(reference, "reference", allow_nan=True)
    model = as_series(generated, "generated", dim=truth.shape[1])
    length = min(len(truth), len(model))
    distance = spectrum_distances(model, truth, sigma=sigma)
    # as for their distance, gaps of the one are left out of the other
    model = np.where(np.isnan(truth[:length]), np.nan, model[:length])
    p, q = (power_spectrum(series, sigma=sigma) for series in (truth[:length], model))
    frequency = np.fft.rfftfreq(length, dt)
    shown = min(truth.shape[1], as_int(most, "most", least=1))
    with styled():
        figure = Figure(figsize=(2.6 * shown + 0.4, 2.8), layout="constrained")
        for i, axes in enumerate(np.atleast_1d(figure.subplots(1, shown, sharey=True))):
            axes.loglog(frequency[1:], np.maximum(p[1:, i], 1e-300), color=BLACK, label="true")
            axes.loglog(frequency[1:], np.maximum(q[1:, i], 1e-300), color=VERMILION, label="model")
            axes.set_xlabel("frequency (1 / time)")
            axes.set_title(f"$x_{i + 1}$: $D_H$ = {distance[i]:.3f}")
            axes.set_ylim(p[1:].min() / 10, p.max() * 3)
        figure.axes[0].set_ylabel("power (share)")
        words = "" if floor is None else f"floor of mean $D_H$: {floor.median:.3f}"
        figure.axes[0].legend(loc="lower left", title=words)
        return figure


def transitions_figure(symbols: SymbolicDynamics, generated: ArrayLike, *, most: int = 40) -> Figure:
    """Draw the codes where they are visited, as circles of their share of time, and the moves between them.

    ``generated (T, N)`` are the observed coordinates along the same trajectory; the two with the least in
    common are drawn. Arrows grow with the frequency of a move; staying is not drawn. The ``most`` visited
    codes are.
    """
    series = as_series(generated, "generated", min_steps=len(symbols.symbols))[: len(symbols.symbols)]
    most = min(as_int(most, "most", least=1), len(symbols.codes))
    lag = _lag(series) if series.shape[1] == 1 else 0
    plane = _delayed(series, lag) if lag else series[:, list(_spread_pair(series))]
    names = ("$x_1$", _before(lag)) if lag else tuple(f"$x_{i + 1}$" for i in _spread_pair(series))
    places = [plane[symbols.symbols[lag:] == code] for code in range(most)]
    x, y = np.array([place.mean(axis=0) if len(place) else plane.mean(axis=0) for place in places]).T
    sizes = 15 + 900 * symbols.occupancy[:most]
    reach = np.sqrt(sizes / np.pi) + 1
    moves = symbols.transitions.toarray()[:most, :most] * symbols.occupancy[:most, None]
    np.fill_diagonal(moves, 0.0)
    with styled():
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        axes = figure.subplots()
        style = _MAP if lag == 1 else {"linewidth": 0.4}
        axes.plot(*plane[:_MOST_POINTS].T, color="0.9", zorder=0, **style)
        largest = moves.max(initial=0.0)
        for i, j in zip(*np.nonzero(moves > 0.01 * largest), strict=True):
            share = moves[i, j] / largest
            axes.add_patch(
                FancyArrowPatch(
                    (x[i], y[i]),
                    (x[j], y[j]),
                    connectionstyle="arc3,rad=0.15",
                    arrowstyle="-|>",
                    mutation_scale=5 + 5 * share,
                    shrinkA=reach[i],
                    shrinkB=reach[j],
                    linewidth=0.4 + 1.4 * share,
                    color=BLACK,
                    alpha=0.25 + 0.65 * share,
                    zorder=1,
                )
            )
        dots = axes.scatter(
            x,
            y,
            s=sizes,
            c=symbols.dwell_times[:most],
            cmap=SEQUENTIAL,
            edgecolors="white",
            linewidths=0.6,
            zorder=2,
        )
        figure.colorbar(dots, ax=axes, label="mean dwell time (steps)", shrink=0.8)
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1])
        rest = 1.0 - symbols.occupancy[:most].sum()
        more = (
            f" of {len(symbols.codes)} ({rest:.1%} of time in the rest)" if most < len(symbols.codes) else ""
        )
        axes.set_title(f"{most} codes{more}, {symbols.entropy_rate():.2f} bits per step")
        return figure


def save_invariant_figures(
    card: Scorecard, folder: str | os.PathLike[str], *, dt: float = 0.01, kind: str = "png"
) -> list[Path]:
    """Write all figures of ``card`` into ``folder`` as ``kind`` (png, svg or pdf) and return their paths.

    A rollout that diverged has none of them.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if card.hard.lyapunov is None or card.symbols is None:
        return []
    generated, reference = card.hard.generated, card.reference
    figures = {
        "lyapunov": lyapunov_figure(card.hard.lyapunov, card.reference_exponents),
        "convergence": convergence_figure(card.hard.lyapunov, card.reference_exponents),
        "attractor": attractor_figure(generated, reference, title=_score(card.hard, card.dstsp_floor)),
        "spectra": spectra_figure(generated, reference, dt=dt, floor=card.spectrum_floor),
        "transitions": transitions_figure(card.symbols, generated),
    }
    if card.sampled is not None and card.sampled.diverged_at is None:
        title = _score(card.sampled, card.dstsp_floor)
        figures["attractor-sampled"] = attractor_figure(
            card.sampled.generated, reference, label="sampled", title=title
        )
    paths = []
    for name, figure in figures.items():
        paths.append(target / f"{name}.{kind}")
        save_figure(figure, paths[-1])
    return paths


def _score(found: Quantities, floor: Floor) -> str:
    value = "" if found.dstsp is None else f" {found.dstsp.value:.2f}"
    return f"$D_{{stsp}}${value}, true against true {floor.median:.2f}"


def _dimension(found: LyapunovSpectrum) -> str:
    dimension = found.kaplan_yorke
    return "" if dimension is None else f", dimension {dimension:.2f}"


def _whole_ticks(count: int) -> list[int]:
    step = max(1, count // 6)
    return list(range(1, count + 1, step))


def _band(found: LyapunovSpectrum, i: int) -> tuple[float, float]:
    middle, error = float(found.exponents[i]), 2.0 * float(found.stderr[i])
    return middle - error, middle + error


def _limits(axes: Axes, values: Floats) -> None:
    values = values[np.isfinite(values)]
    margin = 0.15 * max(np.ptp(values), 1e-3)
    axes.set_ylim(values.min() - margin, values.max() + margin)


def _lag(series: Floats) -> int:
    """Return the first lag at which ``series (T, 1)`` has an autocorrelation below 1 / e, at most 100."""
    x = np.where(np.isnan(series[:, 0]), 0.0, series[:, 0] - np.nanmean(series))
    most = min(100, len(x) - 2)
    total = float(x @ x)
    return next((lag for lag in range(1, most) if x[lag:] @ x[:-lag] < total / math.e), max(1, most))


def _delayed(series: Floats, lag: int) -> Floats:
    """Return ``series (T, 1)`` beside its own past: ``(T - lag, 2)``."""
    return np.column_stack([series[lag:, 0], series[:-lag, 0]])


def _before(lag: int) -> str:
    return "$x_1$ one step before" if lag == 1 else f"$x_1$ {lag} steps before"


def _spread_pair(series: Floats) -> tuple[int, int]:
    """Return the two columns with the smallest correlation, the earlier first."""
    dim = series.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        likeness = np.abs(np.nan_to_num(np.corrcoef(series.T), nan=1.0))
    likeness[np.tril_indices(dim)] = np.inf
    a, b = np.unravel_index(int(np.argmin(likeness)), likeness.shape)
    return int(a), int(b)
