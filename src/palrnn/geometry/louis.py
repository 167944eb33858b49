"""Louis' identity from samples: complete-data information, missing information, and what remains observed.

    I_obs = E[I_comp | x] - Cov(s | x)   (eq. louis; Louis, 1982),   s = the complete-data score

The missing term is split by total covariance into the part from not knowing the state given the gates and the
part from not knowing the gates:

    Cov(s) = E_c Cov(s | c) + Cov_c E(s | c) = missing_state + missing_switching

With K states drawn for each of S gate paths, let V be the pooled covariance within paths (S (K - 1) degrees
of freedom) and B the covariance of the path means (S - 1). Then ``missing = B + (1 - 1 / K) V`` is unbiased;
the ordinary covariance of all S K samples would be too small, because samples of one path are not
independent. The same formula within the n paths that share one code path estimates Cov(s | c); where a code
path was drawn once, V of that path does. The mean over paths is ``missing_state``, and ``missing_switching``
is the difference, so that the parts add up exactly, and known gates leave exactly nothing to switching. An
estimate of ``missing_switching`` need not be positive; ``missing`` is, with rank at most S K - 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import HUGE, Floats, as_shape
from palrnn.engine.kernel import pin_blas
from palrnn.geometry.kernels import sampled
from palrnn.geometry.operators import InformationParts
from palrnn.geometry.traces import louis_traces
from palrnn.model import ALRNN, PALRNN
from palrnn.model.families.alrnn_layout import row_indices
from palrnn.model.inputs import checked_inputs


@dataclass(frozen=True, eq=False)
class LouisTerms(InformationParts):
    """The terms of Louis' identity, kept in factors; the ``(p, p)`` matrices are built when asked for.

    ``blocks (M, M+2+K, M+2+K)``: E[I_comp], one block over [A_i, W_i, h_i, C_i] per latent row.
    ``scores (S, K, p)``: the complete-data scores. ``complete_traces (S,)``: tr I_comp of each path.
    ``groups (S,)``: a number for each path, the same for paths with the same codes.
    """

    blocks: Floats
    scores: Floats
    complete_traces: Floats
    groups: NDArray[np.int64]

    @property
    def samples(self) -> int:
        """S K, the number of sampled (code, state) trajectories."""
        return int(self.scores.shape[0] * self.scores.shape[1])

    @property
    def _rows(self) -> NDArray[np.int64]:
        """Where the parameters of each latent row stand in theta, ``(M, M+2+K)``."""
        dim = len(self.blocks)
        return row_indices(dim, self.blocks.shape[1] - dim - 2)

    @property
    def score(self) -> Floats:
        """The mean complete-data score ``(p,)``: by Fisher's identity, the gradient of the log evidence."""
        return np.asarray(self.scores.mean(axis=(0, 1)))

    @cached_property
    def complete(self) -> Floats:
        """E[I_comp | x], ``(p, p)``."""
        dense = np.zeros((self.scores.shape[2],) * 2)
        for block, at in zip(self.blocks, self._rows, strict=True):
            dense[np.ix_(at, at)] = block
        return dense

    @cached_property
    def missing(self) -> Floats:
        """Cov(s | x), ``(p, p)``."""
        return _square(self._factor)

    @cached_property
    def observed(self) -> Floats:
        """E[I_comp | x] - Cov(s | x), ``(p, p)``."""
        return self.complete - self.missing

    @cached_property
    def missing_state(self) -> Floats | None:
        """E_c Cov(s | c), ``(p, p)``: from not knowing the state given the gates. None where K = 1."""
        paths, draws, size = self.scores.shape
        if draws == 1:
            return None
        within, (inside, weights) = self._deviations[1], self._inside
        alone = np.where(weights > 0, draws, draws - 1)[:, None, None]
        factors = [within / np.sqrt(alone * paths), (inside * np.sqrt(weights / paths)[:, None])[:, None]]
        return _square(np.concatenate([factor.reshape(-1, size) for factor in factors]))

    @property
    def missing_switching(self) -> Floats | None:
        """Cov_c E(s | c), ``(p, p)``: from not knowing the gates. None where K = 1."""
        return None if self.missing_state is None else self.missing - self.missing_state

    @property
    def standard_errors(self) -> dict[str, float]:
        """Monte Carlo standard errors of the traces and of ``mir``, by leaving out one path at a time.

        Each gate path, with its states, is a batch. The errors speak for the draws of paths and states
        given one pass of the filter; they are NaN with two paths.
        """
        return {name: error for name, (_, error) in self._traces.items()}

    @property
    def needed_samples(self) -> int:
        """The least number of samples with which ``observed`` could be positive; often it takes far more."""
        return math.ceil(self.missing_dimensions) + 1

    @cached_property
    def _dimensions(self) -> tuple[float, int]:
        missing, informed = 0.0, 0
        for block, at in zip(self.blocks, self._rows, strict=True):
            values, vectors = np.linalg.eigh(block)
            kept = values > 1e-10 * values[-1]
            missing += float((((self._factor[:, at] @ vectors)[:, kept]) ** 2 / values[kept]).sum())
            informed += int(kept.sum())
        return missing, informed

    @property
    def parameters(self) -> int:
        """p, the number of drift parameters."""
        return int(self.scores.shape[2])

    def product(self, v: Floats) -> Floats:
        """Return the product of ``observed`` with ``v (p,)``, or with all columns of ``(p, k)``."""
        product = -(self._factor.T @ (self._factor @ v))
        at = self._rows
        product[at] += np.einsum("iab,ib...->ia...", self.blocks, v[at])
        return product

    def __matmul__(self, v: ArrayLike) -> Floats:
        """Multiply the observed information by ``v (p,)`` or ``(p, k)`` without building it."""
        return self.product(self._checked(v))

    @property
    def _deviations(self) -> tuple[Floats, Floats]:
        """Path means less their mean ``(S, p)``, and scores less their path's mean ``(S, K, p)``."""
        means = self.scores.mean(axis=1)
        return means - means.mean(axis=0), self.scores - means[:, None]

    @cached_property
    def _inside(self) -> tuple[Floats, Floats]:
        """Path means less the mean of their code's n paths ``(S, p)``, and n / (n - 1), or 0 if n = 1."""
        means, counts = self.scores.mean(axis=1), np.bincount(self.groups)
        sums = np.zeros((len(counts), means.shape[1]))
        np.add.at(sums, self.groups, means)
        n = counts[self.groups]
        return means - (sums / counts[:, None])[self.groups], np.where(n > 1, n / np.maximum(n - 1, 1), 0.0)

    @cached_property
    def _factor(self) -> Floats:
        """The factor of missing = F^T F, since (1 - 1/K) / (S (K - 1)) = 1 / (S K)."""
        between, within = self._deviations
        paths, draws, size = self.scores.shape
        if draws == 1:
            return between / math.sqrt(paths - 1)
        flat = within.reshape(-1, size) / math.sqrt(self.samples)
        return np.concatenate([between / math.sqrt(paths - 1), flat])

    @property
    def traces(self) -> dict[str, float]:
        """The traces of all parts by name, and ``mir``."""
        return {name: value for name, (value, _) in self._traces.items()}

    @cached_property
    def _traces(self) -> dict[str, tuple[float, float]]:
        between, within = self._deviations
        sums = (between**2).sum(axis=1), (within**2).sum(axis=(1, 2)), (self._inside[0] ** 2).sum(axis=1)
        return louis_traces(*sums, self.groups, self.complete_traces, self.scores.shape[1])


