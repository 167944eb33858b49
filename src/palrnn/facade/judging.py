"""What a free run says about a model: invariants beside their floors, switching codes, forecasts."""

from __future__ import annotations

import math

import numpy as np

from palrnn.data import Standardizer
from palrnn.data.systems import System
from palrnn.engine.checks import Floats
from palrnn.facade.settings import JudgeSettings
from palrnn.invariants import Floor, Scorecard, SymbolicDynamics, free_run, scorecard
from palrnn.model import ALRNN, BOUND
from palrnn.report.findings import Forecast, Invariants, Spread, Symbols

_SHOWN_CODES = 24
_RAREST = 0.005


def judged(
    model: ALRNN,
    reference: Floats,
    standardizer: Standardizer,
    settings: JudgeSettings,
    *,
    dt: float | None,
    system: System | None = None,
    process_std: float = 0.0,
    lyapunov: float | None = None,
) -> Invariants:
    """Return the invariants of a free run against the raw ``reference``, or against the true ``system``."""
    card = scorecard(
        model,
        reference if system is None else system,
        standardizer=standardizer,
        dt=dt or 1.0,
        steps=settings.steps,
        discard=settings.discard,
        process_std=process_std,
        lyapunov=lyapunov,
        pairs=settings.pairs,
        k=model.latent_dim,
        n=min(settings.ahead, len(reference) // 4),
        seed=settings.seed,
    )
    run, exponents = card.hard, card.hard.lyapunov
    known, source = _known(card, system, lyapunov)
    return Invariants(
        steps=len(card.reference),
        simulated=None if system is None else system.name,
        diverged_at=run.diverged_at,
        dstsp=None if run.dstsp is None else run.dstsp.value,
        outside=None if run.dstsp is None else run.dstsp.outside,
        dstsp_floor=_spread(card.dstsp_floor),
        spectrum_distance=run.spectrum_distance,
        spectrum_floor=_spread(card.spectrum_floor),
        exponents=() if exponents is None else _finite(exponents.exponents),
        exponents_stderr=() if exponents is None else _finite(exponents.stderr),
        kaplan_yorke=None if exponents is None else exponents.kaplan_yorke,
        reference_exponents=known,
        reference_source=source,
        mse=tuple(value for value in _finite(card.prediction.mse) if value is not None),
        valid_steps=float(card.prediction.valid_steps.mean()),
        valid_time=card.prediction.valid_time,
        symbols=None if card.symbols is None or not model.gated else _symbols(card.symbols, run.generated),
    )


def forecast(model: ALRNN, x: Floats, standardizer: Standardizer, tau: int) -> Forecast:
    """Return what the model makes of ``x (S, N)``: set back every ``tau`` steps, and left alone.

    NaN stands where the state has diverged; forcing brings back only what is observed of it.
    """
    seen = model.observed_dim
    forced, free = np.full_like(x, np.nan), np.full_like(x, np.nan)
    z, forced[0] = model.embed(x[0]), x[0]
    for t in range(len(x) - 1):
        if t > 0 and t % tau == 0:
            z[:seen] = x[t]
        z = model.step(z) if (np.abs(z) <= BOUND).all() else np.full_like(z, np.nan)
        forced[t + 1] = np.where(np.abs(z[:seen]) <= BOUND, z[:seen], np.nan)
    alone = free_run(model, x[0], len(x)).observed
    free[: len(alone)] = alone
    return Forecast(standardizer.inverse(x), standardizer.inverse(forced), standardizer.inverse(free), tau)


def _symbols(found: SymbolicDynamics, generated: Floats) -> Symbols:
    shown = min(_SHOWN_CODES, len(found.codes))
    chances = found.transitions[:shown, :shown].toarray()
    staying = chances.diagonal().copy()
    np.fill_diagonal(chances, 0.0)
    leaving = np.where(staying < 1, 1 - staying, 1.0)
    edges = [(int(i), int(j), float(chances[i, j] / leaving[i])) for i, j in np.argwhere(chances > 0)]
    return Symbols(
        codes=["".join("1" if bit else "0" for bit in code) for code in found.codes[:shown]],
        occupancy=found.occupancy[:shown].tolist(),
        places=[generated[found.symbols == i].mean(axis=0).tolist() for i in range(shown)],
        transitions=[edge for edge in edges if edge[2] >= _RAREST],
        distinct=len(found.codes),
        entropy=found.occupancy_entropy,
    )


def _known(card: Scorecard, system: System | None, lyapunov: float | None) -> tuple[tuple[float, ...], str]:
    if system is not None and card.reference_exponents is not None:
        return tuple(card.reference_exponents.exponents.tolist()), f"{system.name}, computed the same way"
    return ((lyapunov,), "given by the user") if lyapunov is not None else ((), "")


def _spread(floor: Floor) -> Spread:
    return Spread(
        low=floor.low, median=floor.median, high=floor.high, pairs=len(floor.values), length=floor.length
    )


def _finite(values: Floats) -> tuple[float | None, ...]:
    return tuple(float(value) if math.isfinite(value) else None for value in values)
