"""The plain engine: what a `Surrogate` does, from its gates and its affine pieces alone.

Each function is correct for every family and is a `functools.singledispatch` on the model, so that a family
can register a faster one. They take arrays as they are; the methods of `PiecewiseAffine` check theirs first.
What inputs add to a step, C s_t, comes as ``offsets`` (`palrnn.model.inputs`): `step` itself is F.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_floats, as_int, as_shape, frozen
from palrnn.model.inputs import checked_input_map, checked_inputs, row_offsets
from palrnn.model.inputs import offsets as offsets_of
from palrnn.model.surrogate import Surrogate

#: A state beyond this magnitude counts as diverged; models live in standardised coordinates of order one.
BOUND = 1e10


@dataclass(frozen=True, eq=False)
class Rollout:
    """The states of a run, ``states (steps, M)``.

    ``diverged_at`` is None, or the number of steps from the start (discarded ones included) to the first
    state that was not finite or exceeded 1e10. The states end before that one, so every number in them can
    be used; there may be none.
    """

    states: Floats
    diverged_at: int | None = None

    @property
    def diverged(self) -> bool:
        """Whether the run left every bound."""
        return self.diverged_at is not None

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        end = f", diverged after {self.diverged_at} steps" if self.diverged else ""
        return f"{type(self).__name__}({self.states.shape[0]} states of {self.states.shape[1]} units{end})"


_KEPT_PIECES = 4096
#: Steps that `rollout_in_blocks` takes before it looks whether the run has left every bound.
_BLOCK = 1000


@singledispatch
def codes(model: Surrogate, z: Floats) -> NDArray[np.bool_]:
    """Return the code c = 1{G z + g > 0} of each state, ``(..., M) -> (..., P)``."""
    return np.asarray(gate_inputs(model, z) > 0)


@singledispatch
def gate_inputs(model: Surrogate, z: Floats) -> Floats:
    """Return u = G z + g of each state, ``(..., M) -> (..., P)``."""
    G, g = model.gate_map()
    return np.asarray(z @ G.T + g)


@singledispatch
def step(model: Surrogate, z: Floats) -> Floats:
    """Return J(c) z + b(c) of each ``z (..., M)`` with its own code c."""
    J, b = model.affine(codes(model, z))
    return np.asarray((J @ z[..., None])[..., 0] + b)


@singledispatch
def jacobian(model: Surrogate, z: Floats) -> Floats:
    """Return J(c) at each ``z (..., M)``, shape ``(..., M, M)``; a gate at its threshold counts as closed."""
    return model.affine(codes(model, z))[0]


@singledispatch
def rollout_from(
    model: Surrogate, z1: Floats, steps: int, discard: int = 0, offsets: Floats | None = None
) -> Rollout:
    """Return ``steps`` states of the free run from ``z1 (M,)``, after ``discard`` steps.

    ``offsets (discard + steps, M)`` are added to the steps that leave each state.
    """
    states, z = np.empty((steps, model.latent_dim)), z1
    piece = pieces(model)
    for t in range(discard + steps):
        if not np.abs(z).max() <= BOUND:
            return Rollout(states[: max(0, t - discard)], t)
        if t >= discard:
            states[t - discard] = z
        J, b = piece(codes(model, z))
        z = J @ z + (b if offsets is None else b + offsets[t])
    return Rollout(states)


@singledispatch
def advance(model: Surrogate, z: Floats, steps: int, offsets: Floats | None = None) -> Floats:
    """Return the ``steps`` states that follow each of ``z (S, M)``, ``(steps, S, M)``.

    The runs go side by side. A run that diverges becomes infinite or NaN, and it is for the caller to see.
    ``offsets (steps, 1 or S, M)`` are added to each step.
    """
    states = np.empty((steps, *z.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            z = step(model, z)
            states[t] = z = z if offsets is None else z + offsets[t]
    return states


def rollout_in_blocks(
    model: Surrogate, z1: Floats, steps: int, discard: int = 0, offsets: Floats | None = None
) -> Rollout:
    """Return `rollout_from`, by `advance` with one run: for families whose `advance` is compiled."""
    states, z = np.empty((steps, model.latent_dim)), z1
    for done in range(0, discard + steps, _BLOCK):
        count = min(_BLOCK, discard + steps - done)
        pushes = None if offsets is None else offsets[done : done + count, None]
        after = advance(model, z[None], count, pushes)[:, 0]
        block, first = np.concatenate([z[None], after[:-1]]), max(0, done - discard)
        outside = np.flatnonzero(~(np.abs(block).max(axis=1) <= BOUND))
        end = int(outside[0]) if len(outside) else count
        kept = block[max(0, discard - done) : end]
        states[first : first + len(kept)] = kept
        if end < count:
            return Rollout(states[: first + len(kept)], done + end)
        z = after[-1]
    return Rollout(states)


def biases(bias: Floats, offsets: Floats | None, axes: int = 1) -> Floats:
    """Return the bias of each step for a kernel: ``bias (M,)`` once, or with each row of ``offsets``.

    It is writable either way, so that one kernel serves driven models and others.
    """
    if offsets is None:
        return np.array(bias).reshape(*(1,) * axes, -1)
    return np.ascontiguousarray(bias + offsets)


def pieces(model: Surrogate) -> Callable[[NDArray[np.bool_]], tuple[Floats, Floats]]:
    """Return a function from one code ``(P,)`` to its J and b that remembers the latest ones.

    A trajectory comes back to the same regions again and again.
    """

    @lru_cache(maxsize=_KEPT_PIECES)
    def piece(code: bytes) -> tuple[Floats, Floats]:
        return model.affine(np.frombuffer(code, dtype=np.bool_))

    return lambda code: piece(code.tobytes())


class PiecewiseAffine:
    """A base class for families: the engine's functions as methods, with checked arguments."""

    @property
    def input_dim(self) -> int:
        """K, the number of external inputs: the columns of ``C``, none where there is no ``C``."""
        C = getattr(self, "C", None)
        return 0 if C is None else int(C.shape[1])

    def codes(self: Any, z: ArrayLike) -> NDArray[np.bool_]:
        """Return the switching code of each state, ``(..., M) -> (..., P)``."""
        return codes(self, last_axis(z, "z", self.latent_dim))

    def step(self: Any, z: ArrayLike, *, inputs: ArrayLike | None = None) -> Floats:
        """Return the next state of each ``z (..., M)``, under ``inputs (..., K)`` of a driven model."""
        state = last_axis(z, "z", self.latent_dim)
        pushes = row_offsets(self, inputs, state.shape[:-1])
        return step(self, state) if pushes is None else step(self, state) + pushes

    def jacobian(self: Any, z: ArrayLike) -> Floats:
        """Return dF/dz at each ``z (..., M)``, shape ``(..., M, M)``; zero slope at a kink."""
        return jacobian(self, last_axis(z, "z", self.latent_dim))

    def rollout(
        self: Any, x1: ArrayLike, steps: int, discard: int = 0, *, inputs: ArrayLike | None = None
    ) -> Rollout:
        """Let the model run freely from ``x1 (N,)``: ``(steps, M)`` states after ``discard`` steps.

        With ``discard=0`` the first state is ``embed(x1)``. If the state diverges, the states end before, and
        ``diverged_at`` tells after how many steps from ``x1``. A driven model needs its ``inputs (discard +
        steps, K)``, one row for each state from ``x1`` on; the last one acts on nothing.
        """
        start = self.embed(as_shape(x1, "x1", (self.observed_dim,)))
        return self.rollout_from(start, steps, discard, inputs=inputs)

    def rollout_from(
        self: Any, z1: ArrayLike, steps: int, discard: int = 0, *, inputs: ArrayLike | None = None
    ) -> Rollout:
        """Like `rollout`, from a latent state ``z1 (M,)``."""
        start = as_shape(z1, "z1", (self.latent_dim,))
        steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
        s = checked_inputs(self, inputs, discard + steps)
        return rollout_from(self, start, steps, discard, offsets_of(self, s))

    def __repr__(self: Any) -> str:
        sizes = f"latent_dim={self.latent_dim}, observed_dim={self.observed_dim}, gated={self.gated}"
        sizes += f", input_dim={self.input_dim}" if self.input_dim else ""
        return f"{type(self).__name__}({sizes})"


