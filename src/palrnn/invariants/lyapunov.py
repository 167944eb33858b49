"""Lyapunov exponents: how fast do nearby trajectories part, in every direction?

QR re-orthonormalisation of tangent vectors along a rollout (Benettin et al., 1980; Shimada and Nagashima,
1979), with closed-form Jacobians. The same code serves learned models and the true systems, so that reference
values are computed exactly as the values they are compared with.

A model of a flow's samples is a map, and its slopes jump wherever the path crosses a gate. Most of a jump
averages out, but not what it does along the path: it turns the direction of the path, which a flow carries
into itself, into others, shear turns these back, and their growth passes for chaos. Noise of deviation s in
the slopes of a shear adds about s^(2/3) to the largest exponent, so that half of the noise leaves two thirds
of the error. With ``flow=True`` the direction of the path is known instead of carried along: one exponent is
the growth of the speed, zero in the long run, and the others are of growth across the path.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.systems import System
from palrnn.engine.checks import Floats, as_float, as_int, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.engine.seeds import generator
from palrnn.invariants.exponents import DivergenceError, LyapunovSpectrum
from palrnn.invariants.free_run import checked_drive, drive_offsets, free_run
from palrnn.invariants.kernels import lyapunov as kernels
from palrnn.model import ALRNN, BOUND, PALRNN, Surrogate, drift_of
from palrnn.model.engine import gate_inputs, pieces
from palrnn.model.palrnn import gate_probabilities

_TRACE_POINTS = 200
_TAPERS = 5
_LEAST_STEPS = 20
_CHUNK = 10_000
# states that tell the direction of a path
_WINDOW = 5
#: How many exponents to begin with, where as many are wanted as the dimension takes.
_FEW = 4
#: How many exponents: so many, as many as the Kaplan-Yorke dimension takes, or all.
HowMany = int | Literal["dimension"] | None


def lyapunov_spectrum(
    model: Surrogate | PALRNN | System,
    x1: ArrayLike | None = None,
    *,
    inputs: ArrayLike | None = None,
    steps: int = 10_000,
    discard: int = 1000,
    dt: float = 0.01,
    k: HowMany = None,
    process_noise: bool = True,
    flow: bool = False,
    seed: int = 0,
) -> LyapunovSpectrum:
    """Return the ``k`` largest (by default all) Lyapunov exponents along ``steps`` steps after ``discard``.

    ``k="dimension"`` are as many as the Kaplan-Yorke dimension takes, at least one more than are observed.

        lambda_i = 1 / (steps * dt) * sum_t log abs(R_t,ii),   J_t Q_{t-1} = Q_t R_t

    - a surrogate: the free-running, hard-gated rollout from the observation ``x1 (N,)``;
    - `PALRNN`: a sampled rollout with probit gates, and with process noise unless ``process_noise=False``;
      the Jacobians are those of the sampled gates, J(c_t);
    - `System`: the RK4 map of step ``dt``, from the raw state ``x1`` or one on the attractor.

    During ``discard`` the tangent directions align as well; they start at random, as do the noises, from
    ``seed``. A rollout that diverges raises `DivergenceError`, which tells at which step. The exponents of a
    driven model are those along ``inputs (T, K)``, whose first row acts on the first step, and which are
    repeated where the run outlasts them.

    ``flow=True`` gives the exponents of the flow that a surrogate's run samples, instead of those of the map:
    the direction of the path, by five states (`kernels.follow`), is one of the tangents at each step, with
    the growth of its length, and the others are orthogonal to it. On a smooth map of a flow both are the same
    but for a few percent. It needs a model without noise and inputs, whose steps are small beside its turns.
    """
    steps, discard = as_int(steps, "steps", least=_LEAST_STEPS), as_int(discard, "discard")
    dt = as_float(dt, "dt", above=0.0)
    pin_blas()
    flow = bool(flow)
    if flow and (isinstance(model, (System, PALRNN)) or inputs is not None):
        what = "inputs" if inputs is not None else f"a {type(model).__name__}"
        raise ValueError(f"flow must be False for {what}: it is of a surrogate that runs freely by itself")
    if isinstance(model, System):
        if inputs is not None:
            raise ValueError("inputs must be None for a System, which has its drive in its equations")
        run: _Run = _SystemRun(model, x1, dt)
    else:
        run = _ModelRun(model, x1, inputs, process_noise, seed, flow)
    dim = len(run.z)
    if k == "dimension":
        seen = dim if isinstance(model, System) else drift_of(model).observed_dim
        how: dict[str, Any] = {"inputs": inputs, "steps": steps, "discard": discard, "dt": dt, "seed": seed}
        how |= {"process_noise": process_noise, "flow": flow}
        count = min(dim, max(_FEW, seen + 1))
        while (found := lyapunov_spectrum(model, x1, k=count, **how)).kaplan_yorke is None:
            count = min(dim, 2 * count)
        return found
    k = dim if k is None else as_int(k, "k", least=1, most=dim)
    # the zero of a flow may be the largest, or be in the way of it
    wanted, k = k, min(dim, k + 1) if flow else k
    # random directions: those along the axes can be invariant, and then never see the others' growth; the
    # first are the same however many there are
    V = np.ascontiguousarray(np.linalg.qr(generator(seed, 1).standard_normal((k, dim)).T)[0].T)
    align = max(0, discard - run.begun)
    _carry(run, V, align, run.begun, align + 1, np.zeros((1, k)))
    # tangents end with the states of the free run, also where these begin before a direction is known
    steps -= max(0, run.begun - discard)
    block = math.ceil(steps / _TRACE_POINTS)
    sums = np.zeros((math.ceil(steps / block), k))
    _carry(run, V, steps, run.begun + align, block, sums)
    return _summary(sums, steps, block, dt, dim, wanted, flow=flow)


def reference_spectrum(system: System, z1: ArrayLike, *, steps: int, dt: float) -> LyapunovSpectrum:
    """Return all exponents of a true system: those of the literature, without an error, or computed ones.

    The literature's are of the flow, and so of steps ``dt`` that are at most as long as is customary.
    """
    if system.exponents is None or dt > system.customary_dt:
        return lyapunov_spectrum(system, z1, steps=steps, dt=dt)
    count = len(system.exponents)
    nothing = np.empty((0, count))
    return LyapunovSpectrum(np.array(system.exponents), np.zeros(count), nothing, nothing[:, 0], count)


class Moving(NamedTuple):
    """A state ``z (M,)`` and the tangent rows ``V (k, M)`` that it carries.

    Along a path also the last ``speed (1,)`` and the ``window (5, M)`` of states around z, or none of either.
    """

    z: Floats
    V: Floats
    speed: Floats
    window: Floats


class Growth(NamedTuple):
    """Where logs of growth go: step t of those to come to row ``(first + t) // block`` of ``sums (., k)``."""

    first: int
    block: int
    sums: Floats


