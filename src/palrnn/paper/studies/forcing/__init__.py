"""How strong forcing should be: curvature, spectra and invariants between strict forcing and free running.

At one pair of noise levels, models are trained with generalised teacher forcing of several strengths at every
step (Hess et al., 2023), and with identity forcing at several intervals. Both have strict forcing, of full
strength at every step, at one end; the other end is nearly free running: an interval as long as the sequences
of the training, or a strength of a few thousandths. Each model is compared under the forcing that it was
trained with, by closed forms given the gates under the paper's target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Positive
from palrnn.model import Forcing
from palrnn.paper.claim import OPEN, Listing
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts
from palrnn.paper.studies.gap import GapStudy
from palrnn.paper.studies.survival import SurvivalStudy
from palrnn.paper.studies.truth import TruthStudy, closed_forms
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORCED = Kind("forced", "palrnn.paper.models:train_model", ".safetensors")
# the eigenvalues came with version 2
SPECTRA = Kind("spectra", "palrnn.paper.studies.forcing:measure_spectra", version=2)
#: The eigenvalues that the table has, counted from the largest.
RANKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500)
_GEOMETRIES = ("itf", "observed")
_COLUMNS = {
    "gap": "gap, decades",
    "logdet_gap": "log-det gap",
    "identifiable_q90": "q90, without null directions",
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
    pictures = (Picture(OPEN, "spectra", "Eigenvalues of both curvatures over the strength of forcing"),)

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

    def model_task(self, unit: Unit) -> Task:
        """The training of one model: that of the curvature study, where it is one of its models."""
        regime = self.regime(unit)
        task = checkpoint_task(self.preset, regime)
        if unit.alpha < 1.0:
            settings = dict(task.settings) | {"training": task.settings["training"] | {"alpha": unit.alpha}}
            return Task(FORCED, settings, label=f"{task.label}-a{unit.alpha:g}")
        if regime in GapStudy.of(self.preset).regimes():
            return task
        return Task(FORCED, task.settings, label=task.label)

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
        """One row per model; and one per model and rank, with the eigenvalues of both curvatures."""
        rows, spectra = [], []
        for unit in self.units():
            task, model = self.spectra_task(unit), self.model_task(unit)
            survival = SurvivalStudy.of(self.preset).survival_task(self.regime(unit), model)
            free = invariants_task(self.preset, model)
            if all(store.has(needed) for needed in (task, survival, free)):
                fates = [fate["outcome"] for fate in store.result(survival)["fates"]]
                found = {name: store.result(free)[name] for name in ("dstsp", "lyapunov")}
                found |= {"alive": float(all(fate == "moves on" for fate in fates))}
                curvatures = store.result(task)
                values = [curvatures.pop(f"eigenvalues_{name}") for name in _GEOMETRIES]
                rows.append(unit._asdict() | curvatures | found)
                for rank in RANKS:
                    if rank <= len(values[0]):
                        at = {name: of[rank - 1] for name, of in zip(_GEOMETRIES, values, strict=True)}
                        spectra.append(unit._asdict() | {"rank": rank} | at)
        return {"forcing.csv": rows, "spectra.csv": spectra}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["forcing"]), len(self.units())

    def listings(self, tables: Tables) -> list[Listing]:
        """One row per forcing, from strict to free: medians over seeds, with the lowest and the highest."""
        found, rows = tables["forcing"], []
        for (tau, negative), part in found.assign(negative=-found["alpha"]).groupby(["tau", "negative"]):
            cells = [_spread(part[column].to_numpy(float)) for column in _COLUMNS if column != "alive"]
            alive = f"{part['alive'].sum():.0f} of {len(part)}"
            rows.append([forcing_name(int(tau), -negative), f"{len(part)}", *cells, alive])
        there, wanted = self.row_counts(tables)
        so_far = "" if there == wanted else f" {there} of {wanted} models are there so far."
        words = (
            f"Process and observation noise {self.settings.process_std:g} and "
            f"{self.settings.observation_std:g}; closed forms under the paper's target and the forcing that "
            "the model was trained with; medians over seeds, with lowest and highest in brackets. The "
            f"effective rank is (sum of eigenvalues)^2 / sum of squares, of the positive ones.{so_far}"
        )
        return [Listing(OPEN, "Forcing strength", words, ["forcing", "models", *_COLUMNS.values()], rows)]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        from palrnn.paper.studies.forcing.figures import spectra_figure

        return {"spectra": spectra_figure(tables["spectra"])} if "spectra" in tables else {}


def forcing_name(tau: int, alpha: float) -> str:
    """Say in words how a model was forced."""
    if alpha < 1.0:
        return f"strength {alpha:g} at every step"
    return "strict: full strength at every step" if tau == 1 else f"every {tau} steps"


def measure_spectra(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures under the model's own forcing, and how many directions each holds."""
    found, compared = closed_forms(settings, inputs, Unit(settings["tau"], settings["alpha"], 0).forcing)
    spectra = zip(_GEOMETRIES, (compared.itf_eigenvalues, compared.observed_eigenvalues), strict=True)
    for name, values in spectra:
        found |= {
            f"largest_{name}": float(values[0]),
            f"rank_{name}": effective_rank(values),
            # the last digits of 940 numbers are noise
            f"eigenvalues_{name}": [float(f"{value:.5g}") for value in values],
        }
    return found


def effective_rank(eigenvalues: Floats) -> float:
    """Return (sum of eigenvalues)^2 / sum of squares, of the positive ones: k if k of them are alike."""
    kept = eigenvalues[eigenvalues > 0]
    return float(kept.sum() ** 2 / np.square(kept).sum())


def _spread(values: Floats) -> str:
    kept = values[np.isfinite(values)]
    if not len(kept):
        return ""
    return f"{np.median(kept):.3g} [{kept.min():.3g}, {kept.max():.3g}]"
