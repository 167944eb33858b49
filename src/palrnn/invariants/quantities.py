"""The quantities of interest of one model against one reference: hard-gated, and of the sampled PAL-RNN.

The paper evaluates fine-tuned models by their hard-gated drift, with all noise set to zero. What the fitted
stochastic model itself does is another question, and its answer (the paper's limitations ask for it) stands
next to the first in `stochastic_counterparts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer, noise_level
from palrnn.data.timescale import autocorrelation
from palrnn.engine.checks import Floats, as_instance, as_int, as_series, as_shape
from palrnn.engine.gaps import first_whole_row
from palrnn.invariants.exponents import DivergenceError, LyapunovSpectrum
from palrnn.invariants.free_run import free_run
from palrnn.invariants.lyapunov import HowMany, lyapunov_spectrum
from palrnn.invariants.spectrum import spectrum_distance
from palrnn.invariants.state_space import StateSpaceDivergence, delay_for, dstsp
from palrnn.model import BOUND, PALRNN, Surrogate, drift_of
from palrnn.model.engine import advance
from palrnn.model.inputs import checked_inputs, input_dim

#: The least autocorrelation after one step of samples without noise that tell the path. With exact
#: slopes the largest exponent by `lyapunov_spectrum` with ``flow`` is 0.2 % too much at 0.88 (Lorenz84),
#: 4 % at 0.86 (Lorenz-63, steps of 0.04) and at 0.92 (Thomas), and 12 % at 0.60 (Lorenz84).
FINE = 0.85
#: The least cosine between one step of a run and the next, in the median, along a path: 0.9 of Thomas at 0.92
#: above and of Lorenz-63 at 0.86, 0.82 of Lorenz84 at 0.60. Of running sums of a map it is below 0.
STRAIGHT = 0.8
# fewer rows do not tell what is noise
_FEWEST = 20
# steps of the run that is looked at, after some to come near to where it goes
_LOOK, _SETTLE = 1000, 200


def samples_flow(model: Surrogate | PALRNN, series: ArrayLike, start: ArrayLike | None = None) -> bool:
    """Return whether free runs of a model of ``series (T, N)`` are samples of a flow.

    They are where nothing drives the series and each coordinate is nearly what it was a step before, but for
    noise of observation (`noise_level`), and where the model's own run, from ``start`` in its coordinates
    (without one only the series is asked), hardly turns from step to step: sums of what a map gives are
    smooth, too, but go to and fro. Runs of a PAL-RNN, which has noise, are no samples of a flow, nor are
    series with a column that does not vary.
    """
    x = as_series(series, "series", allow_nan=True)
    if isinstance(model, PALRNN) or input_dim(model) > 0 or len(x) < _FEWEST:
        return False
    if np.isnan(x).all(axis=0).any() or not (np.nanstd(x, axis=0) > 0).all():
        return False
    near = autocorrelation(x, 1)[1]
    clean = 1.0 - (noise_level(x) / np.nanstd(x, axis=0)) ** 2
    if not (near > FINE * clean).all():
        return False
    return start is None or _hardly_turns(model, as_shape(start, "start", (model.observed_dim,)))


def first_point(reference: ArrayLike, standardizer: Standardizer | None, dim: int) -> Floats:
    """Return the first whole row of raw ``reference (T, dim)``, in coordinates of ``standardizer``."""
    x = as_series(reference, "reference", dim=dim, allow_nan=True)
    row = x[first_whole_row(x, "reference")]
    if standardizer is None:
        return row
    as_instance(standardizer, "standardizer", Standardizer)
    return standardizer.transform(row)


def _hardly_turns(drift: Surrogate, start: Floats) -> bool:
    """Return whether steps of the free run from ``start (N,)`` go on as the last one did, where it moves."""
    with np.errstate(over="ignore", invalid="ignore"):
        states = advance(drift, drift.embed(start[None]), _SETTLE + _LOOK)[:, 0]
        whole = np.abs(states).max(axis=1) <= BOUND
    states = states[_SETTLE:] if whole.all() else states[: int(whole.argmin())]
    steps = np.diff(states, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    moves = lengths > 1e-10 * (1.0 + np.abs(states).max(initial=0.0))
    both = moves[1:] & moves[:-1]
    if both.sum() < _FEWEST:  # at rest, or gone at once: it says nothing against what the series says
        return True
    cosines = (steps[1:] * steps[:-1]).sum(axis=1)[both] / (lengths[1:] * lengths[:-1])[both]
    return bool(np.median(cosines) > STRAIGHT)


@dataclass(frozen=True, eq=False)
class Quantities:
    """D_stsp, D_H and Lyapunov exponents of one long rollout, and the rollout.

    ``lyapunov`` are the exponents of the flow that the run samples, if that was asked for; a score card then
    has those of the map that the model is as ``map_lyapunov``. ``generated (steps, N)`` is in raw
    coordinates, ``states (steps, M)`` in the model's. A rollout that diverged after ``diverged_at`` steps has
    no invariants: they are None then, and the arrays hold what came before.
    """

    dstsp: StateSpaceDivergence | None
    spectrum_distance: float | None
    lyapunov: LyapunovSpectrum | None
    generated: Floats
    states: Floats
    diverged_at: int | None = None
    map_lyapunov: LyapunovSpectrum | None = None

    def numbers(self) -> dict[str, float]:
        """Return the figures for a table or a ranking; a run that diverged is infinitely far away.

        ``dstsp``, ``outside``, ``spectrum_distance``, ``lyapunov`` (the largest), ``lyapunov_stderr``.
        """
        if self.dstsp is None or self.lyapunov is None or self.spectrum_distance is None:
            nothing = dict.fromkeys(("spectrum_distance", "lyapunov", "lyapunov_stderr"), math.nan)
            return {"dstsp": math.inf, "outside": 1.0} | nothing
        return {
            "dstsp": self.dstsp.value,
            "outside": self.dstsp.outside,
            "spectrum_distance": self.spectrum_distance,
            "lyapunov": self.lyapunov.largest,
            "lyapunov_stderr": float(self.lyapunov.stderr[0]),
        }

    def __repr__(self) -> str:
        if self.dstsp is None or self.lyapunov is None:
            return f"Quantities(diverged after {self.diverged_at} steps)"
        return (
            f"Quantities(D_stsp {self.dstsp.value:.4g}, D_H {self.spectrum_distance:.4g}, "
            f"lambda_1 {self.lyapunov.largest:.4g} ± {self.lyapunov.stderr[0]:.2g})"
        )


@dataclass(frozen=True, eq=False)
class Counterparts:
    """The same quantities twice: of the hard-gated drift, and of the sampled PAL-RNN."""

    hard: Quantities
    sampled: Quantities

    def __repr__(self) -> str:
        return f"Counterparts(\n    hard    {self.hard!r},\n    sampled {self.sampled!r})"


def quantities_of_interest(
    model: Surrogate | PALRNN,
    reference: ArrayLike,
    *,
    inputs: ArrayLike | None = None,
    standardizer: Standardizer | None = None,
    x1: ArrayLike | None = None,
    steps: int | None = None,
    discard: int = 1000,
    dt: float = 0.01,
    k: HowMany = 1,
    observation_noise: bool = False,
    bins: int = 30,
    smoothing: float = 1e-5,
    protocol: str = "paper",
    delay: int | None = None,
    sigma: float = 20.0,
    flow: bool = False,
    seed: int = 0,
) -> Quantities:
    """Return how a long free run of ``model`` compares with ``reference (T, N)``, in raw coordinates.

    A surrogate runs with hard gates, a `PALRNN` is sampled with all its noise (pass ``model.drift`` for its
    hard-gated counterpart). The run starts at ``x1``, by default the first reference point that has no gap
    (NaN, which `dstsp` and `spectrum_distance` leave out), and keeps ``steps`` states, by default as many as
    the reference has, after ``discard``. Compared are the observed coordinates, with observation noise only
    if ``observation_noise``. ``k`` Lyapunov exponents come from the same start and length. ``bins`` to
    ``delay`` are settings of `dstsp`; a single column has the delay of its own memory unless one is given
    (`suggest_tau`, at most a sixth of the rows). A driven model runs along ``inputs (T, K)``, from the row of
    the start on, or from the first for a given ``x1``, and from their beginning again where the run outlasts
    them. With ``flow`` exponents are those of the flow that a surrogate's run samples (`lyapunov_spectrum`),
    which a PAL-RNN or a driven model has not.
    """
    seen = drift_of(model).observed_dim
    truth = as_series(reference, "reference", dim=seen, allow_nan=True)
    row = first_whole_row(truth, "reference") if x1 is None else 0
    first = truth[row] if x1 is None else as_shape(x1, "x1", (seen,))
    drive = checked_inputs(model, inputs, len(truth))
    scale = Standardizer(np.zeros(seen), np.ones(seen)) if standardizer is None else standardizer
    as_instance(scale, "standardizer", Standardizer)
    if delay is None:
        delay = delay_for(truth if steps is None else truth[: as_int(steps, "steps", least=20)])
    how: dict[str, Any] = {"standardizer": scale, "discard": discard, "dt": dt, "k": k, "sigma": sigma}
    how |= {"inputs": None if drive is None else np.roll(drive, -row, axis=0), "seed": seed}
    how |= {"observation_noise": observation_noise, "steps": len(truth) if steps is None else steps}
    how["flow"] = flow
    binned: dict[str, Any] = {"bins": bins, "smoothing": smoothing, "protocol": protocol, "delay": delay}
    return quantities_from(model, scale.transform(first), truth, **how, **binned)


def quantities_from(
    model: Surrogate | PALRNN,
    start: Floats,
    reference: Floats,
    *,
    inputs: Floats | None = None,
    standardizer: Standardizer,
    steps: int,
    discard: int,
    dt: float,
    k: HowMany = 1,
    observation_noise: bool = False,
    sigma: float = 20.0,
    flow: bool = False,
    seed: int = 0,
    **binned: Any,
) -> Quantities:
    """Return the same for a run from ``start (N,)`` in the model's own coordinates.

    The first row of ``inputs`` acts on its first step; ``binned`` are settings of `dstsp`.
    """
    steps = as_int(steps, "steps", least=20)
    how: dict[str, Any] = {"inputs": inputs, "seed": seed}
    run = free_run(model, start, steps, discard, observation_noise=observation_noise, **how)
    states, generated, diverged = run.states, standardizer.inverse(run.observed), run.diverged_at
    if diverged is None:
        try:
            how |= {"steps": steps, "discard": discard, "dt": dt, "k": k, "flow": flow}
            lyapunov = lyapunov_spectrum(model, start, **how)
            divergence = dstsp(generated, reference, **binned, seed=seed)
            distance = spectrum_distance(generated, reference, sigma=sigma)
            return Quantities(divergence, distance, lyapunov, generated, states)
        except DivergenceError as error:
            diverged = error.step
    return Quantities(None, None, None, generated, states, diverged)


def stochastic_counterparts(model: PALRNN, reference: ArrayLike, **settings: Any) -> Counterparts:
    """Return the quantities of the hard-gated drift of ``model`` and of its samples, side by side.

    The settings are those of `quantities_of_interest`.
    """
    if not isinstance(model, PALRNN):
        raise ValueError(f"model must be a PALRNN, got {type(model).__name__}")
    hard = quantities_of_interest(model.drift, reference, **settings)
    return Counterparts(hard, quantities_of_interest(model, reference, **settings | {"flow": False}))
