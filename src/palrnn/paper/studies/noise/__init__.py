"""What the start noise decides: evidence against dynamics, for tuning from two starts and in several ways.

The models, data and window lengths are those of the evidence study; what differs is the noise that tuning
starts from, and what it changes how. Every result is a point of evidence and D_stsp; those that no other
point beats in both are the front.

One free run of a chaotic model is one draw of D_stsp, so every drift runs from several starts, and on for
long. Ways that leave the drift as it is share these runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from palrnn.engine.config import Config, Count, Positive
from palrnn.engine.progress import quiet
from palrnn.model import PALRNN, checkpoint_bytes, checkpoint_from_bytes
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts, plain_settings
from palrnn.paper.studies.evidence import (
    EVIDENCE,
    TUNING,
    EvidenceStudy,
    filter_config,
    tuned_checkpoint,
    tuning_data,
)
from palrnn.paper.studies.evidence import Unit as Tuned
from palrnn.paper.studies.noise.listings import lengths_listing, ways_listing
from palrnn.paper.studies.survival import SurvivalStudy, long_runs, spread
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task
from palrnn.tuning import NoiseFit, NoiseFitConfig, SAEMConfig, fit_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIT = Kind("fit", "palrnn.paper.studies.noise:fit_model_noise", ".safetensors")
CLIMB = Kind("climb", "palrnn.paper.studies.noise:climb_again", ".safetensors")
FATES = Kind("fates", "palrnn.paper.studies.noise:measure_fates")


class Start(Config):
    """The noise that tuning starts from."""

    process_std: Positive
    gate_std: Positive


class Way(Config):
    """A way of tuning: particle-SAEM, given what the evidence study does not do, or a fit of the noise.

    ``again`` is what differs in a second fit, from where the first ended: if that stays there, the first had
    converged.
    """

    name: str
    saem: SAEMConfig | None = None
    fit: NoiseFitConfig | None = None
    again: NoiseFitConfig | None = None
    target: Literal["paper", "exact"] = "paper"

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.saem is None) == (self.fit is None):
            raise ValueError("must have either saem or fit")
        if self.again is not None and self.fit is None:
            raise ValueError("again needs fit")
        if self.saem is not None and self.saem.target != self.target:
            raise ValueError(f"target must be that of saem, {self.saem.target!r}, is {self.target!r}")
        return self

    @property
    def learns_drift(self) -> bool:
        """Whether the drift changes."""
        return self.saem is not None and self.saem.learns_drift


class NoiseSettings(Config):
    """Both starts, all ways, and how many held-out windows are scored by how many particles.

    ``fit_particles`` is for ways that fit; ``gate_std`` of a way that learns it is only the start.
    """

    lengths: Counts
    heldout_windows: Count
    particles: Count
    fit_particles: Count
    starts: Annotated[tuple[Start, ...], Field(min_length=1)]
    ways: Annotated[tuple[Way, ...], Field(min_length=1)]
    models: Count


class Unit(NamedTuple):
    """A model, the noise that it starts from, how it is tuned, and on windows of which length."""

    regime: Regime
    start: Start
    way: Way
    length: int


@study("noise", place=90)
class NoiseStudy(Study[NoiseSettings]):
    """Held-out evidence and invariants after tuning from several starts."""

    Settings = NoiseSettings
    ours = True
    pictures = (Picture(OPEN, "front", "Evidence against D_stsp by window length, way of tuning and start"),)

    def check(self) -> None:
        EvidenceStudy.of(self.preset)
        SurvivalStudy.of(self.preset)

    def regimes(self) -> list[Regime]:
        return EvidenceStudy.of(self.preset).regimes()[: self.settings.models]

    def units(self) -> list[Unit]:
        """All of them, short windows first."""
        how = self.settings
        return [
            Unit(regime, start, way, length)
            for length in sorted(how.lengths)
            for regime in self.regimes()
            for way in how.ways
            for start in how.starts
        ]

    def tuning_task(self, unit: Unit) -> Task:
        """The tuning of one model from one start; of a fit that is done again, the second one."""
        return self.tuning_tasks(unit)[-1]

    def tuning_tasks(self, unit: Unit) -> list[Task]:
        """The same; of a fit that is done again, both."""
        evidence, way = EvidenceStudy.of(self.preset).settings, unit.way
        settings = {
            "data": plain_settings(evidence.data),
            "process_std": unit.start.process_std,
            "observation_std": evidence.start_observation_std,
            "gate_std": unit.start.gate_std,
            "seed": evidence.saem_seed,
        }
        needs = {"model": checkpoint_task(self.preset, unit.regime)}
        label = f"{unit.regime.name} {way.name} L{unit.length}"
        if way.fit is not None:
            fit = plain_settings(way.fit) | {"length": unit.length}
            filtered: dict[str, Any] = {"particles": self.settings.fit_particles, "target": way.target}
            filtered["ess_threshold"] = evidence.saem.ess_threshold
            cost = 5.0 * unit.length
            first = Task(FIT, settings | {"fit": fit} | filtered, needs, cost=cost, label=label)
            if way.again is None:
                return [first]
            known = {name: settings[name] for name in ("data", "seed")}
            again = known | {"fit": fit | plain_settings(way.again)} | filtered
            return [first, Task(CLIMB, again, {"model": first}, cost=cost / 3, label=label)]
        assert way.saem is not None
        config = plain_settings(way.saem)
        if way.saem.configuration == "baseline":
            return [Task(TUNING, settings | {"saem": config}, needs, cost=1e-3, label=unit.regime.name)]
        config = plain_settings(evidence.saem) | config | {"length": unit.length}
        cost = float(unit.length * config["iterations"])
        return [Task(TUNING, settings | {"saem": config}, needs, cost=cost, label=label)]

    def evidence_task(self, unit: Unit, tuning: Task | None = None) -> Task:
        """Its evidence on held-out windows of the evidence study, under the target of its way.

        The last of its tuning tasks is scored, or another.
        """
        settings = EvidenceStudy.of(self.preset).filter_settings() | {
            "length": unit.length,
            "windows": self.settings.heldout_windows,
            "particles": self.settings.particles,
            "target": unit.way.target,
        }
        tuning = self.tuning_task(unit) if tuning is None else tuning
        return Task(EVIDENCE, settings, {"model": tuning}, cost=float(unit.length), label=tuning.label)

    def fates_task(self, unit: Unit) -> Task:
        """The long runs of its drift; where that is not tuned, the same task for all."""
        evidence, model = EvidenceStudy.of(self.preset), self.tuning_task(unit)
        if not unit.way.learns_drift:
            model = evidence.tuning_task(Tuned(unit.regime, "baseline", unit.length))
        settings = SurvivalStudy.of(self.preset).run_settings()
        settings |= {"data": plain_settings(evidence.settings.data)}
        return Task(FATES, settings, {"model": model}, label=model.label)

    def tasks(self) -> list[Task]:
        return [task for unit in self.units() for task in (self.fates_task(unit), *self.scores(unit))]

    def scores(self, unit: Unit) -> list[Task]:
        """Evidence and invariants of one model; of a fit that is done again, before and after."""
        return [
            task
            for tuning in self.tuning_tasks(unit)
            for task in (self.evidence_task(unit, tuning), invariants_task(self.preset, tuning))
        ]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model, start, way and length; of a fit, the last that is there."""
        rows = []
        for unit in self.units():
            fates, tunings = self.fates_task(unit), self.tuning_tasks(unit)
            scores = [
                (self.evidence_task(unit, each), invariants_task(self.preset, each)) for each in tunings
            ]
            there = [all(store.has(task) for task in pair) for pair in scores]
            if store.has(fates) and any(there):
                last = len(there) - 1 - there[::-1].index(True)
                found, invariants = (store.result(task) for task in scores[last])
                row: dict[str, Any] = {
                    "process_std": unit.regime.process_std,
                    "observation_std": unit.regime.observation_std,
                    "length": unit.length,
                    "start_process_std": unit.start.process_std,
                    "start_gate_std": unit.start.gate_std,
                    "way": unit.way.name,
                }
                names = ("evidence", "evidence_stderr", "fitted_process_std", "fitted_observation_std")
                row |= {name: found[name] for name in names}
                row |= {name: invariants[name] for name in ("dstsp", "lyapunov", "diverged_at")}
                row |= fates_columns(store.result(fates))
                if unit.way.fit is not None:
                    row |= fit_columns(store.read(tunings[last]), last + 1)
                rows.append(row)
        return {"noise.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["noise"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per way and start, and one per way that tunes the drift, start and length."""
        noise = tables["noise"].dropna(subset=["evidence"]).reset_index(drop=True)
        there, wanted = self.row_counts(tables)
        words = "" if there == wanted else f" {there} of {wanted} tunings are there so far."
        ways = self.settings.ways
        alone = [way.name for way in ways if way.fit is not None]
        tuned = [way.name for way in ways if way.learns_drift]
        untuned = [way.name for way in ways if not (way.fit or way.learns_drift)]
        found = [
            ways_listing(noise, self.preset.invariants.lyapunov_reference, self.effort() + words),
        ]
        if alone and tuned and untuned:
            found.append(lengths_listing(noise, tuned, alone[0], untuned[0]))
        return found

    def effort(self) -> str:
        """Say in words what the ways and the evidence are computed with, beside the evidence study."""
        how, usual = self.settings, EvidenceStudy.of(self.preset).settings
        drawn = {
            tuple(
                (way.saem if name in way.saem.model_fields_set else usual.saem).model_dump()[name]
                for name in ("particles", "windows", "paths")
            )
            for way in how.ways
            if way.saem is not None and way.saem.learns_drift
        }
        found = [
            f"Ways that tune the drift draw {paths} paths of {particles} particles in {windows} windows an "
            f"iteration (the evidence study {usual.saem.paths}, {usual.saem.particles} and "
            f"{usual.saem.windows})"
            for particles, windows, paths in sorted(drawn)
        ]
        fits = [
            f"the noise is fitted on {'all' if way.fit.windows is None else way.fit.windows} windows with "
            f"{how.fit_particles} particles"
            for way in how.ways
            if way.fit is not None
        ]
        scored = f"evidence is that of {how.heldout_windows} held-out windows ({usual.heldout_windows} there)"
        return "; ".join([*found, *fits, scored]) + "."

    def figures(self, tables: Tables) -> dict[str, Figure]:
        from palrnn.paper.studies.noise.figures import front_figure

        return {"front": front_figure(tables["noise"].dropna(subset=["evidence"]))}


def fit_columns(fitted: bytes, climbs: int) -> dict[str, Any]:
    """Return as columns how the last of so many fits of the noise went, as far as it is on record."""
    notes = checkpoint_from_bytes(fitted).training.get("fit", {})
    return {"fits": climbs} | {f"fit_{name}": value for name, value in notes.items()}


def fates_columns(found: dict[str, Any]) -> dict[str, Any]:
    """Return what became of the runs, and D_stsp over their starts, as columns."""
    fates = [fate["outcome"] for fate in found["fates"]]
    return {"starts": len(fates), "moves_on": fates.count("moves on")} | spread("dstsp", found["dstsp"])


def fit_model_noise(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Give the model noise and climb the evidence of the tuning data; the drift stays."""

    def tune(start: PALRNN, series: Any) -> tuple[PALRNN, dict[str, Any]]:
        found = _fitted(start, series, settings)
        return found.model, {"fit": _notes(found, start)}

    return tuned_checkpoint(settings, inputs, tune)


def climb_again(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Climb the same evidence from where a fit ended; the notes say how far the levels moved."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    start = checkpoint.model
    assert isinstance(start, PALRNN)
    found = _fitted(start, tuning_data(settings, checkpoint).train, settings)
    return checkpoint_bytes(
        found.model,
        standardizer=checkpoint.standardizer,
        dt=checkpoint.dt,
        training=dict(checkpoint.training) | {"again": settings, "fit": _notes(found, start)},
        arrays=checkpoint.arrays,
    )


def measure_fates(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Let the hard-gated model run from starts in the held-out data: its fates, and D_stsp from each."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    heldout = tuning_data(settings, checkpoint).heldout
    return long_runs(checkpoint, heldout.reshape(-1, heldout.shape[-1]), settings)


def _fitted(start: PALRNN, series: Any, settings: dict[str, Any]) -> NoiseFit:
    fit = NoiseFitConfig(**settings["fit"])
    return fit_noise(start, series, fit, filter_config(settings), progress=quiet, threads=1)


def _notes(found: NoiseFit, start: PALRNN) -> dict[str, Any]:
    """Return whether a fit converged, after how many passes, and the greatest change of a level, a share."""
    levels = np.array([_levels(found.model), _levels(start)])
    moved = math.expm1(float(np.abs(np.diff(np.log(levels), axis=0)).max()))
    return {"converged": found.converged, "evaluations": found.evaluations, "moved": moved}


def _levels(model: PALRNN) -> list[float]:
    """Return the deviations of process, observation and gate noise."""
    variances = (model.process_variances, model.observation_variances)
    return [*(float(each.mean()) ** 0.5 for each in variances), model.gate_std]
