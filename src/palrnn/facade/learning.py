"""`reconstruct`: from a series to a trained surrogate, with choices that suit the data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer, delay_embed, suggest_tau, train_test_split
from palrnn.engine.checks import Floats, as_float, as_int, as_trials, one_of
from palrnn.engine.progress import Progress
from palrnn.facade.about import SYSTEMS, UNNAMED, About
from palrnn.facade.folder import block_means
from palrnn.facade.reconstruction import Reconstruction
from palrnn.forcing import TrainConfig, train

_LONGEST_SEQUENCE = 200
_LEAST_HELD_OUT = 40


def reconstruct(
    x: ArrayLike | Sequence[ArrayLike],
    *,
    dt: float | None = None,
    latent_dim: int = 30,
    gated: int = 10,
    tau: int | None = None,
    updates: int = 30_000,
    lags: int = 1,
    delay: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    name: str = UNNAMED,
    system: str | None = None,
    lyapunov: float | None = None,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Reconstruction:
    """Train a surrogate of the system behind ``x``: a series ``(T, N)``, time in rows, or a list of trials.

    - ``latent_dim`` (M) and ``gated`` (P): how rich a model. Start with the defaults; fewer gates make a
      model that is easier to read, more make one that fits stronger nonlinearity.
    - ``tau``: steps between forcings. None takes the time over which the data remember themselves
      (`suggest_tau`).
    - ``lags`` and ``delay``: with ``lags > 1`` past values become further coordinates (`delay_embed`), for
      systems that are observed in part only. ``delay=None`` takes the same time as ``tau``.
    - ``dt``: time per step. Without it, rates such as Lyapunov exponents are per step.
    - ``system`` ("lorenz63", "rossler") says that ``x`` was simulated, with ``dt``, so that floors and true
      exponents are computed from the system itself; ``lyapunov`` gives the largest true exponent where it is
      known.
    - ``test_fraction``: the last part of a series, held out to judge the model. Of several trials the last
      one is held out.
    - ``run``: a folder to keep the run in; training continues there after an interruption.
    - further ``settings`` are those of `TrainConfig` (``sequence_length``, ``batch_size``, ...).
    """
    names = _names(x, columns)
    trials = as_trials(getattr(x, "values", x), min_steps=_LEAST_HELD_OUT)
    seen = trials[0].shape[1]
    if names and len(names) != seen:
        raise ValueError(f"columns must name {seen} coordinates, got {len(names)}")
    names = names or tuple(f"x{i + 1}" for i in range(seen))
    lags = as_int(lags, "lags", least=1)
    if lags > 1:
        delay = suggest_tau(trials) if delay is None else as_int(delay, "delay", least=1)
        trials = [delay_embed(trial, lags, delay) for trial in trials]
    training, held = _parts(trials, test_fraction)
    standardizer = Standardizer.fit(np.concatenate(training))
    config = TrainConfig(
        latent_dim=latent_dim,
        gated=gated,
        updates=updates,
        seed=seed,
        **(_from_data(training, tau, settings) | settings),
    )
    about = About(
        name=name,
        series="in memory" if system is None else f"{system}, simulated",
        system=_known_system(system, dt, seen, lags),
        columns=names,
        training_steps=sum(map(len, training)),
        trials=len(trials),
        lags=lags,
        delay=delay or 1,
        lyapunov=None if lyapunov is None else as_float(lyapunov, "lyapunov"),
    )
    result = train(
        [standardizer.transform(trial) for trial in training],
        config,
        run=run,
        heldout=standardizer.transform(held),
        standardizer=standardizer,
        dt=dt,
        progress=progress,
    )
    losses = block_means(list(enumerate(result.history.loss.tolist(), start=1)))
    return Reconstruction(result.model, standardizer, held, config, dt, about, losses=losses).kept_in(run)


def _names(x: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the given names, or those of a data frame."""
    if columns is None:
        columns = getattr(x, "columns", ())
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"columns must be a sequence of names, got {columns!r}")
    return tuple(str(column) for column in columns)


def _known_system(system: str | None, dt: float | None, seen: int, lags: int) -> str | None:
    """Return the name of the true system; refuse one that a model of ``x`` could not be compared with."""
    if system is None:
        return None
    name = one_of(system, "system", SYSTEMS)
    dim = len(SYSTEMS[name]().typical)
    if lags == 1 and seen != dim:
        raise ValueError(f"x must have the {dim} columns of system = {name!r}, got {seen}")
    if lags == 1 and dt is None:
        raise ValueError(f"dt must be given where system is, got None with {name!r}")
    return name


def _from_data(training: list[Floats], tau: int | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that follow from the data: the length of sequences, and the forcing unless told."""
    length = {"sequence_length": min(_LONGEST_SEQUENCE, *map(len, training))}
    if "forcing" in settings and tau is None:
        return length
    return length | {"tau": suggest_tau(training) if tau is None else tau}


def _parts(trials: list[Floats], test_fraction: float) -> tuple[list[Floats], Floats]:
    """Return the trials to train on and the one series to judge by."""
    if len(trials) > 1:
        return trials[:-1], trials[-1]
    training, held = train_test_split(trials[0], test_fraction)
    if len(held) < _LEAST_HELD_OUT:
        raise ValueError(
            f"x must leave {_LEAST_HELD_OUT} steps to judge the model by, got {len(held)}: "
            "give a longer series or a larger test_fraction"
        )
    return [training], held
