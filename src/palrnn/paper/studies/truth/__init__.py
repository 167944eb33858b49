"""The estimator's truth: the paper's eight samples of states beside closed forms given the gates.

Given a gate path the observed information needs no samples of states (`palrnn.geometry.exact`). Here it is
computed for every model of the curvature study, under the paper's target and under the exact one, whose gate
paths come from particle Gibbs. So a claim that only the samples make is told from one that the models make.

Two kinds of repetition say how far one number can be trusted: the paper's estimator with other seeds of the
filter, and the closed forms with other seeds.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from palrnn.engine.config import Config, Count, Whole
from palrnn.geometry import (
    InformationConfig,
    Mismatch,
    curvature_gap,
    itf_fisher,
    mismatch,
    observed_information,
)
from palrnn.model import Forcing
from palrnn.model.families.alrnn_layout import null_units
from palrnn.paper.claim import TRUE, Finding, Listing
from palrnn.paper.models import Regime, checkpoint_task
from palrnn.paper.studies.gap import GapStudy, GapVariant, measured_segment
from palrnn.paper.studies.readings import ReadingsStudy
from palrnn.paper.studies.truth.listings import (
    Estimates,
    errors_listing,
    estimates,
    particles_listing,
    target_finding,
    truth_listing,
)
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRUTH = Kind("truth", "palrnn.paper.studies.truth:measure_truth")
# a seed of the filter that no model has
_APART = 1000


class TruthSettings(Config):
    """How gate paths are drawn, and how often numbers are computed again, for models with one ``tau``.

    ``passes``, ``paths`` and ``particles`` are those of `InformationConfig`. The paper's estimator is asked
    ``samples_again`` times more, and ``more_again`` times more with each of ``more_particles``.
    """

    targets: tuple[Literal["paper", "exact"], ...]
    particles: Count
    passes: Annotated[Count, Field(ge=2)]
    paths: Annotated[Count, Field(ge=2)]
    tau: Count
    samples_again: Whole
    samples_seeds: Count
    more_particles: tuple[Count, ...] = ()
    more_again: Whole = 0
    exact_again: Whole
    exact_seeds: Count


@study("truth", place=34)
class TruthStudy(Study[TruthSettings]):
    """The observed information of every model, exact given the gates."""

    Settings = TruthSettings
    ours = True
    pictures = (Picture(TRUE, "artefacts", "Eight samples and closed forms of the same models"),)

    def check(self) -> None:
        ReadingsStudy.of(self.preset)

    def regimes(self) -> list[Regime]:
        """The models of all readings: those of the repetitions first, then seed by seed."""
        tau = self.settings.tau
        return sorted(
            ReadingsStudy.of(self.preset).regimes(), key=lambda r: (r.seed >= 4, r.tau != tau, r.seed)
        )

    def closed_form_settings(self, regime: Regime, target: str) -> dict[str, Any]:
        """What `closed_forms` needs to know, but for the forcing."""
        gap, how = GapStudy.of(self.preset), self.settings
        return gap.segment_settings(regime) | {
            "target": target,
            "particles": how.particles,
            "passes": how.passes,
            "paths": how.paths,
            "ess_threshold": gap.settings.ess_threshold,
            "ridge": gap.settings.ridge,
            "overlap": gap.settings.overlap,
            "seed": regime.seed,
        }

    def truth_task(self, regime: Regime, target: str, again: int = 0) -> Task:
        """The closed forms of one model, for the ``again``-th time."""
        settings = self.closed_form_settings(regime, target) | {"seed": regime.seed + _APART * again}
        needs = {"model": checkpoint_task(self.preset, regime)}
        return Task(TRUTH, settings, needs, label=f"{regime.name} {target} target")

    def repeated_task(self, regime: Regime, particles: int, again: int) -> Task:
        """The paper's estimator of one model, with so many particles, for the ``again``-th time."""
        gap = GapStudy.of(self.preset)
        own = gap.settings.variants[0]
        variant = GapVariant(**own.samples | {"name": own.name, "particles": particles})
        return gap.geometry_task(regime, variant, seed=regime.seed + _APART * again)

    def repetitions(self) -> list[tuple[Regime, int, int]]:
        """Model, particles and number of all that the paper's estimator is asked, the first time included."""
        how, own = self.settings, GapStudy.of(self.preset).settings.variants[0].particles
        times = {own: how.samples_again} | dict.fromkeys(how.more_particles, how.more_again)
        return [
            (regime, particles, again)
            for particles, most in times.items()
            for again in range(most + 1)
            for regime in self.repeated(how.samples_seeds)
        ]

    def repeated(self, seeds: int) -> list[Regime]:
        """The models that are looked at more than once."""
        return [
            regime for regime in self.regimes() if regime.tau == self.settings.tau and regime.seed < seeds
        ]

    def units(self) -> list[tuple[Regime, str, int]]:
        """Model, target and repetition of all closed forms."""
        how = self.settings
        once = [(regime, target, 0) for regime in self.regimes() for target in how.targets]
        again = [
            (regime, target, again)
            for again in range(1, how.exact_again + 1)
            for regime in self.repeated(how.exact_seeds)
            for target in how.targets
        ]
        return [*once, *again]

    def tasks(self) -> list[Task]:
        samples = [self.repeated_task(*one) for one in self.repetitions()]
        return [*samples, *(self.truth_task(*unit) for unit in self.units())]

    def tables(self, store: Store) -> dict[str, Rows]:
        """Closed forms by model, target and repetition; and the paper's estimator, repeated."""
        truth, repeats, gap = [], [], GapStudy.of(self.preset).settings
        for regime, target, again in self.units():
            found = store.result_or_empty(self.truth_task(regime, target, again))
            if found:
                found[f"overlap{gap.overlap}"] = found.pop("overlap")
                truth.append(regime._asdict() | {"target": target, "again": again} | found)
        names = ("entropy_bits", "gap", "mir", "logdet_gap", "q90", "overlap", "negative", "log_evidence")
        for regime, particles, again in self.repetitions():
            found = store.result_or_empty(self.repeated_task(regime, particles, again))
            if found:
                values = {name: found[name] for name in names}
                repeats.append(regime._asdict() | {"particles": particles, "again": again} | values)
        return {"truth.csv": truth, "repeats.csv": repeats}

    def listings(self, tables: Tables) -> list[Listing]:
        found = self._estimates(tables)
        listings = [truth_listing(found)] if found is not None else []
        if "repeats" not in tables:
            return listings
        repeats = tables["repeats"]
        errors = errors_listing(repeats, tables["truth"], self.settings.tau)
        return [*listings, errors, particles_listing(repeats, self.preset.resamples)]

    def findings(self, tables: Tables) -> list[Finding]:
        found = target_finding(tables["truth"], self.preset.resamples)
        return [] if found is None else [found]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        from palrnn.paper.studies.truth.figures import artefacts_figure

        found = self._estimates(tables)
        return {} if found is None else {"artefacts": artefacts_figure(found)}

    def _estimates(self, tables: Tables) -> Estimates | None:
        """The models that have all estimates; None without any."""
        if "readings" not in tables:
            return None
        found = estimates(tables["readings"], tables["truth"], self.preset.resamples)
        return found if found.models else None