#: The deviation of the gates, process noise ``(steps, M)`` and uniforms of the gates ``(steps, P)``, or none.
Noises = tuple[float, Floats, Floats]


class _Run(Protocol):
    """A rollout that carries tangent vectors along; ``z`` is its current state, ``begun`` its first step."""

    z: Floats
    begun: int

    def carry(self, V: Floats, steps: int, growth: Growth) -> int:
        """Take steps and add the logs of growth; return the step of divergence, or -1."""
        ...


class _ModelRun:
    def __init__(
        self,
        model: Surrogate | PALRNN,
        x1: ArrayLike | None,
        inputs: ArrayLike | None,
        process_noise: bool,
        seed: int,
        flow: bool,
    ) -> None:
        self.drift = drift = drift_of(model)
        if x1 is None:
            raise ValueError(f"x1 must be the first observation, of shape ({drift.observed_dim},), got None")
        self.z = drift.embed(as_shape(x1, "x1", (drift.observed_dim,)))
        self.model, self.rng, self.noisy = model, generator(seed), process_noise
        self.drive, self.done = checked_drive(drift, inputs), 0
        if isinstance(model, PALRNN) and process_noise:
            self.z += model.start_noise.scaled(self.rng.standard_normal(drift.latent_dim))
        self.speed, self.window = np.zeros(int(flow)), np.empty((0, len(self.z)))
        self.begun = _WINDOW // 2 if flow else 0
        if flow:  # the direction of a path is known from its third state on
            run = free_run(drift, self.z[: drift.observed_dim], _WINDOW)
            if run.diverged_at is not None:
                raise DivergenceError(run.diverged_at)
            self.window = np.array(run.states)
            self.z = self.window[self.begun].copy()

    def carry(self, V: Floats, steps: int, growth: Growth) -> int:
        drift, gate_std = self.drift, 0.0
        process, uniforms = np.empty((0, drift.latent_dim)), np.empty((0, drift.gated))
        if isinstance(self.model, PALRNN):
            gate_std = self.model.gate_std
            normals = self.rng.standard_normal((steps, drift.latent_dim))
            process = self.model.process.scaled(normals) if self.noisy else 0.0 * normals
            uniforms = self.rng.random((steps, drift.gated))
        pushes = drive_offsets(drift, self.drive, self.done, steps)
        if pushes is not None:
            process = pushes + process if len(process) else pushes
        self.done += steps
        noises = (gate_std, process, uniforms)
        return carried(drift, noises, steps, Moving(self.z, V, self.speed, self.window), growth)


