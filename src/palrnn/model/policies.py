"""The forcing policies that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from palrnn.engine.checks import Floats, as_float, as_int, one_of
from palrnn.engine.gaps import whole_rows
from palrnn.model.engine import jacobian
from palrnn.model.forcing_policy import Forcing, policy

if TYPE_CHECKING:
    from palrnn.model.surrogate import Surrogate


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
