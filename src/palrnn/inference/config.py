"""The settings of a pass of the filter, `FilterConfig`, and of paths drawn after it, `SampleConfig`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from pydantic import AfterValidator

from palrnn.engine.checks import as_instance
from palrnn.engine.config import Config, Count, Level, Seed
from palrnn.inference.resampling import SCHEMES


def _registered(name: str) -> str:
    if name not in SCHEMES:
        raise ValueError(f"should be one of {', '.join(SCHEMES)}")
    return name


#: The name of a registered scheme of resampling.
SchemeName = Annotated[str, AfterValidator(_registered)]


class FilterConfig(Config):
    """How `rbpf` filters. Defaults are the paper's (Table rbpf_hparams), but for the number of particles.

    ``target="paper"`` draws each gate from its integrated probit and leaves the belief over the state as it
    was. ``target="exact"`` draws the noisy gate inputs jointly and conditions the belief on them, which makes
    the filter exact for the model. ``resampling`` names a scheme of `resample`; it happens when the effective
    sample size falls below ``ess_threshold * particles`` (0: never, above 1: always).
    """

    particles: Count = 256
    target: Literal["paper", "exact"] = "paper"
    resampling: SchemeName = "multinomial"
    ess_threshold: Level = 0.5
    seed: Seed = 0


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


class SampleConfig(Config):
    """How `smooth` draws: ``paths`` gate paths, and ``states_per_path`` trajectories of states given each.

    ``method="ancestors"``, the paper's, traces ancestors of final particles; ``"gibbs"`` goes on from path to
    path by ``sweeps`` passes of a conditional filter; None is gibbs where the filter's target is exact.
    """

    paths: Count = 8
    states_per_path: Count = 1
    method: Literal["ancestors", "gibbs"] | None = None
    sweeps: Count = 2
    seed: Seed = 0


class SampleSettings(TypedDict, total=False):
    """The settings of `SampleConfig` as keyword arguments."""

    paths: int
    states_per_path: int
    method: str | None
    sweeps: int
    seed: int


def sample_config(config: SampleConfig | None, settings: SampleSettings) -> SampleConfig:
    """Return ``config``, or the defaults, with ``settings`` in place of its own."""
    if config is None:
        return SampleConfig(**settings)  # type: ignore[arg-type]  # the method is checked here
    as_instance(config, "config", SampleConfig)
    return config.changed(**settings) if settings else config