def louis_terms(
    model: PALRNN, codes: ArrayLike, states: ArrayLike, *, inputs: ArrayLike | None = None
) -> LouisTerms:
    """Return the terms of Louis' identity from sampled ``codes (S, T-1, P)`` and ``states (S, K, T, M)``.

    The gates have no parameters, so the same score serves both targets of the filter. Under
    ``target="exact"`` a path is that of the noisy gate inputs u, of which the codes are the signs. Paths with
    the same codes and different u average over u; a lone path does not, and u tells more about the state than
    the codes do. So as long as many paths are alone, ``missing_switching`` is an upper bound on the part of
    the codes. A driven model needs its ``inputs (T, K)``.
    """
    if not isinstance(model, PALRNN):
        raise ValueError(f"model must be a PALRNN, got {type(model).__name__}")
    draws = as_shape(states, "states", (None, None, None, model.drift.latent_dim))
    if draws.shape[0] < 2 or draws.shape[1] < 1 or draws.shape[2] < 2:
        raise ValueError(f"states must be (S, K, T, M) with S >= 2 paths and T >= 2, got {draws.shape}")
    if np.abs(draws).max() > HUGE:
        raise ValueError(f"states must be within ±{HUGE:g}, got {np.abs(draws).max():g}")
    gates = as_shape(codes, "codes", (draws.shape[0], draws.shape[2] - 1, model.drift.gated)) > 0
    given = checked_inputs(model, inputs, draws.shape[2])
    return gathered_terms(model, draws.shape[0], [(gates, draws)], given)


