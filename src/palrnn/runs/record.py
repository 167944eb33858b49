"""What a run remembers of how it was made: the tables of its config.toml.

[data]       where the series came from and how it was prepared (`DataSettings`)
[training]   how the model was trained (`TrainConfig`)
[tuning]     how it was tuned (`SAEMConfig`), from which model and on what
[comparison] the configurations of tuning that were set side by side
[run]        how much there was to train on

Beside them, in search.json, what a search tried before it came to the model (`SearchTable`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field

from palrnn.data import Dataset, DataSettings
from palrnn.data.systems import System, known_systems, make_system
from palrnn.engine.config import Config, Count, Level, Positive, Seed, read_toml
from palrnn.engine.text import past_names
from palrnn.forcing import TrainConfig
from palrnn.model import Forcing
from palrnn.tuning import SAEMConfig

#: Settings of training that a run always writes and people rarely do.
_WRITTEN = frozenset({"init_std", "precision", "keep", "checkpoint_every", "evaluate_discard"})
#: Settings that may change from one call to the next; the model to tune is known by more than its place.
_FREE = frozenset({"checkpoint_every", "name", "checkpoint"})


class TuningTask(Config):
    """What is tuned, on what, and how: ``checkpoint`` is the model to start from, with its noise or other.

    Without a ``series``, the first half of the run's held-out part tunes and the second judges: tuning never
    touches what the model was trained on. Of a series that is given, the last ``test_fraction`` judges, of
    several trials the last one; "lorenz63" are the paper's data, simulated from ``data_seed``.
    ``standardize="pooled"`` takes the scale of the series instead of the model's, as the paper does.
    """

    checkpoint: str | None = None
    series: str | None = None
    test_fraction: Annotated[float, Field(gt=0, le=0.9)] = 0.2
    standardize: Literal["checkpoint", "pooled"] = "checkpoint"
    data_seed: Seed = 0
    process_std: Positive | None = None
    observation_std: Positive | None = None
    gate_std: Level | None = None
    seed: Seed = 0
    saem: SAEMConfig = SAEMConfig()


class TuningSettings(Config):
    """The configurations of tuning to set beside the model as it is, and how each is tuned.

    ``betas`` are weights of the forcing loss, each for one "anchored" configuration more.
    """

    configurations: tuple[Literal["baseline", "calib", "full"], ...] = ("baseline", "calib", "full")
    betas: tuple[Positive, ...] = ()
    task: TuningTask = TuningTask()


class RunNotes(Config):
    """How much there was to train on, which columns were left out, and why, and what polishing did."""

    training_steps: Count | None = None
    trials: Count = 1
    left_out: dict[str, str] = Field(default_factory=dict)
    polish: str | None = None


class RunRecord(Config):
    """All that config.toml says of a run; a stage that it has not gone through is None."""

    data: DataSettings | None = None
    training: TrainConfig | None = None
    tuning: TuningTask | None = None
    comparison: TuningSettings | None = None
    run: RunNotes = RunNotes()

    @classmethod
    def of(cls, dataset: Dataset, training: TrainConfig | None = None) -> RunRecord:
        """Return the record of a model that is trained on ``dataset``."""
        notes = RunNotes(
            training_steps=dataset.training_steps,
            trials=len(dataset.trials),
            left_out=dict(dataset.left_out),
        )
        return cls(data=DataSettings(**dataset.settings), training=training, run=notes)

    @classmethod
    def of_checkpoint(cls, training: Mapping[str, Any]) -> RunRecord:
        """Return what the notes in a checkpoint tell, for one without a config.toml beside it."""
        config, data = training.get("config"), training.get("data")
        found: dict[str, Any] = {"training": TrainConfig.stored(config)} if isinstance(config, dict) else {}
        if isinstance(data, dict) and (series := data.get("series") or data.get("system")):
            known = {name: data[name] for name in DataSettings.model_fields if name in data}
            found["data"] = known | {"series": series}
        return cls(**found)

    @classmethod
    def read(cls, file: Path, *, series: str | None = None) -> RunRecord:
        """Return what ``file`` says, of ``series`` if that is given; files of 0.1 are understood."""
        tables = _of_today(read_toml(file))
        if series is not None and isinstance(tables.setdefault("data", {}), dict):
            tables["data"]["series"] = series
        try:
            return cls(**tables)
        except ValueError as error:
            message = str(error)
            raise ValueError(message if message.startswith(str(file)) else f"{file}: {message}") from None

    def text(self) -> str:
        """Return the record as TOML."""
        return tomli_w.dumps(self.for_toml())

    def refuse_changes(self, asked: RunRecord, file: Path) -> None:
        """Refuse settings other than these, with which the run in ``file`` was started."""
        for part in ("data", "training", "tuning", "comparison"):
            before, now = (getattr(record, part) for record in (self, asked))
            if before is not None and now is not None:
                _refuse_changes(before, now, file)

    @property
    def forcing(self) -> Forcing | None:
        """The constant forcing that the model was trained with in the end, or anchored by, if it is told."""
        if self.training is not None:
            return self.training.forcing.final
        return None if self.tuning is None else self.tuning.saem.forcing.final

    @property
    def process_std(self) -> float:
        """The process noise of the simulated system that the series came from."""
        return 0.0 if self.data is None else self.data.process_std or 0.0

    @property
    def lyapunov(self) -> float | None:
        """The largest true exponent, where it was given."""
        return None if self.data is None else self.data.lyapunov

    def of_training(self) -> dict[str, Any]:
        """Return the notes that a checkpoint holds on how its model was trained."""
        return {} if self.training is None else {"config": self.training.model_dump(mode="json")}

    def columns(self, count: int) -> tuple[str, ...]:
        """Return names for the ``count`` coordinates that the model observes, past values among them."""
        lags, delay = (1, 1) if self.data is None else self.data.past
        present = () if self.data is None else self.data.columns or ()
        if len(present) * lags != count:
            present = tuple(f"x{i + 1}" for i in range(count // lags))
        return present + past_names(present, lags, delay)

    def system(self, count: int) -> System | None:
        """Return the true system to compare ``count`` coordinates with; None if it is not known."""
        if self.data is None or self.data.past[0] > 1:
            return None
        name = self.data.system or self.data.series
        return (
            make_system(name, dim=count, **(self.data.parameters or {})) if name in known_systems() else None
        )


def _refuse_changes(before: Config, now: Config, file: Path) -> None:
    for name in type(now).model_fields:
        old, new = getattr(before, name), getattr(now, name)
        if isinstance(old, Config) and isinstance(new, Config):
            _refuse_changes(old, new, file)
        elif old != new and name not in _FREE:
            raise ValueError(
                f"{file}: was started with {name} = {old!r}, asked for {new!r}; choose another folder"
            )


def _of_today(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a config.toml of 0.1 as those of today; today's as they are."""
    tables = dict(tables)
    data = tables.get("data")
    if isinstance(data, dict) and not data.keys() <= DataSettings.model_fields.keys():
        # what `save` wrote: facts beside the settings
        notes = {name: data[name] for name in RunNotes.model_fields if name in data}
        tables["data"] = {name: value for name, value in data.items() if name not in notes}
        tables.setdefault("run", notes)
    training = tables.get("training")
    if isinstance(training, dict) and training.keys() >= _WRITTEN:
        # what a run wrote when the defaults were no limit, which TOML left out, and RAdam, not named then
        tables["training"] = {"gradient_clip": "none", "optimizer": "radam"} | training
    if {"source", "saem"} & tables.keys():
        source, saem = tables.pop("source", {}), tables.pop("saem", {})
        tables["tuning"] = dict(source) | {"saem": saem} if isinstance(source, dict) else source
    return tables


_COLUMNS = ("rank", "candidate", "updates", "grade")


@dataclass(frozen=True)
class SearchTable:
    """The candidates of a search, the best first, and why the first of them won.

    A row is a dictionary of plain values: ``rank``, ``candidate``, ``rung`` and ``updates`` (how far it was
    trained), its settings, and what it came to in runs from the validation rows (``grade``, ``alive``,
    ``dstsp``, ``spectrum_distance``, ``loss``, ``verdict``).
    """

    rows: list[dict[str, Any]] = field(repr=False)
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"why": self.why, "rows": self.rows}

    @classmethod
    def from_dict(cls, values: Any) -> SearchTable:
        """Return the table of `to_dict`; refuse anything else."""
        if not isinstance(values, Mapping) or not isinstance(values.get("why"), str):
            raise ValueError("not the table of a search")
        rows = values.get("rows")
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and all(name in row for name in _COLUMNS) for row in rows
        ):
            raise ValueError("not the table of a search")
        return cls(rows, values["why"])
