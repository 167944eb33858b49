"""What a run is, whoever asks: its model, its data, how both came about, and the folder it is kept in."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Dataset, DataSettings, Standardizer, delay_embed, load_trials
from palrnn.data.readers import named_array
from palrnn.data.source import recorded
from palrnn.data.systems import System, make_system
from palrnn.engine.checks import Floats, as_float, as_path, as_series
from palrnn.engine.display import Display, curves_svg
from palrnn.engine.folders import folder_kind
from palrnn.forcing.history import Evaluation
from palrnn.forcing.state import CHECKPOINT
from palrnn.model import (
    PALRNN,
    Checkpoint,
    Forcing,
    Noise,
    Surrogate,
    checkpoint_bytes,
    drift_of,
    family_name,
    load_checkpoint,
)
from palrnn.model.inputs import checked_inputs
from palrnn.runs.folder import INPUTS, REFERENCE, Findings, RunFolder
from palrnn.runs.reading import own_names
from palrnn.runs.record import RunRecord, SearchTable
from palrnn.tuning import SAEMResult

#: The noise of the PAL-RNN around a model that has none of its own, in standardised units: deviations of
#: process, observation and gates, where the paper's fine-tuning starts.
USUAL_NOISE = (0.1, 0.1, 0.7)
#: The paper's forcing, for a model of which it is not known how it was trained.
USUAL_FORCING = Forcing.identity(16)
# steps of the free run in the picture of a run
_DRAWN = 1500


@dataclass(frozen=True, eq=False)
class RunState(Display):
    """The parts of a `Reconstruction`."""

    model: Surrogate | PALRNN
    standardizer: Standardizer
    reference: Floats | None = None
    system: System | None = None
    forcing: Forcing = USUAL_FORCING
    dt: float | None = None
    record: RunRecord = field(default_factory=RunRecord, repr=False)
    losses: list[tuple[int, float]] = field(default_factory=list, repr=False)
    measured: tuple[Evaluation, ...] = field(default=(), repr=False)
    saem: SAEMResult | None = field(default=None, repr=False)
    search: SearchTable | None = field(default=None, repr=False)
    name: str = "reconstruction"
    source: str | None = None
    folder: RunFolder | None = None
    findings: Findings = field(default_factory=Findings, repr=False)
    inputs: Floats | None = field(default=None, repr=False)
    input_standardizer: Standardizer | None = None

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, reference: Any = None, inputs: ArrayLike | None = None
    ) -> Self:
        """Return the run in the folder ``path``, or the model in a checkpoint.

        ``reference`` is a series to judge by instead of the held-out part in the folder and the true system:
        raw ``(T, N)``, or a file, of which the columns, times and trial are those that the run was trained
        with, by name, where it has them. That of a driven model comes with raw ``inputs (T, K)``, or they are
        columns of the file, too. A checkpoint without a standardizer is of a model whose coordinates are the
        raw ones.
        """
        return cls(**run_parts(path, reference, inputs))

    def save(self, path: str | os.PathLike[str]) -> Self:
        """Write the run to the folder ``path``, from which `load` and `palrnn report` read it.

        Return it with that folder. In the folder in which the model was trained, training can still be
        continued afterwards; one in which another model was trained, or any was tuned, is refused. Another
        run that was saved there is replaced as a whole. Of the same model, what the folder tells and this run
        does not (held-out part, course of training, search) stays.
        """
        folder = RunFolder(path)
        folder.check()
        how: dict[str, Any] = {"forcing": self.forcing, "input_standardizer": self.input_standardizer}
        found = Checkpoint(self.model, self.standardizer, self.dt, self.record.of_training(), **how)
        folder.check_model(found)
        with folder.writing("save"):
            folder.remove_other(found)
            folder.write_model(found)
            folder.write_record(self.record)
            folder.write_reference(self.reference, self.inputs)
            folder.write_course(self.losses, self.measured)
            folder.write_search(self.search)
        return replace(self, folder=folder, findings=Findings(folder))

    @property
    def drift(self) -> Any:
        """The surrogate itself, without noise."""
        return drift_of(self.model)

    @property
    def probabilistic(self) -> PALRNN:
        """The PAL-RNN: the model itself, or with the usual noise where it has none."""
        return self.model if isinstance(self.model, PALRNN) else PALRNN(self.model, *USUAL_NOISE)

    @property
    def tau(self) -> int:
        """The number of steps between forcings."""
        return self.forcing.interval

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the observed coordinates, past values among them."""
        return self.record.columns(self.drift.observed_dim)

    @property
    def held(self) -> Floats:
        """The held-out part, raw; refused where there is none."""
        if self.reference is None:
            raise ValueError(f"{self.name}: has no held-out series; give one as reference")
        return self.reference

    @property
    def x(self) -> Floats:
        """The held-out part in the model's coordinates."""
        return self.standardizer.transform(self.held)

    @property
    def s(self) -> Floats | None:
        """The inputs of the held-out part in the model's coordinates; None of an autonomous model."""
        if not self.drift.input_dim:
            return None
        if self.inputs is None:
            raise ValueError(
                f"{self.name}: the model is driven and has no held-out inputs; give them as inputs"
            )
        return self.scaled_inputs(self.inputs)

    def scaled_inputs(self, inputs: Floats) -> Floats:
        """Return raw ``inputs (..., K)`` in the model's coordinates."""
        return inputs if self.input_standardizer is None else self.input_standardizer.transform(inputs)

    def with_name(self, name: str) -> Self:
        """Return the same under another name, which is kept with it."""
        data = self.record.data
        record = self.record if data is None else self.record.changed(data=data.changed(name=name))
        return replace(self, name=name, record=record)

    def with_system(self, name: str) -> Self:
        """Return the same, to be compared with the true system of this ``name``."""
        return replace(self, system=make_system(name, dim=self.drift.observed_dim))

    def with_dt(self, dt: float) -> Self:
        """Return the same with another time per step."""
        return replace(self, dt=as_float(dt, "dt", above=0.0))

    def with_noise(
        self,
        process: Noise | float | ArrayLike | None = None,
        observation: Noise | float | ArrayLike | None = None,
        gate_std: float | None = None,
        initial: Noise | float | ArrayLike | None = None,
    ) -> Self:
        """Return the same with other noise, in standardised units; what is None stays as it is."""
        given: dict[str, Any] = {"process": process, "observation": observation, "initial": initial}
        changes = {name: v for name, v in (given | {"gate_std": gate_std}).items() if v is not None}
        return replace(self, model=replace(self.probabilistic, **changes)) if changes else self

    def _rows_of_inputs(self, rows: slice) -> Floats | None:
        """Return the standardised inputs of some held-out rows; None of an autonomous model."""
        s = self.s
        return None if s is None else s[rows]

    def _inputs(self, inputs: ArrayLike | None, length: int) -> Floats | None:
        """Return raw ``inputs (length, K)`` in the model's coordinates; None of an autonomous model."""
        given = checked_inputs(self.drift, inputs, length)
        return None if given is None else self.scaled_inputs(given)

    def fingerprint(self) -> str:
        """Return a digest of all that an analysis can depend on, but for its settings."""
        data = checkpoint_bytes(
            self.model,
            standardizer=self.standardizer,
            dt=self.dt,
            forcing=self.forcing,
            input_standardizer=self.input_standardizer,
        )
        digest = hashlib.sha256(data)
        digest.update(repr((self.system, self.record.process_std, self.record.lyapunov)).encode())
        for part in (self.reference, self.inputs):
            if part is not None:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:20]

    def heading(self) -> str:
        """Return its name and what was learned."""
        return f"{type(self).__name__} {self.name!r}: {self.drift!r}"

    def facts(self) -> list[tuple[str, str]]:
        """Return what it was made from, and how."""
        names = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        held = "none" if self.reference is None else f"{len(self.reference)} steps"
        noise = repr(self.model) if isinstance(self.model, PALRNN) else ""
        found = {
            "columns": names,
            "held out": held,
            "forcing": repr(self.forcing),
            "time per step": "not known, rates are per step" if self.dt is None else f"{self.dt:g}",
            "true system": "" if self.system is None else self.system.name,
            "noise": noise,
            "folder": "" if self.folder is None else str(self.folder.path),
            "ask it": ".verdict(), .invariants(), .generate(), .geometry(), .report()",
        }
        return [(name, words) for name, words in found.items() if words]

    def to_dict(self) -> dict[str, Any]:
        """Return what it is, as plain values: sizes, columns, forcing, time per step."""
        drift = self.drift
        return {
            "name": self.name,
            "family": family_name(drift),
            "latent_dim": drift.latent_dim,
            "observed_dim": drift.observed_dim,
            "gated": drift.gated,
            "columns": list(self.columns),
            "forcing": self.forcing.to_dict(),
            "dt": self.dt,
            "system": None if self.system is None else self.system.name,
            "heldout_steps": None if self.reference is None else len(self.reference),
            "folder": None if self.folder is None else str(self.folder.path),
        }

    def records(self) -> list[dict[str, Any]]:
        """Return one row of its plain values, to stand beside those of other runs."""
        return [self.to_dict() | {"columns": ", ".join(self.columns), "forcing": repr(self.forcing)}]

    def picture(self) -> str:
        """Return the held-out part, and a free run of the model from its start on top."""
        if self.reference is None:
            return ""
        curves = [("held out", self.reference)]
        whole = self.x[np.isfinite(self.x).all(axis=1)]
        if len(whole) and not self.drift.input_dim:
            run = self.drift.rollout(whole[0], _DRAWN).states[:, : self.drift.observed_dim]
            curves.append(("model", self.standardizer.inverse(run)))
        return curves_svg(curves)

    def __repr__(self) -> str:
        held = "no held-out data" if self.reference is None else f"{len(self.reference)} held-out steps"
        what = f"{self.name!r}, {self.model!r}, {self.forcing!r}, dt={self.dt}, {held}"
        return f"{type(self).__name__}({what})"


