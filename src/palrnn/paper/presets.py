"""The scales of the paper's studies: `smoke` (seconds), `quick` (minutes) and `paper` (the paper's settings).

A preset is a TOML file in ``presets/``, checked when it is read: what all studies share, and a section for
each study that has settings of its own. What it states, and nothing else, enters the hashes of the tasks: a
new option with a default somewhere in palrnn does not make finished work stale. A preset without the section
of a study does not have that study, so results from before a study was added stay valid.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, create_model, model_validator

from palrnn.engine.config import Config, Count, Level, Positive, Whole
from palrnn.engine.files import write_bytes
from palrnn.forcing.config import TrainConfig
from palrnn.paper.series import DataSettings
from palrnn.paper.study import all_studies, studies_in

SCALES = ("smoke", "quick", "paper")

Levels = Annotated[tuple[Level, ...], Field(min_length=1)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1)]


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


class Preset(Config):
    """What all studies share at one scale; `load_preset` adds a section for each study (``preset.gap``)."""

    scale: str
    resamples: Count
    data: DataSettings
    training: TrainConfig
    invariants: InvariantSettings

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @model_validator(mode="after")
    def _sections_fit_together(self) -> Self:
        for study in studies_in(self):
            study.check()
        return self

    @property
    def is_the_papers(self) -> bool:
        """Whether these are the paper's settings, as far as there are studies."""
        return _extends(load_preset("paper"), self)

    @property
    def of_paper(self) -> Preset:
        """The same without our own studies, and so without the models that only they need."""
        ours = [name for name, study in all_studies().items() if study.ours and study.Settings]
        return self.model_copy(update=dict.fromkeys(ours))


def load_preset(scale: str | os.PathLike[str]) -> Preset:
    """Return the preset of a scale, or the one in a TOML file of your own."""
    sections: dict[str, Any] = {
        name: (study.Settings | None, None) for name, study in all_studies().items() if study.Settings
    }
    return create_model("Preset", __base__=Preset, **sections).from_toml(preset_file(scale))


def preset_file(scale: str | os.PathLike[str]) -> Path:
    """Return the file of a scale: one that ships with palrnn, or a TOML file of your own."""
    if str(scale) in SCALES:
        return Path(__file__).parent / "presets" / f"{scale}.toml"
    if Path(scale).suffix != ".toml":
        raise ValueError(f"scale must be one of {', '.join(SCALES)} or a .toml file, got {str(scale)!r}")
    return Path(scale)


def preset_in(folder: str | os.PathLike[str], scale: str | os.PathLike[str] | None = None) -> Preset:
    """Return the preset of a results folder, or with ``scale`` the one that it is to have; write nothing.

    A folder holds the results of one preset: another is refused, unless all that it does is to add studies.
    """
    kept = _kept_file(folder)
    if not kept.is_file():
        if scale is None:
            raise ValueError(f"{folder}: no results of `palrnn reproduce` here; it starts some with --scale")
        return load_preset(scale)
    preset = load_preset(kept)
    if scale is None:
        return preset
    wanted = load_preset(scale)
    if not _extends(wanted, preset):
        raise ValueError(f"{folder}: holds results of other settings ({preset.scale}); choose another folder")
    return wanted


def keep_preset(folder: str | os.PathLike[str], scale: str | os.PathLike[str] | None = None) -> Preset:
    """Return `preset_in`, and leave a copy of the preset in the folder, which must be there."""
    preset, kept = preset_in(folder, scale), _kept_file(folder)
    if scale is not None and not (kept.is_file() and _extends(load_preset(kept), preset)):
        write_bytes(kept, preset_file(scale).read_bytes())
    return preset


def plain_settings(settings: Config) -> dict[str, Any]:
    """Return what the preset states of some settings, as plain values for a task."""
    values: dict[str, Any] = settings.model_dump(mode="json", exclude_unset=True)
    return values


def _kept_file(folder: str | os.PathLike[str]) -> Path:
    return Path(folder) / "settings.toml"


def _extends(wanted: Preset, preset: Preset) -> bool:
    new = plain_settings(wanted)
    return all(name in new and new[name] == value for name, value in plain_settings(preset).items())
