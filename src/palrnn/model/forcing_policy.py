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
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from palrnn.engine.checks import Floats, as_float, as_instance, as_int, one_of
from palrnn.engine.gaps import whole_rows
from palrnn.model.engine import jacobian

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
        return Identity(self.interval) if strength == 1.0 else Generalised(strength, self.interval)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy's name and settings, as plain values."""
        return {"policy": self.policy, **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Forcing:
        """Return the forcing of `to_dict`."""
        settings = dict(as_instance(values, "forcing", Mapping))
        name = settings.pop("policy", None)
        if not isinstance(name, str) or name not in _POLICIES:
            names = ", ".join(sorted(_POLICIES))
            raise ValueError(f"the policy of forcing must be one of {names}, got {name!r}")
        cls = _POLICIES[name]
        try:
            return cls(**settings)
        except TypeError:
            raise ValueError(f"forcing has settings that {cls.policy} does not take: {settings}") from None

    @staticmethod
    def identity(tau: int) -> Forcing:
        """Identity teacher forcing: every ``tau`` steps the observed units are set to the data."""
        return Identity(tau)

    @staticmethod
    def generalised(alpha: float, interval: int = 1) -> Forcing:
        """Generalised teacher forcing (Hess et al., 2023): moved part of the way, ``alpha``."""
        return Generalised(alpha, interval)

    @staticmethod
    def annealed(start: float, end: float, interval: int = 1, schedule: str = "exponential") -> Forcing:
        """A strength that goes from ``start`` to ``end`` over training, "exponential" or "linear"."""
        return Annealed(start, end, interval, schedule)

    @staticmethod
    def adaptive(start: float = 1.0, interval: int = 1, every: int = 5, decay: float = 0.999) -> Forcing:
        """A strength that follows the growth of the model's Jacobians along the data (Hess et al., 2023)."""
        return Adaptive(start, interval, every, decay)

    @staticmethod
    def none() -> Forcing:
        """No forcing: a free run from the first observation."""
        return Unforced()


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


@policy("identity")
@dataclass(frozen=True)
class Identity(Forcing):
    """Set to the data every ``interval`` steps: the paper's teacher forcing (eq. itf_rollout)."""

    interval: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", as_int(self.interval, "tau", least=1))

    @property
    def strength(self) -> float:
        """1: the data take the place of the prediction."""
        return 1.0

    def __repr__(self) -> str:
        return f"Forcing.identity({self.interval})"


@policy("generalised")
@dataclass(frozen=True)
class Generalised(Forcing):
    """Move a part ``alpha`` of the way to the data every ``interval`` steps (eq. gtf_mix)."""

    alpha: float
    interval: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_float(self.alpha, "alpha", least=0.0, most=1.0))
        object.__setattr__(self, "interval", as_int(self.interval, "interval", least=1))

    @property
    def strength(self) -> float:
        """alpha, the same for all updates."""
        return self.alpha

    def __repr__(self) -> str:
        return f"Forcing.generalised({self.alpha:g}, interval={self.interval})"


@policy("none")
@dataclass(frozen=True)
class Unforced(Forcing):
    """Never forced."""

    @property
    def interval(self) -> int:  # type: ignore[override]
        """1, at which nothing happens."""
        return 1

    @property
    def strength(self) -> float:
        """0."""
        return 0.0

    @property
    def final(self) -> Forcing:
        """The same: a free run."""
        return self

    def __repr__(self) -> str:
        return "Forcing.none()"


