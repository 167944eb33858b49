"""What the M-step needs to know of the smoothing samples: sums, so that windows can be added up.

Given its gates, a PAL-RNN is a linear regression of z_{t+1} on the features

    f_t = [z_t, D(c_t) z_t, 1]                                   (2 M + 1,)

in which unit i uses its own z_i only (A is diagonal), all of D(c) z and the constant. The sums of f f^T,
z' f^T and z'^2 therefore hold everything that the drift and the process noise depend on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from palrnn.engine.checks import Floats
from palrnn.model import ALRNN

#: The gate deviations at which the gates' log likelihood is summed, 20 per decade.
GATE_STDS: Floats = np.geomspace(1e-2, 1e1, 61)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Complete-data sufficient statistics of a PAL-RNN, as sums over windows, samples and steps.

    ``gram (2M+1, 2M+1)``: sum of f f^T. ``cross (M, 2M+1)``: sum of z' f^T. ``square (M,)``: sum of z'^2.
    ``residual (N,)``: sum of (x - z)^2 over observed entries, ``observed (N,)`` of them; the left boundary
    of a window is given, not scored. ``start (M,)``: sum of (z_1 - embed(x_1))^2. ``gates (61,)``: sum of
    the gates' log likelihood at each of ``GATE_STDS``. ``transitions`` and ``starts`` count steps and first
    states.
    """

    gram: Floats
    cross: Floats
    square: Floats
    residual: Floats
    observed: Floats
    start: Floats
    gates: Floats
    transitions: float
    starts: float

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(**{name: value + getattr(other, name) for name, value in self.arrays().items()})

    def averaged(self, new: Statistics, step: float) -> Statistics:
        """Return ``(1 - step) self + step new``, a Robbins-Monro update."""
        mixed = {name: value + step * (getattr(new, name) - value) for name, value in self.arrays().items()}
        return Statistics(**mixed)

    def arrays(self) -> dict[str, Floats]:
        """Return the sums by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        return (
            f"Statistics({float(self.transitions):g} transitions, {float(self.starts):g} windows x samples)"
        )


def sufficient_statistics(
    drift: ALRNN, x: Floats, codes: NDArray[np.bool_], states: Floats, *, gate_likelihood: bool = False
) -> Statistics:
    """Return the sums over the smoothing samples of one window ``x (T, N)``; NaN in it means not observed.

    ``codes (S, T-1, P)`` and ``states (S, K, T, M)`` are S gate paths with K state paths each. The gates'
    likelihood is summed only if asked for, because it is not cheap.
    """
    dim, seen, free = drift.latent_dim, drift.observed_dim, drift.latent_dim - drift.gated
    before, after = states[:, :, :-1], states[:, :, 1:]
    features = np.empty((*before.shape[:3], 2 * dim + 1))
    features[..., :dim] = before
    features[..., dim : 2 * dim] = before
    features[..., dim + free : 2 * dim] *= codes[:, None]
    features[..., 2 * dim] = 1.0
    rows, target = features.reshape(-1, 2 * dim + 1), after.reshape(-1, dim)
    error = np.square(x[1:] - after[..., :seen]).reshape(-1, x.shape[0] - 1, seen)
    known = ~np.isnan(x[1:])
    gates = np.zeros(GATE_STDS.size)
    if gate_likelihood and drift.gated:
        signed = np.where(codes[:, None], before[..., free:], -before[..., free:]).ravel()
        gates = np.array([log_ndtr(signed / std).sum() for std in GATE_STDS])
    return Statistics(
        gram=rows.T @ rows,
        cross=target.T @ rows,
        square=np.square(target).sum(axis=0),
        residual=np.where(known, error, 0.0).sum(axis=(0, 1)),
        observed=known.sum(axis=0) * float(error.shape[0]),
        start=np.square(states[:, :, 0] - drift.embed(x[0])).sum(axis=(0, 1)),
        gates=gates,
        transitions=float(rows.shape[0]),
        starts=float(states.shape[0] * states.shape[1]),
    )