class EmbeddedNetwork(PiecewiseAffine):
    """A base class for families that are frozen dataclasses, with a diagonal ``A (M,)``, a learned embedding
    ``E (M, N)`` and, where inputs drive them, ``C (M, K)``."""

    def _keep(self: Any, **arrays: Floats) -> None:
        """Check ``E`` and ``C``, and keep all arrays, read-only."""
        dim = arrays["A"].shape[0]
        if not 1 <= arrays["E"].shape[1] <= dim:
            raise ValueError(f"E must be (M, N) with 1 <= N <= M = {dim}, got {arrays['E'].shape}")
        for name, value in arrays.items():
            object.__setattr__(self, name, frozen(value))
        C = checked_input_map(self.C, dim)
        object.__setattr__(self, "C", None if C is None else frozen(C))

    @property
    def latent_dim(self: Any) -> int:
        """M, the number of latent units."""
        return int(self.A.shape[0])

    @property
    def observed_dim(self: Any) -> int:
        """N, the number of observed coordinates."""
        return int(self.E.shape[1])

    @property
    def embedding(self: Any) -> Floats:
        """What training learns besides theta: ``E``, row-major."""
        return np.asarray(self.E.ravel())

    def with_embedding(self: Any, values: ArrayLike) -> Any:
        """Return the same network with another embedding."""
        return replace(self, E=as_shape(values, "values", (self.E.size,)).reshape(self.E.shape))

    def embed(self: Any, x: ArrayLike) -> Floats:
        """Return the latent state of an observation: ``E x`` with its first N entries set to ``x``.

        ``x (..., N) -> (..., M)`` (eq. alrnn_init_embed).
        """
        seen = last_axis(x, "x", self.observed_dim)
        z = np.asarray(seen @ self.E.T)
        z[..., : self.observed_dim] = seen
        return z

    def embed_pullback(self: Any, x: Floats, r: Floats) -> Floats:
        """Return r^T dz/dE of `embed`: r x^T, zero in the first N rows, which the observation overwrites."""
        unseen = np.where(np.arange(self.latent_dim) < self.observed_dim, 0.0, r)
        outer = unseen[..., :, None] * x[..., None, :]
        return outer.reshape(*outer.shape[:-2], self.E.size)

    def arrays(self: Any) -> dict[str, NDArray[Any]]:
        """Return its fields as arrays by name; ``C`` only of a driven network."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.asarray(part) for name, part in parts.items() if part is not None}

    def __reduce__(self: Any) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


def last_axis(value: ArrayLike, name: str, dim: int) -> Floats:
    """Return ``value`` as finite numbers with ``dim`` entries in its last axis."""
    array = as_floats(value, name)
    if array.shape[-1:] != (dim,):
        raise ValueError(f"{name} must have {dim} entries in its last axis, got shape {array.shape}")
    return array
