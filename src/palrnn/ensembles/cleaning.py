"""States instead of measurements: a series without its noise, for models that are trained on it.

The first model was trained on measurements, and is biased by their noise; what it makes of the states is
biased, too, but less. So there are two rounds: a model is trained on the states found by the first, and the
states that it finds in the measurements are those returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.geometry.denoising import denoised
from palrnn.geometry.likelihood import with_fitted_noise
from palrnn.model import ALRNN, PALRNN

# noise on the inputs of a training that is no longer to be robust against that of measurements
LITTLE_NOISE = 0.01


def cleaned(
    drift: ALRNN, trials: Sequence[Floats], config: TrainConfig, *, rounds: int = 2, seed: int = 0
) -> tuple[list[Floats], PALRNN]:
    """Return ``trials`` of measurements as states, and the model with noise that found them.

    Each round fits the two deviations of noise to a drift (`with_fitted_noise`) and takes the noise out
    (`denoised`); the drift of the first is given, those of later ones are trained on the states of the round
    before.
    """
    if not isinstance(drift, ALRNN) or drift.input_dim:
        raise ValueError("model must be an ALRNN without inputs")
    if any(np.isnan(trial[0]).any() for trial in trials):
        raise ValueError("x must start at a row without a gap")
    model = with_fitted_noise(drift, list(trials))
    states = [denoised(model, trial) for trial in trials]
    for number in range(1, rounds):
        again = state_training(config).changed(seed=kernel_seed(seed, "cleaning", number))
        try:
            better: Any = train(states, again, progress=quiet).model
        except TrainingDivergedError:
            break
        model = with_fitted_noise(better, list(trials))
        states = [denoised(model, trial) for trial in trials]
    return states, model


def state_training(config: TrainConfig) -> TrainConfig:
    """Return the settings of a training on states: as ``config``, with little noise on the inputs."""
    return config.changed(input_noise=min(config.input_noise, LITTLE_NOISE))
