"""The scales of the paper's studies: `smoke` (seconds), `quick` (minutes) and `paper` (the paper's settings).

A preset is a TOML file in ``presets/``, checked when it is read. What it states, and nothing else, enters the
hashes of the tasks: a new option with a default somewhere in palrnn does not make finished work stale.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole
from palrnn.engine.files import write_bytes
from palrnn.forcing.config import TrainConfig
from palrnn.tuning.config import SAEMConfig

SCALES = ("smoke", "quick", "paper")

Levels = Annotated[tuple[Level, ...], Field(min_length=1)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1)]


class DataSettings(Config):
    """The Lorenz-63 series that models are trained on: one realisation for each pair of noise levels."""

    train_steps: Count
    test_steps: Count
    dt: Positive
    discard: Whole
    seed: Seed


class InvariantSettings(Config):
    """How D_stsp and the largest Lyapunov exponent are measured, on free-running hard-gated rollouts."""

    steps: Count
    discard: Whole
    bins: Count
    smoothing: Positive
    lyapunov_reference: float
    floor_pairs: Count

    @model_validator(mode="after")
    def _something_left(self) -> Self:
        if self.discard >= self.steps:
            raise ValueError(f"discard must be less than steps = {self.steps}, is {self.discard}")
        return self


class ToySettings(Config):
    """The switching AR(1) of panel (a)."""

    a0: float
    a1: float
    sigma: Positive
    steps: Annotated[Count, Field(ge=2)]
    seeds: Count
    gate_std_from: Positive
    gate_std_to: Positive
    gate_stds: Annotated[Count, Field(ge=2)]


class GapVariant(Config):
    """One way of estimating the observed information; ``taus`` and ``seeds`` restrict it to some models."""

    name: str
    particles: Count
    paths: Annotated[Count, Field(ge=2)]
    states_per_path: Count
    target: Literal["paper", "exact"]
    taus: Counts | None = None
    seeds: tuple[Seed, ...] | None = None


class GapSettings(Config):
    """The curvature gap of panel (b). The first variant is the paper's and is what the figure shows.

    ``process_noise`` says what a checkpoint's training level means for one step of the PAL-RNN: ``nominal``
    takes the level as it is, ``per_step`` multiplies it by the root of dt, as the simulated data did.
    """

    process_std: Levels
    observation_std: Levels
    tau: Counts
    seeds: Count
    length: Annotated[Count, Field(ge=2)]
    gate_std: Positive
    process_noise: Literal["nominal", "per_step"]
    ess_threshold: Annotated[float, Field(ge=0, le=1)]
    ridge: Positive
    overlap: Count
    variants: Annotated[tuple[GapVariant, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _noisy(self) -> Self:
        if min(self.observation_std) <= 0 or min(self.process_std) <= 0:
            raise ValueError("the curvature gap needs process and observation noise greater than 0")
        return self


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


class EvidenceSettings(Config):
    """Fine-tuning by windowed evidence, panel (c)."""

    process_std: Levels
    observation_std: Levels
    tau: Count
    seed: Seed
    lengths: Counts
    configurations: tuple[Literal["baseline", "calib", "full"], ...]
    start_process_std: Positive
    start_observation_std: Positive
    gate_std: Positive
    heldout_windows: Count
    data: TuningDataSettings
    saem: SAEMConfig
    saem_seed: Seed

    @model_validator(mode="after")
    def _room_for_the_windows(self) -> Self:
        longest = max(self.lengths)
        room = self.data.sequences * ((self.data.heldout_steps - 1) // longest)
        if room < self.heldout_windows:
            raise ValueError(
                f"data.heldout_steps must hold {self.heldout_windows} windows of {longest}, holds {room}"
            )
        return self


class DiagnosticsSettings(Config):
    """The filter's traces on one held-out window, for one checkpoint before and after tuning."""

    process_std: Level
    observation_std: Level
    length: Count
    window: Whole
    particles: Counts


class AttractorSettings(Config):
    """The rollouts that are drawn, for one checkpoint before and after full tuning."""

    process_std: Level
    observation_std: Level
    length: Count
    steps: Count


class Preset(Config):
    """All settings of all studies at one scale."""

    scale: str
    resamples: Count
    data: DataSettings
    training: TrainConfig
    invariants: InvariantSettings
    toy: ToySettings
    gap: GapSettings
    evidence: EvidenceSettings
    diagnostics: DiagnosticsSettings
    attractor: AttractorSettings

    @model_validator(mode="after")
    def _shown_models_are_tuned(self) -> Self:
        for name, shown in (("diagnostics", self.diagnostics), ("attractor", self.attractor)):
            if shown.length not in self.evidence.lengths:
                raise ValueError(f"{name}.length must be one of evidence.lengths, is {shown.length}")
            if shown.process_std not in self.evidence.process_std:
                raise ValueError(
                    f"{name}.process_std must be one of evidence.process_std, is {shown.process_std}"
                )
            if shown.observation_std not in self.evidence.observation_std:
                message = f"{name}.observation_std must be one of evidence.observation_std"
                raise ValueError(f"{message}, is {shown.observation_std}")
        return self


def load_preset(scale: str | os.PathLike[str]) -> Preset:
    """Return the preset of a scale, or the one in a TOML file of your own."""
    return Preset.from_toml(preset_file(scale))


def preset_file(scale: str | os.PathLike[str]) -> Path:
    """Return the file of a scale: one that ships with palrnn, or a TOML file of your own."""
    if str(scale) in SCALES:
        return Path(__file__).parent / "presets" / f"{scale}.toml"
    if Path(scale).suffix != ".toml":
        raise ValueError(f"scale must be one of {', '.join(SCALES)} or a .toml file, got {str(scale)!r}")
    return Path(scale)


def preset_in(folder: str | os.PathLike[str], scale: str | os.PathLike[str] | None = None) -> Preset:
    """Return the preset of a results folder. The first call, with ``scale``, leaves a copy of it there.

    A folder holds the results of one preset: another one is refused.
    """
    kept = Path(folder) / "settings.toml"
    if not kept.is_file():
        if scale is None:
            raise ValueError(f"{folder}: no results here yet; say which scale to start")
        preset = load_preset(scale)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(kept, preset_file(scale).read_bytes())
        return preset
    preset = Preset.from_toml(kept)
    if scale is not None and stated(load_preset(scale)) != stated(preset):
        raise ValueError(f"{folder}: holds results of other settings ({preset.scale}); choose another folder")
    return preset


def stated(settings: Config) -> dict[str, Any]:
    """Return what the preset states of some settings, as plain values for a task."""
    values: dict[str, Any] = settings.model_dump(mode="json", exclude_unset=True)
    return values
