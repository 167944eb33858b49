"""When and how strongly data enter a rollout: teacher forcing as one object.

At steps ``interval, 2 interval, ...`` (0-based) the observed units are moved towards the data,

    z_t[:N] <- (1 - strength) z_t[:N] + strength x_t        (eqs. itf_rollout, gtf_mix),

before the state is advanced. A *policy* says which strength an update of training uses; training ends with
one number, and that one belongs to the trained model: its geometry, its anchor and its forecasts use it.

A new policy is one class, a frozen dataclass with `policy` above it:

    @policy("halved")
    @dataclass(frozen=True)
    class Halved(Forcing):
        interval: int
        ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from palrnn.engine.checks import Floats, as_instance, as_int

if TYPE_CHECKING:
    from palrnn.model.surrogate import Surrogate

_POLICIES: dict[str, type[Forcing]] = {}
Policy = TypeVar("Policy", bound="type[Forcing]")


class Forcing(ABC):
    """A policy of teacher forcing; frozen, comparable and hashable.

    Make one with `identity`, `generalised`, `annealed`, `adaptive` or `none`, or with a class of your own.
    ``interval`` is the number of steps between forcings, ``strength`` the strength at the end of training (of
    an adaptive policy, which finds its own, the one it begins with).
    """

    policy: ClassVar[str]
    interval: int
    #: Every how many updates `adapted` is asked for the strength; None: `strengths_of_updates` knows it.
    adapts_every: int | None = None

    @property
    @abstractmethod
    def strength(self) -> float:
        """The strength, from 0 (none) to 1 (identity forcing), at the end of training."""

    def strengths_of_updates(self, begin: int, end: int, updates: int) -> Floats:
        """Return the strengths of updates ``begin .. end - 1``, counted from 0, of ``updates`` in all."""
        return np.full(end - begin, self.strength)

    def adapted(self, strength: float, model: Surrogate, x: Floats) -> float:
        """Return the strength from now on, given the present one, the model and a batch ``(B, T, N)``."""
        return strength

    def strengths(self, length: int) -> Floats:
        """Return the strength at each step of a sequence, ``(length,)``, 0 where nothing is forced."""
        strengths = np.zeros(length)
        strengths[self.interval :: self.interval] = self.strength
        return strengths

    @property
    def final(self) -> Forcing:
        """The constant forcing that the trained model is judged by."""
        return self.constant(self.strength)

    def constant(self, strength: float) -> Forcing:
        """Return forcing at the same steps with a constant strength."""
        from palrnn.model.policies import Generalised, Identity

        return Identity(self.interval) if strength == 1.0 else Generalised(strength, self.interval)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and settings, as plain values."""
        return {"policy": self.policy, **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Forcing:
        """Return the forcing of `to_dict`."""
        settings = dict(as_instance(values, "forcing", Mapping))
        cls = _known(settings.pop("policy", None))
        try:
            return cls(**settings)
        except TypeError:
            raise ValueError(f"forcing has settings that {cls.policy} does not take: {settings}") from None

    @staticmethod
    def identity(tau: int) -> Forcing:
        """Identity teacher forcing: every ``tau`` steps the observed units are set to the data."""
        return _known("identity")(tau)  # type: ignore[call-arg]

    @staticmethod
    def generalised(alpha: float, interval: int = 1) -> Forcing:
        """Generalised teacher forcing (Hess et al., 2023): moved part of the way, ``alpha``."""
        return _known("generalised")(alpha, interval)  # type: ignore[call-arg]

    @staticmethod
    def annealed(start: float, end: float, interval: int = 1, schedule: str = "exponential") -> Forcing:
        """A strength that goes from ``start`` to ``end`` over training, "exponential" or "linear"."""
        return _known("annealed")(start, end, interval, schedule)  # type: ignore[call-arg]

    @staticmethod
    def adaptive(start: float = 1.0, interval: int = 1, every: int = 5, decay: float = 0.999) -> Forcing:
        """A strength that follows the growth of the model's Jacobians along the data (Hess et al., 2023)."""
        return _known("adaptive")(start, interval, every, decay)  # type: ignore[call-arg]

    @staticmethod
    def none() -> Forcing:
        """No forcing: a free run from the first observation."""
        return _known("none")()


def policy(name: str) -> Callable[[Policy], Policy]:
    """Register a class as the forcing policy ``name``, under which checkpoints and settings refer to it."""

    def registered(cls: Policy) -> Policy:
        known = _POLICIES.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"name must be new, got {name!r}, which is {known.__qualname__}")
        cls.policy = name
        _POLICIES[name] = cls
        return cls

    return registered


def _known(name: Any) -> type[Forcing]:
    import palrnn.model.policies  # noqa: F401  (registers the package's own)

    if not isinstance(name, str) or name not in _POLICIES:
        raise ValueError(f"the policy of forcing must be one of {', '.join(sorted(_POLICIES))}, got {name!r}")
    return _POLICIES[name]


def forcing_from_numbers(
    tau: int = 16, alpha: float = 1.0, final_alpha: float | None = None, alpha_schedule: str = "exponential"
) -> Forcing:
    """Return the forcing that an interval, a strength and where it goes stand for."""
    if final_alpha is not None:
        return Forcing.annealed(alpha, final_alpha, tau, alpha_schedule)
    return Forcing.identity(tau) if alpha == 1.0 else Forcing.generalised(alpha, tau)


def as_forcing(value: Forcing | int, name: str = "forcing") -> Forcing:
    """Return ``value`` as forcing; a whole number tau means ``Forcing.identity(tau)``."""
    if isinstance(value, Forcing):
        return value
    if isinstance(value, Mapping):
        return Forcing.from_dict(value)
    try:
        return Forcing.identity(as_int(value, name, least=1))
    except ValueError as error:
        raise ValueError(f"{name} must be a Forcing or a number of steps: {error}") from None