def gathered_terms(
    model: PALRNN,
    paths: int,
    batches: Iterable[tuple[NDArray[np.bool_], Floats]],
    inputs: Floats | None = None,
) -> LouisTerms:
    """Return the terms from batches of (codes, states), ``paths`` in total, holding one batch at a time."""
    pin_blas()
    drift, variances = model.drift, model.process_variances
    if not isinstance(drift, ALRNN) or not model.process.is_diagonal:
        raise ValueError(
            "model must be an AL-RNN with diagonal process noise for sampled states, got "
            f"{type(drift).__name__} with {model.process!r}; states='exact' takes every model"
        )
    dim, size = drift.latent_dim, drift.latent_dim + drift.gated + 1 + drift.input_dim
    C = np.zeros((dim, 0)) if drift.C is None else drift.C.copy()
    gram, traces, scores, done = np.zeros((size, size)), np.empty(paths), np.empty((0, 0, 0)), 0
    packed: list[bytes] = []
    for codes, states in batches:
        if done == 0:
            scores = np.empty((paths, states.shape[1], drift.theta.size))
            driving = np.empty((states.shape[2] - 1, 0)) if inputs is None else inputs[:-1].copy()
        part = slice(done, done + len(states))
        sampled.complete_data(
            drift.A, drift.W, drift.h, C, variances, codes, states, driving, gram, scores[part], traces[part]
        )
        done += len(states)
        packed += [np.packbits(path).tobytes() for path in codes]
    numbers = {code: number for number, code in enumerate(dict.fromkeys(packed))}
    groups = np.array([numbers[code] for code in packed], dtype=np.int64)
    blocks = _blocks(gram / (paths * scores.shape[1]), variances, drift.gated)
    return LouisTerms(blocks, scores, traces, groups)


def _blocks(gram: Floats, variances: Floats, gated: int) -> Floats:
    """Return the blocks ``(M, M+2+K, M+2+K)`` from the Gram matrix of the shared features."""
    dim, size = len(variances), len(gram)
    sources = np.where(np.arange(dim) < dim - gated, np.arange(dim), np.arange(dim) + gated)
    at = np.concatenate([sources[:, None], np.tile(np.r_[0:dim, dim + gated : size], (dim, 1))], axis=1)
    blocks: Floats = gram[at[:, :, None], at[:, None, :]] / variances[:, None, None]
    return blocks


def _square(factor: Floats) -> Floats:
    pin_blas()
    square: Floats = factor.T @ factor
    return square
