"""What D_stsp means: stretches of the true system against each other, which no model can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.data.systems import lorenz63_system
from palrnn.invariants import dstsp_floor
from palrnn.paper.claim import Finding
from palrnn.paper.studies.evidence import reference_tau
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    import pandas as pd

FLOOR = Kind("floor", "palrnn.paper.studies.floor:measure_floor")


@study("floor", place=40)
class FloorStudy(Study[None]):
    """The D_stsp that a perfect model would have."""

    def tasks(self) -> list[Task]:
        how = self.preset.invariants
        settings = {"pairs": how.floor_pairs, "steps": how.steps - how.discard, "dt": self.preset.data.dt}
        settings |= {"bins": how.bins, "smoothing": how.smoothing}
        return [Task(FLOOR, settings, label="true against true")]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per pair of true stretches."""
        values = store.result_or_empty(self.tasks()[0]).get("dstsp", [])
        return {"floor.csv": [{"pair": pair, "dstsp": value} for pair, value in enumerate(values)]}

    def findings(self, tables: Tables) -> list[Finding]:
        tau = reference_tau(self.preset)
        if "checkpoints" not in tables or tau is None:
            return []
        return [floor_finding(tables["floor"], tables["checkpoints"], tau)]


def measure_floor(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compare pairs of stretches of the true system."""
    how = {name: settings[name] for name in ("pairs", "dt", "bins", "smoothing")}
    return {"dstsp": dstsp_floor(lorenz63_system(), length=settings["steps"], **how).values}


def floor_finding(floor: pd.DataFrame, checkpoints: pd.DataFrame, tau: int) -> Finding:
    """Return what D_stsp means: true stretches against each other, beside the trained models."""
    true, models = floor["dstsp"], checkpoints[checkpoints["tau"] == tau]["dstsp"]
    low, mid, high = np.percentile(true, [2.5, 50, 97.5])
    within = float((models <= high).mean())
    return Finding(
        "the floor of D_stsp",
        f"two stretches of the true system differ by {mid:.2f} nats in the median ({low:.2f} to {high:.2f} "
        f"in 95 % of {len(true)} pairs); the models with tau = {tau} by {models.median():.2f}, and "
        f"{within:.0%} of them cannot be told from the truth by it",
        {"floor_median": mid, "floor_low": low, "floor_high": high, "models_median": models.median()},
    )
