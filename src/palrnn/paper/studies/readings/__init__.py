"""The readings that the paper's text allows: how many particles, which models, which process noise.

The paper does not say which forcing intervals its 60 models per stratum have, its entropies exceed what its
64 particles can show, and its process noise may be that of a step or of a unit of time. Every combination is
a reading, written down in the preset before it is computed; all of them use the paper's own estimator.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from palrnn.engine.config import Config, Count
from palrnn.paper.claim import Listing, Rival
from palrnn.paper.models import Regime
from palrnn.paper.presets import Counts
from palrnn.paper.studies.gap import GapStudy, GapVariant, ProcessNoise
from palrnn.paper.studies.readings.comparison import (
    best_reading,
    claims_by_reading,
    complete_readings,
    readings_listing,
)
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Store, Task

_COLUMNS = (
    "entropy_bits entropy_bound gap trace_itf trace_observed trace_complete mir logdet_gap q90 negative"
)
_COLUMNS += " log_evidence"


class Reading(Config):
    """One way to read the paper: the models with these forcing intervals and so many seeds of each."""

    name: str
    particles: Count
    tau: Counts
    seeds: Count
    process_noise: ProcessNoise


class ReadingsSettings(Config):
    """All readings; the first is the one that the curvature study was computed with."""

    readings: Annotated[tuple[Reading, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [reading.name for reading in self.readings]
        if len(set(names)) < len(names):
            raise ValueError("two readings have the same name")
        return self


@study("readings", place=32)
class ReadingsStudy(Study[ReadingsSettings]):
    """The curvature study once for each reading of the paper."""

    Settings = ReadingsSettings
    ours = True

    def check(self) -> None:
        GapStudy.of(self.preset)

    def reading_regimes(self, reading: Reading) -> list[Regime]:
        """The models of a reading, seed by seed, so that a stopped run has whole sets of noise levels."""
        gap = GapStudy.of(self.preset).settings
        return [
            Regime(process, observation, tau, seed)
            for seed in range(reading.seeds)
            for tau in reading.tau
            for process in gap.process_std
            for observation in gap.observation_std
        ]

    def regimes(self) -> list[Regime]:
        found = [regime for reading in self.settings.readings for regime in self.reading_regimes(reading)]
        return list(dict.fromkeys(found))

    def geometry_task(self, regime: Regime, reading: Reading) -> Task:
        """The paper's estimator with the particles and the process noise of a reading."""
        gap = GapStudy.of(self.preset)
        variant = gap.settings.variants[0]
        asked = GapVariant(**variant.samples | {"name": reading.name, "particles": reading.particles})
        return gap.geometry_task(regime, asked, reading.process_noise)

    def tasks(self) -> list[Task]:
        """Seed by seed, so that a stopped run has some models of every reading."""
        units = [
            (regime, reading)
            for reading in self.settings.readings
            for regime in self.reading_regimes(reading)
        ]
        return [self.geometry_task(*unit) for unit in sorted(units, key=lambda unit: unit[0].seed)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per reading and model."""
        rows, overlap = [], f"overlap{GapStudy.of(self.preset).settings.overlap}"
        for reading in self.settings.readings:
            for regime in self.reading_regimes(reading):
                found = store.result_or_empty(self.geometry_task(regime, reading))
                if found:
                    values = {name: found[name] for name in _COLUMNS.split()} | {overlap: found["overlap"]}
                    rows.append({"reading": reading.name} | regime._asdict() | values)
        return {"readings.csv": rows}

    def listings(self, tables: Tables) -> list[Listing]:
        claims = claims_by_reading(tables["readings"], self.preset.resamples)
        return [readings_listing(tables["readings"], self._models(), claims)]

    def rival(self, tables: Tables) -> Rival | None:
        """The claims on curvature under the best reading, unless that is the curvature study's own."""
        claims = claims_by_reading(tables["readings"], self.preset.resamples)
        best = best_reading(claims, complete_readings(tables["readings"], self._models()))
        if best is None or best == self.settings.readings[0].name:
            return None
        return Rival(best, GapStudy.name, claims[best])

    def _models(self) -> dict[str, int]:
        """How many models each reading has when it is complete."""
        return {reading.name: len(self.reading_regimes(reading)) for reading in self.settings.readings}