def run_parts(
    path: str | os.PathLike[str], reference: Any = None, inputs: ArrayLike | None = None
) -> dict[str, Any]:
    """Return the parts of the `Reconstruction` in ``path``; those that are not known are left out."""
    file = as_path(path, "path")
    if file.is_file() and file.name == CHECKPOINT:
        file = file.parent
    if file.is_dir() and folder_kind(file) == "search":
        file = file / "best"
    folder = None if file.is_file() or file.suffix == ".safetensors" else RunFolder(file)
    checkpoint = load_checkpoint(file) if folder is None else folder.read_checkpoint()
    record = None if folder is None else folder.read_record()
    record = record or RunRecord.of_checkpoint(checkpoint.training)
    seen, count = checkpoint.drift.observed_dim, checkpoint.drift.input_dim
    parts: dict[str, Any] = {
        "model": checkpoint.model,
        "standardizer": checkpoint.standardizer or Standardizer(np.zeros(seen), np.ones(seen)),
        "input_standardizer": checkpoint.input_standardizer,
        "dt": checkpoint.dt,
        "record": record,
        "name": _name(file, record, folder),
        "source": str(file.resolve()),
        "folder": folder,
        "findings": Findings(folder),
    }
    forcing = checkpoint.forcing or record.forcing
    if forcing is not None:
        parts["forcing"] = forcing
    if folder is not None:
        parts["losses"], parts["measured"] = folder.read_course()
        parts["search"] = folder.read_search()
    if reference is not None:
        series, drive = _given(reference, inputs, record, seen, count)
        return parts | {"reference": series, "inputs": drive}
    if inputs is not None:
        raise ValueError("inputs must come with the reference that they are of, which is None")
    held, along = _kept(folder, record, seen, count)
    return parts | {"reference": held, "inputs": along, "system": record.system(seen)}


