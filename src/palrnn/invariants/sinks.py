"""Where a free run ends, exactly, and how its stability changes with the parameters.

A run that comes to rest, or falls onto a cycle, ends on a *sink*: an orbit of k states (k = 1 at rest) along
whose codes the map is affine, z' = P z + q with P = J_k ... J_1. It attracts at the rate

    growth = log |lambda| / k,

lambda the largest eigenvalue of P, with left and right eigenvectors w and v. For the parameters theta

    d log |lambda| = Re sum_i r_i dJ_i v_i,
    v_i = J_{i-1} ... J_1 v,   r_i = w J_k ... J_{i+1} / (w v lambda).

The cycle of a flow that was sampled in time rarely closes after a whole number of steps, and along its path
nothing grows or shrinks. What counts there is growth across the path: with t the unit vector along it,
lambda is of (1 - t t^T) P (1 - t t^T), and the orbit is the one that closes but for a part of a step, F^k(z)
= z + s t.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from palrnn.engine.checks import Floats
from palrnn.invariants.cycles import orbit_derivative
from palrnn.invariants.fixed_points import fixed_points
from palrnn.invariants.viability import STRIDE, Viability
from palrnn.model import Surrogate
from palrnn.model.engine import BOUND
from palrnn.model.engine import codes as codes_of
from palrnn.model.inputs import input_parameters

_NEWTON_STEPS = 12
# how well an orbit closes, in parts of its size: a cycle of the map, and a loop of a flow
_CLOSED, _CLOSED_LOOP = 1e-8, 0.02
# a loop of a flow has at least so many states; an orbit of more than the other number is not looked at
_LEAST_LOOP, _MOST_STATES = 8, 5000
# sinks that are nearer to each other than this part of a unit are one
_SAME = 0.02
_AT_ONCE, _MOST_REGIONS = 256, 4096


@dataclass(frozen=True, eq=False)
class Sink:
    """An orbit of ``states (k, M)`` with ``codes (k, P)``, and its ``growth`` per step, negative if stable.

    ``along (M,)`` is the direction of the path at the first state of a sampled flow's loop; None of a fixed
    point, and of a cycle of the map.
    """

    states: Floats
    codes: NDArray[np.bool_]
    growth: float
    along: Floats | None = field(default=None, repr=False)

    @property
    def period(self) -> int:
        """k, in steps; 1 of a fixed point."""
        return len(self.states)

    @property
    def stable(self) -> bool:
        """Whether it attracts."""
        return self.growth < 0.0

    def __str__(self) -> str:
        what = "fixed point" if self.period == 1 else f"cycle of period {self.period}"
        return f"{what} with growth {self.growth:.2g} per step"


def sink_at(drift: Surrogate, state: Floats, period: int = 1) -> Sink | None:
    """Return the fixed point or the orbit of ``period`` steps to which ``state (M,)`` belongs, or None.

    By Newton's method for F^k(z) = z, which ends when the codes of the orbit stay the same.
    """
    if not 1 <= period <= _MOST_STATES:
        return None
    orbit, P = orbit_derivative(drift, state, period)
    along = _direction(orbit)
    if along is not None:
        length = float(np.linalg.norm(orbit[1] - orbit[0]))
        # of the periods next to it, the one after which the orbit is nearest to where it began
        period -= int(np.rint((orbit[-1] - orbit[0]) @ along / length))
        if not _LEAST_LOOP <= period <= _MOST_STATES:
            return None
    z, best = state, None
    before = np.empty((0, 0), dtype=np.bool_)
    for _ in range(_NEWTON_STEPS):
        orbit, P = orbit_derivative(drift, z, period)
        if not (np.abs(orbit).max() <= BOUND and np.isfinite(P).all()):
            break
        codes, gap = codes_of(drift, orbit[:-1]), orbit[-1] - orbit[0]
        if along is not None:
            gap = gap - (gap @ along) * along
        size = float(np.ptp(orbit, axis=0).max()) if along is not None else 1.0 + np.abs(orbit).max()
        missed = float(np.abs(gap).max()) / size
        if missed <= (_CLOSED if along is None else _CLOSED_LOOP) and (best is None or missed < best[0]):
            best = missed, orbit, codes, P
        if np.array_equal(codes, before):
            break
        move = _newton_move(P, orbit[-1] - orbit[0], along)
        if move is None:
            break
        z, before = z + move, codes
    if best is None:
        return None
    _, orbit, codes, P = best
    multipliers = np.abs(linalg.eigvals(_across(P, along)))
    growth = float(np.log(max(multipliers.max(), np.finfo(float).tiny))) / period
    return Sink(orbit[:-1].copy(), codes, growth, along)


def sinks_of(drift: Surrogate, life: Viability) -> list[Sink]:
    """Return the stable fixed points and cycles on which runs of ``life`` ended, each once."""
    found: list[Sink] = []
    if life.ends is None:
        return found
    for fate, end in zip(life.fates, life.ends, strict=True):
        if fate.outcome in ("rests", "cycle"):
            sink = sink_at(drift, end, 1 if fate.outcome == "rests" else fate.period or 1)
            if sink is not None and sink.stable and not any(same_place(sink, other) for other in found):
                found.append(sink)
    return found


def resting_places(drift: Surrogate, states: Floats, data: Floats) -> list[Sink]:
    """Return the stable fixed points in regions that ``states (T, M)`` visit, within the box of ``data``.

    A run can come to rest there, though none of those that were looked at may have.
    """
    regions = np.unique(codes_of(drift, states), axis=0)[:_MOST_REGIONS]
    found = fixed_points(drift, within=regions)
    seen = found.points[:, : data.shape[1]]
    low, high = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    within = found.stable & ((seen >= low) & (seen <= high)).all(axis=1)
    return [sink for point in found.points[within] if (sink := sink_at(drift, point)) is not None]


def same_place(one: Sink, other: Sink) -> bool:
    """Whether one orbit begins on the other, up to the steps between its states."""
    step = 0.0 if other.along is None else float(np.abs(np.diff(other.states, axis=0)).max())
    return bool(np.abs(other.states - one.states[0]).max(axis=1).min() <= _SAME + step)


def growth_gradient(drift: Surrogate, sink: Sink) -> Floats:
    """Return the derivative of ``sink.growth`` for the drift parameters theta, ``(p,)``."""
    J = drift.affine(sink.codes)[0]
    P = np.eye(drift.latent_dim)
    for each in J:
        P = each @ P
    values, left, right = linalg.eig(_across(P, sink.along), left=True)
    most = int(np.abs(values).argmax())
    w, v = left[:, most].conj(), right[:, most]
    vectors, rows = np.empty((len(J), len(v)), complex), np.empty((len(J), len(v)), complex)
    row = w / (w @ v * values[most])
    for i in range(len(J)):
        vectors[i], v = v, J[i] @ v
    for i in range(len(J) - 1, -1, -1):
        rows[i], row = row, row @ J[i]
    total: Any = 0.0
    for first in range(0, len(J), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        z, r, c = vectors[part], rows[part], sink.codes[part]
        none = np.zeros(z.shape)
        real = drift.pullback(z.real, c, r.real) - drift.pullback(none, c, r.real)
        imaginary = drift.pullback(z.imag, c, r.imag) - drift.pullback(none, c, r.imag)
        total = total + (real - imaginary).sum(axis=0)
    return np.concatenate([total / len(J), np.zeros(input_parameters(drift))])


def _direction(orbit: Floats) -> Floats | None:
    """Return the direction of the path where ``orbit (k + 1, M)`` is one of a sampled flow, or None."""
    if len(orbit) <= _LEAST_LOOP or not np.abs(orbit).max() <= BOUND:
        return None
    steps, size = np.diff(orbit, axis=0), float(np.ptp(orbit, axis=0).max())
    if size == 0.0 or np.abs(steps).max() > STRIDE * size or not steps[0].any():
        return None
    return np.asarray(steps[0] / np.linalg.norm(steps[0]))


def _newton_move(P: Floats, gap: Floats, along: Floats | None) -> Floats | None:
    """Return how far to move the start; of a loop, at a right angle to its path."""
    dim = len(gap)
    matrix, target = P - np.eye(dim), -gap
    if along is not None:
        matrix = np.block([[matrix, -along[:, None]], [along[None], np.zeros((1, 1))]])
        target = np.append(target, 0.0)
    try:
        return np.asarray(np.linalg.solve(matrix, target)[:dim])
    except np.linalg.LinAlgError:
        return None


def _across(P: Floats, along: Floats | None) -> Floats:
    if along is None:
        return P
    across = np.eye(len(P)) - np.outer(along, along)
    return np.asarray(across @ P @ across)
