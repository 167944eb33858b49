"""The settings of the coverage study, and its scales: smoke (seconds), quick (hours), full (days)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from palrnn.engine.config import Config, Count, Level

SCALES = ("smoke", "quick", "full")
TruthName = Literal["linear", "alrnn", "lorenz63", "rossler"]
MethodName = Literal[
    "itf laplace",
    "observed",
    "likelihood",
    "sandwich",
    "temperature",
    "blocks",
    "fresh blocks",
    "seeds",
    "denoised blocks",
    "varied",
    "reflected",
]
NoisePair = tuple[Level, Level]


class TruthSettings(Config):
    """One truth: ``datasets`` series of each length and of each pair of process and observation noise.

    Data sets are numbered from ``first`` on; another first number gives other series, such as ones that no
    method was tuned on. ``updates`` train the model, ``warm_updates`` each of the ``models`` of a bootstrap
    that starts from it, ``draws`` come from a posterior.
    """

    name: TruthName
    noises: Annotated[tuple[NoisePair, ...], Field(min_length=1)]
    rows: Annotated[tuple[Annotated[Count, Field(ge=200)], ...], Field(min_length=1)]
    datasets: Count
    first: Annotated[int, Field(ge=0)] = 0
    methods: Annotated[tuple[MethodName, ...], Field(min_length=1)]
    updates: Count
    warm_updates: Count
    models: Annotated[Count, Field(ge=2)]
    draws: Annotated[Count, Field(ge=20)]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.name in ("linear", "alrnn") and (0.0, 0.0) in self.noises:
            raise ValueError(f"noises of {self.name} must not be 0 and 0: nothing is left to chance")
        if self.name not in ("linear", "alrnn") and "likelihood" in self.methods:
            raise ValueError(f"methods of {self.name} must be without likelihood: few of its units are seen")
        if self.name in ("linear", "alrnn") and {"varied", "reflected"} & set(self.methods):
            raise ValueError(
                f"methods of {self.name} must be without varied and reflected: its parameters are asked for"
            )
        return self


class ForecastSettings(Config):
    """Forecasts of held-out Lorenz-63, ``starts`` of each of ``datasets`` models, beside three others.

    Data sets are numbered from ``first`` on, as those of `TruthSettings`.
    """

    rows: Annotated[Count, Field(ge=1000)]
    observation_std: Level
    datasets: Count
    first: Annotated[int, Field(ge=0)] = 0
    updates: Count
    warm_updates: Count
    models: Annotated[Count, Field(ge=2)]
    starts: Count
    paths: Annotated[Count, Field(ge=20)]
    context: Annotated[Count, Field(ge=2)]
    reservoirs: Annotated[Count, Field(ge=2)]
    units: Annotated[Count, Field(ge=10)]


class CoverageSettings(Config):
    """What is simulated and how error bars are made of it."""

    scale: str
    truths: Annotated[tuple[TruthSettings, ...], Field(min_length=1)]
    forecasts: ForecastSettings | None = None


def load_settings(scale: str | os.PathLike[str]) -> CoverageSettings:
    """Return the settings of a scale, or those in a TOML file of your own."""
    return CoverageSettings.from_toml(settings_file(scale))


def settings_file(scale: str | os.PathLike[str]) -> Path:
    """Return the file of a scale: one that ships with palrnn, or a TOML file of your own."""
    if str(scale) in SCALES:
        return Path(__file__).parent / "presets" / f"{scale}.toml"
    if Path(scale).suffix != ".toml":
        raise ValueError(f"scale must be one of {', '.join(SCALES)} or a .toml file, got {str(scale)!r}")
    return Path(scale)
