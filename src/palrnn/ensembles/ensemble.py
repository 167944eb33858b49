"""`Ensemble`: models of one series, what varies over them, and how they are found again in their folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_int, as_path, one_of
from palrnn.engine.seeds import generator
from palrnn.ensembles.variation import alike
from palrnn.ensembles.work import VARIED
from palrnn.geometry import InvariantErrorBars, invariant_error_bars
from palrnn.geometry.reflection import LEAST, reflected
from palrnn.inference import FilterDiedError, Forecast
from palrnn.inference.forecasts import OF_ONE_MODEL, PARAMETERS
from palrnn.model import Checkpoint, checkpoint_bytes, checkpoint_from_bytes
from palrnn.runs import Reconstruction
from palrnn.runs.bars import ENSEMBLES

#: In the folder of an ensemble: which models are the one that was made last, and around which.
INDEX = "ensemble.json"
_FILE = re.compile(r"tasks/(member|refit)/[0-9a-f]{20}\.safetensors")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models of one series, and the first of them, ``base``, that they stand around.

    ``models`` are those that did not diverge in training, ``diverged`` counts the others, and of a varied
    ensemble those that do not go where the data go. A reflected ensemble has a refit for each model, None
    where that came to nothing, and its intervals are reflected (`reflection`). Wherever a posterior is asked
    for (error bars of invariants; forecasts, if its models have the hidden units of the first, as blocks do)
    it may stand in for one.
    """

    base: Reconstruction
    models: tuple[Any, ...] = field(repr=False)
    method: str
    diverged: int
    refits: tuple[Any, ...] = field(default=(), repr=False)

    @classmethod
    def kept(cls, folder: str | os.PathLike[str], base: Reconstruction) -> Ensemble | None:
        """Return the ensemble that `bootstrap` made last in ``folder``; None if not around ``base``."""
        place = as_path(folder, "folder")
        try:
            index = json.loads((place / INDEX).read_text(encoding="utf-8"))
            if index["base"] != fingerprint(start_bytes(base)):
                return None
            members, refits = (
                [checkpoint_from_bytes(_member_file(place, name).read_bytes()) for name in index[kind]]
                for kind in ("members", "refits")
            )
            return ensemble_of(base, members, refits, one_of(index["method"], "method", ENSEMBLES))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            # none was finished here, or a file is damaged
            return None

    def around(self, base: Reconstruction) -> Ensemble:
        """Return the same models beside ``base``, which has the same drift, with its noise say."""
        return replace(self, base=base)

    @property
    def model(self) -> Any:
        """The drift of the first model."""
        return self.base.drift

    @property
    def theta(self) -> Floats:
        """The drift parameters of all models, ``(n, p)``, which must be of one size."""
        return np.array([model.theta for model in self.models])

    def sample(self, count: int, *, seed: int = 0) -> list[Any]:
        """Return ``count`` of the models, in random order; each once, before any comes twice."""
        count, rng, found = as_int(count, "count", least=1), generator(seed), list[Any]()
        while len(found) < count:
            found += [self.models[k] for k in rng.permutation(len(self.models))]
        return found[:count]

    def refit_of(self, model: Any) -> Any:
        """Return the refit of one of the models, None where there is none."""
        return next(
            (again for first, again in zip(self.models, self.refits, strict=False) if first is model), None
        )

    def interval(
        self, measure: Callable[[Any], ArrayLike], coverage: float = 0.9
    ) -> tuple[Floats | float, Floats | float]:
        """Return the central interval of ``measure(model)``, a number or an array, over the models.

        Where these have refits, what those miss by is taken off (`palrnn.geometry.reflection`).
        """
        tail = (1.0 - as_float(coverage, "coverage", above=0.0, most=1.0)) / 2.0
        values = np.array([measure(model) for model in self.models], dtype=np.float64)
        if self.refits:
            nothing = np.full_like(values, np.nan)
            again = [
                each if refit is None else measure(refit)
                for refit, each in zip(self.refits, nothing, strict=True)
            ]
            rows = (
                np.reshape(each, (len(values), -1)) for each in (values, np.array(again, dtype=np.float64))
            )
            values = reflected(*rows).reshape(values.shape)
        low, high = np.nanquantile(values, [tail, 1.0 - tail], axis=0)
        return low, high

    def forecast(
        self, x: ArrayLike, steps: int, *, paths: int = 200, seed: int = 0, **settings: Any
    ) -> Forecast:
        """Return what may be observed after the rows ``x (T, N)``: paths of all models in equal parts.

        Each model filters the rows by itself, with the noise of ``base`` (`Reconstruction.with_noise`); those
        that lose them have no part. The settings are those of `Reconstruction.forecast`.
        """
        share, parts = -(-as_int(paths, "paths", least=1) // len(self.models)), list[Floats]()
        calibration = settings.pop("calibration", None)
        noise = self.base.probabilistic
        for k, model in enumerate(self.models):
            one = replace(self.base, model=noise.with_drift(model))
            own = int(
                generator(seed, "member", k).integers(10**9)
            )  # noise of its own: equal noise would make bands too narrow
            try:
                made = one.forecast(x, steps, paths=share, seed=own, posterior=None, **settings)
                parts.append(made.paths)
            except FilterDiedError as error:
                lost = error
        if not parts:
            raise lost
        several = f"{PARAMETERS} ({len(parts)} models by {self.method})"
        made = Forecast(np.concatenate(parts), (*OF_ONE_MODEL, several))
        return made if calibration is None else calibration(made)

    def error_bars(self, *, draws: int | None = None, **settings: Any) -> InvariantErrorBars:
        """Return the invariants of the models; the settings are those of `invariant_error_bars`.

        They are the models' own: ``base.bars(ensemble)`` takes off what refits miss by.
        """
        base = self.base
        steps = min(10_000, max(1000, len(base.held)))
        usual: dict[str, Any] = {"standardizer": base.standardizer, "steps": steps, "dt": base.dt or 1.0}
        usual["inputs"] = base.s
        count = len(self.models) if draws is None else draws
        return invariant_error_bars(self, base.held, draws=count, **(usual | settings))

    def __repr__(self) -> str:
        lost = f", {self.diverged} diverged" if self.diverged else ""
        return f"Ensemble({len(self.models)} models by {self.method!r}{lost}, around {self.model!r})"


def ensemble_of(
    first: Reconstruction, members: list[Checkpoint], refits: list[Checkpoint], method: str
) -> Ensemble:
    """Return the models that count, with their refits; refuse where there are too few."""
    kept = _kept(members, method in VARIED)
    if not any(kept):
        raise RuntimeError("all models diverged, in training or in a free run: take a smaller learning_rate")
    alive = tuple(each.drift for each, stays in zip(members, kept, strict=True) if stays)
    # those of models that count: that of a cycle comes nearer to it than any model of chaos to its own
    seconds = [each for each, stays in zip(refits, kept, strict=False) if stays]
    beside = tuple(
        each.drift if good else None for each, good in zip(seconds, _kept(seconds, True), strict=True)
    )
    if refits and sum(each is not None for each in beside) < LEAST:
        raise RuntimeError(
            f"fewer than {LEAST} models move on, to train refits on: take more updates or models"
        )
    return Ensemble(first, alive, method, len(members) - len(alive), beside)


def _member_file(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ValueError(f"{folder / INDEX}: not the name of a model: {name!r}")
    return folder / "members" / name


def start_bytes(base: Reconstruction) -> bytes:
    """Return the first model as the others know it."""
    return checkpoint_bytes(base.drift, standardizer=base.standardizer, dt=base.dt, forcing=base.forcing)


def _kept(checkpoints: list[Checkpoint], varied: bool) -> list[bool]:
    """Return which models count: those that did not diverge, and of varied ones those near their data."""
    notes = [each.training for each in checkpoints]
    if not varied:
        return [not each["diverged"] for each in notes]
    return alike([each.get("distance") for each in notes])


def fingerprint(data: bytes) -> dict[str, Any]:
    """Return what tells ``data`` from others, as settings of a task."""
    return {"sum": hashlib.sha256(data).hexdigest()}
