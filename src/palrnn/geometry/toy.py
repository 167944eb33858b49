"""The two-regime toy: a probit-gated switching AR(1), where Louis' identity is closed-form (Sec. louis_toy).

    c_t | x_t ~ Bernoulli(Phi(x_t / gate_std)),   x_{t+1} | x_t, c_t ~ N(a_{c_t} x_t, sigma^2)

The state is observed and only the gate is missing, so ambiguity can be varied with ``gate_std`` while the two
linear regimes stay as they are. Parameters are theta = (a0, a1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_floats, as_int, as_series
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator

#: The paper's settings.
A0, A1, SIGMA, STEPS, SEEDS = 0.90, 0.60, 0.15, 600, 20
GATE_STDS = tuple(float(value) for value in np.geomspace(0.03, 0.9, 25))


@dataclass(frozen=True, eq=False)
class ToyInformation:
    """The closed-form Louis terms of one series: ``observed = complete - missing``, each ``(2, 2)``.

    ``posterior (T-1,)`` is p_t = P(c_t = 1 | x_t, x_{t+1}); ``entropy_bits`` the time average of its entropy.
    """

    observed: Floats
    complete: Floats
    missing: Floats
    posterior: Floats
    entropy_bits: float

    @property
    def mir(self) -> float:
        """The missing-information ratio 1 - tr(observed) / tr(complete)."""
        return float(1.0 - np.trace(self.observed) / np.trace(self.complete))

    @property
    def log10_trace(self) -> float:
        """log10 tr(observed), NaN where the trace is not positive."""
        trace = float(np.trace(self.observed))
        return math.log10(trace) if trace > 0 else math.nan

    def __repr__(self) -> str:
        return (
            f"ToyInformation(entropy={self.entropy_bits:.3g} bits, mir={self.mir:.3g}, "
            f"log10_trace={self.log10_trace:.4g})"
        )


def toy_information(x: ArrayLike, a0: float, a1: float, sigma: float, gate_std: float) -> ToyInformation:
    """Return the Louis decomposition of a series ``x (T,)`` of the toy (Sec. louis_toy).

    complete = sum_t diag(1 - p_t, p_t) x_t^2 / sigma^2
    missing  = sum_t p_t (1 - p_t) (s_1 - s_0)(s_1 - s_0)^T,   s_c = e_c (x_{t+1} - a_c x_t) x_t / sigma^2
    """
    # extreme values overflow here and there; what matters is whether the result is finite
    with np.errstate(all="ignore"):
        found = _decomposed(as_series(x, dim=1)[:, 0], a0, a1, sigma, gate_std)
    if not (np.isfinite(found.observed).all() and math.isfinite(found.entropy_bits)):
        raise ValueError("x, a0, a1, sigma and gate_std give information beyond all numbers")
    return found


def _decomposed(series: Floats, a0: float, a1: float, sigma: float, gate_std: float) -> ToyInformation:
    from scipy.special import expit, log_expit, log_ndtr

    a = np.array([as_float(a0, "a0"), as_float(a1, "a1")])
    variance = as_float(sigma, "sigma", above=0.0) ** 2
    before, after = series[:-1], series[1:]
    scaled = before / as_float(gate_std, "gate_std", above=0.0)
    residuals = after[:, None] - a * before[:, None]
    # in logs: far from the boundary both Phi and 1 - p_t underflow, their ratio does not
    evidence = (residuals[:, 0] ** 2 - residuals[:, 1] ** 2) / (2 * variance)
    logit = log_ndtr(scaled) - log_ndtr(-scaled) + evidence
    p, q = expit(logit), expit(-logit)
    scores = residuals * before[:, None] / variance
    contrast = scores * np.array([-1.0, 1.0])
    complete = np.diag([q @ before**2, p @ before**2]) / variance
    missing = (contrast * (p * q)[:, None]).T @ contrast
    entropy = -(p * log_expit(logit) + q * log_expit(-logit)).mean() / math.log(2.0)
    return ToyInformation(complete - missing, complete, missing, p, float(entropy))


def toy_series(
    gate_std: float,
    *,
    steps: int = STEPS,
    a0: float = A0,
    a1: float = A1,
    sigma: float = SIGMA,
    seed: int = 0,
) -> Floats:
    """Return ``(steps,)`` of the toy, from ``x_1 ~ N(0, sigma^2)``.

    The same seed draws the same noise whatever the parameters, so that a sweep over ``gate_std`` is paired.
    """
    steps = as_int(steps, "steps", least=2)
    gate = as_float(gate_std, "gate_std", above=0.0) * math.sqrt(2.0)
    regimes = (as_float(a0, "a0"), as_float(a1, "a1"))
    rng = generator(seed)
    noise = (as_float(sigma, "sigma", above=0.0) * rng.standard_normal(steps)).tolist()
    uniforms = rng.random(steps - 1).tolist()
    x = [noise[0]]
    for step, uniform in zip(noise[1:], uniforms, strict=True):
        opened = uniform < 0.5 * math.erfc(-x[-1] / gate)
        x.append(regimes[opened] * x[-1] + step)
    if not math.isfinite(x[-1]):
        raise ValueError(f"the toy explodes with a0={a0:g} and a1={a1:g}")
    return np.array(x)


class Correlations(NamedTuple):
    """Spearman rank correlations over all runs of a toy study."""

    gate_entropy: float
    entropy_mir: float
    entropy_trace: float


@dataclass(frozen=True, eq=False)
class ToyStudy:
    """The sweep of the toy: one value per gate noise (rows) and seed (columns), each array ``(G, R)``."""

    gate_stds: Floats
    entropy_bits: Floats
    mir: Floats
    log10_trace: Floats

    @property
    def correlations(self) -> Correlations:
        """Gate noise with entropy, entropy with MIR, entropy with log10 trace, over all runs."""
        from scipy.stats import spearmanr

        gates = np.repeat(self.gate_stds, self.mir.shape[1])
        entropy = self.entropy_bits.ravel()
        pairs = ((gates, entropy), (entropy, self.mir.ravel()), (entropy, self.log10_trace.ravel()))
        return Correlations(*(float(spearmanr(a, b).statistic) for a, b in pairs))

    def rows(self) -> list[dict[str, float | int]]:
        """Return the table ``toy.csv``: one row per gate noise and seed."""
        figures = {"entropy_bits": self.entropy_bits, "mir": self.mir, "log10_trace": self.log10_trace}
        return [
            {"sigma_g": float(gate), "seed": seed} | {name: float(v[i, seed]) for name, v in figures.items()}
            for i, gate in enumerate(self.gate_stds)
            for seed in range(self.mir.shape[1])
        ]

    def __repr__(self) -> str:
        c = self.correlations
        return (
            f"ToyStudy({self.mir.shape[0]} gate noises x {self.mir.shape[1]} seeds; Spearman: "
            f"gate noise-entropy {c.gate_entropy:.2f}, entropy-MIR {c.entropy_mir:.2f}, "
            f"entropy-trace {c.entropy_trace:.2f})"
        )


def toy_study(
    gate_stds: Sequence[float] | Floats = GATE_STDS,
    *,
    seeds: int = SEEDS,
    steps: int = STEPS,
    a0: float = A0,
    a1: float = A1,
    sigma: float = SIGMA,
    progress: Progress | None = None,
) -> ToyStudy:
    """Simulate and decompose the toy over a sweep of gate noise (fig. results a); the paper's by default."""
    gates, seeds = np.atleast_1d(as_floats(gate_stds, "gate_stds")), as_int(seeds, "seeds", least=1)
    if gates.ndim != 1 or not len(gates):
        raise ValueError(f"gate_stds must be a list of numbers, got shape {gates.shape}")
    table = np.empty((3, len(gates), seeds))
    with listening(progress, "toy") as report:
        for i, gate in enumerate(gates):
            for seed in range(seeds):
                x = toy_series(gate, steps=steps, a0=a0, a1=a1, sigma=sigma, seed=seed)
                terms = toy_information(x, a0, a1, sigma, gate)
                table[:, i, seed] = terms.entropy_bits, terms.mir, terms.log10_trace
            report(i + 1, len(gates), {"gate_std": float(gate)})
    return ToyStudy(gates, *table)
