"""`System`: a flow integrated by RK4, deterministic or with additive process noise; and the systems by name.

With ``process_std > 0`` one step is the paper's

    z_{t+1} = RK4_dt(z_t) + process_std * sqrt(dt) * diag(scale) * eps_t,   eps_t ~ N(0, I),

where ``scale`` is the per-coordinate standard deviation of the deterministic system, so that ``process_std``
is in standardised units although the perturbation acts on raw coordinates.

A system is added by one file in this folder: its vector field and Jacobian (``@vector_field``,
``@field_jacobian``) and a function that returns its `System`, registered by ``@system``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import kernels
from palrnn.data.field import KernelArgument
from palrnn.engine.checks import Floats, as_float, as_int, as_shape, one_of
from palrnn.engine.seeds import generator

_REFERENCE_STEPS = 100_000
P = ParamSpec("P")


@dataclass(frozen=True)
class System:
    """A simulated system.

    Its vector ``field`` and the ``jacobian`` of that, its ``parameters``, a ``typical`` state near the
    attractor, and its ``customary_dt``, a step at which 100,000 steps see the whole attractor.
    ``exponents`` are all of its Lyapunov exponents in the literature (Sprott, 2003), None if none are known
    for these parameters.
    """

    field: KernelArgument
    jacobian: KernelArgument
    parameters: tuple[float, ...]
    typical: tuple[float, ...]
    name: str = ""
    customary_dt: float = 0.01
    exponents: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        known = self.exponents
        if known is not None and (len(known) != self.dim or list(known) != sorted(known, reverse=True)):
            raise ValueError(f"exponents must be all {self.dim} in descending order, got {known}")

    @property
    def lyapunov(self) -> float | None:
        """The largest of its exponents in the literature."""
        return None if self.exponents is None else self.exponents[0]

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.typical)

    def simulate(
        self,
        steps: int,
        *,
        dt: float,
        process_std: float = 0.0,
        scale: ArrayLike | None = None,
        discard: int = 1000,
        seed: int = 0,
    ) -> Floats:
        """Return ``(steps, D)`` raw states after a transient of ``discard`` steps from a random start."""
        steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
        dt = as_float(dt, "dt", above=0.0)
        process_std = as_float(process_std, "process_std", least=0.0)
        dim, total = self.dim, steps + discard
        spread = None if scale is None else as_shape(scale, "scale", (dim,))
        if spread is not None and (spread < 0).any():
            raise ValueError(f"scale must be >= 0, got {spread.min():g}")
        rng = generator(seed)
        start = np.array(self.typical) + rng.standard_normal(dim)
        diffusion = np.empty((0, dim))
        if process_std > 0:
            spread = self.spread(dt) if spread is None else spread
            diffusion = process_std * np.sqrt(dt) * spread * rng.standard_normal((total, dim))
        states, work = np.empty((total, dim)), np.empty((5, dim))
        kernels.simulate(self.field, start, np.array(self.parameters), dt, diffusion, total, work, states)
        if not np.isfinite(states[-1]).all():
            raise ValueError(
                f"{self.name} left its attractor with parameters {self.parameters}: "
                f"dt={dt:g} or process_std={process_std:g} is too large, or it has none"
            )
        return states[discard:]

    def spread(self, dt: float) -> Floats:
        """Return the per-coordinate standard deviation of the deterministic reference: 100,000 steps.

        They are steps of ``dt``, but never shorter than customary, so that they see the whole attractor.
        """
        return _spread(self, max(as_float(dt, "dt", above=0.0), self.customary_dt))


@lru_cache(maxsize=32)
def _spread(system: System, dt: float) -> Floats:
    spread: Floats = system.simulate(_REFERENCE_STEPS, dt=dt, discard=1000, seed=0).std(axis=0)
    spread.flags.writeable = False
    return spread


_KNOWN: dict[str, Callable[..., System]] = {}


def system(
    name: str, *, dt: float, exponents: tuple[float, ...] | None = None
) -> Callable[[Callable[P, System]], Callable[P, System]]:
    """Register the function below, which returns a `System` for given parameters, under ``name``.

    ``dt`` is its customary step, ``exponents`` are those at the usual parameters, if they are known. A
    parameter ``dim``, if there is one, is the number of coordinates.
    """

    def register(make: Callable[P, System]) -> Callable[P, System]:
        if name in _KNOWN:
            raise ValueError(f"system {name!r} is registered already, by {_KNOWN[name].__module__}")

        @wraps(make)
        def made(*values: P.args, **named: P.kwargs) -> System:
            found = replace(make(*values, **named), name=name, customary_dt=dt)
            usual = inspect.signature(make).bind(*values, **named)
            usual.apply_defaults()
            defaults = {key: each.default for key, each in inspect.signature(make).parameters.items()}
            return replace(found, exponents=exponents if usual.arguments == defaults else None)

        _KNOWN[name] = made
        return made

    return register


def known_systems() -> tuple[str, ...]:
    """Return the names of all systems that can be simulated."""
    return tuple(_KNOWN)


def make_system(name: str, *, dim: int | None = None, **parameters: Any) -> System:
    """Return the system of this name, at its usual parameters but for those given.

    ``dim`` is the number of coordinates that it must have; one of any size is made in that size.
    """
    make = _KNOWN[one_of(name, "system", _KNOWN)]
    allowed = inspect.signature(make).parameters
    if unknown := parameters.keys() - allowed.keys():
        raise ValueError(f"{name} has no parameter {min(unknown)}, there are {', '.join(allowed)}")
    if dim is not None and "dim" in allowed:
        parameters = {"dim": dim} | parameters
    made = make(**parameters)
    if dim is not None and made.dim != dim:
        raise ValueError(f"system = {name!r} has {made.dim} coordinates, got {dim} columns")
    return made


def numbers(**parameters: float) -> tuple[float, ...]:
    """Return the parameters of a system, each checked to be a finite number."""
    return tuple(as_float(value, name) for name, value in parameters.items())
