"""What a model makes of a stretch of data: forced or left alone, what follows it, what is missing in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_float, as_int, as_series
from palrnn.engine.gaps import first_whole_row
from palrnn.engine.seeds import generator
from palrnn.geometry import ModelDraws
from palrnn.inference import FilterDiedError, Forecast, Stepper, hindcasts, rbpf, smooth
from palrnn.inference.calibration import spaced
from palrnn.invariants.free_run import free_run
from palrnn.model import BOUND, PALRNN, Forcing, Surrogate
from palrnn.model.engine import step
from palrnn.model.inputs import offsets


@dataclass(frozen=True, eq=False)
class Tracking:
    """A stretch of data with what the model makes of it, all raw ``(S, N)``.

    ``forced`` is pulled to the data as ``forcing`` says; ``free`` runs alone from the first observation. NaN
    stands where the state has diverged.
    """

    truth: Floats
    forced: Floats
    free: Floats
    forcing: Forcing

    def __repr__(self) -> str:
        return f"Tracking({len(self.truth)} steps of {self.truth.shape[1]} coordinates, {self.forcing!r})"


def tracking(
    model: Surrogate, x: Floats, forcing: Forcing, standardizer: Standardizer, inputs: Floats | None = None
) -> Tracking:
    """Return the forced and the free run along standardised ``x (S, N)``, in raw coordinates.

    Only what was seen is forced; the first row must have no gap (NaN). ``inputs (S, K)`` drive both runs.
    """
    pushes = offsets(model, inputs)
    seen, strengths = model.observed_dim, forcing.final.strengths(len(x))
    forced, free = np.full_like(x, np.nan), np.full_like(x, np.nan)
    z, forced[0] = model.embed(x[0]), x[0]
    for t in range(len(x) - 1):
        if strengths[t] > 0:  # a strength of 1 also brings back what has diverged
            forced_to = x[t] if strengths[t] == 1 else z[:seen] + strengths[t] * (x[t] - z[:seen])
            z[:seen] = np.where(np.isnan(x[t]), z[:seen], forced_to)
        z = step(model, z) if (np.abs(z) <= BOUND).all() else np.full_like(z, np.nan)
        z = z if pushes is None else z + pushes[t]
        forced[t + 1] = np.where(np.abs(z[:seen]) <= BOUND, z[:seen], np.nan)
    alone = free_run(model, x[0], len(x), inputs=inputs).observed
    free[: len(alone)] = alone
    raw = [standardizer.inverse(part) for part in (x, forced, free)]
    return Tracking(raw[0], raw[1], raw[2], forcing)


_NOISE = 1


@dataclass(frozen=True, eq=False)
class Imputed:
    """A series with its gaps filled in, all raw ``(T, N)``.

    ``values`` are what was seen, and where nothing was, the mean of what may have been, given all data;
    ``low`` and ``high`` hold what may have been seen there with probability ``coverage``, and are ``values``
    themselves elsewhere. ``missing`` tells where the gaps were. Rows before the first whole one stay gaps
    (NaN): nothing starts there. ``draws (S, T, N)`` are the series that means and bands are of.
    """

    values: Floats
    low: Floats
    high: Floats
    missing: NDArray[np.bool_]
    coverage: float
    draws: Floats = field(repr=False)

    def __repr__(self) -> str:
        share = self.missing.mean()
        return (
            f"Imputed({self.values.shape[0]} steps of {self.values.shape[1]} coordinates, {share:.1%} of the "
            f"values filled in, {self.coverage:.0%} bands from {len(self.draws)} draws)"
        )


def imputed(
    model: PALRNN,
    x: Floats,
    standardizer: Standardizer,
    *,
    coverage: float,
    paths: int,
    states_per_path: int,
    seed: int,
    inputs: Floats | None = None,
    **settings: Any,
) -> Imputed:
    """Return raw ``x (T, N)`` with its gaps filled in by draws of `smooth`, observation noise included.

    ``inputs (T, K)``, in the model's coordinates, drive it. ``settings`` are those of `rbpf`.
    """
    share = as_float(coverage, "coverage", above=0.0, most=1.0)
    paths, each = as_int(paths, "paths", least=1), as_int(states_per_path, "states_per_path", least=1)
    first = first_whole_row(x, "x")
    rows = standardizer.transform(x[first:])
    drive = None if inputs is None else inputs[first:]
    filtered = rbpf(model, rows, inputs=drive, seed=seed, **({"target": "exact"} | settings))
    drawn = smooth(filtered, paths=paths, states_per_path=each, seed=seed)
    states = drawn.states.reshape(-1, *drawn.states.shape[2:])
    seen = model.observation_map(states)
    noise = generator(seed, "impute", _NOISE).standard_normal(seen.shape)
    noise = noise @ model.observation.root(seen.shape[-1]).T
    if not model.observation.is_diagonal:
        noise = _noise_given(model.observation_covariance, rows - seen, noise)
    seen = standardizer.inverse(seen + noise)
    missing = np.isnan(x)
    draws = np.where(missing[first:], seen, x[first:])
    tail = 0.5 * (1.0 - share)
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    parts = [np.full((3, *x.shape), np.nan), np.full((len(draws), *x.shape), np.nan)]
    parts[0][:, first:] = draws.mean(axis=0), low, high
    parts[1][:, first:] = draws
    # what was seen stays as it was, to the last bit
    filled = np.where(missing, parts[0], x)
    return Imputed(filled[0], filled[1], filled[2], missing, share, parts[1])


def _noise_given(covariance: Floats, misfit: Floats, noise: Floats) -> Floats:
    """Return ``noise (S, T, N)``, drawn from N(0, R), given what is known of it: ``misfit``, NaN in gaps.

    With K = R_ms R_ss^{-1}, s what was seen in a row and m what was not, the draw n_m becomes
    n_m + K (misfit_s - n_s), which has the conditional mean and covariance (Matheron's rule).
    """
    found = noise.copy()
    patterns, which = np.unique(np.isnan(misfit[0]), axis=0, return_inverse=True)
    for number, lost in enumerate(patterns):
        if not lost.any() or lost.all():
            continue
        rows, known = which.reshape(-1) == number, ~lost
        gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, lost)])
        left = misfit[:, rows][..., known] - noise[:, rows][..., known]
        found[np.ix_(range(len(noise)), rows, lost)] += left @ gain
    return found


def forecast(
    model: PALRNN,
    x: Floats,
    steps: int,
    standardizer: Standardizer,
    *,
    inputs: Floats | None,
    paths: int,
    seed: int,
    posterior: ModelDraws | None,
    **settings: Any,
) -> Forecast:
    """Return sampled observations after raw ``x (T, N)``, raw, from the state filtered along them.

    ``inputs (T + steps, K)``, in the model's coordinates, drive it. ``settings`` are those of `Stepper`.
    """
    _check_coordinates(model, posterior)
    rows = standardizer.transform(x)
    drive = [None] * len(rows) if inputs is None else list(inputs[: len(rows)])
    how: dict[str, Any] = {"seed": seed, "target": "exact"} | settings
    stepper = Stepper(model, rows[0], inputs=drive[0], **how)
    for row, push in zip(rows[1:], drive[1:], strict=True):
        stepper.update(row, inputs=push)
    drifts = None if posterior is None else posterior.sample(paths, seed=seed)
    coming = None if inputs is None else inputs[len(rows) :]
    ahead = stepper.forecast(steps, inputs=coming, paths=paths, seed=seed, drifts=drifts)
    return Forecast(standardizer.inverse(ahead.paths), ahead.varies)


def _check_coordinates(model: PALRNN, posterior: ModelDraws | None) -> None:
    if not shares_units(model.drift, posterior):
        raise ValueError("posterior must share the hidden units of the model")


def shares_units(drift: Surrogate, posterior: Any) -> bool:
    """Return whether models of ``posterior`` can go on from a state of ``drift``.

    Those of other sizes cannot, nor those that started from other seeds and have hidden units: these mean
    something else.
    """
    sizes = {model.latent_dim for model in getattr(posterior, "models", ())}
    hidden = drift.latent_dim > drift.observed_dim
    return sizes <= {drift.latent_dim} and (not hidden or getattr(posterior, "method", "blocks") == "blocks")


def hindcast_by(
    forecast: Callable[..., Forecast],
    x: ArrayLike,
    steps: int,
    *,
    origins: int = 40,
    seen: int = 60,
    seed: int = 0,
    **settings: Any,
) -> list[tuple[Forecast, Floats]]:
    """Return forecasts within raw ``x (T, N)``, raw, by ``forecast(rows, steps, seed=)``.

    They begin where those of `hindcasts` do, and those whose rows the filter loses are left out.
    """
    rows, ahead = as_series(x, allow_nan=True), as_int(steps, "steps", least=1)
    before, count = as_int(seen, "seen", least=2), as_int(origins, "origins", least=1)
    found: list[tuple[Forecast, Floats]] = []
    for number, begin in enumerate(spaced(rows, before + ahead, count)):
        own = int(generator(seed, "hindcast", number).integers(10**9))
        end = begin + before
        try:
            made = forecast(rows[begin:end], ahead, seed=own, **settings)
        except FilterDiedError:
            continue
        found.append((made, rows[end : end + ahead]))
    return found


def hindcast(
    model: PALRNN,
    x: ArrayLike,
    steps: int,
    standardizer: Standardizer,
    *,
    posterior: ModelDraws | None = None,
    paths: int = 200,
    seed: int = 0,
    **settings: Any,
) -> list[tuple[Forecast, Floats]]:
    """Return `hindcasts` within raw ``x (T, N)``, raw."""
    if model.drift.input_dim:
        raise ValueError("hindcasts are for models without inputs")
    _check_coordinates(model, posterior)
    rows = standardizer.transform(as_series(x, dim=model.drift.observed_dim, allow_nan=True))
    drifts = None if posterior is None else posterior.sample(paths, seed=seed)
    made = hindcasts(model, rows, steps, drifts=drifts, paths=paths, seed=seed, **settings)
    return [
        (Forecast(standardizer.inverse(ahead.paths), ahead.varies), standardizer.inverse(came))
        for ahead, came in made
    ]
