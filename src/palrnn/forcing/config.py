"""The settings of training. The defaults are the paper's."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole


class TrainConfig(Config):
    """How to train an AL-RNN by teacher forcing.

    A sequence has ``sequence_length`` rows, hence ``sequence_length - 1`` predictions. The learning rate
    falls exponentially from ``learning_rate`` to ``final_learning_rate`` over the whole run, by a constant
    factor per update. Forcing happens every ``tau`` steps with strength ``alpha``: 1 is identity teacher
    forcing; ``tau = 1`` with ``alpha < 1`` is generalised teacher forcing. With ``final_alpha`` the strength
    changes over the run along a line or an exponential (``alpha_schedule``).

    Off by default: ``gradient_clip``, the longest gradient that is not shortened, and ``input_noise``, the
    deviation of noise on the observations that enter the network (the targets stay clean). With
    ``evaluate_every``, the free-running model is measured after so many updates, on ``evaluate_steps`` steps
    of which the first ``evaluate_discard`` are left out, and ``keep`` decides between the last and the best.
    """

    latent_dim: Count = 30
    gated: Whole = 10
    tau: Count = 16
    updates: Count = 100_000
    batch_size: Count = 16
    sequence_length: Annotated[Count, Field(ge=2)] = 200
    learning_rate: Positive = 1e-3
    final_learning_rate: Positive = 1e-5
    alpha: Annotated[float, Field(ge=0, le=1)] = 1.0
    final_alpha: Annotated[float | None, Field(ge=0, le=1)] = None
    alpha_schedule: Literal["exponential", "linear"] = "exponential"
    seed: Seed = 0
    init_std: Level = 0.01
    gradient_clip: Positive | None = None
    input_noise: Level = 0.0
    precision: Literal["single", "double"] = "single"
    evaluate_every: Count | None = None
    evaluate_steps: Annotated[Count, Field(ge=100)] = 10_000
    evaluate_discard: Whole = 1000
    keep: Literal["last", "best"] = "last"
    checkpoint_every: Count = 5000

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.gated > self.latent_dim:
            raise ValueError(f"gated must be at most latent_dim = {self.latent_dim}, is {self.gated}")
        if self.keep == "best" and self.evaluate_every is None:
            raise ValueError("keep = 'best' needs evaluate_every")
        if self.evaluate_discard >= self.evaluate_steps:
            raise ValueError("evaluate_discard must be less than evaluate_steps")
        if (
            self.alpha_schedule == "exponential"
            and self.final_alpha is not None
            and 0 in (self.alpha, self.final_alpha)
        ):
            raise ValueError("an exponential alpha_schedule cannot start or end at 0; use 'linear'")
        return self

    def learning_rates(self, begin: int, end: int) -> Floats:
        """Return the rates of updates ``begin .. end - 1``, counted from 0."""
        ratio = self.final_learning_rate / self.learning_rate
        rates: Floats = self.learning_rate * ratio ** (np.arange(begin, end) / self.updates)
        return rates

    def alphas(self, begin: int, end: int) -> Floats:
        """Return the forcing strengths of updates ``begin .. end - 1``, counted from 0."""
        if self.final_alpha is None:
            return np.full(end - begin, self.alpha)
        part = np.arange(begin, end) / self.updates
        if self.alpha_schedule == "linear":
            return self.alpha + (self.final_alpha - self.alpha) * part
        strengths: Floats = self.alpha * (self.final_alpha / self.alpha) ** part
        return strengths
