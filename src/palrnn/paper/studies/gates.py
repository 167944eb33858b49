"""Gate noise that is learned, and the invariants of the noisy model beside those of its hard-gated skeleton.

The paper fixes the gate noise and evaluates with all noise set to zero. Here the gate noise is learned with
the other two under the filter that targets the model itself, for which its likelihood is the right one. Every
model is run hard-gated from several starts, and sampled with all its noise with several seeds: one run of
either is one draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count
from palrnn.engine.seeds import kernel_seed
from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, measured_run
from palrnn.paper.studies.evidence import NOISE_LEVELS, EvidenceStudy
from palrnn.paper.studies.noise import NoiseStudy, Start, Way, fates_columns, fit_columns
from palrnn.paper.studies.noise import Unit as Tuning
from palrnn.paper.studies.noise.listings import LOST, fits_words
from palrnn.paper.studies.survival import SurvivalStudy, spread
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from pandas import DataFrame

COUNTERPARTS = Kind("counterparts", "palrnn.paper.studies.gates:measure_counterparts")
#: A tuning has settled if over so many iterations no level of noise changed by more than this share.
ITERATIONS, SHARE = 20, 0.01


class GatesSettings(Config):
    """How models are tuned, from which noise, on windows of one length; and how often each is sampled."""

    length: Count
    models: Count
    seeds: Count
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

    def tuning(self, unit: Unit) -> Tuning:
        """The same as a unit of the noise study."""
        return Tuning(unit.regime, self.settings.start, unit.way, self.settings.length)

    def unit_tasks(self, unit: Unit) -> tuple[Task, Task, Task]:
        """Its held-out evidence, its long hard-gated runs, and its invariants with and without noise."""
        free, noise, tuning = self.preset.invariants, NoiseStudy.of(self.preset), self.tuning(unit)
        settings: dict[str, Any] = {"steps": free.steps, "discard": free.discard, "bins": free.bins}
        settings |= {"smoothing": free.smoothing, "dt": self.preset.data.dt, "seed": unit.regime.seed}
        settings |= {"seeds": self.settings.seeds}
        tuned = noise.tuning_task(tuning)
        both = Task(COUNTERPARTS, settings, {"model": tuned}, label=tuned.label)
        return noise.evidence_task(tuning), noise.fates_task(tuning), both

    def tasks(self) -> list[Task]:
        return [task for unit in self.units() for task in self.unit_tasks(unit)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model and way; and one per model and iteration of particle-SAEM, with its noise."""
        rows, courses, noise = [], [], NoiseStudy.of(self.preset)
        for unit in self.units():
            evidence, fates, both = self.unit_tasks(unit)
            if not all(store.has(task) for task in (evidence, fates, both)):
                continue
            model = {"process_std": unit.regime.process_std, "observation_std": unit.regime.observation_std}
            row: dict[str, Any] = model | {
                "way": unit.way.name,
                "evidence": store.result(evidence)["evidence"],
            }
            row |= counterpart_columns(store.result(both)) | fates_columns(store.result(fates))
            tuned = noise.tuning_task(self.tuning(unit))
            course = checkpoint_from_bytes(store.read(tuned)).training.get("course")
            if course is not None:
                levels = np.array([course[name] for name in NOISE_LEVELS])
                row |= {"iterations": levels.shape[1] - 1, "last_change": last_change(levels)}
                # the levels without a prefix are what the model was trained with
                names = [f"fitted_{name}" for name in NOISE_LEVELS]
                courses += [
                    model | {"way": unit.way.name, "iteration": k} | dict(zip(names, each, strict=True))
                    for k, each in enumerate(levels.T.tolist())
                ]
            if unit.way.fit is not None:
                row |= fit_columns(store.read(tuned), len(noise.tuning_tasks(self.tuning(unit))))
            rows.append(row)
        return {"gates.csv": rows, "gate_courses.csv": courses}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["gates"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per way: medians over models."""
        columns = ["way", "n", "evidence", "gate noise", "process noise", "D_stsp, hard", "D_stsp, sampled"]
        columns += ["sampled nearer, further", "attractor kept, hard", "moves on, hard"]
        columns += ["largest exponent, hard", "largest exponent, sampled"]
        gates = tables["gates"]
        rows = [[str(way), f"{len(part)}", *_cells(part)] for way, part in gates.groupby("way", sort=False)]
        there, wanted = self.row_counts(tables)
        so_far = "" if there == wanted else f" {there} of {wanted} models are there so far."
        steps = SurvivalStudy.of(self.preset).settings.steps
        words = (
            f"Windows of {self.settings.length} steps; medians over models. `hard` is the free run without "
            f"noise, which the paper evaluates, from {gates['starts'].iloc[0]} starts, `sampled` the PAL-RNN "
            f"with all its noise, with {self.settings.seeds} seeds: medians over these, and in brackets the "
            "median of lowest and highest. Nearer or further are models of which all sampled runs are nearer "
            "to the true system than all hard-gated ones, or further. The exponent, hard, is of one run. "
            f"An attractor is kept if the median is below {LOST:g}; `moves on` counts models that move from "
            f"all starts for {steps:,} steps. "
            f"{settled_words(gates)}{fits_words(gates)}{so_far}"
        )
        return [Listing(OPEN, "Learned gate noise, and noisy invariants", words, columns, rows)]


def _cells(part: DataFrame) -> list[str]:
    """Return what the page says of one way, after its name and number of models."""
    middle = part.select_dtypes("number").median()
    cells = [f"{middle[name]:.3g}" for name in ("evidence", "gate_std", "fitted_process_std")]
    for name in ("dstsp", "sampled_dstsp"):
        low, high = middle[f"{name}_low"], middle[f"{name}_high"]
        cells.append(f"{middle[f'{name}_median']:.3g} [{low:.3g}, {high:.3g}]")
    nearer = (part["sampled_dstsp_high"] < part["dstsp_low"]).sum()
    further = (part["sampled_dstsp_low"] > part["dstsp_high"]).sum()
    kept = (part["dstsp_median"] < LOST).sum()
    alive = (part["moves_on"] == part["starts"]).sum()
    cells += [f"{nearer}, {further} of {len(part)}", f"{kept} of {len(part)}", f"{alive} of {len(part)}"]
    low, high = middle["sampled_lyapunov_low"], middle["sampled_lyapunov_high"]
    sampled = f"{middle['sampled_lyapunov_median']:.3g} [{low:.3g}, {high:.3g}]"
    return [*cells, f"{middle['lyapunov_hard']:.3g}", sampled]


def settled_words(gates: DataFrame) -> str:
    """Say how many runs of particle-SAEM had settled at their end; nothing without any."""
    if "last_change" not in gates or gates["last_change"].isna().all():
        return ""
    change = gates["last_change"].dropna()
    iterations = gates["iterations"].dropna()
    return (
        f"Of {len(change)} runs of particle-SAEM, of {iterations.iloc[0]:.0f} iterations, "
        f"{(change < SHARE).sum()} had settled: over the last {ITERATIONS} no noise level changed by more "
        f"than {SHARE:.0%} (the greatest change is {change.median():.1%} in the median of the runs, "
        f"{change.max():.1%} in one). "
    )


def last_change(levels: Floats) -> float:
    """Return the greatest change, as a share, of ``levels (K, iterations + 1)`` over the last `ITERATIONS`.

    NaN for a run that is shorter than that.
    """
    if levels.shape[1] <= ITERATIONS:
        return float("nan")
    return float(np.abs(levels[:, -1] / levels[:, -1 - ITERATIONS] - 1.0).max())


def counterpart_columns(found: dict[str, Any]) -> dict[str, Any]:
    """Return noise levels, the hard-gated run and the spread of the sampled ones as columns."""
    kept = {name: value for name, value in found.items() if not name.endswith("_sampled")}
    # a run that diverged is infinitely far away, and has no exponent
    exponents = [value for value in found["lyapunov_sampled"] if value is not None] or [float("nan")]
    return kept | spread("sampled_dstsp", found["dstsp_sampled"]) | spread("sampled_lyapunov", exponents)


def measure_counterparts(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Measure a tuned model against the deterministic system: hard-gated once, and sampled with each seed."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    model = checkpoint.model
    assert isinstance(model, PALRNN)
    seeds = [kernel_seed(settings["seed"], "sampled", k) for k in range(settings["seeds"])]
    hard = measured_run(model.drift, checkpoint, settings).numbers()
    runs = [measured_run(model, checkpoint, settings | {"seed": seed}).numbers() for seed in seeds]
    return {
        "gate_std": float(model.gate_std),
        "fitted_process_std": float(model.process_variances.mean() ** 0.5),
        "lyapunov_hard": hard["lyapunov"],
        "dstsp_sampled": [run["dstsp"] for run in runs],
        "lyapunov_sampled": [run["lyapunov"] for run in runs],
    }
