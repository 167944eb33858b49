"""What curvature is for: a Gaussian posterior over the drift, and error bars on the dynamics it implies.

    theta ~ N(theta_hat, (I + prior_std^{-2} Id)^{-1})

with I the information of all the data: ``(T - 1) * itf_fisher(...)``, a mean over T - 1 predictions, for the
Gibbs posterior of teacher forcing (eq. gibbs; inverse temperature such that the loss is a Gaussian log
likelihood), and ``observed_information(...).observed`` for the marginal likelihood;
``GeometryComparison.informations`` has both. Local by nature: it says how far parameters can move before the
objective notices, as a quadratic sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats, as_float, as_floats, as_instance, as_int, one_of
from palrnn.engine.kernel import pin_blas
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator
from palrnn.invariants import quantities_of_interest, samples_flow
from palrnn.invariants.quantities import first_point
from palrnn.model import PALRNN, Surrogate, drift_of


@runtime_checkable
class ModelDraws(Protocol):
    """Anything that models can be drawn from: a posterior, a bootstrap; ``model`` is in its middle."""

    @property
    def model(self) -> Any:
        """The model that the draws stand around."""
        ...

    def sample(self, count: int, *, seed: int = 0) -> list[Any]:
        """Return ``count`` models."""
        ...


@dataclass(frozen=True, eq=False)
class LaplacePosterior:
    """A Gaussian around ``model`` with precision V diag(values) V^T + prior_std^{-2}.

    ``values (r,)`` and ``vectors (p, r)`` are eigenpairs of the information, all of them or the leading
    ones; the prior alone holds the rest. ``clipped`` negative eigenvalues, which no posterior can have,
    were set to 0.
    """

    model: Any
    prior_std: float
    values: Floats = field(repr=False)
    vectors: Floats = field(repr=False)
    clipped: int

    @property
    def effective_dimensions(self) -> float:
        """How many directions the data decides rather than the prior: the sum of e / (e + prior_std^{-2})."""
        return float(self._learned.sum())

    @property
    def std(self) -> Floats:
        """The posterior standard deviation of each parameter, ``(p,)``."""
        variance = 1.0 - (self.vectors**2 * self._learned).sum(axis=1)
        return self.prior_std * np.sqrt(np.maximum(variance, 0.0))

    def sample_theta(self, count: int, *, seed: int = 0) -> Floats:
        """Return ``(count, p)`` drift parameters drawn from the posterior."""
        pin_blas()
        noise = generator(seed).standard_normal((as_int(count, "count", least=1), len(self.vectors)))
        # the square root of the covariance: prior_std (Id - V (1 - sqrt(1 - learned)) V^T)
        shrink = 1.0 - np.sqrt(1.0 - self._learned)
        steps = noise - ((noise @ self.vectors) * shrink) @ self.vectors.T
        return self.model.theta + self.prior_std * steps

    def sample(self, count: int, *, seed: int = 0) -> list[Any]:
        """Return ``count`` models drawn from the posterior."""
        return [self.model.with_theta(theta) for theta in self.sample_theta(count, seed=seed)]

    @property
    def _learned(self) -> Floats:
        scaled = self.values * self.prior_std**2
        return np.asarray(scaled / (1.0 + scaled))

    def __repr__(self) -> str:
        return (
            f"LaplacePosterior({self.model!r}, prior_std={self.prior_std:g}: the data decides "
            f"{self.effective_dimensions:.1f} of {len(self.vectors)} directions, {self.clipped} clipped)"
        )


def laplace(
    model: Surrogate | PALRNN, information: ArrayLike | tuple[ArrayLike, ArrayLike], *, prior_std: float
) -> LaplacePosterior:
    """Return the Laplace posterior of the drift of ``model`` under ``information`` and a Gaussian prior.

    ``information`` is a ``(p, p)`` matrix for all the data, not per step, or a pair of eigenvalues ``(r,)``
    and eigenvectors ``(p, r)``, as ``leading`` of the operators gives. ``prior_std`` is the deviation of
    the prior around the model's own parameters; it rules where the data is silent, null directions
    included.

    It is the step from an information to a posterior. The one to take for parameters is
    `likelihood_posterior`, whose bars hold where observations are noisy; `observed_posterior` takes model and
    data, and leaves out what no information identifies instead of giving it to the prior
    (docs/uncertainty.md).
    """
    drift = drift_of(model)
    prior = as_float(prior_std, "prior_std", above=0.0)
    size = drift.theta.size
    if isinstance(information, tuple):
        values, vectors = as_floats(information[0], "eigenvalues"), as_floats(information[1], "eigenvectors")
        if values.ndim != 1 or vectors.shape != (size, len(values)):
            raise ValueError(f"eigenvectors must be ({size}, {values.size}), got {vectors.shape}")
    else:
        matrix = as_floats(information, "information")
        if matrix.shape != (size, size):
            raise ValueError(f"information must be ({size}, {size}), got {matrix.shape}")
        pin_blas()
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    # rounding makes null directions a little negative; those are not worth a count
    negative = values < -1e-10 * np.abs(values).max(initial=0.0)
    return LaplacePosterior(drift, prior, np.maximum(values, 0.0), vectors, int(negative.sum()))


@dataclass(frozen=True, eq=False)
class InvariantErrorBars:
    """Largest Lyapunov exponent and D_stsp of models drawn from a posterior; NaN where a draw diverged.

    ``lyapunov (n,)`` per unit of time, ``dstsp (n,)`` in nats; ``at_mean``, both of the model itself.
    """

    lyapunov: Floats = field(repr=False)
    dstsp: Floats = field(repr=False)
    at_mean: tuple[float, float]

    @property
    def diverged(self) -> int:
        """How many draws ran away, and so have no invariants."""
        return int(np.isnan(self.lyapunov).sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the draws as plain values; a model that diverged has None."""
        return plain({"lyapunov": self.lyapunov, "dstsp": self.dstsp, "diverged": self.diverged})

    def interval(self, name: str, coverage: float = 0.9) -> tuple[float, float]:
        """Return the central interval of "lyapunov" or "dstsp" over the draws that did not diverge."""
        measured = {"lyapunov": self.lyapunov, "dstsp": self.dstsp}
        values = measured[one_of(name, "name", measured)]
        kept, tail = values[~np.isnan(values)], (1.0 - coverage) / 2.0
        if not len(kept):
            return float("nan"), float("nan")
        low, high = np.quantile(kept, [tail, 1.0 - tail])
        return float(low), float(high)

    def __repr__(self) -> str:
        parts = []
        for name, value in zip(("lyapunov", "dstsp"), self.at_mean, strict=True):
            low, high = self.interval(name)
            parts.append(f"{name} {value:.3g} (90%: {low:.3g} to {high:.3g})")
        return f"InvariantErrorBars({', '.join(parts)}; {self.diverged} of {len(self.dstsp)} draws diverged)"


