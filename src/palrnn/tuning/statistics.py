"""What the M-step needs to know of the smoothing samples of windows, in a form that can be added up.

For every family: sums of squared errors of the observations and of first states, and the gates' likelihood.
What the drift depends on has two forms. For the AL-RNN, which is linear in its parameters given the gates,
sums are enough (`RowStatistics`, in `rows`). Any other family may be nonlinear in its parameters: for these
the sampled transitions themselves are kept, with weights (`SampleStatistics`, in `samples`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import singledispatch
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN
from palrnn.model.engine import gate_inputs

#: The gate deviations at which the gates' log likelihood is summed, 20 per decade.
GATE_STDS: Floats = np.geomspace(1e-2, 1e1, 61)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Complete-data statistics of a PAL-RNN, as sums over windows, samples and steps.

    ``residual (N,)``: sum of (x - B z - d)^2 over observed entries, ``observed (N,)`` of them, and ``misfit
    (N, N)``: sum of the outer products, over the ``whole`` rows that are fully observed; the left boundary of
    a window is given, not scored. ``start (M,)`` and ``spread (M, M)``: sums of (z_1 - embed(x_1))^2 and of
    the outer products. ``gates (61,)``: sum of the gates' log likelihood at each of ``GATE_STDS``.
    ``transitions`` and ``starts`` count steps and first states.
    """

    residual: Floats
    observed: Floats
    misfit: Floats
    whole: float
    start: Floats
    spread: Floats
    gates: Floats
    transitions: float
    starts: float

    def __add__(self, other: Statistics) -> Self:
        return self._with(
            {name: self._joined(name, value, getattr(other, name)) for name, value in self.arrays().items()}
        )

    def averaged(self, new: Statistics, step: float) -> Self:
        """Return ``(1 - step) self + step new``, a Robbins-Monro update."""
        return self._with({name: v + step * (getattr(new, name) - v) for name, v in self.arrays().items()})

    def arrays(self) -> dict[str, Floats]:
        """Return the parts by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    def _joined(self, name: str, one: Floats, other: Floats) -> Floats:
        return one + other

    def _with(self, arrays: dict[str, Floats]) -> Self:
        return type(self)(**arrays)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({float(self.transitions):g} transitions, "
            f"{float(self.starts):g} windows x samples)"
        )


def sufficient_statistics(
    model: PALRNN,
    x: Floats,
    codes: NDArray[np.bool_],
    states: Floats,
    *,
    inputs: Floats | None = None,
    gate_likelihood: bool = False,
) -> Statistics:
    """Return the statistics of the smoothing samples of one window ``x (T, N)``; NaN means not observed.

    ``codes (S, T-1, P)`` and ``states (S, K, T, M)`` are S gate paths with K state paths each; ``inputs`` has
    one row for each of x. The gates' likelihood is summed only if asked for, because it is not cheap.
    """
    from scipy.special import log_ndtr

    drift, after, first = model.drift, states[:, :, 1:], states[:, :, 0]
    count = states.shape[0] * states.shape[1]
    misfit = (x[1:] - model.observation_map(after)).reshape(count, len(x) - 1, x.shape[1])
    error, known = np.square(misfit), ~np.isnan(x[1:])
    whole = misfit[:, known.all(axis=1)].reshape(-1, x.shape[1])
    begun = (first - drift.embed(x[0])).reshape(count, -1)
    gates = np.zeros(GATE_STDS.size)
    if gate_likelihood and drift.gated:
        u = gate_inputs(drift, states[:, :, :-1])
        signed = np.where(codes[:, None], u, -u).ravel()
        gates = np.array([log_ndtr(signed / std).sum() for std in GATE_STDS])
    common = {
        "residual": np.where(known, error, 0.0).sum(axis=(0, 1)),
        "observed": known.sum(axis=0) * float(count),
        "misfit": whole.T @ whole,
        "whole": float(len(whole)),
        "start": np.square(first - drift.embed(x[0])).sum(axis=(0, 1)),
        "spread": begun.T @ begun,
        "gates": gates,
        "transitions": float(count * (len(x) - 1)),
        "starts": float(count),
    }
    return drift_statistics(drift, codes, states, common, inputs)


@singledispatch
def drift_statistics(
    drift: Any,
    codes: NDArray[np.bool_],
    states: Floats,
    common: dict[str, Any],
    inputs: Floats | None = None,
) -> Statistics:
    """Return all statistics: what the drift depends on, joined to what they have in ``common``.

    `SampleStatistics`, unless something is registered for this kind of ``drift``.
    """
    raise TypeError(f"drift must be a Surrogate, got {type(drift).__name__}")


@singledispatch
def statistics_kind(drift: Any) -> type[Any]:
    """Return the class of the statistics of this kind of ``drift``."""
    raise TypeError(f"drift must be a Surrogate, got {type(drift).__name__}")
