"""Panel (c): does more evidence mean better dynamics?

A model is given noise and fine-tuned on windows (`tuning`), the result is a PAL-RNN; then its evidence on
held-out windows (`evidence`) and the invariants of its hard-gated rollout (`invariants`) are separate tasks.
``baseline`` is not tuned, so it is one model for all window lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed
from palrnn.engine.progress import quiet
from palrnn.inference import FilterConfig, FilterDiedError, windowed_evidence
from palrnn.model import PALRNN, Checkpoint, checkpoint_bytes, checkpoint_from_bytes
from palrnn.paper.claim import Claim, Finding
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts, Levels, Preset, plain_settings
from palrnn.paper.series import TuningDataSettings, TuningSeries, tuning_series
from palrnn.paper.studies.evidence.claims import coordinates_finding, evidence_claims
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task
from palrnn.tuning import SAEMConfig, saem

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

TUNING = Kind("tuning", "palrnn.paper.studies.evidence:tune_model", ".safetensors")
EVIDENCE = Kind("evidence", "palrnn.paper.studies.evidence:measure_evidence")
#: Columns of a tuning's history.
NOISE_LEVELS = ("process_std", "observation_std", "gate_std")


class EvidenceSettings(Config):
    """Fine-tuning by windowed evidence."""

    process_std: Levels
    observation_std: Levels
    tau: Count
    seed: Seed
    lengths: Counts
    configurations: tuple[Literal["baseline", "calib", "full"], ...]
    start_process_std: Positive
    start_observation_std: Positive
    gate_std: Positive
    heldout_windows: Count
    data: TuningDataSettings
    saem: SAEMConfig
    saem_seed: Seed

    @model_validator(mode="after")
    def _room_for_the_windows(self) -> Self:
        longest = max(self.lengths)
        room = self.data.sequences * ((self.data.heldout_steps - 1) // longest)
        if room < self.heldout_windows:
            raise ValueError(
                f"data.heldout_steps must hold {self.heldout_windows} windows of {longest}, holds {room}"
            )
        return self


class ExampleSettings(Config):
    """One of the models of this study, which another study looks at before and after tuning."""

    process_std: Level
    observation_std: Level
    length: Count


class Unit(NamedTuple):
    """A trained model, how it is tuned, and on windows of which length."""

    regime: Regime
    configuration: str
    length: int


@study("evidence", place=50)
class EvidenceStudy(Study[EvidenceSettings]):
    """Held-out evidence, D_stsp and Lyapunov exponent of models before and after tuning."""

    Settings = EvidenceSettings
    panel_width = 1.2

    def regimes(self) -> list[Regime]:
        """One model for each pair of noise levels, at one forcing interval."""
        how = self.settings
        return [
            Regime(process, observation, how.tau, how.seed)
            for process in how.process_std
            for observation in how.observation_std
        ]

    def units(self) -> list[Unit]:
        """Every model, configuration and window length; short windows first, as they are quick."""
        how = self.settings
        return [
            Unit(regime, configuration, length)
            for length in sorted(how.lengths)
            for configuration in how.configurations
            for regime in self.regimes()
        ]

    def tuning_task(self, unit: Unit) -> Task:
        """The fine-tuning of one model in one configuration with one window length."""
        how, config = self.settings, {"configuration": unit.configuration}
        name, cost = f"{unit.regime.name} {unit.configuration}", 1e-3
        if unit.configuration != "baseline":
            config |= plain_settings(how.saem) | {"length": unit.length}
            name, cost = f"{name} L{unit.length}", float(unit.length)
        settings = {
            "data": plain_settings(how.data),
            "process_std": how.start_process_std,
            "observation_std": how.start_observation_std,
            "gate_std": how.gate_std,
            "saem": config,
            "seed": how.saem_seed,
        }
        needs = {"model": checkpoint_task(self.preset, unit.regime)}
        return Task(TUNING, settings, needs, cost=cost, label=name)

    def example_tasks(self, name: str, example: ExampleSettings) -> dict[str, Task]:
        """The example of study ``name`` before and after full tuning, by configuration."""
        for setting, known in (
            ("length", self.settings.lengths),
            ("process_std", self.settings.process_std),
            ("observation_std", self.settings.observation_std),
        ):
            value = getattr(example, setting)
            if value not in known:
                plural = f"evidence.{setting}" + ("s" if setting == "length" else "")
                raise ValueError(f"{name}.{setting} must be one of {plural}, is {value}")
        regime = Regime(example.process_std, example.observation_std, self.settings.tau, self.settings.seed)
        return {
            configuration: self.tuning_task(Unit(regime, configuration, example.length))
            for configuration in ("baseline", "full")
        }

    def filter_settings(self) -> dict[str, Any]:
        """How held-out windows are filtered."""
        how = self.settings.saem
        return {
            "data": plain_settings(self.settings.data),
            "particles": how.particles,
            "ess_threshold": how.ess_threshold,
            "target": how.target,
            "seed": self.settings.saem_seed,
        }

    def evidence_task(self, unit: Unit) -> Task:
        """The held-out evidence of one tuned model, on the same windows for all of them."""
        settings = self.filter_settings() | {
            "length": unit.length,
            "windows": self.settings.heldout_windows,
        }
        label = f"{unit.regime.name} {unit.configuration} L{unit.length}"
        needs = {"model": self.tuning_task(unit)}
        return Task(EVIDENCE, settings, needs, cost=float(unit.length), label=label)

    def tasks(self) -> list[Task]:
        return [
            task
            for unit in self.units()
            for task in (self.evidence_task(unit), invariants_task(self.preset, self.tuning_task(unit)))
        ]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model, configuration and window length, as far as evidence and invariants are there."""
        rows, timings = [], store.timings()
        for unit in self.units():
            tuning, evidence = self.tuning_task(unit), self.evidence_task(unit)
            invariants = invariants_task(self.preset, tuning)
            if not (store.has(evidence) and store.has(invariants)):
                continue
            found, free = store.result(evidence), store.result(invariants)
            exponent = free["lyapunov"]
            spent = [timings[task.hash]["seconds"] for task in (tuning, evidence) if task.hash in timings]
            rows.append(
                {
                    "process_std": unit.regime.process_std,
                    "observation_std": unit.regime.observation_std,
                    "length": unit.length,
                    "configuration": unit.configuration,
                    "evidence": found["evidence"],
                    "evidence_stderr": found["evidence_stderr"],
                    "died": found["died"] is not None,
                    "dstsp": free["dstsp"],
                    "outside": free["outside"],
                    "lyapunov": exponent,
                    "lyapunov_error": None
                    if exponent is None
                    else exponent - self.preset.invariants.lyapunov_reference,
                    "diverged_at": free["diverged_at"],
                    "fitted_process_std": found["fitted_process_std"],
                    "fitted_observation_std": found["fitted_observation_std"],
                    "seconds": round(sum(spent), 3) if len(spent) == 2 else None,
                }
            )
        return {"evidence.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["evidence"]), len(self.units())

    def claims(self, tables: Tables) -> list[Claim]:
        return evidence_claims(tables["evidence"], self.preset.resamples)

    def findings(self, tables: Tables) -> list[Finding]:
        if "checkpoints" not in tables:
            return []
        how = self.settings
        return [coordinates_finding(tables["evidence"], tables["checkpoints"], how.tau, how.seed)]

    def panel(self, figure: SubFigure, tables: Tables) -> None:
        from palrnn.paper.studies.evidence.panel import draw_panel

        draw_panel(figure, tables)


def reference_tau(preset: Preset) -> int | None:
    """The forcing interval of the models that are tuned, which other studies look at alone, too."""
    return EvidenceStudy(preset).settings.tau if EvidenceStudy.is_in(preset) else None


def tune_model(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Give the model noise and fine-tune it by particle-SAEM; the course of its noise is kept."""
    config, seed = SAEMConfig(**settings["saem"]), settings["seed"]

    def tune(start: PALRNN, series: Floats) -> tuple[PALRNN, dict[str, Any]]:
        found = saem(start, series, config, seed=seed, progress=quiet, threads=1)
        return found.model, {"course": {name: found.history[name].tolist() for name in NOISE_LEVELS}}

    return tuned_checkpoint(settings, inputs, tune)


def tuned_checkpoint(
    settings: dict[str, Any],
    inputs: dict[str, bytes],
    tune: Callable[[PALRNN, Floats], tuple[PALRNN, dict[str, Any]]],
) -> bytes:
    """Give the model noise and ``tune`` it; the result lives in the coordinates of the tuning data.

    What ``tune`` has to say beside the model joins the notes on its training.
    """
    checkpoint = checkpoint_from_bytes(inputs["model"])
    series = tuning_data(settings, checkpoint)
    noises = (settings[name] for name in ("process_std", "observation_std", "gate_std"))
    model, notes = tune(PALRNN(checkpoint.drift, *noises), series.train)
    return checkpoint_bytes(
        model,
        standardizer=series.standardizer,
        dt=checkpoint.dt,
        training={"tuning": settings, "trained": checkpoint.training} | notes,
        arrays={"x1": series.train[0, 0]},
    )


def measure_evidence(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Score the held-out windows; the model's fitted noise is reported with them.

    Where no particle can explain some window, there is no evidence, and ``died`` says where.
    """
    checkpoint = checkpoint_from_bytes(inputs["model"])
    model = checkpoint.model
    assert isinstance(model, PALRNN)
    heldout = tuning_data(settings, checkpoint).heldout
    noises = {
        "fitted_process_std": float(np.sqrt(model.process_variances.mean())),
        "fitted_observation_std": float(np.sqrt(model.observation_variances.mean())),
    }
    try:
        found = windowed_evidence(
            model,
            heldout,
            settings["length"],
            filter_config(settings),
            windows=settings["windows"],
            progress=quiet,
            threads=1,
        )
    except FilterDiedError as error:
        return noises | {"evidence": math.nan, "evidence_stderr": math.nan, "died": str(error)}
    return noises | {"evidence": found.mean, "evidence_stderr": found.stderr, "died": None}


def filter_config(settings: dict[str, Any]) -> FilterConfig:
    """Return the filter of a task's settings."""
    return FilterConfig(**{name: settings[name] for name in ("particles", "ess_threshold", "target", "seed")})


def tuning_data(settings: dict[str, Any], checkpoint: Checkpoint) -> TuningSeries:
    """Return the series of a task's settings, at the time step that the model was trained for."""
    assert checkpoint.dt is not None
    return tuning_series(TuningDataSettings(**settings["data"]), checkpoint.dt)
