"""Which models still move after a long time, and whether anything that is measured on a segment tells.

Every model runs freely from several starts on its own test series (`palrnn.viability`); D_stsp is measured
from each of them, since one run of a chaotic model is one draw.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count
from palrnn.invariants import spread_starts, viability
from palrnn.invariants.over_starts import scores_over_starts
from palrnn.model import Checkpoint, checkpoint_from_bytes
from palrnn.paper.claim import Listing
from palrnn.paper.models import Regime, checkpoint_task
from palrnn.paper.presets import plain_settings
from palrnn.paper.series import DataSettings, reference_series, training_series
from palrnn.paper.studies.gap import GapStudy
from palrnn.paper.studies.readings import ReadingsStudy
from palrnn.paper.studies.survival.listings import MODEL, fates_listing, telling_listing
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

SURVIVAL = Kind("survival", "palrnn.paper.studies.survival:measure_survival")
_MEASURED = {
    "log_evidence": "log evidence of the segment",
    "gap": "curvature gap",
    "entropy_bits": "code entropy",
    "mir": "missing-information ratio",
    "loss": "training loss",
    "dstsp": "D_stsp of one run of 9,000 steps",
}
_OUTCOMES = ("moves on", "rests", "cycle", "diverges", "leaves")


class SurvivalSettings(Config):
    """How long, and from how many starts."""

    starts: Annotated[Count, Field(ge=10)]
    steps: Annotated[Count, Field(ge=1000)]


@study("survival", place=45)
class SurvivalStudy(Study[SurvivalSettings]):
    """What becomes of each model, and D_stsp over its starts."""

    Settings = SurvivalSettings
    ours = True

    def check(self) -> None:
        GapStudy.of(self.preset)

    def regimes(self) -> list[Regime]:
        """The models of the curvature study, and of its readings where there are some."""
        gap = GapStudy.of(self.preset).regimes()
        more = ReadingsStudy(self.preset).regimes() if ReadingsStudy.is_in(self.preset) else []
        return list(dict.fromkeys([*gap, *more]))

    def run_settings(self) -> dict[str, Any]:
        """What `long_runs` needs to know."""
        how = self.preset.invariants
        return {
            "starts": self.settings.starts,
            "steps": self.settings.steps,
            "scored_steps": how.steps,
            "discard": how.discard,
            "bins": how.bins,
            "smoothing": how.smoothing,
        }

    def survival_task(self, regime: Regime, model: Task | None = None) -> Task:
        """The long runs of one model, which may come from another task than that of its regime."""
        settings = self.run_settings() | {
            "data": plain_settings(self.preset.data),
            "process_std": regime.process_std,
            "observation_std": regime.observation_std,
        }
        trained = checkpoint_task(self.preset, regime) if model is None else model
        return Task(SURVIVAL, settings, {"model": trained}, label=trained.label)

    def tasks(self) -> list[Task]:
        return [self.survival_task(regime) for regime in self.regimes()]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model."""
        rows = []
        for regime in self.regimes():
            found = store.result_or_empty(self.survival_task(regime))
            if not found:
                continue
            ends = [fate["step"] for fate in found["fates"] if fate["step"] is not None]
            row: dict[str, Any] = {name.replace(" ", "_"): 0 for name in _OUTCOMES}
            for fate in found["fates"]:
                row[fate["outcome"].replace(" ", "_")] += 1
            row |= {"starts": len(found["fates"]), "first_end": min(ends, default=None)}
            rows.append(regime._asdict() | row | spread("dstsp", found["dstsp"]))
        return {"survival.csv": rows}

    def listings(self, tables: Tables) -> list[Listing]:
        import pandas as pd

        survival = tables["survival"]
        groups = {"the models of the curvature study": pd.DataFrame(GapStudy.of(self.preset).regimes())}
        found = [fates_listing(survival, self.settings.steps, len(self.regimes()), groups)]
        if "readings" in tables and "checkpoints" in tables:
            # the paper's own estimator of each model once
            first = tables["readings"].drop_duplicates(MODEL)
            measured = first.merge(tables["checkpoints"], on=MODEL)
            found.append(telling_listing(survival, measured, _MEASURED))
        return found


def measure_survival(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Let a model run freely from starts in its test series: its fates, and D_stsp from each."""
    data = DataSettings(**settings["data"])
    series = training_series(data, settings["process_std"], settings["observation_std"])
    return long_runs(checkpoint_from_bytes(inputs["model"]), series.test, settings)


def long_runs(checkpoint: Checkpoint, series: Floats, settings: dict[str, Any]) -> dict[str, Any]:
    """Let a model run from starts in ``series (T, N)``: long, for its fate, and of the paper's length.

    The runs of the paper's length are scored by D_stsp against the deterministic system.
    """
    assert checkpoint.standardizer is not None
    assert checkpoint.dt is not None
    starts = spread_starts(series, settings["starts"])
    fates = viability(checkpoint.drift, starts, settings["steps"], data=series)
    scores = scores_over_starts(
        checkpoint.drift,
        starts,
        reference_series(settings["scored_steps"] - settings["discard"], settings["discard"], checkpoint.dt),
        standardizer=checkpoint.standardizer,
        discard=settings["discard"],
        bins=settings["bins"],
        smoothing=settings["smoothing"],
    )
    return {"fates": fates.to_dict()["fates"], "dstsp": scores.dstsp.tolist()}


def spread(name: str, values: list[float | None]) -> dict[str, float]:
    """Return median, lowest and highest of ``values`` as columns; one that a run lacks is infinite."""
    kept = np.array([np.inf if value is None else value for value in values])
    found = {"median": np.median(kept), "low": kept.min(), "high": kept.max()}
    return {f"{name}_{which}": float(value) for which, value in found.items()}
