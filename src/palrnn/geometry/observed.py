"""Parameters by the exact observed information: a Gaussian over what it identifies, and counts of the rest.

    theta ~ N(theta_hat, I_obs^{-1})    along the directions in which I_obs has more than ``least``

with I_obs = -d^2 log p(x) / dtheta^2 (`observed_information`) around the maximum of the likelihood. It is the
curvature of a function that is no parabola: along some directions it is negative, and there a Gaussian says
nothing; along others it is next to null, and the data do not tell. Neither is drawn, both are counted. What
noise of which size is there is taken for known, which `likelihood_posterior` does not.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_instance, as_int, as_series
from palrnn.engine.gaps import whole_rows
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator, kernel_seed
from palrnn.geometry.geometries import observed_information
from palrnn.geometry.likelihood import likelihood_posterior, with_fitted_noise
from palrnn.inference import FewPathsWarning
from palrnn.model import ALRNN, PALRNN, Surrogate
from palrnn.model.inputs import checked_inputs

# windows by default; hidden units make each slow
_WINDOWS, _WITH_HIDDEN = 12, 3


@dataclass(frozen=True, eq=False)
class ObservedPosterior:
    """A Gaussian around ``model`` with precision V diag(values) V^T over what is identified.

    ``values (r,)`` and ``vectors (p, r)`` are the eigenpairs of the information of all rows that were kept.
    ``negative`` directions have less than minus the ``least`` information, ``null`` ones less than that of
    either sign: all draws are alike in these. ``palrnn`` is the model with the noise that it stands for.
    """

    palrnn: PALRNN
    values: Floats = field(repr=False)
    vectors: Floats = field(repr=False)
    negative: int
    null: int

    @property
    def model(self) -> Any:
        """The drift in the middle."""
        return self.palrnn.drift

    @property
    def std(self) -> Floats:
        """The standard deviation of each parameter, ``(p,)``, as far as it is identified."""
        return np.asarray(np.sqrt((self.vectors**2 / self.values).sum(axis=1)))

    def sample_theta(self, count: int, *, seed: int = 0) -> Floats:
        """Return ``(count, p)`` drift parameters drawn from the posterior."""
        pin_blas()
        noise = generator(seed).standard_normal((as_int(count, "count", least=1), len(self.values)))
        return np.asarray(self.model.theta + noise / np.sqrt(self.values) @ self.vectors.T)

    def sample(self, count: int, *, seed: int = 0) -> list[Any]:
        """Return ``count`` drifts drawn from the posterior."""
        return [self.model.with_theta(theta) for theta in self.sample_theta(count, seed=seed)]

    def __repr__(self) -> str:
        return (
            f"ObservedPosterior({self.palrnn!r}: {len(self.values)} of {len(self.vectors)} directions "
            f"identified, {self.negative} negative and {self.null} null left out)"
        )


def observed_posterior(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    *,
    inputs: ArrayLike | None = None,
    least: float = 1.0,
    window: int = 100,
    windows: int | None = None,
    particles: int = 64,
    paths: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> ObservedPosterior:
    """Return a Gaussian with the exact observed information of ``x (T, N)``, where that identifies anything.

    A `PALRNN` stays as it is: it should be at the maximum of its likelihood. An AL-RNN without noise is moved
    there first (`likelihood_posterior`) if all of its units are observed; with hidden units it keeps its
    drift and gets the two deviations that are most likely. A driven model needs its ``inputs (T, K)``, and
    its noise.

    The information is that of ``windows`` stretches of ``window`` steps each, evenly spaced (None: 12, with
    hidden units 3), times the number of steps over theirs: its work grows with the square of a window. Their
    first rows are measurements of a state. ``particles`` and ``paths`` are those of `observed_information`.
    A direction with no more than ``least`` information is left out: a step of length one along it costs less
    than half a unit of log likelihood.

    Intervals hold where the noise is known and small; `likelihood_posterior` is the one to use for parameters
    (docs/uncertainty.md).
    """
    rows = as_series(x, dim=_seen(model), allow_nan=True)
    least, length = as_float(least, "least", above=0.0), as_int(window, "window", least=2)
    known = _with_noise(model, rows)
    drift = known.drift
    drive = checked_inputs(drift, inputs, len(rows))
    hidden = drift.latent_dim > drift.observed_dim
    most = _WITH_HIDDEN if hidden else _WINDOWS
    most = most if windows is None else as_int(windows, "windows", least=1)
    length = min(length, len(rows) - 1)
    starts = _starts(rows, length, min(most, (len(rows) - 1) // length))
    total = np.zeros((drift.theta.size, drift.theta.size))
    pin_blas()
    with listening(progress, "windows") as report, warnings.catch_warnings():
        warnings.simplefilter("ignore", FewPathsWarning)
        for number, start in enumerate(starts):
            part = slice(start, start + length + 1)
            how: dict[str, Any] = {"particles": particles, "paths": paths, "passes": 1}
            how |= {"inputs": None if drive is None else drive[part]}
            how["seed"] = kernel_seed(seed, "window", number)
            total += observed_information(known, rows[part], **how).observed
            report(number + 1, len(starts), {})
    scale = (len(rows) - 1) / (len(starts) * length)
    values, vectors = np.linalg.eigh(0.5 * (total + total.T) * scale)
    kept = values > least
    counts = int((values < -least).sum()), int((np.abs(values) <= least).sum())
    return ObservedPosterior(known, values[kept], vectors[:, kept], *counts)


def _seen(model: Any) -> int:
    drift = model.drift if isinstance(model, PALRNN) else model
    return int(as_instance(drift, "model", Surrogate).observed_dim)


def _with_noise(model: Any, x: Floats) -> PALRNN:
    """Return the model to stand around, of whose states a first row is a measurement."""
    known = model
    if not isinstance(model, PALRNN):
        if not isinstance(model, ALRNN) or model.input_dim:
            raise ValueError("model must have noise (a PALRNN), or be an ALRNN without inputs")
        hidden = model.latent_dim > model.observed_dim
        known = with_fitted_noise(model, x) if hidden else likelihood_posterior(model, x).palrnn
    start, reads = known.observation.typical_std, known.observation_map
    return PALRNN(known.drift, known.process, known.observation, known.gate_std, start, reads)


def _starts(x: Floats, length: int, count: int) -> list[int]:
    """Return where windows begin: evenly spaced, each at a row without a gap, or the next that has none."""
    possible = np.flatnonzero(whole_rows(x)[: len(x) - length])
    if not len(possible):
        raise ValueError(f"x must have a row without a gap with {length} rows after it")
    even = np.linspace(0, len(x) - length - 1, count).astype(int)
    return [int(possible[min(np.searchsorted(possible, at), len(possible) - 1)]) for at in even]
