"""Where even the best reading differs from the paper: another segment, seed of the filter, or weighting?

The paper says neither which stretch of which series its segments are, nor the seed of its filter. Of the
weighting Lambda of the ITF Fisher it says that it is "chosen" (eq. tfgn), that it is R, and that R has the
scale of standardised coordinates; and that the matrix belongs to "the one-step prediction" along a rollout
that is forced at some steps only. Each of these ways to read it was written down in the preset before any of
them was computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Whole
from palrnn.geometry import ITFOperator
from palrnn.model import PALRNN, Forcing
from palrnn.paper.claim import Listing
from palrnn.paper.models import Regime, checkpoint_task
from palrnn.paper.studies.further.comparison import further_listing
from palrnn.paper.studies.gap import GapStudy, compared_curvatures, measured_segment
from palrnn.paper.studies.readings import Reading, ReadingsStudy
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

FURTHER = Kind("further", "palrnn.paper.studies.further:measure_further")
# a seed of the filter that no model has
_APART = 1000


class Way(Config):
    """What is different from a reading.

    - ``start``: the first step of the segment within the test series
    - ``again``: another seed of the filter, by number
    - ``noise``: ``own`` takes for R and Lambda the noise that each standardised coordinate has, ``nominal``
      its level
    - ``weights``: ``loss`` takes the identity for Lambda, as the loss does in training
    - ``rows``: ``forced`` sums only over the predictions from forced states, per such prediction
    """

    name: str
    start: Whole = 0
    again: Whole = 0
    noise: Literal["nominal", "own"] = "nominal"
    weights: Literal["noise", "loss"] = "noise"
    rows: Literal["all", "forced"] = "all"

    @property
    def difference(self) -> dict[str, Any]:
        """What a task is told of it, but for the seed."""
        return self.model_dump(include={"start", "noise", "weights", "rows"})


class FurtherSettings(Config):
    """Of which readings, by name, and in which ways."""

    readings: Annotated[tuple[str, ...], Field(min_length=1)]
    ways: Annotated[tuple[Way, ...], Field(min_length=1)]


@study("further", place=33)
class FurtherStudy(Study[FurtherSettings]):
    """Some readings once more, in ways that the paper's text leaves open."""

    Settings = FurtherSettings
    ours = True

    def check(self) -> None:
        known = [reading.name for reading in ReadingsStudy.of(self.preset).settings.readings]
        for name in self.settings.readings:
            if name not in known:
                raise ValueError(f"further.readings must be names of readings, got {name!r}")
        length, series = self.preset.gap.length, self.preset.data.test_steps
        for way in self.settings.ways:
            if way.start + length > series:
                raise ValueError(f"further.ways: {way.name!r} goes beyond the {series} steps of the series")
        longest = max(regime.tau for regime in self.regimes())
        if any(way.rows == "forced" for way in self.settings.ways) and longest >= length - 1:
            raise ValueError(f"further.ways: with tau = {longest} no step of a segment of {length} is forced")

    def readings(self) -> list[Reading]:
        """The readings that are looked at."""
        known = {reading.name: reading for reading in ReadingsStudy.of(self.preset).settings.readings}
        return [known[name] for name in self.settings.readings]

    def regimes(self) -> list[Regime]:
        readings = ReadingsStudy.of(self.preset)
        found = [regime for reading in self.readings() for regime in readings.reading_regimes(reading)]
        return list(dict.fromkeys(found))

    def further_task(self, regime: Regime, reading: Reading, way: Way) -> Task:
        """The paper's estimator of one model, with what is different."""
        gap = GapStudy.of(self.preset)
        how = gap.settings
        settings = gap.segment_settings(regime, reading.process_noise) | how.variants[0].samples
        settings |= {
            "particles": reading.particles,
            "ess_threshold": how.ess_threshold,
            "ridge": how.ridge,
            "overlap": how.overlap,
            "seed": regime.seed + _APART * way.again,
        }
        needs = {"model": checkpoint_task(self.preset, regime)}
        return Task(FURTHER, settings | way.difference, needs, label=f"{regime.name} {way.name}")

    def units(self) -> list[tuple[Reading, Way, Regime]]:
        """Every model of every reading, way by way."""
        readings = ReadingsStudy.of(self.preset)
        return [
            (reading, way, regime)
            for reading in self.readings()
            for way in self.settings.ways
            for regime in readings.reading_regimes(reading)
        ]

    def tasks(self) -> list[Task]:
        return [self.further_task(regime, reading, way) for reading, way, regime in self.units()]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per reading, way and model."""
        rows, overlap = [], f"overlap{GapStudy.of(self.preset).settings.overlap}"
        for reading, way, regime in self.units():
            found = store.result_or_empty(self.further_task(regime, reading, way))
            if found:
                found[overlap] = found.pop("overlap")
                rows.append({"reading": reading.name, "way": way.name} | regime._asdict() | found)
        return {"further.csv": rows}

    def listings(self, tables: Tables) -> list[Listing]:
        if "readings" not in tables:
            return []
        models = {
            reading.name: len(ReadingsStudy.of(self.preset).reading_regimes(reading))
            for reading in self.readings()
        }
        resamples = self.preset.resamples
        return [
            further_listing(name, tables["readings"], tables["further"], count, resamples)
            for name, count in models.items()
            if (tables["further"]["reading"] == name).any()
        ]


def weighted_fisher(model: PALRNN, x: Floats, tau: int, weights: str, rows: str) -> Floats:
    """Return the ITF Fisher ``(p, p)`` along the rollout on ``x``, weighted and summed as a `Way` says."""
    operator = ITFOperator(model, x, tau, 1.0 if weights == "loss" else model.observation)
    if rows == "all":
        return operator.dense()
    forced = Forcing.identity(tau).strengths(len(x) - 1) > 0
    factor = operator.factor()[forced].reshape(-1, operator.parameters)
    # per step: G holds the root of 1 / (T - 1)
    return np.asarray(factor.T @ factor) * (len(forced) / forced.sum())


def measure_further(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures as the curvature study does, with what is different from a reading."""
    model, x = measured_segment(settings, inputs)
    fisher = weighted_fisher(model, x, settings["tau"], settings["weights"], settings["rows"])
    found, gap, compared = compared_curvatures(model, x, fisher, settings)
    return {
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.entropy_bound,
        "gap": gap,
        "trace_itf": float(np.trace(fisher)),
        "trace_observed": found.trace_observed,
        "trace_complete": found.trace_complete,
        "mir": found.mir,
        "logdet_gap": compared.logdet_gap,
        "q90": compared.q90,
        "negative": compared.negative,
        "log_evidence": found.log_evidence,
        "overlap": compared.overlap,
    }