def measure_truth(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Compute both curvatures on the same segment, the observed one exactly given the gates.

    The figures of directions are those on all of them, as in the paper, but for ``identifiable_q90``, which
    leaves the null ones out. Both matrices hold the ridge alone there, so their log10 gamma is 0.
    """
    return closed_forms(settings, inputs, settings["tau"])[0]


def closed_forms(
    settings: dict[str, Any], inputs: dict[str, bytes], forcing: Forcing | int
) -> tuple[dict[str, Any], Mismatch]:
    """Return the figures of `measure_truth` for a model under ``forcing``, and the comparison behind them."""
    model, x = measured_segment(settings, inputs)
    fisher = itf_fisher(model.drift, x, forcing, settings["model_observation_std"])
    names = ("target", "particles", "passes", "paths", "ess_threshold", "seed")
    config, steps = InformationConfig(**{name: settings[name] for name in names}), len(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they tell is in the result
        found = observed_information(model, x, config)
        observed = found.observed
        gap, *others = (
            curvature_gap(np.trace(fisher), part.trace_observed, steps)
            for part in (found, *found.leave_one_out)
        )
        k = min(settings["overlap"], len(fisher))
        # the ridge on all directions, though the null ones are left out: it is a part of their mean
        ridge = settings["ridge"] * (1.0 - len(null_units(fisher, observed)) / len(fisher))
        compared = mismatch(fisher, observed / steps, ridge=ridge, k=k, project=True)
    gamma = np.concatenate([compared.log10_gamma, np.zeros(compared.null)])
    errors, traces = found.standard_errors, found.traces
    figures = {
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.entropy_bound,
        "log_evidence": found.log_evidence,
        "distinct_least": int(found.distinct.min()),
        "gap": gap,
        "gap_stderr": found.error_of(others),
        "trace_itf": float(np.trace(fisher)),
        **{f"trace_{name}": value for name, value in traces.items() if name != "mir"},
        "trace_observed_stderr": errors["observed"],
        "mir": found.mir,
        "mir_stderr": errors["mir"],
        "switching_share": traces["missing_switching"] / traces["missing"],
        "logdet_gap": compared.logdet_gap,
        "q90": float(np.quantile(gamma, 0.9)),
        "identifiable_q90": compared.q90,
        "overlap": compared.overlap,
        "negative": compared.negative,
        "null": compared.null,
        "sharper_under_itf": float((compared.log10_gamma > 0).sum() / len(fisher)),
    }
    return figures, compared