def invariant_error_bars(
    posterior: ModelDraws,
    reference: ArrayLike,
    *,
    inputs: ArrayLike | None = None,
    draws: int = 32,
    standardizer: Standardizer | None = None,
    steps: int = 10_000,
    discard: int = 1000,
    dt: float = 0.01,
    flow: bool | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> InvariantErrorBars:
    """Return invariants of models drawn from ``posterior``, against ``reference (T, N)`` in raw coordinates.

    Each model runs freely from the first reference point for ``steps`` steps after ``discard``. The
    settings are those of `quantities_of_interest`; a driven model needs the ``inputs (T, K)`` of the
    reference. Bars that hold are ``result.bars()``, of the draws of ``bootstrap(method="reflected")``
    (docs/uncertainty.md): `model_bars` has more figures, and takes off what refits miss their models by, as
    this does not.
    """
    as_instance(posterior, "posterior", ModelDraws)
    drift = drift_of(posterior.model)
    start = first_point(reference, standardizer, drift.observed_dim)
    steps = as_int(steps, "steps", least=20)
    models = [posterior.model, *posterior.sample(as_int(draws, "draws", least=1), seed=seed)]
    how: dict[str, Any] = {"inputs": inputs, "standardizer": standardizer, "steps": steps}
    how |= {"discard": discard, "dt": dt, "seed": seed}
    found = np.full((len(models), 2), np.nan)
    if flow is None:
        flow = samples_flow(drift, reference, start)
    with listening(progress, "error bars") as report:
        for i, model in enumerate(models):
            across = flow and not isinstance(model, PALRNN)
            result = quantities_of_interest(model, reference, flow=across, **how)
            if result.lyapunov is not None and result.dstsp is not None:
                found[i] = result.lyapunov.largest, result.dstsp.value
            report(i + 1, len(models), {"lyapunov": float(found[i, 0])})
    mean = float(found[0, 0]), float(found[0, 1])
    return InvariantErrorBars(found[1:, 0], found[1:, 1], mean)
