"""Systems of which the truth is known: their series, the models that learn them, and what is asked of these.

Process noise is per step for the maps and as in `System.simulate` for the flows; observation noise is in
standard deviations of the series. Maps are learned as they are, flows standardised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from palrnn.data import Standardizer, add_observation_noise
from palrnn.data.systems import System, make_system
from palrnn.engine.checks import Floats, one_of
from palrnn.engine.seeds import generator
from palrnn.forcing import TrainConfig
from palrnn.invariants import fixed_points, lyapunov_spectrum
from palrnn.invariants.free_run import free_run
from palrnn.invariants.lyapunov import DivergenceError
from palrnn.model import ALRNN, PALRNN, Forcing
from palrnn.model.engine import codes

_DISCARD = 500
# steps behind an exponent: its own error is then a hundredth of a flow's
_STEPS = 20_000
# a fixed point further away than this, in standard deviations of the series, is another one
_NEAR = 1.0


class Truth(ABC):
    """A known system: ``names`` of what is asked, their true ``values``, and how a model is asked."""

    names: tuple[str, ...]
    values: Floats

    @abstractmethod
    def series(self, process: float, observation: float, rows: int, seed: int) -> Floats:
        """Return ``(rows, N)`` noisy observations, raw."""

    @abstractmethod
    def training(self, updates: int, rows: int) -> TrainConfig:
        """Return how a model of it is trained."""

    @abstractmethod
    def measure(self, model: Any, standardizer: Standardizer, x: Floats) -> Floats:
        """Return what ``model`` says of each of ``names``, NaN where it has no answer; ``x`` is its data."""

    def true_values(self, process: float) -> Floats:
        """Return the truth of a series with this process noise."""
        return self.values

    def standardizer(self, x: Floats) -> Standardizer:
        """Return the scale on which ``x`` is learned."""
        return Standardizer.fit(x)


class _Map(Truth):
    """A map with all of its units observed; its own coordinates are those of the model."""

    drift: ALRNN

    def __init__(self) -> None:
        self.names, self.values = self._names(), identified(self.drift)

    def standardizer(self, x: Floats) -> Standardizer:
        return Standardizer(np.zeros(x.shape[1]), np.ones(x.shape[1]))

    def training(self, updates: int, rows: int) -> TrainConfig:
        return TrainConfig(
            latent_dim=self.drift.latent_dim,
            gated=self.drift.gated,
            forcing=Forcing.identity(1),
            updates=updates,
            learning_rate=2e-2,
            final_learning_rate=1e-4,
            input_noise=0.0,
            sequence_length=50,
            optimizer="radam",
        )

    def series(self, process: float, observation: float, rows: int, seed: int) -> Floats:
        # no noise of observation yet: that is in units of the states that come out
        model = PALRNN(self._drift(process), max(process, 1e-12), 1e-12, 0.0, initial=0.3)
        states = model.sample(np.ones(self.drift.latent_dim), rows + _DISCARD, seed).states[_DISCARD:]
        if len(states) < rows:
            raise RuntimeError(f"the truth diverged with process noise {process:g}")
        return add_observation_noise(states, observation, seed=seed)

    def measure(self, model: Any, standardizer: Standardizer, x: Floats) -> Floats:
        return identified(model)

    def true_values(self, process: float) -> Floats:
        return identified(self._drift(process))

    def _drift(self, process: float) -> ALRNN:
        return self.drift

    def _names(self) -> tuple[str, ...]:
        size, gated = self.drift.latent_dim, self.drift.gated
        weights = [f"W{i + 1}{j + 1}" for i in range(size) for j in range(size)]
        slopes = [f"A{i + 1}" for i in range(size - gated, size)]
        return (*weights, *slopes, *(f"h{i + 1}" for i in range(size)))


def identified(model: ALRNN) -> Floats:
    """Return what data can tell of a map: W with A_ii added for ungated units, A of gated ones, and h."""
    linear, free = model.W.copy(), model.latent_dim - model.gated
    linear[np.arange(free), np.arange(free)] += model.A[:free]
    return np.concatenate([linear.ravel(), model.A[free:], model.h])


class Linear(_Map):
    """A damped rotation; without process noise, which alone keeps it going, one that is not damped."""

    drift = ALRNN(np.zeros(2), np.array([[0.88, -0.27], [0.37, 0.83]]), np.zeros(2), np.eye(2), 0)

    def _drift(self, process: float) -> ALRNN:
        if process > 0.0:
            return self.drift
        turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
        return ALRNN(np.zeros(2), turn, np.zeros(2), np.eye(2), 0)


class Switching(_Map):
    """An AL-RNN of three units and one gate that circles by itself (its exponents are 0, -0.17, -0.49)."""

    drift = ALRNN(
        np.array([0.72, 0.70, 0.53]),
        np.array([[0.0, -0.68, -0.50], [0.05, -0.38, -0.86], [-1.04, -0.32, -0.58]]),
        np.array([-0.26, 0.07, 0.37]),
        np.eye(3),
        1,
    )


@dataclass
class Flow(Truth):
    """A chaotic flow: its largest exponent, and one of its fixed points."""

    system: System
    point: tuple[float, float, float]
    tau: int

    def __post_init__(self) -> None:
        self.names = ("exponent", "fixed point x", "fixed point y", "fixed point z")
        self.values = np.array([self.system.lyapunov, *self.point], dtype=np.float64)

    @cached_property
    def dt(self) -> float:
        """Time per step."""
        return self.system.customary_dt

    def series(self, process: float, observation: float, rows: int, seed: int) -> Floats:
        """Return ``(rows, N)`` noisy observations, raw."""
        states = self.system.simulate(rows, dt=self.dt, process_std=process, seed=seed)
        return add_observation_noise(states, observation, seed=seed)

    def training(self, updates: int, rows: int) -> TrainConfig:
        """Return how a model of it is trained: as `palrnn.reconstruct` trains one of clean data, but for the
        updates and tau; varied models draw their own input noise and forcing."""
        return TrainConfig(
            input_noise=0.02,
            forcing=Forcing.identity(self.tau),
            updates=updates,
            sequence_length=min(200, rows // 10),
        )

    def measure(self, model: Any, standardizer: Standardizer, x: Floats) -> Floats:
        """Return the largest exponent of ``model`` and the position of its fixed point, if it has it.

        The exponent is that of the flow that the model samples, as error bars of a run have it. Fixed points
        are looked for in the regions that a free run visits near the true one.
        """
        found = np.full(4, np.nan)
        try:
            how: dict[str, Any] = {"steps": _STEPS, "discard": 2000, "dt": self.dt, "k": 1, "flow": True}
            found[0] = lyapunov_spectrum(model, standardizer.transform(x[0]), **how).largest
        except DivergenceError:
            pass
        place = standardizer.transform(np.array(self.point))
        states = free_run(model, standardizer.transform(x[0]), _STEPS // 2).states
        close = np.linalg.norm(states[:, : x.shape[1]] - place, axis=1) < _NEAR
        if close.any():
            around = np.unique(codes(model, states[close]), axis=0)
            points = fixed_points(model, within=around).points[:, : x.shape[1]]
            away = np.linalg.norm(points - place, axis=1)
            if len(points) and away.min() < _NEAR:
                found[1:] = standardizer.inverse(points[away.argmin()])
        return found


def truth(name: str) -> Truth:
    """Return the truth of this name."""
    kinds = ("linear", "alrnn", "lorenz63", "rossler")
    if one_of(name, "truth", kinds) in ("linear", "alrnn"):
        return Linear() if name == "linear" else Switching()
    system = make_system(name)
    if name == "lorenz63":
        side = float(np.sqrt(8.0 / 3.0 * 27.0))
        return Flow(system, (side, side, 27.0), tau=16)
    inner = 0.5 * (5.7 - float(np.sqrt(5.7**2 - 4 * 0.2 * 0.2)))
    return Flow(system, (inner, -inner / 0.2, inner / 0.2), tau=16)


def dataset_seed(number: int) -> int:
    """Return the seed of a data set: far apart, so that none shares noise with another."""
    return int(generator(number, "coverage").integers(2**31))
