"""The forced rollout and its derivatives in theta, for every family; compiled for the AL-RNN.

Time is 0-based: ``x[0]`` embeds, step i maps the (forced) state zbar_i to z_{i+1}, and the observed units are
forced at the steps of the policy. The initial condition is fixed, so its sensitivity is zero:

    S_{i+1} = J(c_i) F_i S_i + V_i,   V_i = dF/dtheta at zbar_i,   F_i = 1 - strength on observed units

with d(C s_i)/dC in the last columns of V_i, where the model is driven by inputs.

A strength belongs to a step and a coordinate: what was not seen (NaN) is not forced, and not predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.geometry.kernels import itf as kernels
from palrnn.model import ALRNN, BOUND, Forcing, Surrogate
from palrnn.model.engine import biases, codes, step
from palrnn.model.inputs import input_pullback

# numbers held at once by a batch of pullbacks: 32 MB whatever the length of the series
_CHUNK = 4_000_000


def forcing_strengths(x: Floats, forcing: Forcing) -> Floats:
    """Return the strength of forcing at each step and coordinate of ``x (T, N)``: ``(T-1, N)``."""
    return np.where(np.isnan(x[:-1]), 0.0, forcing.strengths(len(x) - 1)[:, None])


@singledispatch
def forced_states(
    model: Surrogate, x: Floats, strengths: Floats, offsets: Floats | None = None
) -> tuple[Floats, int]:
    """Return ``(T-1, M)``, the states that the map is applied to along the forced rollout on ``x (T, N)``.

    ``strengths (T-1, N)`` are those of `forcing_strengths`, ``offsets (T, M)`` what inputs add to each step.
    The second result is the step at which the rollout left every bound, or -1.
    """
    seen = x.shape[1]
    states, z = np.empty((len(x) - 1, model.latent_dim)), model.embed(x[0])
    for t in range(len(states)):
        forced = (1.0 - strengths[t]) * z[:seen] + strengths[t] * x[t]
        z[:seen] = np.where(strengths[t] > 0.0, forced, z[:seen])
        if not np.abs(z).max() <= BOUND:
            return states, t
        states[t] = z
        z = step(model, z) if offsets is None else step(model, z) + offsets[t]
    return states, -1 if np.abs(z).max() <= BOUND else len(states)


@forced_states.register
def _(model: ALRNN, x: Floats, strengths: Floats, offsets: Floats | None = None) -> tuple[Floats, int]:
    states = np.empty((len(x) - 1, model.latent_dim))
    network = (model.A, model.W, biases(model.h, offsets), model.gated)
    x = np.require(x, np.float64, ("C", "W"))
    return states, kernels.forced_states(*network, model.embed(x[0]), x, strengths, BOUND, states)


class Sensitivity(Protocol):
    """The derivative of the predictions z_1[:N] .. z_{T-1}[:N] in theta, each times ``scale (T-1, N)``."""

    def rows(self, begin: int, S: Floats, rows: Floats) -> None:
        """Fill ``rows (steps, N, p)`` from step ``begin`` on; ``S (M, p)`` is carried from call to call."""
        ...

    def trace(self) -> float:
        """Return the sum of the squares of all rows."""
        ...

    def tangent(self, v: Floats) -> Floats:
        """Return the derivative along ``v (p,)``: ``(T-1, N)``."""
        ...

    def cotangent(self, r: Floats) -> Floats:
        """Return the combination of all rows with weights ``r (T-1, N)``: ``(p,)``."""
        ...


@singledispatch
def sensitivity(
    model: Surrogate, states: Floats, strengths: Floats, scale: Floats, inputs: Floats | None = None
) -> Sensitivity:
    """Return the sensitivity along the forced rollout ``states (T-1, M)``, driven by ``inputs (T, K)``."""
    c = codes(model, states)
    return _Plain(model, states, c, model.affine(c)[0], 1.0 - strengths, scale, inputs)


@dataclass(frozen=True, eq=False)
class _Plain:
    """From the pieces and pullbacks of any family; ``keep (T-1, N)`` is 1 - strength."""

    model: Surrogate
    states: Floats
    codes: NDArray[np.bool_]
    J: Floats
    keep: Floats
    scale: Floats
    inputs: Floats | None

    def _pullback(self, at: slice | int, r: Floats) -> Floats:
        """Return r^T dF/dtheta of one or several steps, with the entries of C."""
        own = self.model.pullback(self.states[at], self.codes[at], r)
        if self.inputs is None:
            return own
        return np.concatenate([own, input_pullback(self.inputs[:-1][at], r)], axis=-1)

    def _advance(self, t: int, S: Floats) -> Floats:
        forced = np.array(S)
        forced[: self.keep.shape[1]] *= self.keep[t, :, None]
        return np.asarray(self.J[t] @ forced + self._pullback(t, np.eye(len(S))))

    def rows(self, begin: int, S: Floats, rows: Floats) -> None:
        for k in range(len(rows)):
            S[:] = self._advance(begin + k, S)
            rows[k] = self.scale[begin + k, :, None] * S[: self.keep.shape[1]]

    def trace(self) -> float:
        S, total = np.zeros((self.model.latent_dim, self.model.theta.size)), 0.0
        for t in range(len(self.states)):
            S = self._advance(t, S)
            total += float(np.square(self.scale[t, :, None] * S[: self.keep.shape[1]]).sum())
        return total

    def tangent(self, v: Floats) -> Floats:
        seen = self.keep.shape[1]
        s, along = np.zeros(self.model.latent_dim), np.empty((len(self.states), seen))
        for t in range(len(self.states)):
            s[:seen] *= self.keep[t]
            s = self.J[t] @ s + self._pullback(t, np.eye(len(s))) @ v
            along[t] = self.scale[t] * s[:seen]
        return along

    def cotangent(self, r: Floats) -> Floats:
        seen, steps = self.keep.shape[1], len(self.states)
        adjoints, back = np.empty_like(self.states), np.zeros(self.model.latent_dim)
        for t in range(steps - 1, -1, -1):
            back[:seen] += self.scale[t] * r[t]
            adjoints[t] = back
            back = self.J[t].T @ back
            back[:seen] *= self.keep[t]
        total, chunk = np.zeros(self.model.theta.size), max(1, _CHUNK // self.model.theta.size)
        for begin in range(0, steps, chunk):
            part = slice(begin, begin + chunk)
            total += self._pullback(part, adjoints[part]).sum(axis=0)
        return total


@sensitivity.register
def _(
    model: ALRNN, states: Floats, strengths: Floats, scale: Floats, inputs: Floats | None = None
) -> Sensitivity:
    driving = np.empty((len(states), 0)) if inputs is None else np.ascontiguousarray(inputs[:-1])
    return _Compiled(model, states, driving, 1.0 - strengths, scale)


@dataclass(frozen=True, eq=False)
class _Compiled:
    """By the kernels of the AL-RNN; ``inputs (T-1, K)``, K = 0 where there are none."""

    model: ALRNN
    states: Floats
    inputs: Floats
    keep: Floats
    scale: Floats

    def rows(self, begin: int, S: Floats, rows: Floats) -> None:
        model = self.model
        kernels.sensitivity_rows(
            model.A, model.W, model.gated, self.states, self.inputs, begin, self.keep, self.scale, S, rows
        )

    def trace(self) -> float:
        model, rows = self.model, (self.states, self.inputs, self.keep, self.scale)
        return float(kernels.sensitivity_trace(model.A, model.W, model.gated, *rows))

    def tangent(self, v: Floats) -> Floats:
        model, along = self.model, np.empty(self.scale.shape)
        rows = (self.states, self.inputs, self.keep, self.scale)
        kernels.tangent(model.A, model.W, model.gated, *rows, v, along)
        return along

    def cotangent(self, r: Floats) -> Floats:
        model, product = self.model, np.empty(self.model.theta.size)
        rows = (self.states, self.inputs, self.keep, self.scale)
        kernels.cotangent(model.A, model.W, model.gated, *rows, r, product)
        return product
