"""The folder of a run, and its one owner.

RUN/palrnn.json              the marker: palrnn made this folder and may write in it
RUN/.lock                    who writes in it now
RUN/checkpoint.safetensors   the model, its standardizer, forcing and time step, and the state of training
RUN/reference.npy            the held-out part, raw, (T, N)
RUN/inputs.npy               what drives it, raw, (T, K), of a driven model
RUN/config.toml              where the series came from, how the model was trained and tuned
RUN/history.csv              the course of training, or of tuning (with before_after.png)
RUN/search.json              what else was tried, where a search came to the model
RUN/findings/                results of analyses, each with the settings and the model it belongs to
RUN/findings/ensemble/       models that were trained beside this one, for its error bars and forecasts

Whoever writes holds the lock, and a folder that palrnn did not make is not written to.

A finding is kept in memory, and here as well. It counts only for the key (version, model, data, settings)
under which it was kept, and only as it was written: a file that somebody has edited or damaged is computed
again.

Error bars are the finding ``bars``, ``findings/bars.json``, with `Bars.to_dict` under ``found``:

    {"method": "blocks", "coverage": 0.9, "models": 20,
     "figures": {"exponent 1": {"value": 0.91, "low": 0.85, "high": 0.95, "draws": [0.9, null, ...]}, ...}}

``value`` is that of the model itself, ``low`` and ``high`` the ends of the interval (null: no answer in half
of the draws). Figures: ``exponent K``, ``Kaplan-Yorke dimension``, ``D_stsp``, ``D_H``, ``fixed point K
COLUMN``, ``fixed point K |eigenvalue J|``, ``fixed point K angle of eigenvalue J`` (radians per step),
``curvature gap``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from palrnn.data import Standardizer, load_series, save_series
from palrnn.engine.checks import Floats, as_path, as_series, first_line
from palrnn.engine.files import subfolder, write_json, write_text
from palrnn.engine.folders import MARKER, check_folder, folder_kind, writable_folder
from palrnn.engine.locks import FolderInUseError, folder_lock
from palrnn.engine.plain import plain
from palrnn.engine.tables import write_table
from palrnn.forcing.history import MEASURED, Evaluation
from palrnn.forcing.state import CHECKPOINT
from palrnn.model import Checkpoint, load_checkpoint, save_checkpoint
from palrnn.runs.record import RunRecord, SearchTable

REFERENCE, INPUTS, CONFIG, HISTORY = "reference.npy", "inputs.npy", "config.toml", "history.csv"
SEARCH, ENSEMBLE = "search.json", "ensemble"
_KIND = "run"
_MOST_LOSSES = 2000
_NAMES = frozenset(
    {CHECKPOINT, REFERENCE, INPUTS, CONFIG, HISTORY, SEARCH, "loss.png", "before_after.png", "findings"}
)


class RunFolder:
    """A folder that holds a run, or will."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.fspath(path) == "":
            raise ValueError("the folder of a run must have a name, got ''; the current folder is '.'")
        self.path = as_path(path, "run")

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @property
    def checkpoint(self) -> Path:
        """The file of the model."""
        return self.path / CHECKPOINT

    @property
    def config(self) -> Path:
        """The file of the settings."""
        return self.path / CONFIG

    @property
    def findings(self) -> Path:
        """The folder of the results."""
        return self.path / "findings"

    @property
    def is_writable(self) -> bool:
        """Whether results can be kept here: the folder is ours, and this process may write in it."""
        try:
            ours = folder_kind(self.path) == _KIND or _is_unmarked_run(self.path)
        except ValueError:  # a damaged marker
            return False
        return ours and os.access(self.path, os.W_OK)

    def read_checkpoint(self) -> Checkpoint:
        """Return the model, or say what is missing."""
        if not self.path.is_dir():
            raise ValueError(f"{self.path}: no such folder")
        return load_checkpoint(self.checkpoint)

    def read_record(self) -> RunRecord | None:
        """Return what config.toml says; None if there is none."""
        return RunRecord.read(self.config) if self.config.is_file() else None

    def read_reference(self) -> Floats | None:
        """Return the held-out series, gaps included; None if it was not kept."""
        file = self.path / REFERENCE
        return load_series(file, allow_nan=True) if file.is_file() else None

    def read_inputs(self) -> Floats | None:
        """Return the inputs of the held-out series; None if there are none."""
        file = self.path / INPUTS
        if not file.is_file():
            return None
        try:
            # one that does not vary in this part is fine, which `load_series` would refuse
            return as_series(np.load(file, allow_pickle=False), "inputs", min_steps=1)
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"{file}: not the inputs of a series: {first_line(error)}") from None

    def read_course(self) -> tuple[list[tuple[int, float]], tuple[Evaluation, ...]]:
        """Return (update, loss) from history.csv, at most 2000 of them, and what was measured on the way.

        Both are empty where none was trained.
        """
        file = self.path / HISTORY
        losses, measured = list[tuple[int, float]](), list[Evaluation]()
        if not file.is_file():
            return losses, ()
        try:
            with file.open(encoding="utf-8", newline="") as stream:
                table = csv.DictReader(stream)
                if "loss" not in (table.fieldnames or ()):  # the history of tuning
                    return losses, ()
                for row in table:
                    update = int(row["update"])
                    if row["loss"]:
                        losses.append((update, float(row["loss"])))
                    if row.get("dstsp"):
                        measured.append(Evaluation(update, *(float(row[name] or "nan") for name in MEASURED)))
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise ValueError(f"{file}: not a training history: {error}") from None
        return block_means(losses), tuple(measured)

    def read_search(self) -> SearchTable | None:
        """Return what else was tried before the model was found; None if nobody searched."""
        file = self.path / SEARCH
        if not file.is_file():
            return None
        try:
            return SearchTable.from_dict(json.loads(file.read_bytes()))
        except (ValueError, RecursionError):
            raise ValueError(f"{file}: not the table of a search") from None

    def check(self, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Refuse, without writing, a folder that palrnn did not make, or that would lose ``inputs``."""
        for given in map(Path, inputs):
            if given.name in _NAMES and given.exists() and given.resolve().parent == self.path.resolve():
                raise ValueError(f"{given}: is what the command reads; choose another folder to write to")
        if not _is_unmarked_run(self.path):
            check_folder(self.path, _KIND)

    @contextmanager
    def writing(self, what: str) -> Iterator[RunFolder]:
        """Hold the folder as its only writer; ``what`` tells other processes what is being done.

        Enter it once everything that does not depend on the folder is checked: the marker is the first thing
        that is written.
        """
        if _is_unmarked_run(self.path):
            with folder_lock(self.path, what):
                write_json(self.path / MARKER, {"kind": _KIND, "format": 1})
        with writable_folder(self.path, _KIND, what):
            yield self

    def write_record(self, record: RunRecord) -> None:
        """Write config.toml."""
        with self.writing("settings"):
            write_text(self.config, record.text())

    def write_reference(self, reference: Floats | None, inputs: Floats | None = None) -> None:
        """Write the held-out part, if there is one, and what drives it."""
        for name, series in ((REFERENCE, reference), (INPUTS, inputs)):
            if series is not None:
                with self.writing("held-out data"):
                    save_series(self.path / name, series)

    def write_course(self, losses: list[tuple[int, float]], measured: Sequence[Evaluation] = ()) -> None:
        """Write the course of training, if there is one; a file that tells it, perhaps with more, stays."""
        try:
            there = self.read_course()[0]
        except ValueError:  # damaged
            there = []
        if not losses or losses == there:
            return
        loss = dict(losses)
        found = {each.update: [getattr(each, name) for name in MEASURED] for each in measured}
        rows = [
            (update, loss.get(update), *found.get(update, [None] * len(MEASURED)))
            for update in sorted(loss.keys() | found.keys())
        ]
        with self.writing("history"):
            write_table(self.path / HISTORY, ("update", "loss", *MEASURED), rows, digits=7)

    def write_search(self, table: SearchTable | None) -> None:
        """Write what else was tried, if a search came to the model."""
        if table is not None:
            with self.writing("search"):
                write_json(self.path / SEARCH, plain(table.to_dict()))

    def check_model(self, found: Checkpoint) -> None:
        """Refuse, without writing, a folder in which another model was trained, or any was tuned.

        A comparison of tunings has one folder for each of them, and may have chosen none.
        """
        there, record = self._model(), self.read_record()
        tuned = there is not None and "saem" in there.training
        compared = record is not None and record.comparison is not None
        begun = compared or (there is not None and bool(there.arrays))
        if tuned or (begun and (there is None or not _is_same_model(there, found))):
            raise ValueError(f"{self.path}: another model was trained or tuned there; choose another folder")

    def remove_other(self, found: Checkpoint) -> None:
        """Remove what belongs to another model than ``found``, but for its checkpoint and its findings.

        The checkpoint is written over next; findings count only for the model that they are of.
        """
        self.check_model(found)
        there = self._model()
        if there is None or _is_same_model(there, found):
            return
        for name in _NAMES - {CHECKPOINT, "findings"}:
            (self.path / name).unlink(missing_ok=True)

    def _model(self) -> Checkpoint | None:
        return load_checkpoint(self.checkpoint) if self.checkpoint.exists() else None

    def write_model(self, found: Checkpoint) -> None:
        """Write the checkpoint; one that is there keeps the state in which its training is."""
        self.check_model(found)
        there = self._model()
        if there is not None and there.arrays:
            forcing = there.forcing or found.forcing
            found = replace(found, training=there.training, arrays=there.arrays, forcing=forcing)
        with self.writing("model"):
            save_checkpoint(self.checkpoint, **vars(found))

    def write_finding(self, name: str, text: str) -> None:
        """Write the file of a finding."""
        with self.writing(f"finding {name}"):
            write_text(subfolder(self.path, "findings") / f"{name}.json", text)

    def ensemble_folder(self) -> Path:
        """Return the folder, made if missing, of the models that are trained beside this one."""
        with self.writing("ensemble"):
            return subfolder(subfolder(self.path, "findings"), ENSEMBLE)

    def tuning_folder(self, digest: str) -> Path:
        """Return the folder, made if missing, of tuning with settings of this ``digest``."""
        with self.writing("tuning"):
            return subfolder(subfolder(self.path, "findings"), f"tuning-{digest}")


def block_means(rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return (update, loss) as means over equal stretches, at most 2000 of them."""
    size = -(-len(rows) // _MOST_LOSSES) if rows else 1
    return [
        (rows[i : i + size][-1][0], float(np.mean([loss for _, loss in rows[i : i + size]])))
        for i in range(0, len(rows), size)
    ]


def _is_same_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether the surrogates and their scales are the same, whatever the noise."""
    if type(one.drift) is not type(other.drift) or one.dt != other.dt:
        return False
    parts = [
        {**found.drift.arrays(), **_scale("x", found.standardizer), **_scale("s", found.input_standardizer)}
        for found in (one, other)
    ]
    same = parts[0].keys() == parts[1].keys()
    return same and all(np.array_equal(parts[0][name], parts[1][name]) for name in parts[0])


def _scale(of: str, standardizer: Standardizer | None) -> dict[str, Floats]:
    if standardizer is None:
        return {}
    return {f"the mean of {of}": standardizer.mean, f"the std of {of}": standardizer.std}


def _is_unmarked_run(path: Path) -> bool:
    """Whether a folder without a marker holds a run: one of 0.1, or one that `train` alone was given."""
    if not path.is_dir() or folder_kind(path) is not None or not (path / CHECKPOINT).is_file():
        return False
    with (path / CHECKPOINT).open("rb") as stream:
        ours = b"palrnn-checkpoint" in stream.read(2**20)
    others = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
    return ours and others <= _NAMES | {"report.html", "report.toml"}


R = TypeVar("R", bound="Result")


class Result(Protocol):
    """An answer that has a plain form: JSON's types, from which its class can be made again."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plain form."""
        ...


class Findings:
    """Results by name, each with the key that it belongs to."""

    def __init__(self, folder: RunFolder | None = None) -> None:
        self._folder = folder
        self._memory: dict[str, tuple[dict[str, Any], Any]] = {}

    def get(self, name: str, key: dict[str, Any], restore: Callable[[dict[str, Any]], R] | None) -> R | None:
        """Return what was found under exactly this ``key``, or None.

        ``restore`` makes it from the plain values in a file; without it only memory counts.
        """
        if name in self._memory and self._memory[name][0] == key:
            found: R = self._memory[name][1]
            return found
        if self._folder is None or restore is None:
            return None
        try:
            kept = json.loads((self._folder.findings / f"{name}.json").read_text(encoding="utf-8"))
            if kept["key"] != plain(key) or kept["digest"] != _digest(kept["key"], kept["found"]):
                return None
            found = restore(kept["found"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # missing, damaged, or of another version
            return None
        self._memory[name] = (key, found)
        return found

    def keep(self, name: str, key: dict[str, Any], found: Result) -> None:
        """Keep ``found`` under ``key``, in place of an earlier one.

        A folder that cannot be written now (read-only, or somebody else trains there) is left as it is.
        """
        self._memory[name] = (key, found)
        if self._folder is None or not self._folder.is_writable:
            return
        values, kept = plain(found.to_dict()), plain(key)
        text = json.dumps(
            {"key": kept, "digest": _digest(kept, values), "found": values}, indent=2, allow_nan=False
        )
        try:
            self._folder.write_finding(name, text + "\n")
        except FolderInUseError:
            return


def _digest(key: Any, found: Any) -> str:
    """Return a digest of what was written, by which an edit is seen."""
    text = json.dumps([key, found], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
