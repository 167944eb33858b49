"""How strong forcing should be: curvature, spectra and invariants between strict forcing and free running.

At one pair of noise levels, models are trained with generalised teacher forcing of several strengths at every
step (Hess et al., 2023), and with identity forcing at several intervals. Each is compared under the forcing
that it was trained with, by closed forms given the gates under the paper's target.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Positive
from palrnn.model import Forcing
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts
from palrnn.paper.studies.survival import SurvivalStudy
from palrnn.paper.studies.truth import TruthStudy, closed_forms
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

FORCED = Kind("forced", "palrnn.paper.models:train_model", ".safetensors")
SPECTRA = Kind("spectra", "palrnn.paper.studies.forcing:measure_spectra")
_COLUMNS = {
    "gap": "gap, decades",
    "logdet_gap": "log-det gap",
    "identifiable_q90": "q90",
    "overlap": "overlap",
    "rank_itf": "effective rank, forcing",
    "rank_observed": "effective rank, likelihood",
    "entropy_bits": "entropy, bits",
    "dstsp": "D_stsp",
    "lyapunov": "largest exponent",
    "alive": "alive from all starts",
}


class ForcingSettings(Config):
    """Which strengths at every step, and which intervals of full strength."""

    process_std: Positive
    observation_std: Positive
    alpha: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    tau: Counts
    seeds: Count


class Unit(NamedTuple):
    """One model: identity forcing every ``tau`` steps, or of strength ``alpha`` at every step."""

    tau: int
    alpha: float
    seed: int

    @property
    def forcing(self) -> Forcing:
        """What it was trained with."""
        return Forcing.identity(self.tau) if self.alpha == 1.0 else Forcing.generalised(self.alpha)


@study("forcing", place=80)
class ForcingStudy(Study[ForcingSettings]):
    """The curvature and the invariants of models by the forcing that trained them."""

    Settings = ForcingSettings
    ours = True

    def check(self) -> None:
        TruthStudy.of(self.preset)
        SurvivalStudy.of(self.preset)

    def units(self) -> list[Unit]:
        """All models, seed by seed: by interval, then by strength."""
        how = self.settings
        forced = [(tau, 1.0) for tau in how.tau] + [(1, alpha) for alpha in how.alpha]
        return [Unit(*which, seed) for seed in range(how.seeds) for which in dict.fromkeys(forced)]

    def regime(self, unit: Unit) -> Regime:
        """The noise levels and the seed, by which the data and the filter are known."""
        return Regime(self.settings.process_std, self.settings.observation_std, unit.tau, unit.seed)

    def regimes(self) -> list[Regime]:
        """The models of identity forcing, which other studies share."""
        return [self.regime(unit) for unit in self.units() if unit.alpha == 1.0]

    def model_task(self, unit: Unit) -> Task:
        """The training of one model."""
        task = checkpoint_task(self.preset, self.regime(unit))
        if unit.alpha == 1.0:
            return task
        settings = dict(task.settings) | {"training": task.settings["training"] | {"alpha": unit.alpha}}
        return Task(FORCED, settings, label=f"{task.label}-a{unit.alpha:g}")

    def spectra_task(self, unit: Unit) -> Task:
        """Both curvatures of one model, under its own forcing."""
        settings = TruthStudy.of(self.preset).closed_form_settings(self.regime(unit), "paper")
        model = self.model_task(unit)
        return Task(SPECTRA, settings | {"alpha": unit.alpha}, {"model": model}, label=model.label)

    def tasks(self) -> list[Task]:
        tasks = []
        for unit in self.units():
            model = self.model_task(unit)
            survival = SurvivalStudy.of(self.preset).survival_task(self.regime(unit), model)
            tasks += [self.spectra_task(unit), invariants_task(self.preset, model), survival]
        return tasks

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model."""
        rows = []
        for unit in self.units():
            spectra, model = self.spectra_task(unit), self.model_task(unit)
            survival = SurvivalStudy.of(self.preset).survival_task(self.regime(unit), model)
            free = invariants_task(self.preset, model)
            if all(store.has(task) for task in (spectra, survival, free)):
                fates = [fate["outcome"] for fate in store.result(survival)["fates"]]
                found = {name: store.result(free)[name] for name in ("dstsp", "lyapunov")}
                found |= {"alive": float(all(fate == "moves on" for fate in fates))}
                rows.append(unit._asdict() | store.result(spectra) | found)
        return {"forcing.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["forcing"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per forcing: medians over seeds, with the lowest and the highest."""
        found, rows = tables["forcing"], []
        for (tau, alpha), part in found.groupby(["tau", "alpha"], sort=False):
            name = f"every {tau} steps" if alpha == 1.0 else f"strength {alpha:g} at every step"
            cells = [_spread(part[column].to_numpy(float)) for column in _COLUMNS if column != "alive"]
            rows.append([name, f"{len(part)}", *cells, f"{part['alive'].sum():.0f} of {len(part)}"])
        there, wanted = self.row_counts(tables)
        so_far = "" if there == wanted else f" {there} of {wanted} models are there so far."
        words = (
            f"Process and observation noise {self.settings.process_std:g} and "
            f"{self.settings.observation_std:g}; closed forms under the paper's target and the forcing that "
            "the model was trained with; medians over seeds, with lowest and highest in brackets. The "
            f"effective rank is (sum of eigenvalues)^2 / sum of squares, of the positive ones.{so_far}"
        )
        return [Listing(OPEN, "Forcing strength", words, ["forcing", "models", *_COLUMNS.values()], rows)]


def measure_spectra(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures under the model's own forcing, and how many directions each holds."""
    found, compared = closed_forms(settings, inputs, Unit(settings["tau"], settings["alpha"], 0).forcing)
    return found | {
        "largest_itf": float(compared.itf_eigenvalues[0]),
        "largest_observed": float(compared.observed_eigenvalues[0]),
        "rank_itf": effective_rank(compared.itf_eigenvalues),
        "rank_observed": effective_rank(compared.observed_eigenvalues),
    }


def effective_rank(eigenvalues: Floats) -> float:
    """Return (sum of eigenvalues)^2 / sum of squares, of the positive ones: k if k of them are alike."""
    kept = eigenvalues[eigenvalues > 0]
    return float(kept.sum() ** 2 / np.square(kept).sum())


def _spread(values: Floats) -> str:
    kept = values[np.isfinite(values)]
    if not len(kept):
        return ""
    return f"{np.median(kept):.3g} [{kept.min():.3g}, {kept.max():.3g}]"
