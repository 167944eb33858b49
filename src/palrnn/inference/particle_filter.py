"""`rbpf`: which gates were open, and how likely is the data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_series
from palrnn.engine.kernel import pin_blas
from palrnn.engine.progress import Progress, quiet
from palrnn.engine.seeds import generator
from palrnn.inference import fast_filter, reference
from palrnn.inference.collectors import Collection, Collector, survivor_counts
from palrnn.inference.config import FilterConfig, FilterSettings, filter_config
from palrnn.inference.record import Filtered, Record
from palrnn.model import ALRNN, PALRNN
from palrnn.model.inputs import checked_inputs, offsets


def rbpf(
    model: PALRNN,
    x: ArrayLike,
    config: FilterConfig | None = None,
    *,
    inputs: ArrayLike | None = None,
    schedule: ArrayLike | None = None,
    collect: Mapping[str, Collector] | None = None,
    progress: Progress = quiet,
    **settings: Unpack[FilterSettings],
) -> Filtered:
    """Filter ``x (T, N)`` with a Rao-Blackwellised particle filter over gate paths (Alg. rbpf-louis).

    The segment starts at ``z_1 ~ N(embed(x[0]), initial)``; the evidence is that of ``x[1:]`` given ``x[0]``.
    NaN in ``x[1:]`` means not observed: the update uses the other coordinates. A driven model needs its
    ``inputs (T, K)``, one row for each row of ``x``.

    ``particles``, ``target``, ``resampling``, ``ess_threshold`` and ``seed`` are the settings of
    `FilterConfig`, given as keywords, as a ``config``, or as a ``config`` with some of them changed. With
    ``schedule (T-1,)``, resampling happens after exactly those steps where it is true. ``collect`` names more
    diagnostics, functions of the transitions as they are finished (see `palrnn.inference.collectors`).

    Raises `FilterDiedError` where all particles have weight zero.
    """
    chosen = filter_config(config, settings)
    series = checked_series(model, x)
    given = checked_inputs(model, inputs, len(series))
    return run_filter(model, series, chosen, stream(chosen.seed), schedule, collect, progress, given)


def run_filter(
    model: PALRNN,
    x: Floats,
    config: FilterConfig,
    key: int,
    schedule: ArrayLike | None = None,
    collect: Mapping[str, Collector] | None = None,
    progress: Progress = quiet,
    inputs: Floats | None = None,
) -> Filtered:
    """Return the filter pass over checked data, with the random stream ``key`` in place of the seed's."""
    pin_blas()
    steps, drift = len(x) - 1, model.drift
    plan = _checked_schedule(schedule, steps)
    engine = engine_of(drift, model)
    diagnostics, more = Collection(engine.DIAGNOSTICS), Collection(collect)
    record = Record.empty(steps, config.particles, drift.latent_dim, drift.gated)
    for finished in engine.filter_pass(model, x, offsets(model, inputs), config, key, plan, record):
        diagnostics.add(finished)
        more.add(finished)
        done = finished.first + len(finished.weights)
        progress(done, steps, {"log_evidence": float(record.increments[:done].sum())})
    return Filtered(
        **record._asdict(),
        **diagnostics.arrays,
        survivors=survivor_counts(record.ancestors),
        config=config,
        collected=more.arrays,
        model=model,
        x=x,
        key=key,
        inputs=inputs,
    )


@singledispatch
def engine_of(drift: Any, model: PALRNN) -> Any:
    """Return the module that filters with this kind of ``drift``: `reference`, unless one is registered."""
    return reference


@engine_of.register
def _(drift: ALRNN, model: PALRNN) -> Any:
    return fast_filter if model.is_standard else reference


def has_fast_filter(model: PALRNN) -> bool:
    """Return whether the model's filter is compiled, and not the plain `reference`."""
    return engine_of(model.drift, model) is not reference


def stream(seed: int, *numbers: int) -> int:
    """Return the 64-bit key of a filter pass: of ``seed``, or of one of its numbered streams."""
    return int(generator(seed, *numbers).integers(0, 2**64, dtype=np.uint64))


def checked_model(model: PALRNN) -> PALRNN:
    """Return ``model`` if it is a PAL-RNN."""
    if not isinstance(model, PALRNN):
        raise ValueError(f"model must be a PALRNN, got {type(model).__name__}")
    return model


def checked_series(model: PALRNN, x: ArrayLike) -> Floats:
    """Return ``x (T, N)`` for ``model``; NaN is allowed after the first row."""
    series = as_series(x, dim=checked_model(model).drift.observed_dim, allow_nan=True)
    if np.isnan(series[0]).any():
        column = int(np.isnan(series[0]).argmax())
        raise ValueError(f"x[0] must be fully observed, it starts the filter; column {column} is NaN")
    return series


def _checked_schedule(schedule: ArrayLike | None, steps: int) -> NDArray[np.int8]:
    """1 and 0 where resampling is wanted or not, -1 where the effective sample size decides."""
    if schedule is None:
        return np.full(steps, -1, dtype=np.int8)
    plan = np.asarray(schedule)
    if plan.shape != (steps,):
        raise ValueError(f"schedule must have shape ({steps},), one entry per transition, got {plan.shape}")
    return plan.astype(np.bool_).astype(np.int8)