@singledispatch
def carried(drift: Surrogate, noises: Noises, steps: int, moving: Moving, growth: Growth) -> int:
    """Carry a state and its tangents through ``steps`` steps, in place.

    V <- V J(c_t)^T and z <- J(c_t) z + b(c_t) + process_t, and the first row of V along the path where there
    is a speed (`kernels.follow`). Return the step at which z left every bound, or -1.
    """
    piece, (gate_std, process, uniforms) = pieces(drift), noises
    z, V, speed, window = moving
    for t in range(steps):
        if not np.abs(z).max() <= BOUND:
            return t
        chances = gate_probabilities(gate_inputs(drift, z), gate_std)
        J, b = piece(chances > (uniforms[t] if len(uniforms) else 0.5))
        V[:] = V @ J.T
        if len(speed):
            head = window[-1]
            J, b = piece(gate_inputs(drift, head) > 0.0)
            window[:] = [*window[1:], J @ head + b]
            z[:] = window[_WINDOW // 2]
            kernels.follow(V, speed, window)
        else:
            z[:] = J @ z + b + (process[t] if len(process) else 0.0)
        kernels.orthonormalize(V, growth.sums[(growth.first + t) // growth.block])
    return -1


@carried.register
def _(drift: ALRNN, noises: Noises, steps: int, moving: Moving, growth: Growth) -> int:
    dim = drift.latent_dim
    room = (np.empty_like(moving.V), np.empty_like(moving.V), np.ones(dim), np.empty(dim))
    weights = (drift.A, np.ascontiguousarray(drift.W.T), drift.h, drift.gated)
    return kernels.alrnn_tangents(*weights, *noises, steps, BOUND, *moving, *growth, room)


class _SystemRun:
    begun = 0

    def __init__(self, system: System, x1: ArrayLike | None, dt: float) -> None:
        self.system, self.dt, self.parameters = system, dt, np.array(system.parameters)
        # a start near an unstable fixed point takes thousands of steps to spiral away from it
        start = system.simulate(1, dt=dt, discard=10_000)[0] if x1 is None else x1
        self.z = as_shape(start, "x1", (len(system.typical),))

    def carry(self, V: Floats, steps: int, growth: Growth) -> int:
        field, jacobian = self.system.field, self.system.jacobian
        dim = len(self.z)
        room = (np.empty((dim, dim)), *np.empty((3, dim)), *np.empty((3, *V.shape)))
        return kernels.system_tangents(
            field, jacobian, self.parameters, self.dt, steps, BOUND, self.z, V, *growth, room
        )


def _carry(run: _Run, V: Floats, steps: int, before: int, block: int, sums: Floats) -> None:
    """Run ``steps`` steps in chunks, so that the noises of a long run are never all in memory."""
    for first in range(0, steps, _CHUNK):
        diverged = run.carry(V, min(_CHUNK, steps - first), Growth(first, block, sums))
        if diverged >= 0:
            raise DivergenceError(before + first + diverged)


def _summary(
    sums: Floats, steps: int, block: int, dt: float, dim: int, wanted: int, *, flow: bool
) -> LyapunovSpectrum:
    ends = np.minimum(np.arange(1, len(sums) + 1) * block, steps)
    times = ends * dt
    trace = np.cumsum(sums, axis=0) / times[:, None]
    alive = np.isfinite(trace[-1])
    stderr = np.zeros(sums.shape[1])
    stderr[alive] = _standard_error(sums[: steps // block, alive]) / (block * dt)
    if flow and alive[0]:
        # the growth of the speed over the run is that between its ends: wherever these happen to be, beside
        # what it grows by on and on where the run comes to rest
        at, speeds = np.concatenate([[0.0], times]), np.concatenate([[0.0], np.cumsum(sums[:, 0])])
        stderr[0] = max(stderr[0], np.ptp(speeds - np.polyval(np.polyfit(at, speeds, 1), at)) / times[-1])
    order = np.argsort(-trace[-1], kind="stable")[:wanted]
    exponents, stderr, trace = trace[-1][order], stderr[order], np.ascontiguousarray(trace[:, order])
    for array in (exponents, stderr, trace, times):
        array.flags.writeable = False
    return LyapunovSpectrum(exponents, stderr, trace, times, dim, flow)


def _standard_error(blocks: Floats) -> Floats:
    """Return the standard error of the mean of ``blocks (n, k)``, consecutive and correlated, per column.

    It is sqrt(S(0) / n) with the spectral density at zero frequency estimated by sine tapers (Riedel and
    Sidorenko, 1995), the even ones, which do not see the mean. Growth along a chaotic orbit swings widely
    within each turn and averages out over many; the scatter of plain block means takes the swings cut off at
    the ends of every block for lasting ones, and is about four times too large for Lorenz-63. Only the
    slowest five tapers see none of them, so the standard error itself is known to about a third.
    """
    count = len(blocks)
    numbers = 2 * np.arange(1, _TAPERS + 1)
    phases = np.pi * np.outer(numbers, np.arange(1, count + 1)) / (count + 1)
    tapered = np.sqrt(2.0 / (count + 1)) * np.sin(phases) @ blocks
    return np.asarray(np.sqrt((tapered**2).mean(axis=0) / count))
