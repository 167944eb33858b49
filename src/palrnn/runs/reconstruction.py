"""`Reconstruction`: a trained model with its held-out data, and everything that can be asked about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from palrnn import __version__
from palrnn.engine.config import Config
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.geometry import Bars, GeometryComparison, InvariantErrorBars, ModelDraws, compare_geometries
from palrnn.inference import Evidence, FilterDiagnostics, Filtered, rbpf, windowed_evidence
from palrnn.invariants import Scorecard, Verdict, scorecard
from palrnn.model import Forcing, as_forcing
from palrnn.report.document import write_report
from palrnn.report.view import Run
from palrnn.runs import bars, tuning, view
from palrnn.runs.advice import advice
from palrnn.runs.folder import Result, RunFolder
from palrnn.runs.predictor import Predictor
from palrnn.runs.record import TuningSettings, TuningTask
from palrnn.runs.settings import (
    BarSettings,
    FilterSettings,
    GeometrySettings,
    InvariantSettings,
    ReportSettings,
)
from palrnn.tuning import Comparison

C = TypeVar("C", bound=Config)
R = TypeVar("R", bound=Result)

#: Settings of the invariants that `scorecard` takes as they are.
_HANDED_ON = {"steps", "discard", "pairs", "protocol", "starts", "long_steps", "seed"}


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction(Predictor):
    """A surrogate of the system behind a series.

    - ``model``: what was learned; a `PALRNN` where its noise is known (after tuning, or `with_noise`), else
      its drift alone.
    - ``standardizer``: between its coordinates and raw ones.
    - ``reference (T, N)``: the raw held-out part; None if there is none. ``inputs (T, K)``: what drives it.
    - ``system``: the true system, where it is known, which invariants are compared with instead.
    - ``forcing``: how it was trained in the end; geometry, anchor and tracking use it.
    - ``dt``: time per step; None if that is not known, and rates are per step.
    - ``record``: what is known of its data, training and tuning, as in config.toml.
    - ``losses``: (update, loss) of its training; ``measured``: the free run on the way; ``saem``: what tuning
      it gave.
    - ``search``: what else was tried, where a search came to it.
    - ``source``: the folder or the file that it was loaded from.

    Every analysis is computed once for the same settings, and kept in the folder of the run if there is one.
    """

    def invariants(self, settings: InvariantSettings | None = None, **changes: Any) -> Scorecard:
        """Return whether a long free run has the long-run properties of the reference, with floors.

        The reference is the true system where it is known, and the held-out data otherwise.
        """
        chosen = _chosen(InvariantSettings, settings, changes)

        def work() -> Scorecard:
            process_std, lyapunov, ahead = chosen.process_std, chosen.lyapunov, chosen.ahead
            if self.system is None:
                lyapunov = self.record.lyapunov if lyapunov is None else lyapunov
                # of a short series half is the reference, and half of that is forecast
                ahead = min(ahead, max(1, len(self.held) // 4))
            return scorecard(
                self.model,
                self.held if self.system is None else self.system,
                inputs=self.s if self.system is None else None,
                standardizer=self.standardizer,
                dt=self.dt or 1.0,
                process_std=self.record.process_std if process_std is None else process_std,
                lyapunov=lyapunov,
                k=chosen.exponents or "dimension",
                n=ahead,
                flow=bars.has_flow(self),
                **chosen.model_dump(include=_HANDED_ON),
            )

        # a second's work, and its trajectories are too long to keep
        return self._once("invariants", chosen, work, restore=None)

    def verdict(self, settings: InvariantSettings | None = None, **changes: Any) -> Verdict:
        """Return what `invariants` come to, good, fair or not usable, why, and what to try next."""
        found = self.invariants(settings, **changes).verdict
        return replace(
            found,
            advice=advice(found, self.record.training, self.drift, searched=self.search is not None),
        )

    def filter(
        self, settings: FilterSettings | None = None, *, progress: Progress | None = quiet, **changes: Any
    ) -> Filtered:
        """Return the particle filter's pass over the held-out part."""
        chosen = _chosen(FilterSettings, settings, changes)
        with listening(progress, "filter") as report:
            rows = chosen.segment(self.x)
            how: dict[str, Any] = {"inputs": self._rows_of_inputs(rows), "progress": report}
            return rbpf(self.probabilistic, self.x[rows], config=chosen.filter_config, **how)

    def diagnostics(self, settings: FilterSettings | None = None, **changes: Any) -> FilterDiagnostics:
        """Return what `filter` says about itself: sample size, resampling, code entropy, distinct paths."""
        chosen = _chosen(FilterSettings, settings, changes).settled(self.x)

        def work() -> FilterDiagnostics:
            return FilterDiagnostics.of(self.filter(chosen), chosen.paths)

        return self._once("diagnostics", chosen, work, FilterDiagnostics.from_dict)

    def geometry(
        self,
        settings: GeometrySettings | None = None,
        *,
        forcing: Forcing | int | None = None,
        matrices: bool = False,
        progress: Progress | None = quiet,
        **changes: Any,
    ) -> GeometryComparison:
        """Return how the curvature of teacher forcing compares with that of the marginal likelihood.

        ``forcing`` is that of the training unless given. A comparison that was kept in the folder of the run
        has all its numbers, but no matrices; ``matrices`` asks for one that has them.
        """
        chosen = _chosen(GeometrySettings, settings, changes).settled(self.x)
        how = self.forcing if forcing is None else as_forcing(forcing)

        def work() -> GeometryComparison:
            rows = chosen.segment(self.x)
            more: dict[str, Any] = {"inputs": self._rows_of_inputs(rows), "progress": progress}
            return compare_geometries(self.probabilistic, self.x[rows], how, **chosen.budget, **more)

        restore = None if matrices else GeometryComparison.from_dict
        return self._once("geometry", chosen, work, restore, forcing=how.to_dict())

    def error_bars(
        self,
        found: GeometryComparison,
        *,
        draws: int = 32,
        prior_std: float = 0.01,
        seed: int = 0,
        progress: Progress | None = quiet,
    ) -> dict[str, InvariantErrorBars]:
        """Return the invariants of models drawn from the Laplace posterior of each of two geometries.

        ``found`` must have been computed just now: a comparison that was kept has no matrices.
        """
        how: dict[str, Any] = {"draws": draws, "seed": seed, "progress": progress}
        return bars.of_informations(self, found.informations(), prior_std, **how)

    def bars(
        self,
        draws: ModelDraws | str | None = None,
        settings: BarSettings | None = None,
        *,
        data: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
        announce: Callable[[str], object] | None = None,
        **changes: Any,
    ) -> Bars:
        """Return intervals on exponents, dimension, fixed points, D_stsp, D_H and the curvature gap.

        ``draws`` are models that stand for what is not known: an `Ensemble` of `bootstrap`, a posterior, or
        the name of either (docs/uncertainty.md says which to use). By default they are "reflected", the one
        for these figures; of a driven model "blocks". An ensemble by name ("reflected", "varied", "blocks",
        "denoised", "seeds") is trained, as `ensemble` says, which takes ``workers`` and ``announce``; a
        posterior ("likelihood", "observed", or of teacher forcing "sandwich", "temperature", "laplace") takes
        seconds. By name they want the training ``data`` again, anything that `reconstruct` takes, unless the
        run knows their file. The ``changes`` are settings of `BarSettings`.
        """
        chosen = _chosen(BarSettings, settings, changes)
        training: dict[str, Any] = {"workers": workers, "progress": progress, "announce": announce}
        asked = bars.recommended(self) if draws is None else draws
        method, posterior, chosen = bars.drawn(self, asked, data, chosen, **training)

        def work() -> Bars:
            return bars.measured(self, method, posterior, chosen, progress)

        digest = bars.digest(posterior, chosen)
        key = {"method": method, "draws": digest, "rules": bars.RULES}
        return self._once("bars", chosen, work, Bars.from_dict, **key)

    def ensemble(
        self,
        method: str | None = None,
        *,
        models: int | None = None,
        data: Any = None,
        workers: int | None = None,
        progress: Progress | None = None,
        announce: Callable[[str], object] | None = None,
        **settings: Any,
    ) -> Any:
        """Return `palrnn.bootstrap` of the training ``data`` around this model: an `Ensemble`.

        In the folder of the run, where it has one, from which the same call goes on after an interruption,
        and of which `forecast` takes the models. ``data`` are anything that `reconstruct` takes; None where
        the run knows their file. ``announce`` hears what is trained and for how long; ``settings`` are
        those of `bootstrap`.
        """
        settings |= {"models": models, "workers": workers, "progress": progress, "announce": announce}
        return bars.ensemble(self, method or bars.recommended(self), data, **settings)

    def evidence(self, length: int = 32, *, progress: Progress | None = None, **settings: Any) -> Evidence:
        """Return the log evidence of held-out windows; the settings are those of `windowed_evidence`."""
        how: dict[str, Any] = {"inputs": self.s, "progress": progress}
        return windowed_evidence(self.probabilistic, self.x, length, **how, **settings)

    def tune(
        self,
        configuration: str = "full",
        task: TuningTask | None = None,
        *,
        series: Any = None,
        run: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        **changes: Any,
    ) -> Reconstruction:
        """Return the reconstruction fine-tuned by the evidence of windows; its ``saem`` tells how that went.

        ``configuration`` says what is updated: the noise ("calib"), noise and drift ("full"), the same held
        by the forcing loss ("anchored"), or nothing ("baseline"). `TuningTask` says which data tune and which
        judge; ``series`` are others, anything that a `Dataset` can be prepared from, or one. ``changes`` are
        settings of `TuningTask` and `SAEMConfig`. With a folder ``run``, tuning continues there after an
        interruption.
        """
        model, chosen, data = tuning.chosen_task(
            self, task, series, changes | {"configuration": configuration}
        )
        folder = None if run is None else RunFolder(run)
        return tuning.tune_run(model, chosen, data, folder=folder, threads=threads, progress=progress)

    def tuning(
        self,
        settings: TuningSettings | None = None,
        *,
        series: Any = None,
        run: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        **changes: Any,
    ) -> Comparison:
        """Return held-out evidence and dynamics of the model as it is, and after each kind of tuning.

        ``settings`` are `TuningSettings`, ``changes`` to them as in `tune`. Each configuration is tuned in a
        folder of its own, below ``run`` or the folder of this run, from which it continues.
        """
        plan = settings or TuningSettings()
        own = {name: changes.pop(name) for name in ("configurations", "betas") if name in changes}
        model, task, data = tuning.chosen_task(self, plan.task, series, changes)
        plan = plan.changed(task=task, **own)
        how: dict[str, Any] = {"threads": threads, "progress": progress}
        if run is not None:
            return tuning.compare_in_folder(RunFolder(run), model, plan, data, **how)
        return tuning.compare_beside(self.folder, model, plan, data, **how)

    def report(
        self,
        path: str | os.PathLike[str],
        settings: ReportSettings | None = None,
        *,
        whole: bool | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the HTML report; by default (``whole=None``) without what takes minutes (`view.left_out`)."""
        write_report([self.view(settings, progress=progress, without=view.left_out(self, whole))], path)

    def view(
        self,
        settings: ReportSettings | None = None,
        *,
        progress: Progress | None = quiet,
        announce: Callable[[str], None] = lambda _: None,
        without: Collection[str] = (),
    ) -> Run:
        """Return all that a report shows, computing what has not been computed yet.

        ``announce`` hears the name of each analysis before it starts; those in ``without`` are left out.
        """
        results: dict[str, Any] = {}
        with view.undisturbed(self.folder):
            for name, asked in view.analyses_with(settings or ReportSettings()):
                if name not in without:
                    announce(name)
                    how: dict[str, Any] = {"progress": progress} if name == "tuning" else {}
                    results[name] = getattr(self, name)(*asked, **how)
        return view.view(self, results)

    def _once(
        self,
        name: str,
        settings: Config,
        work: Callable[[], R],
        restore: Callable[[dict[str, Any]], R] | None,
        **more: Any,
    ) -> R:
        """Return the finding kept under these settings, or do the ``work`` and keep it."""
        key = {
            "palrnn": __version__,
            "model": self.fingerprint(),
            "settings": settings.model_dump(mode="json"),
        }
        key |= more
        found = self.findings.get(name, key, restore)
        if found is None:
            found = work()
            self.findings.keep(name, key, found)
        return found


def _chosen(kind: type[C], settings: C | None, changes: Mapping[str, Any]) -> C:
    return (settings or kind()).changed(**changes) if changes else settings or kind()
