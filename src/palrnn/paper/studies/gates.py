"""Gate noise that is learned, and the invariants of the noisy model beside those of its hard-gated skeleton.

The paper fixes the gate noise and evaluates with all noise set to zero. Here the gate noise is learned with
the other two under the filter that targets the model itself, for which its likelihood is the right one, and
every model is run twice: hard-gated, and sampled with all its noise.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from palrnn.engine.config import Config, Count
from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, measured_run
from palrnn.paper.studies.evidence import EvidenceStudy
from palrnn.paper.studies.noise import NoiseStudy, Start, Way
from palrnn.paper.studies.noise import Unit as Tuning
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

COUNTERPARTS = Kind("counterparts", "palrnn.paper.studies.gates:measure_counterparts")
_KINDS = ("hard", "sampled")


class GatesSettings(Config):
    """How models are tuned, from which noise, on windows of one length."""

    length: Count
    models: Count
    start: Start
    ways: Annotated[tuple[Way, ...], Field(min_length=1)]


class Unit(NamedTuple):
    """A model and how it is tuned."""

    regime: Regime
    way: Way


@study("gates", place=100)
class GatesStudy(Study[GatesSettings]):
    """Learned gate noise, and hard-gated beside sampled invariants."""

    Settings = GatesSettings
    ours = True

    def check(self) -> None:
        NoiseStudy.of(self.preset)

    def regimes(self) -> list[Regime]:
        return EvidenceStudy.of(self.preset).regimes()[: self.settings.models]

    def units(self) -> list[Unit]:
        """Every model in every way."""
        return [Unit(regime, way) for regime in self.regimes() for way in self.settings.ways]

    def unit_tasks(self, unit: Unit) -> tuple[Task, Task]:
        """Its held-out evidence, and its invariants with and without noise."""
        how, free = self.settings, self.preset.invariants
        tuning = Tuning(unit.regime, how.start, unit.way, how.length)
        noise = NoiseStudy.of(self.preset)
        settings: dict[str, Any] = {"steps": free.steps, "discard": free.discard, "bins": free.bins}
        settings |= {"smoothing": free.smoothing, "dt": self.preset.data.dt, "seed": unit.regime.seed}
        tuned = noise.tuning_task(tuning)
        evidence = noise.evidence_task(tuning)
        return evidence, Task(COUNTERPARTS, settings, {"model": tuned}, label=tuned.label)

    def tasks(self) -> list[Task]:
        return [task for unit in self.units() for task in self.unit_tasks(unit)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model and way."""
        rows = []
        for unit in self.units():
            evidence, both = self.unit_tasks(unit)
            if store.has(evidence) and store.has(both):
                levels = {
                    "process_std": unit.regime.process_std,
                    "observation_std": unit.regime.observation_std,
                }
                found = {"evidence": store.result(evidence)["evidence"]}
                rows.append(levels | {"way": unit.way.name} | found | store.result(both))
        return {"gates.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["gates"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per way: medians over models."""
        columns = ["way", "n", "evidence", "gate noise", "process noise"]
        columns += [f"{name}, {kind}" for name in ("D_stsp", "largest exponent") for kind in _KINDS]
        rows = []
        for way, part in tables["gates"].groupby("way", sort=False):
            middle = part.drop(columns="way").median()
            names = ["evidence", "gate_std", "fitted_process_std"]
            names += [f"{name}_{kind}" for name in ("dstsp", "lyapunov") for kind in _KINDS]
            rows.append([str(way), f"{len(part)}", *(f"{middle[name]:.3g}" for name in names)])
        there, wanted = self.row_counts(tables)
        so_far = "" if there == wanted else f" {there} of {wanted} models are there so far."
        words = (
            f"Windows of {self.settings.length} steps; medians over models. `hard` is the free run without "
            f"noise, which the paper evaluates, `sampled` the PAL-RNN with all its noise.{so_far}"
        )
        return [Listing(OPEN, "Learned gate noise, and noisy invariants", words, columns, rows)]


def measure_counterparts(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Measure a tuned model twice against the deterministic system: hard-gated, and sampled."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    model = checkpoint.model
    assert isinstance(model, PALRNN)
    found: dict[str, Any] = {
        "gate_std": float(model.gate_std),
        "fitted_process_std": float(model.process_variances.mean() ** 0.5),
    }
    for kind, what in zip(_KINDS, (model.drift, model), strict=True):
        numbers = measured_run(what, checkpoint, settings).numbers()
        found |= {f"{name}_{kind}": numbers[name] for name in ("dstsp", "lyapunov")}
    return found
