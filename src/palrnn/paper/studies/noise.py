"""What the start noise decides: evidence against dynamics, for tuning from two starts and in several ways.

The models, data and window lengths are those of the evidence study; what differs is the noise that tuning
starts from, and what it changes how. Every result is a point of evidence and D_stsp; those that no other
point beats in both are the front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Positive
from palrnn.engine.progress import quiet
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts, plain_settings
from palrnn.paper.studies.evidence import (
    EVIDENCE,
    TUNING,
    EvidenceStudy,
    filter_config,
    tuned_checkpoint,
)
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task
from palrnn.tuning import NoiseFitConfig, SAEMConfig, fit_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

FIT = Kind("fit", "palrnn.paper.studies.noise:fit_model_noise", ".safetensors")
# nats: the models of teacher forcing that keep their attractor have about 2
_LOST = 5.0


class Start(Config):
    """The noise that tuning starts from."""

    process_std: Positive
    gate_std: Positive


class Way(Config):
    """A way of tuning: particle-SAEM, given what the evidence study does not do, or a fit of the noise."""

    name: str
    saem: SAEMConfig | None = None
    fit: NoiseFitConfig | None = None
    target: Literal["paper", "exact"] = "paper"

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.saem is None) == (self.fit is None):
            raise ValueError("must have either saem or fit")
        if self.saem is not None and self.saem.target != self.target:
            raise ValueError(f"target must be that of saem, {self.saem.target!r}, is {self.target!r}")
        return self


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
    pictures = (Picture(OPEN, "front", "Evidence against D_stsp, by way of tuning and start"),)

    def check(self) -> None:
        EvidenceStudy.of(self.preset)

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
        """The tuning of one model from one start."""
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
            settings["fit"] = plain_settings(way.fit) | {"length": unit.length}
            settings |= {"particles": self.settings.fit_particles, "target": way.target}
            settings["ess_threshold"] = evidence.saem.ess_threshold
            return Task(FIT, settings, needs, cost=5.0 * unit.length, label=label)
        assert way.saem is not None
        config = plain_settings(way.saem)
        if way.saem.configuration == "baseline":
            return Task(TUNING, settings | {"saem": config}, needs, cost=1e-3, label=unit.regime.name)
        config = plain_settings(evidence.saem) | config | {"length": unit.length}
        cost = float(unit.length * config["iterations"])
        return Task(TUNING, settings | {"saem": config}, needs, cost=cost, label=label)

    def evidence_task(self, unit: Unit) -> Task:
        """Its evidence on held-out windows of the evidence study, under the target of its way."""
        settings = EvidenceStudy.of(self.preset).filter_settings() | {
            "length": unit.length,
            "windows": self.settings.heldout_windows,
            "particles": self.settings.particles,
            "target": unit.way.target,
        }
        tuning = self.tuning_task(unit)
        return Task(EVIDENCE, settings, {"model": tuning}, cost=float(unit.length), label=tuning.label)

    def tasks(self) -> list[Task]:
        return [
            task
            for unit in self.units()
            for task in (self.evidence_task(unit), invariants_task(self.preset, self.tuning_task(unit)))
        ]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model, start, way and length."""
        rows = []
        for unit in self.units():
            evidence = self.evidence_task(unit)
            free = invariants_task(self.preset, self.tuning_task(unit))
            if store.has(evidence) and store.has(free):
                found, invariants = store.result(evidence), store.result(free)
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
                rows.append(row)
        return {"noise.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["noise"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per way and start: medians over models and lengths, and how often it is on the front."""
        noise = tables["noise"].dropna(subset=["evidence"]).reset_index(drop=True)
        on_front = np.zeros(len(noise), dtype=bool)
        for _, part in noise.groupby(["process_std", "observation_std", "length"]):
            on_front[part.index] = front(part["evidence"].to_numpy(), part["dstsp"].to_numpy())
        exponent, rows = self.preset.invariants.lyapunov_reference, []
        keys = ["way", "start_process_std", "start_gate_std"]
        for (way, process, gate), part in noise.groupby(keys, sort=False):
            middle = part[["evidence", "dstsp", "fitted_process_std"]].median()
            error = (part["lyapunov"] - exponent).median()
            cells = [f"{middle['evidence']:.3f}", f"{middle['dstsp']:.2f}", f"{error:.2f}"]
            cells += [f"{middle['fitted_process_std']:.3f}", f"{on_front[part.index].mean():.0%}"]
            rows.append([way, f"{process:g}, {gate:g}", f"{len(part)}", *cells])
        there, wanted = self.row_counts(tables)
        so_far = "" if there == wanted else f" {there} of {wanted} tunings are there so far."
        words = (
            "Medians over models and window lengths. `front`: how often no other way has both more evidence "
            f"and a smaller D_stsp, for the same model and length.{so_far}"
        )
        columns = ["way", "start: process, gate", "n", "evidence", "D_stsp", "Lyapunov error"]
        columns += ["process noise at the end", "front"]
        return [Listing(OPEN, "What the start noise decides", words, columns, rows), *self._by_length(noise)]

    def _by_length(self, noise: DataFrame) -> list[Listing]:
        """Ways that tune the drift beside the noise fitted alone from the same start, by length of window."""
        alone = [way.name for way in self.settings.ways if way.fit is not None]
        tuned = [w.name for w in self.settings.ways if w.saem and w.saem.configuration != "baseline"]
        if not (alone and tuned):
            return []
        model, start = ["process_std", "observation_std"], ["start_process_std", "start_gate_std"]
        fitted = noise[noise["way"] == alone[0]][[*model, *start, "length", "evidence", "dstsp"]]
        both = noise[noise["way"].isin(tuned)].merge(
            fitted, on=[*model, *start, "length"], suffixes=("", "_alone")
        )
        rows = []
        for (way, process, gate, length), part in both.groupby(["way", *start, "length"], sort=False):
            more, nearer = part["evidence"] > part["evidence_alone"], part["dstsp"] < part["dstsp_alone"]
            middle = part[["evidence", "evidence_alone", "dstsp", "dstsp_alone"]].median()
            cells = [f"{middle['evidence']:.3f} ({middle['evidence_alone']:.3f})"]
            cells += [f"{middle['dstsp']:.2f} ({middle['dstsp_alone']:.2f})"]
            counts = ((part["dstsp"] < _LOST).sum(), more.sum(), (more & nearer).sum())
            cells += [f"{count} of {len(part)}" for count in counts]
            rows.append([way, f"{process:g}, {gate:g}", f"{length}", *cells])
        words = (
            f"Medians over models, and in brackets those of `{alone[0]}` from the same start, which does not "
            f"change the drift; a D_stsp of {_LOST:g} or more counts as a lost attractor."
        )
        columns = ["way", "start: process, gate", "length", "evidence (noise alone)", "D_stsp (noise alone)"]
        columns += ["attractor kept", "more evidence", "more evidence and smaller D_stsp"]
        return [Listing(OPEN, "Tuning the drift, by the length of windows", words, columns, rows)]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        """Draw evidence against D_stsp."""
        from matplotlib.figure import Figure

        from palrnn.engine.style import PALETTE

        noise = tables["noise"]
        figure = Figure(figsize=(7, 4), layout="constrained")
        ax = figure.subplots()
        runs = noise.groupby(["way", "start_process_std"], sort=False)
        ways = list(dict.fromkeys(noise["way"]))
        for (way, process), part in runs:
            colour = PALETTE[ways.index(way) % len(PALETTE)]
            marker = "o" if process == noise["start_process_std"].max() else "^"
            label = f"{way}, from {process:g}"
            ax.plot(part["dstsp"], part["evidence"], marker, color=colour, markersize=4, label=label)
        ax.set(xlabel="D_stsp (nats)", ylabel="held-out evidence (nats per step and dimension)")
        figure.legend(loc="outside right upper", fontsize=7)
        return {"front": figure}


def fit_model_noise(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Give the model noise and climb the evidence of the tuning data; the drift stays."""
    return tuned_checkpoint(
        settings,
        inputs,
        lambda start, series: fit_noise(
            start,
            series,
            NoiseFitConfig(**settings["fit"]),
            filter_config(settings),
            progress=quiet,
            threads=1,
        ).model,
    )


def front(evidence: Floats, dstsp: Floats) -> NDArray[np.bool_]:
    """Return which points no other beats: at least as good in both, and better in one."""
    more, nearer = evidence[None, :] >= evidence[:, None], dstsp[None, :] <= dstsp[:, None]
    better = (evidence[None, :] > evidence[:, None]) | (dstsp[None, :] < dstsp[:, None])
    return np.asarray(~(more & nearer & better).any(axis=1))