def _name(file: Path, record: RunRecord, folder: RunFolder | None) -> str:
    if record.data is not None and record.data.name:
        return record.data.name
    return file.stem if folder is None else file.resolve().name


def _given(
    reference: Any, inputs: ArrayLike | None, record: RunRecord, seen: int, count: int
) -> tuple[Floats, Floats | None]:
    """Return a series that was given, with its past where the model observes that, and its inputs."""
    data = record.data
    if isinstance(reference, (str, os.PathLike)):
        reference, along = _from_file(reference, data, driven=count > 0 and inputs is None)
        inputs = along if inputs is None else inputs
    series = as_series(reference, "reference", allow_nan=True)
    lost = 0
    drive = checked_inputs(count, inputs, len(series))
    lags, delay = (1, 1) if data is None else data.past
    if lags > 1 and series.shape[1] * lags == seen:
        series = delay_embed(series, lags, delay)
        lost = (lags - 1) * delay
    series = as_series(series, "reference", dim=seen, allow_nan=True)
    return series, None if drive is None else drive[lost:]


def _from_file(
    file: str | os.PathLike[str], data: DataSettings | None, *, driven: bool
) -> tuple[Floats, Floats | None]:
    """Return the series in ``file``, read as the run's own data were, and what drives it, if it is there."""
    how = own_names(file, data)
    if data is not None and "time" in how:  # uneven times were put on a grid
        how["dt"] = data.dt
    drives: list[Floats] | None = None
    if driven and data is not None and isinstance(data.inputs, tuple):
        source = recorded(file, DataSettings(series=os.fspath(file), inputs=data.inputs, **how))
        trials, drives = source.trials, source.inputs
    else:
        trials = load_trials(file, allow_nan=True, **how)
    if len(trials) > 1:
        raise ValueError(
            f"reference must be one trial, {file} has {len(trials)}: write the one to judge by to a file"
        )
    return trials[0], None if drives is None else drives[0]


def _kept(
    folder: RunFolder | None, record: RunRecord, seen: int, count: int
) -> tuple[Floats | None, Floats | None]:
    """Return the held-out part that the folder holds, or prepare it again where its file is still there."""
    series, drive = (None, None) if folder is None else (folder.read_reference(), folder.read_inputs())
    if series is None and record.data is not None and named_array(record.data.series)[0].is_file():
        again = Dataset.from_settings(record.data.model_dump(exclude_none=True))
        series, drive = again.reference, None if again.inputs is None else again.inputs.reference
    if series is not None and folder is not None and series.shape[1] != seen:
        raise ValueError(
            f"{folder.path / REFERENCE}: has {series.shape[1]} columns, the model observes {seen}"
        )
    if count and series is not None and drive is not None and drive.shape != (len(series), count):
        where = drive.shape if folder is None else f"{folder.path / INPUTS} has {drive.shape}"
        raise ValueError(f"inputs must be ({len(series)}, {count}), as the model and its reference, {where}")
    return series, drive if count else None
