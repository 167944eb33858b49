"""Panel (b): how much sharper is the teacher-forcing objective than the likelihood, at the same parameters?

One task is one model and one way of estimating the observed information (a variant). The segment is the first
stretch of the model's own test series, the noise of the PAL-RNN that of its own training data.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from palrnn.engine.checks import Floats, as_instance
from palrnn.engine.config import Config, Count, Positive, Seed
from palrnn.geometry import (
    IndefiniteInformationWarning,
    InformationConfig,
    Mismatch,
    ObservedInformation,
    SampledInformation,
    curvature_gap,
    itf_fisher,
    mismatch,
    observed_information,
)
from palrnn.inference import FewPathsWarning
from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.claim import Claim, Finding
from palrnn.paper.models import Regime, checkpoint_task, invariants_task
from palrnn.paper.presets import Counts, Levels, plain_settings
from palrnn.paper.series import DataSettings, training_series
from palrnn.paper.studies.evidence import reference_tau
from palrnn.paper.studies.gap.claims import MISMATCH, first_variant, fixed_q_rows, gap_claims
from palrnn.paper.studies.gap.findings import gap_findings
from palrnn.paper.study import FINDINGS, Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

GEOMETRY = Kind("geometry", "palrnn.paper.studies.gap:measure_geometry")
# the columns that the table begins with; the others follow
_FIRST = "entropy_bits gap trace_itf trace_observed trace_complete mir logdet_gap q90"
_THEN = "negative dstsp lyapunov"

#: What a training level of process noise means for one step of the PAL-RNN; see `GapSettings`.
ProcessNoise: TypeAlias = Literal["nominal", "per_step"]


# what a variant that does not say so is, and was before it could be said
_SILENT = {"method": "ancestors", "sweeps": None}


class GapVariant(Config):
    """One way of estimating the observed information; ``taus`` and ``seeds`` restrict it to some models.

    Settings are those of `InformationConfig`, for one pass of the filter. Without ``method`` its paths are
    traced by their ancestors, as in the paper.
    """

    name: str
    particles: Count
    paths: Annotated[Count, Field(ge=2)]
    states_per_path: Count
    target: Literal["paper", "exact"]
    taus: Counts | None = None
    seeds: tuple[Seed, ...] | None = None
    method: Literal["ancestors", "gibbs"] | None = None
    sweeps: Count | None = None

    @property
    def samples(self) -> dict[str, Any]:
        """How the filter and the smoother sample, as far as it is said."""
        names = {"particles", "paths", "states_per_path", "target", *_SILENT}
        return self.model_dump(include=names, exclude_none=True)

    @property
    def columns(self) -> dict[str, Any]:
        """The same for a table, with what is not said."""
        return _SILENT | self.samples


class GapSettings(Config):
    """The curvature gap. The first variant is the paper's and is what the figure shows.

    ``process_noise`` says what a checkpoint's training level means for one step of the PAL-RNN: ``nominal``
    takes the level as it is, ``per_step`` multiplies it by the root of dt, as the simulated data did.
    """

    process_std: Levels
    observation_std: Levels
    tau: Counts
    seeds: Count
    length: Annotated[Count, Field(ge=2)]
    gate_std: Positive
    process_noise: ProcessNoise
    ess_threshold: Annotated[float, Field(ge=0, le=1)]
    ridge: Positive
    overlap: Count
    variants: Annotated[tuple[GapVariant, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _noisy(self) -> Self:
        if min(self.observation_std) <= 0 or min(self.process_std) <= 0:
            raise ValueError("the curvature gap needs process and observation noise greater than 0")
        return self


@study("gap", place=30)
class GapStudy(Study[GapSettings]):
    """Both curvatures of every model, by every variant."""

    Settings = GapSettings
    panel_width = 1.1
    pictures = (
        Picture(MISMATCH, "mismatch", "Log-det gap, upper quantile and leading-subspace overlap"),
        Picture(FINDINGS, "estimators", "Entropy, gap and negative directions by estimator"),
    )

    def regimes(self) -> list[Regime]:
        """One model for each process noise, observation noise, forcing interval and seed."""
        how = self.settings
        return [
            Regime(process, observation, tau, seed)
            for process in how.process_std
            for observation in how.observation_std
            for tau in how.tau
            for seed in range(how.seeds)
        ]

    def variant_regimes(self, variant: GapVariant) -> list[Regime]:
        """The models that a variant is computed for."""
        return [
            regime
            for regime in self.regimes()
            if (variant.taus is None or regime.tau in variant.taus)
            and (variant.seeds is None or regime.seed in variant.seeds)
        ]

    def segment_settings(self, regime: Regime, process_noise: ProcessNoise | None = None) -> dict[str, Any]:
        """What `measured_segment` needs to know of a model; the noise is the study's, or another."""
        how = self.settings
        per_step = (process_noise or how.process_noise) == "per_step"
        return {
            "data": plain_settings(self.preset.data),
            "process_std": regime.process_std,
            "observation_std": regime.observation_std,
            "tau": regime.tau,
            "length": how.length,
            "model_process_std": regime.process_std * (math.sqrt(self.preset.data.dt) if per_step else 1.0),
            "model_observation_std": regime.observation_std,
            "gate_std": how.gate_std,
        }

    def geometry_task(
        self,
        regime: Regime,
        variant: GapVariant,
        process_noise: ProcessNoise | None = None,
        seed: int | None = None,
    ) -> Task:
        """Both curvatures of one model, with one estimator of the observed information.

        ``seed`` is that of the filter, by default the model's own.
        """
        how = self.settings
        settings = self.segment_settings(regime, process_noise) | {
            "ess_threshold": how.ess_threshold,
            "ridge": how.ridge,
            "overlap": how.overlap,
            "seed": regime.seed if seed is None else seed,
        }
        cost = float(variant.particles + variant.paths * variant.states_per_path)
        needs = {"model": checkpoint_task(self.preset, regime)}
        return Task(
            GEOMETRY, settings | variant.samples, needs, cost=cost, label=f"{regime.name} {variant.name}"
        )

    def units(self) -> list[tuple[GapVariant, Regime]]:
        """Every model, variant by variant."""
        return [
            (variant, regime)
            for variant in self.settings.variants
            for regime in self.variant_regimes(variant)
        ]

    def tasks(self) -> list[Task]:
        """All geometries, variant by variant, and the invariants of the models."""
        models = [checkpoint_task(self.preset, regime) for regime in self.regimes()]
        tasks = [self.geometry_task(regime, variant) for variant, regime in self.units()]
        return [*tasks, *(invariants_task(self.preset, model) for model in models)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per model and variant; the invariants are those of the model."""
        rows, overlap = [], f"overlap{self.settings.overlap}"
        for variant, regime in self.units():
            task = self.geometry_task(regime, variant)
            if not store.has(task):
                continue
            found = store.result(task)
            found[overlap] = found.pop("overlap")
            free = store.result_or_empty(invariants_task(self.preset, task.needs["model"]))
            found |= {name: free.get(name) for name in ("dstsp", "lyapunov")}
            first = {name: found[name] for name in (*_FIRST.split(), overlap, *_THEN.split())}
            rows.append(regime._asdict() | {"variant": variant.name} | variant.columns | first | found)
        return {"gap.csv": rows}

    def derived_tables(self, tables: Tables) -> dict[str, Rows]:
        return {"fixed_q.csv": fixed_q_rows(tables["gap"], self.preset.resamples)}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(first_variant(tables["gap"])), len(self.variant_regimes(self.settings.variants[0]))

    def claims(self, tables: Tables) -> list[Claim]:
        return gap_claims(tables["gap"], tables["fixed_q"], self.preset.resamples)

    def findings(self, tables: Tables) -> list[Finding]:
        steps = 3 * (self.settings.length - 1)
        return gap_findings(tables["gap"], steps, reference_tau(self.preset), self.preset.resamples)

    def panel(self, figure: SubFigure, tables: Tables) -> None:
        from palrnn.paper.studies.gap.figures import draw_panel

        draw_panel(figure, tables["gap"])

    def figures(self, tables: Tables) -> dict[str, Figure]:
        from palrnn.paper.studies.gap.figures import estimators_figure, mismatch_figure

        return {"mismatch": mismatch_figure(tables["gap"]), "estimators": estimators_figure(tables["gap"])}


def measured_segment(settings: dict[str, Any], inputs: dict[str, bytes]) -> tuple[PALRNN, Floats]:
    """Return the PAL-RNN of a task, with the noise of its training data, and its segment.

    The segment begins at ``start`` of the test series, or where it begins. With ``noise="own"`` the noise of
    each observed coordinate is that of the standardised series instead of the nominal level.
    """
    drift = checkpoint_from_bytes(inputs["model"]).drift
    data = DataSettings(**settings["data"])
    series = training_series(data, settings["process_std"], settings["observation_std"])
    own = settings.get("noise") == "own"
    observation = series.noise if own else settings["model_observation_std"]
    begin = settings.get("start", 0)
    model = PALRNN(drift, settings["model_process_std"], observation, settings["gate_std"])
    return model, series.test[begin : begin + settings["length"]]


def compared_curvatures(
    model: PALRNN, x: Floats, fisher: Floats, settings: dict[str, Any]
) -> tuple[ObservedInformation, float, Mismatch]:
    """Return the observed information on ``x`` by a task's estimator, and how ``fisher`` differs from it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteInformationWarning)  # the counts are in the result
        warnings.simplefilter("ignore", FewPathsWarning)
        config = InformationConfig.paper().changed(method="ancestors")
        names = InformationConfig.model_fields.keys() & settings.keys()
        found = observed_information(model, x, config.changed(**{name: settings[name] for name in names}))
        gap = curvature_gap(np.trace(fisher), found.trace_observed, len(x))
        k = min(settings["overlap"], len(fisher))
        return found, gap, mismatch(fisher, found.observed / len(x), ridge=settings["ridge"], k=k)


def measure_geometry(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures on the same segment, their gap and their mismatch."""
    model, x = measured_segment(settings, inputs)
    fisher = itf_fisher(model.drift, x, settings["tau"], settings["model_observation_std"])
    found, gap, compared = compared_curvatures(model, x, fisher, settings)
    # one pass of the filter: the spread is that of its paths
    errors = as_instance(found, "found", SampledInformation).terms[0].standard_errors
    return {
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.entropy_bound,
        "ess": found.ess,
        "log_evidence": found.log_evidence,
        "distinct_first": int(found.distinct[0]),
        "gap": gap,
        "trace_itf": float(np.trace(fisher)),
        "trace_observed": found.trace_observed,
        "trace_observed_stderr": errors["observed"],
        "trace_complete": found.trace_complete,
        "trace_missing_state": found.trace_missing_state,
        "trace_missing_switching": found.trace_missing_switching,
        "trace_missing_switching_stderr": errors.get("missing_switching"),
        "mir": found.mir,
        "missing_dimensions": found.missing_dimensions,
        "informed_dimensions": found.informed_dimensions,
        "logdet_gap": compared.logdet_gap,
        "q90": compared.q90,
        "overlap": compared.overlap,
        "negative": compared.negative,
        "null": compared.null,
        # of all p directions; a negative one counts among those that are not sharper under forcing
        "sharper_under_itf": float((compared.log10_gamma > 0).sum() / len(fisher)),
    }