@policy("annealed")
@dataclass(frozen=True)
class Annealed(Forcing):
    """A strength that changes from ``start`` to ``end`` over training, by a constant factor or difference."""

    start: float
    end: float
    interval: int = 1
    schedule: str = "exponential"

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, as_float(getattr(self, name), name, least=0.0, most=1.0))
        object.__setattr__(self, "interval", as_int(self.interval, "interval", least=1))
        one_of(self.schedule, "schedule", ("exponential", "linear"))
        if self.schedule == "exponential" and 0 in (self.start, self.end):
            raise ValueError("an exponential schedule cannot start or end at 0; use 'linear'")

    @property
    def strength(self) -> float:
        """The strength at the end."""
        return self.end

    def strengths_of_updates(self, begin: int, end: int, updates: int) -> Floats:
        """Return the strengths along the schedule."""
        part = np.arange(begin, end) / updates
        if self.schedule == "linear":
            return self.start + (self.end - self.start) * part
        strengths: Floats = self.start * (self.end / self.start) ** part
        return strengths

    def __repr__(self) -> str:
        places = f"{self.start:g}, {self.end:g}, interval={self.interval}, schedule={self.schedule!r}"
        return f"Forcing.annealed({places})"


@policy("adaptive")
@dataclass(frozen=True)
class Adaptive(Forcing):
    """A strength just large enough that errors along the data do not grow (Hess et al., 2023).

        alpha = max(0, 1 - 1 / sigma),   sigma = max_b |J_T ... J_1|^(1/T) over the sequences of a batch,

    with J_t at the embedded observations, every ``every`` updates. A larger alpha is taken at once, a smaller
    one slowly: alpha <- decay alpha + (1 - decay) new. It begins at ``start``.
    """

    start: float = 1.0
    interval: int = 1
    every: int = 5
    decay: float = 0.999

    def __post_init__(self) -> None:
        for name in ("start", "decay"):
            object.__setattr__(self, name, as_float(getattr(self, name), name, least=0.0, most=1.0))
        for name in ("interval", "every"):
            object.__setattr__(self, name, as_int(getattr(self, name), name, least=1))

    @property
    def adapts_every(self) -> int:  # type: ignore[override]
        """Every how many updates the strength is estimated again."""
        return self.every

    @property
    def strength(self) -> float:
        """The strength to begin with; training finds the others."""
        return self.start

    def adapted(self, strength: float, model: Surrogate, x: Floats) -> float:
        """Return the strength after one more estimate, on the sequences ``x (B, T, N)``."""
        wanted = critical_strength(model, x)
        return wanted if wanted > strength else self.decay * strength + (1.0 - self.decay) * wanted

    def __repr__(self) -> str:
        places = f"start={self.start:g}, interval={self.interval}, every={self.every}, decay={self.decay:g}"
        return f"Forcing.adaptive({places})"


def critical_strength(model: Surrogate, x: Floats) -> float:
    """Return max(0, 1 - 1 / sigma) with sigma the greatest growth per step along the sequences ``(B, T, N)``.

    Growth is |J_{T-1} ... J_1|^(1/(T-1)), the geometric mean of what the product of Jacobians does, with the
    Jacobians at the embedded observations. A row with a gap (NaN) has no Jacobian and does not count.
    """
    whole = whole_rows(x[:, :-1])
    z = model.embed(np.where(np.isnan(x), 0.0, x))
    eye = np.eye(model.latent_dim)
    product = np.broadcast_to(eye, (len(x), model.latent_dim, model.latent_dim))
    logs = np.zeros(len(x))
    for t in range(x.shape[1] - 1):
        J = jacobian(model, z[:, t])
        product = (J if whole[:, t].all() else np.where(whole[:, t, None, None], J, eye)) @ product
        size = np.linalg.norm(product, axis=(1, 2))
        # a product that vanishes stays zero: its growth is zero, too
        logs += np.log(np.where(size > 0, size, 1e-300))
        product = product / np.where(size > 0, size, 1.0)[:, None, None]
    logs += np.log(np.maximum(np.linalg.norm(product, ord=2, axis=(1, 2)), 1e-300))
    growth = float(np.exp((logs / np.maximum(whole.sum(axis=1), 1)).max()))
    return 1.0 - 1.0 / growth if growth > 1.0 else 0.0
