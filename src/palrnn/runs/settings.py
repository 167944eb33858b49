"""How much work each analysis of a reconstruction takes; the defaults suit a report of a few minutes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole

Target = Literal["paper", "exact"]


class Noise(Config):
    """The noise of the probabilistic counterpart (PAL-RNN) of a trained AL-RNN, in standardised units."""

    process_std: Positive = 0.1
    observation_std: Positive = 0.1
    gate_std: Level = 0.7


class JudgeSettings(Config):
    """Invariants: length of the free run, transient left out, pairs behind each floor, steps of forecast."""

    steps: Annotated[Count, Field(ge=100)] = 9000
    discard: Whole = 1000
    pairs: Count = 20
    ahead: Count = 20
    seed: Seed = 0


class FilterSettings(Config):
    """The particle filter on the start of the held-out part, and the gate paths drawn after it."""

    steps: Annotated[Count, Field(ge=2)] = 200
    particles: Count = 256
    paths: Count = 64
    target: Target = "paper"
    resampling: str = "multinomial"
    ess_threshold: Level = 0.5
    seed: Seed = 0


class GeometrySettings(Config):
    """The two information matrices: length of the segment, forcing interval (None: as trained), samples."""

    steps: Annotated[Count, Field(ge=2)] = 200
    tau: Count | None = None
    particles: Count = 64
    paths: Annotated[Count, Field(ge=2)] = 64
    states_per_path: Annotated[Count, Field(ge=2)] = 32
    target: Target = "paper"
    ridge: Positive = 1e-6
    seed: Seed = 0


class TuneSettings(Config):
    """Particle-SAEM, small: the first half of the held-out part tunes, the second judges."""

    configurations: tuple[Literal["calib", "full", "anchored"], ...] = ("calib", "full")
    length: Count = 32
    iterations: Whole = 8
    windows: Count = 40
    particles: Count = 128
    paths: Count = 8
    heldout_windows: Count = 60
    target: Target = "paper"
    seed: Seed = 0


class ReportSettings(Config):
    """All analyses of a report."""

    judge: JudgeSettings = JudgeSettings()
    filter: FilterSettings = FilterSettings()
    geometry: GeometrySettings = GeometrySettings()
    tune: TuneSettings = TuneSettings()

    def seeded(self, seed: int) -> ReportSettings:
        """Return the same settings with one seed for all analyses."""
        parts = {name: getattr(self, name).changed(seed=seed) for name in type(self).model_fields}
        return ReportSettings(**parts)
