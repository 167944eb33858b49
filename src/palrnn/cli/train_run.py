"""The run behind `palrnn train`: settings from file and command line, the series, the folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from palrnn.data import (
    Standardizer,
    add_observation_noise,
    column_names,
    delay_embed,
    load_trials,
    lorenz63,
    lorenz96,
    rossler,
    save_series,
    suggest_tau,
    train_test_split,
)
from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed, read_toml
from palrnn.engine.progress import Progress
from palrnn.engine.seeds import kernel_seed
from palrnn.forcing import Evaluation, TrainConfig, TrainResult, free_running_evaluation, train
from palrnn.invariants import Floor, dstsp_floor

_SYSTEMS: dict[str, tuple[Any, float]] = {
    "lorenz63": (lorenz63, 0.01),
    "rossler": (rossler, 0.05),
    "lorenz96": (lorenz96, 0.01),
}
_SIMULATED_ONLY = ("steps", "process_std", "observation_std", "data_seed")
_FILES_ONLY = ("columns", "trial")
# trajectories can stay near an unstable fixed point for a few thousand steps
_SETTLE = 10_000
_FLOOR_PAIRS = 10


class DataSettings(Config):
    """Where the series comes from: a file, or a simulated system with its noises."""

    series: str
    dt: Positive | None = None
    test_fraction: Annotated[float, Field(gt=0, le=0.9)] = 0.2
    steps: Annotated[Count, Field(ge=4)] = 100_000
    process_std: Level = 0.0
    observation_std: Level = 0.0
    data_seed: Seed = 0
    columns: tuple[str, ...] | None = None
    trial: str = "trial"
    lags: Count = 1
    delay: Count | None = None


class RunSettings(Config):
    """All settings of a run, as in its config.toml."""

    data: DataSettings
    training: TrainConfig = TrainConfig()


@dataclass(frozen=True, eq=False)
class TrainRun:
    """A run ready to be trained.

    ``x`` holds the standardised training trials, ``heldout`` what comes after them; ``truth`` is the longest
    training trial without observation noise, and ``reference`` the held-out part, both raw.
    """

    folder: Path
    settings: RunSettings
    standardizer: Standardizer
    x: list[Floats]
    heldout: Floats
    truth: Floats
    reference: Floats

    @property
    def steps(self) -> int:
        """The number of training steps, over all trials."""
        return sum(map(len, self.x))

    @property
    def data(self) -> DataSettings:
        """Where the series comes from."""
        return self.settings.data

    def train(self, progress: Progress | None) -> TrainResult:
        """Train, or go on training."""
        return train(
            self.x,
            self.settings.training,
            run=self.folder,
            heldout=self.heldout,
            standardizer=self.standardizer,
            dt=self.data.dt,
            progress=progress,
        )

    def evaluation(self, result: TrainResult) -> Evaluation:
        """Measure the trained model on the held-out part."""
        return free_running_evaluation(
            result.model, self.heldout, update=len(result.history), dt=self.data.dt or 1.0, **self._span
        )

    def floor(self) -> Floor | None:
        """Return the D_stsp between stretches of the training part, or None if it is too short for two."""
        length = min(self._span["steps"] - self._span["discard"], len(self.heldout))
        if len(self.truth) < 2 * length:
            return None
        return dstsp_floor(self.truth, length=length, pairs=_FLOOR_PAIRS)

    @cached_property
    def _span(self) -> dict[str, int]:
        training = self.settings.training
        return {"steps": training.evaluate_steps, "discard": training.evaluate_discard}


def prepared_run(folder: Path, file: Path | None, given: dict[str, Any]) -> TrainRun:
    """Return the run in ``folder`` with settings from its config.toml or ``file`` and those ``given``."""
    kept = folder / "config.toml"
    before = RunSettings.from_toml(kept) if kept.exists() else None
    table = read_toml(file) if file is not None else before.model_dump(exclude_none=True) if before else {}
    settings = _merged(table, given, file)
    # what depends on the data is chosen now, so that config.toml tells it and gives the same run again
    asked = {**table.get("training", {}), **given}
    free = {"tau", "sequence_length"} - asked.keys()
    run = _with_series(folder, settings, free - {"tau"} if "forcing" in asked else free)
    if before is not None:
        _refuse_changes(kept, before, run.settings)
    folder.mkdir(parents=True, exist_ok=True)
    if before is None:
        run.settings.to_toml(kept)
    save_series(folder / "reference.npy", run.reference)
    return run


def _merged(table: dict[str, Any], given: dict[str, Any], file: Path | None) -> RunSettings:
    for name in ("data", "training"):
        if not isinstance(table.get(name, {}), dict):
            raise ValueError(f"{file}: {name} must be a table, got {table[name]!r}")
    data, training = dict(table.get("data", {})), dict(table.get("training", {}))
    for name, value in given.items():
        (data if name in DataSettings.model_fields else training)[name] = value
    if "series" not in data:
        raise ValueError("SERIES must be given: a file, or lorenz63, rossler, lorenz96")
    if not isinstance(data["series"], str):
        raise ValueError(f"{file}: series must be a file or the name of a system, got {data['series']!r}")
    system = _SYSTEMS.get(data["series"])
    if system is not None:
        data.setdefault("dt", system[1])
        if used := [name for name in _FILES_ONLY if name in given]:
            raise ValueError(f"--{used[0]} is for files, {data['series']} is a simulated system")
    elif used := [name for name in _SIMULATED_ONLY if name in given]:
        option = "--" + used[0].replace("_", "-")
        raise ValueError(f"{option} is for simulated systems, {data['series']} is a file")
    else:
        data["series"] = str(Path(data["series"]).resolve())
    others = {name: value for name, value in table.items() if name not in ("data", "training")}
    try:
        return RunSettings(**(others | {"data": data, "training": training}))
    except ValueError as error:
        raise ValueError(f"{file}: {error}" if file is not None else str(error)) from None


def _refuse_changes(file: Path, before: RunSettings, asked: RunSettings) -> None:
    for part in ("data", "training"):
        old, new = getattr(before, part).model_dump(), getattr(asked, part).model_dump()
        for name in new:
            if old[name] != new[name] and name != "checkpoint_every":
                raise ValueError(
                    f"{file}: was started with {name} = {old[name]!r}, asked for {new[name]!r}; "
                    "choose another output folder"
                )


def _with_series(folder: Path, settings: RunSettings, free: set[str]) -> TrainRun:
    """Return the run with its series; of a file, the ``free`` settings of training are chosen to suit it."""
    data, training = settings.data, settings.training
    if data.series in _SYSTEMS:
        trials = [
            _SYSTEMS[data.series][0](
                data.steps, dt=data.dt, process_std=data.process_std, discard=_SETTLE, seed=data.data_seed
            )
        ]
    else:
        names = None if data.columns is None else list(data.columns)
        trials = load_trials(data.series, trial=data.trial, columns=names)
        if Path(data.series).suffix.lower() in (".csv", ".parquet"):
            names = column_names(data.series, trial=data.trial, columns=names)
            data = data.changed(columns=tuple(names))
        if "tau" in free:
            training = training.changed(tau=suggest_tau(trials))
    if data.lags > 1:
        data = data.changed(delay=data.delay or suggest_tau(trials))
        trials = [delay_embed(trial, data.lags, data.delay or 1) for trial in trials]
    # of several trials the last is held out, of one its last part
    clean, test = (trials[:-1], trials[-1]) if len(trials) > 1 else _split(trials[0], data.test_fraction)
    if "sequence_length" in free and data.series not in _SYSTEMS:
        shortest = max(2, min(map(len, clean)))
        training = training.changed(sequence_length=min(training.sequence_length, shortest))
    seen = clean
    if data.observation_std > 0:
        noise_seed = kernel_seed(data.data_seed, "observation noise")
        scale = clean[0].std(axis=0)
        seen = [add_observation_noise(clean[0], data.observation_std, scale=scale, seed=noise_seed)]
    standardizer = Standardizer.fit(np.concatenate(seen))
    return TrainRun(
        folder,
        RunSettings(data=data, training=training),
        standardizer,
        [standardizer.transform(trial) for trial in seen],
        standardizer.transform(test),
        max(clean, key=len),
        test,
    )


def _split(series: Floats, test_fraction: float) -> tuple[list[Floats], Floats]:
    training, test = train_test_split(series, test_fraction)
    return [training], test
