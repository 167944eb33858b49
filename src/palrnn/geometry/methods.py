"""All posteriors of the drift by name, with one call: a model and its data in, models to draw out.

    likelihood    the likelihood of noisy observations, climbed and spread as its scores show; the one to use
    observed      the exact observed information at the maximum, where it identifies anything
    sandwich      teacher forcing: the spread of its estimate over repeated data
    temperature   teacher forcing: the Gibbs posterior at its calibrated temperature
    laplace       teacher forcing: the loss taken for a likelihood

The last three stand around what training by the loss comes to, which is not the truth where observations are
noisy. docs/uncertainty.md shows how often the intervals of each hold. `laplace` itself is the step from an
information to a posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from palrnn.engine.checks import one_of
from palrnn.geometry.gibbs import gibbs_posterior
from palrnn.geometry.likelihood import likelihood_posterior
from palrnn.geometry.observed import observed_posterior
from palrnn.geometry.posterior import ModelDraws
from palrnn.model import PALRNN, Forcing, Surrogate

_OF_LIKELIHOOD: dict[str, Callable[..., ModelDraws]] = {
    "likelihood": likelihood_posterior,
    "observed": observed_posterior,
}
_OF_FORCING = {"sandwich": "sandwich", "temperature": "temperature", "laplace": "none"}
#: The names, the recommended one first.
POSTERIORS = (*_OF_LIKELIHOOD, *_OF_FORCING)


def parameter_posterior(
    model: Surrogate | PALRNN,
    x: ArrayLike,
    method: str = "likelihood",
    *,
    forcing: Forcing | int | None = None,
    **settings: Any,
) -> ModelDraws:
    """Return the posterior of the drift of ``model`` given ``x (T, N)``, in its coordinates, by ``method``.

    ``forcing`` is what the model was trained with: methods of teacher forcing (sandwich, temperature,
    laplace) need it, for others it does not matter. ``settings`` are those of `likelihood_posterior`,
    `observed_posterior` or `gibbs_posterior`. Whatever comes out has a ``model`` in its middle, ``std`` of
    its parameters, ``sample_theta(n, seed=)`` and ``sample(n, seed=)``.
    """
    name = one_of(method, "method", POSTERIORS)
    if name in _OF_LIKELIHOOD:
        return _OF_LIKELIHOOD[name](model, x, **settings)
    if forcing is None:
        raise ValueError(f"forcing must be given: {name} is of the loss that the model was trained by")
    how: dict[str, Any] = {"forcing": forcing, "calibration": _OF_FORCING[name]}
    return gibbs_posterior(model, x, **(how | settings))
