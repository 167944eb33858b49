"""The information in a series about the drift, given one gate path, in closed form.

    observed = complete - missing = -d^2 log p(x | path) / dtheta^2       (eq. louis, for the state alone)

Given the path nothing is sampled: score, complete, missing and observed information are exact. Such a path is
one explanation of the data; `observed_information` averages over many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.geometry import closed_forms
from palrnn.geometry.operators import SymmetricOperator
from palrnn.geometry.path_moments import PathMoments, linear_path, path_moments
from palrnn.geometry.score_map import ScoreMap, bend, has_gate_parameters, is_linear, score_map
from palrnn.inference.particle_filter import checked_series
from palrnn.model import PALRNN
from palrnn.model.inputs import checked_inputs

Codes = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PathInformation(SymmetricOperator):
    """What ``x (T, N)`` says about the drift of ``model`` if its gates were ``codes (T-1, P)``.

    Matrices are ``(p, p)``, of the whole segment; ``observed`` is minus the Hessian of ``log_likelihood``,
    log p(x_2, ..., x_T | x_1, path). ``information @ v`` multiplies it by a vector ``(p,)`` or by ``(p, k)``
    without building it. ``gate_inputs (T-1, P)`` are the noisy inputs of the gates where these are given,
    too: then the likelihood is that of x and of the gate inputs. ``inputs (T, K)`` drive the model, if it
    takes any.
    """

    model: PALRNN = field(repr=False)
    x: Floats = field(repr=False)
    codes: Codes = field(repr=False)
    gate_inputs: Floats | None = field(repr=False)
    log_likelihood: float
    moments: PathMoments = field(repr=False)
    inputs: Floats | None = field(default=None, repr=False)

    @property
    def with_gates(self) -> bool:
        """Whether the score of the gates enters: where their inputs are given and they have parameters."""
        return self.gate_inputs is not None and has_gate_parameters(self.model.drift)

    @cached_property
    def scores(self) -> ScoreMap:
        """How the parameters enter the score."""
        driving = None if self.inputs is None else self.inputs[:-1]
        return score_map(self.model.drift, self.codes, self.with_gates, driving)

    @cached_property
    def score(self) -> Floats:
        """E[s | path, x], ``(p,)``: the gradient of ``log_likelihood``."""
        return self.scores.pull(self.moments.expected)

    @cached_property
    def observed(self) -> Floats:
        """Minus the Hessian of ``log_likelihood``, ``(p, p)``."""
        pin_blas()
        return closed_forms.observed_matrix(*self._parts) - self._bend

    @cached_property
    def complete(self) -> Floats:
        """E[I_comp | path, x], ``(p, p)``."""
        pin_blas()
        return closed_forms.complete_matrix(*self._parts, self.precision) - self._bend

    @property
    def missing(self) -> Floats:
        """Cov(s | path, x), ``(p, p)``."""
        return self.complete - self.observed

    def trace_observed(self, lags: int | None = None) -> float:
        """Return tr of ``observed`` without building it, from pairs of times up to ``lags`` apart (None:
        all)."""
        pin_blas()
        return closed_forms.observed_trace(*self._parts, lags) - float(np.trace(self._bend))

    def left_out(self, lags: int | None) -> float:
        """Return a bound on what ``trace_observed(lags)`` leaves out (see `closed_forms.left_out`)."""
        return 0.0 if lags is None else closed_forms.left_out(*self._parts, lags)

    @property
    def trace_complete(self) -> float:
        """tr of ``complete``, without building it."""
        return closed_forms.complete_trace(*self._parts, self.precision) - float(np.trace(self._bend))

    @property
    def parameters(self) -> int:
        """p, the number of drift parameters."""
        return self.scores.size

    def product(self, v: Floats) -> Floats:
        """Return the product of ``observed`` with ``v (p,)``."""
        return closed_forms.observed_product(self.moments, self.scores, v) - self._bent(v)

    @property
    def precision(self) -> Floats:
        """Lambda, ``(E, E)``: the inverse covariance of the residuals."""
        dim, rows = self.model.drift.latent_dim, self.scores.shape[1]
        precision = np.zeros((rows, rows))
        precision[:dim, :dim] = np.linalg.inv(self.model.process_covariance)
        if rows > dim:
            precision[dim:, dim:] = np.eye(rows - dim) / self.model.gate_std**2
        return precision

    @property
    def _parts(self) -> tuple[Any, Codes, PathMoments, ScoreMap]:
        return self.model.drift, self.codes, self.moments, self.scores

    @cached_property
    def _bend(self) -> Floats:
        """What the second derivatives of the map take from both matrices, ``(p, p)``."""
        if is_linear(self.model.drift):
            return np.zeros((1, 1))
        return np.stack([self._bent(v) for v in np.eye(self.scores.size)])

    def _bent(self, v: Floats) -> Floats:
        if is_linear(self.model.drift):
            return np.zeros_like(v)
        different, expected = np.unique(self.codes, axis=0), self.scores.by_code(self.moments.expected)
        return bend(self.model.drift, different, expected, self.with_gates, v)

    def __repr__(self) -> str:
        size, different = self.scores.size, self.scores.shape[0]
        return (
            f"PathInformation(p={size}, {len(self.x)} steps, {different} different codes: "
            f"log_likelihood={self.log_likelihood:.4f})"
        )


def path_information(
    model: PALRNN,
    x: ArrayLike,
    codes: ArrayLike,
    gate_inputs: ArrayLike | None = None,
    *,
    inputs: ArrayLike | None = None,
) -> PathInformation:
    """Return the exact information of ``x (T, N)`` about the drift given the gates ``codes (T-1, P)``.

    With ``gate_inputs (T-1, P)``, noisy gate inputs of which the codes are the signs, the states are
    conditioned on them, too. NaN in x means not observed. A driven model needs its ``inputs (T, K)``. Any
    family of drift, full or diagonal noise.
    """
    series = checked_series(model, x)
    shape = (len(series) - 1, model.drift.gated)
    gates = as_shape(codes, "codes", shape) > 0
    given = None if gate_inputs is None else as_shape(gate_inputs, "gate_inputs", shape)
    if given is not None and not np.array_equal(given > 0, gates):
        raise ValueError("codes must be the signs of gate_inputs, 1{gate_inputs > 0}")
    return informed_path(model, series, gates, given, checked_inputs(model, inputs, len(series)))


def informed_path(
    model: PALRNN, x: Floats, codes: Codes, gate_inputs: Floats | None, inputs: Floats | None = None
) -> PathInformation:
    """Return the information of checked arguments."""
    with_gates = gate_inputs is not None and has_gate_parameters(model.drift)
    if with_gates and not model.gate_std > 0:
        raise ValueError("gate_std must be greater than 0 where the gates have parameters, got 0")
    path = linear_path(model, x, codes, inputs)
    loglik, moments = path_moments(path, gate_inputs, with_gates=with_gates)
    return PathInformation(model, x, codes, gate_inputs, loglik, moments, inputs)
