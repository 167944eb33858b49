"""The Lorenz-63 series of the studies, each a function of its settings alone.

Training: one trajectory of train + test steps for each pair of noise levels, with process noise in the
dynamics and observation noise scaled by the deviation of the clean training part; standardised by the mean
and deviation of the noisy training part, which is all that a modeller would see. The seeds of trajectory and
noise are streams of ``data.seed`` numbered by the two levels, so models with the same levels share their data
and differ in ``training.seed`` and tau only.

Tuning: independent deterministic sequences with little observation noise, standardised together.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from pydantic import model_validator

from palrnn.data import Standardizer, add_observation_noise, lorenz63
from palrnn.data.systems import lorenz63_system
from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole
from palrnn.engine.seeds import kernel_seed


class DataSettings(Config):
    """The Lorenz-63 series that models are trained on: one realisation for each pair of noise levels."""

    train_steps: Count
    test_steps: Count
    dt: Positive
    discard: Whole
    seed: Seed


class TuningDataSettings(Config):
    """The deterministic Lorenz-63 sequences that models are tuned on, and those held out for windows."""

    sequences: Count
    steps: Count
    discard: Whole
    observation_std: Level
    seed: Seed
    heldout_steps: Count

    @model_validator(mode="after")
    def _something_left(self) -> Self:
        if self.discard >= self.steps:
            raise ValueError(f"discard must be less than steps = {self.steps}, is {self.discard}")
        return self


class TrainingSeries(NamedTuple):
    """Standardised train (T, 3) and test (T', 3) parts, and the map to raw coordinates.

    ``noise (3,)`` is the deviation of the observation noise in standardised coordinates. It is less than its
    nominal level, since the noise is scaled by the clean series, and the standardiser by the noisy one.
    """

    train: Floats
    test: Floats
    standardizer: Standardizer
    noise: Floats


class TuningSeries(NamedTuple):
    """Standardised training and held-out sequences (S, T, 3), and the map to raw coordinates."""

    train: Floats
    heldout: Floats
    standardizer: Standardizer


def training_series(data: DataSettings, process_std: float, observation_std: float) -> TrainingSeries:
    """Return the series of one pair of noise levels."""
    levels = (round(1e6 * process_std), round(1e6 * observation_std))
    clean = lorenz63(
        data.train_steps + data.test_steps,
        dt=data.dt,
        process_std=process_std,
        discard=data.discard,
        seed=kernel_seed(data.seed, "trajectory", *levels),
    )
    scale = clean[: data.train_steps].std(axis=0)
    noise_seed = kernel_seed(data.seed, "observation noise", *levels)
    x = add_observation_noise(clean, observation_std, scale=scale, seed=noise_seed)
    standardizer = Standardizer.fit(x[: data.train_steps])
    z = standardizer.transform(x)
    noise = observation_std * scale / standardizer.std
    return TrainingSeries(z[: data.train_steps], z[data.train_steps :], standardizer, noise)


def tuning_series(data: TuningDataSettings, dt: float) -> TuningSeries:
    """Return the sequences that models are tuned on, and held-out ones in the same coordinates.

    The held-out sequences are of their own: the paper's 120 windows of 200 steps do not fit into its 4
    sequences of 4000.
    """
    train = _noisy(data, dt, data.steps - data.discard, "tuning")
    heldout = _noisy(data, dt, data.heldout_steps, "held out")
    standardizer = Standardizer.fit(train.reshape(-1, 3))
    return TuningSeries(standardizer.transform(train), standardizer.transform(heldout), standardizer)


def reference_series(steps: int, discard: int, dt: float) -> Floats:
    """Return the deterministic trajectory (steps, 3), in raw coordinates, that rollouts are compared with."""
    return lorenz63(steps, dt=dt, discard=discard, seed=kernel_seed(0, "reference"))


def _noisy(data: TuningDataSettings, dt: float, steps: int, use: str) -> Floats:
    # the deviation of the system, so that the noise of one sequence does not depend on the others
    scale = lorenz63_system().spread(dt)
    sequences = []
    for k in range(data.sequences):
        trajectory_seed = kernel_seed(data.seed, use, "trajectory", k)
        noise_seed = kernel_seed(data.seed, use, "observation noise", k)
        clean = lorenz63(steps, dt=dt, discard=data.discard, seed=trajectory_seed)
        sequences.append(add_observation_noise(clean, data.observation_std, scale=scale, seed=noise_seed))
    return np.stack(sequences)
