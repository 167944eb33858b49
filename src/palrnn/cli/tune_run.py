"""The run behind `palrnn tune`: settings from file and command line, the model with its noise, the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from palrnn.data import Standardizer, load_trials, lorenz63, train_test_split
from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Level, Positive, Seed, read_toml
from palrnn.engine.seeds import kernel_seed
from palrnn.model import PALRNN, Checkpoint, load_checkpoint
from palrnn.tuning import SAEMConfig, lorenz63_sequences

Deviation = Positive | None
#: The largest exponent of Lorenz-63, with which the paper compares.
LORENZ63_EXPONENT = 0.9056


class SourceSettings(Config):
    """Which model, which data, and the noise to start from (None: the checkpoint's own, or the paper's)."""

    checkpoint: str
    series: str
    process_std: Deviation = None
    observation_std: Deviation = None
    gate_std: Level | None = None
    standardize: Literal["checkpoint", "pooled"] = "checkpoint"
    test_fraction: Annotated[float, Field(gt=0, le=0.9)] = 0.2
    data_seed: Seed = 0
    seed: Seed = 0


class TuneSettings(Config):
    """All settings of a run, as in its config.toml."""

    source: SourceSettings
    saem: SAEMConfig = SAEMConfig()


@dataclass(frozen=True, eq=False)
class TuneRun:
    """A run ready to start: the model with its noise, standardised data, held-out data and reference."""

    settings: TuneSettings
    model: PALRNN
    standardizer: Standardizer
    train: list[Floats]
    heldout: list[Floats]
    reference: Floats | None


def prepared_run(config: Path | None, given: dict[str, Any]) -> TuneRun:
    """Return the run that the settings in ``config`` (TOML), overridden by ``given``, ask for."""
    told = {} if config is None else read_toml(config)
    unknown = told.keys() - {"source", "saem"}
    if unknown:
        raise ValueError(f"{config}: {min(unknown)} is not a known setting")
    source, tuning = dict(told.get("source", {})), dict(told.get("saem", {}))
    for name, value in given.items():
        (source if name in SourceSettings.model_fields else tuning)[name] = value
    for name in ("checkpoint", "series"):
        if name in source and source[name] != "lorenz63":
            source[name] = str(Path(source[name]).resolve())
    where = SourceSettings(**source)
    checkpoint = load_checkpoint(where.checkpoint)
    if where.series == "lorenz63":
        tuning = {"dt": 0.01, "reference_lyapunov": LORENZ63_EXPONENT} | tuning
    else:  # without a time step, a step is the unit of time
        tuning = {"dt": checkpoint.dt or 1.0} | tuning
    tuning = _trained_tau(checkpoint) | tuning
    settings = TuneSettings(source=where, saem=SAEMConfig(**tuning))
    return _assembled(settings, checkpoint)


def _trained_tau(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the forcing interval of the training, or of the tuning, that made the model, if it is known."""
    if checkpoint.forcing is not None:
        return {"tau": checkpoint.forcing.interval}
    notes = checkpoint.training.get("saem")
    config = notes.get("config") if isinstance(notes, dict) else None
    return {"tau": config["tau"]} if isinstance(config, dict) and "tau" in config else {}


def remember(settings: TuneSettings, folder: Path) -> None:
    """Write ``folder/config.toml``; refuse a folder whose run has other settings."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    if not file.exists():
        settings.to_toml(file)
        return
    before = TuneSettings.from_toml(file)
    for part in ("source", "saem"):
        old, new = (getattr(table, part).model_dump() for table in (before, settings))
        for name, value in new.items():
            if old[name] != value:
                raise ValueError(
                    f"{file}: has {name} = {old[name]}, asked for {value}; choose another folder"
                )


def _assembled(settings: TuneSettings, checkpoint: Checkpoint) -> TuneRun:
    where, how = settings.source, settings.saem
    raw = _simulated(settings) if where.series == "lorenz63" else _read(where)
    train, heldout, reference = raw
    standardizer = checkpoint.standardizer if where.standardize == "checkpoint" else None
    if standardizer is None:
        pooled = np.concatenate(train)
        standardizer = Standardizer.fit(pooled[~np.isnan(pooled).any(axis=1)])
    if standardizer.dim != train[0].shape[1]:
        raise ValueError(f"{where.series} has {train[0].shape[1]} columns, the model has {standardizer.dim}")
    train, heldout = ([standardizer.transform(x) for x in part] for part in (train, heldout))
    if any(len(x) < how.length + 1 for x in (*train, *heldout)):
        raise ValueError(f"{where.series} is too short for windows of {how.length} steps")
    truth = None if reference is None else standardizer.transform(reference)
    return TuneRun(settings, _with_noise(checkpoint, where), standardizer, train, heldout, truth)


def _with_noise(checkpoint: Checkpoint, where: SourceSettings) -> PALRNN:
    """Return the checkpoint's model with the noise asked for; the paper's where neither says anything."""
    model = checkpoint.model
    if not isinstance(model, PALRNN):
        model = PALRNN(model, 0.1, 0.1, 0.7)
    return model.with_noise(
        process=where.process_std, observation=where.observation_std, gate_std=where.gate_std
    )


def _simulated(settings: TuneSettings) -> tuple[list[Floats], list[Floats], Floats]:
    """Return the paper's data; the held-out sequences are long enough for all held-out windows."""
    seed, how = settings.source.data_seed, settings.saem
    train = lorenz63_sequences(seed=kernel_seed(seed, "tuning"))
    steps = 1000 + max(4000, -(-how.heldout_windows // 4) * how.length + 1)
    heldout = lorenz63_sequences(steps=steps, seed=kernel_seed(seed, "held out"))
    length = max(2, how.rollout_steps - how.rollout_discard)
    return list(train), list(heldout), lorenz63(length, seed=kernel_seed(seed, "reference"))


def _read(where: SourceSettings) -> tuple[list[Floats], list[Floats], Floats | None]:
    """Return the file's first trials, and the last held out, which is also the reference if complete.

    A single trial is split in two.
    """
    trials = load_trials(where.series, allow_nan=True)
    if len(trials) == 1:
        trials = list(train_test_split(trials[0], where.test_fraction))
    *train, heldout = trials
    return train, [heldout], None if np.isnan(heldout).any() else heldout
