"""The settings of a filter pass, checked once and handed on whole."""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import field_validator

from palrnn.engine.checks import as_instance
from palrnn.engine.config import Config, Count, Level, Seed
from palrnn.inference.resampling import SCHEMES


class FilterConfig(Config):
    """How `rbpf` filters. Defaults are the paper's (Table rbpf_hparams), but for the number of particles.

    ``target="paper"`` draws each gate from its integrated probit and leaves the belief over the state as it
    was. ``target="exact"`` draws the noisy gate inputs jointly and conditions the belief on them, which makes
    the filter exact for the model. ``resampling`` names a scheme of `resample`; it happens when the effective
    sample size falls below ``ess_threshold * particles`` (0: never, above 1: always).
    """

    particles: Count = 256
    target: Literal["paper", "exact"] = "paper"
    resampling: str = "multinomial"
    ess_threshold: Level = 0.5
    seed: Seed = 0

    @field_validator("resampling")
    @classmethod
    def _registered(cls, name: str) -> str:
        if name not in SCHEMES:
            raise ValueError(f"should be one of {', '.join(SCHEMES)}")
        return name


class FilterSettings(TypedDict, total=False):
    """The settings of `FilterConfig` as keyword arguments."""

    particles: int
    target: str
    resampling: str
    ess_threshold: float
    seed: int


def filter_config(config: FilterConfig | None, settings: FilterSettings) -> FilterConfig:
    """Return ``config``, or the defaults, with ``settings`` in place of its own."""
    if config is None:
        return FilterConfig(**settings)  # type: ignore[arg-type]  # the target is checked here
    as_instance(config, "config", FilterConfig)
    return config.changed(**settings) if settings else config
