"""`Reconstruction`: a trained model with its held-out data, and everything that can be asked about it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from palrnn import __version__
from palrnn.data import Standardizer, save_series
from palrnn.engine.checks import Floats, as_shape
from palrnn.engine.config import Config
from palrnn.engine.progress import Progress, quiet
from palrnn.facade import folder, inferring, judging
from palrnn.facade.about import About, facts
from palrnn.facade.settings import (
    FilterSettings,
    GeometrySettings,
    JudgeSettings,
    Noise,
    ReportSettings,
    TuneSettings,
)
from palrnn.forcing import TrainConfig
from palrnn.inference import Evidence, Filtered, windowed_evidence
from palrnn.invariants import free_run
from palrnn.model import ALRNN, PALRNN, Checkpoint
from palrnn.report.document import write_report
from palrnn.report.findings import Filtering, Geometry, Invariants, Run, Tuning

C = TypeVar("C", bound=Config)
F = TypeVar("F", bound=Config)

_SHOWN_STEPS = 1000
_PORTRAIT_STEPS = 6000


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A surrogate of the system behind a series.

    ``model`` and ``standardizer`` are what was learned, ``reference (T, N)`` is the raw held-out part, ``dt``
    the time per step (None: unknown, rates are per step). ``noise`` turns the model into a PAL-RNN where one
    is needed. Every analysis is computed once for the same settings, and kept in the folder of the run if
    there is one.
    """

    model: ALRNN
    standardizer: Standardizer
    reference: Floats
    config: TrainConfig | None = None
    dt: float | None = None
    about: About = field(default_factory=About)
    noise: Noise = field(default_factory=Noise)
    losses: list[tuple[int, float]] = field(default_factory=list)
    kept: folder.Findings = field(default_factory=folder.Findings, repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, reference: ArrayLike | None = None) -> Reconstruction:
        """Return the run in the folder ``path``, as `palrnn train` or `save` left it."""
        run = Path(path)
        checkpoint = folder.read_checkpoint(run)
        assert checkpoint.standardizer is not None
        drift = checkpoint.drift
        held = (
            folder.read_reference(run, drift.observed_dim)
            if reference is None
            else as_shape(reference, "reference", (None, drift.observed_dim))
        )
        settings = checkpoint.training.get("config")
        return cls(
            drift,
            checkpoint.standardizer,
            held,
            TrainConfig(**settings) if isinstance(settings, dict) else None,
            checkpoint.dt,
            About.of_run(run, folder.read_config(run).get("data")),
            inferring.noise_of(checkpoint.model),
            folder.read_losses(run),
            folder.Findings(run / folder.FINDINGS),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to the folder ``path``, from which `load` and `palrnn report` read it.

        In the folder in which the model was trained, training can still be continued afterwards; one in which
        another model was trained, or any was tuned, is refused.
        """
        run = Path(path)
        run.mkdir(parents=True, exist_ok=True)
        training = {} if self.config is None else {"config": self.config.model_dump(mode="json")}
        # an AL-RNN is read back with the usual noise
        model = self.model if self.noise == Noise() else self.probabilistic
        mine = Checkpoint(model, self.standardizer, self.dt, training)
        folder.write_checkpoint(run, mine)
        self.kept_in(run)

    def kept_in(self, path: str | os.PathLike[str] | None) -> Reconstruction:
        """Return the same reconstruction with ``path``, which holds its checkpoint, as its folder."""
        if path is None:
            return self
        run = Path(path)
        save_series(run / folder.REFERENCE, self.reference)
        folder.write_config(run, self.about, self.config)
        folder.write_losses(run, self.losses)
        return replace(self, kept=folder.Findings(run / folder.FINDINGS))

    @property
    def probabilistic(self) -> PALRNN:
        """The model with its noise: a PAL-RNN."""
        noise = self.noise
        return PALRNN(self.model, noise.process_std, noise.observation_std, noise.gate_std)

    @property
    def tau(self) -> int:
        """The forcing interval it was trained with; the paper's 16 if that is not known."""
        return 16 if self.config is None else self.config.tau

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the observed coordinates."""
        return self.about.observed_columns(self.model.observed_dim)

    def named(self, name: str) -> Reconstruction:
        """Return the same under another name."""
        return replace(self, about=self.about.changed(name=name))

    def with_noise(self, **changes: float) -> Reconstruction:
        """Return the same with other noise: ``process_std``, ``observation_std``, ``gate_std``."""
        return replace(self, noise=self.noise.changed(**changes))

    def generate(self, steps: int, *, x1: ArrayLike | None = None, discard: int = 0) -> Floats:
        """Return ``(steps, N)`` of a free run in raw coordinates, from ``x1`` or the first held-out point.

        A model that diverges gives fewer steps.
        """
        start = self.reference[0] if x1 is None else as_shape(x1, "x1", (self.model.observed_dim,))
        return self.standardizer.inverse(
            free_run(self.model, self.standardizer.transform(start), steps, discard).observed
        )

    def invariants(self, settings: JudgeSettings | None = None, **changes: Any) -> Invariants:
        """Return whether a long free run has the long-run properties of the reference, with floors.

        The reference is the true system where `about` names it, and the held-out data otherwise.
        """
        chosen = _chosen(JudgeSettings, settings, changes)

        def work() -> Invariants:
            return judging.judged(
                self.model,
                self.reference,
                self.standardizer,
                chosen,
                dt=self.dt,
                system=self.about.true_system,
                process_std=self.about.process_std,
                lyapunov=self.about.lyapunov,
            )

        return self._once("invariants", Invariants, chosen, work)

    def filter(self, settings: FilterSettings | None = None, **changes: Any) -> Filtered:
        """Return the particle filter's pass over the start of the held-out part."""
        return inferring.filtered(self.probabilistic, self._x, _chosen(FilterSettings, settings, changes))

    def filtering(self, settings: FilterSettings | None = None, **changes: Any) -> Filtering:
        """Return the diagnostics of `filter`: sample size, resampling, code entropy, distinct paths."""
        chosen = _chosen(FilterSettings, settings, changes)
        return self._once(
            "filter", Filtering, chosen, lambda: inferring.filtering(self.filter(chosen), chosen), noisy=True
        )

    def geometry(self, settings: GeometrySettings | None = None, **changes: Any) -> Geometry:
        """Return how the curvature of teacher forcing compares with that of the marginal likelihood."""
        chosen = _chosen(GeometrySettings, settings, changes)
        return self._once(
            "geometry",
            Geometry,
            chosen,
            lambda: inferring.compared(self.probabilistic, self._x, self.tau, chosen),
            noisy=True,
        )

    def evidence(self, length: int = 32, *, progress: Progress | None = None, **settings: Any) -> Evidence:
        """Return the log evidence of held-out windows; the settings are those of `windowed_evidence`."""
        return windowed_evidence(self.probabilistic, self._x, length, progress=progress, **settings)

    def tune(
        self,
        configuration: str = "full",
        settings: TuneSettings | None = None,
        *,
        progress: Progress | None = None,
        **changes: Any,
    ) -> Reconstruction:
        """Return the reconstruction fine-tuned by the evidence of windows of the held-out part's first half.

        ``configuration`` says what is updated: the noise ("calib"), noise and drift ("full"), or the same
        held by the forcing loss ("anchored").
        """
        chosen = _chosen(TuneSettings, settings, changes)
        result = inferring.tuned(
            self.probabilistic, self._x, chosen, configuration, tau=self.tau, dt=self.dt, progress=progress
        )
        name = f"{self.about.name}, {configuration}"
        return replace(
            self,
            model=result.model.drift,
            noise=inferring.noise_of(result.model),
            about=self.about.changed(name=name),
            kept=folder.Findings(),
        )

    def tuning(
        self, settings: TuneSettings | None = None, *, progress: Progress | None = None, **changes: Any
    ) -> Tuning:
        """Return held-out evidence and dynamics before tuning, and after each configuration of it."""
        chosen = _chosen(TuneSettings, settings, changes)

        def work() -> Tuning:
            model, x = self.probabilistic, self._x
            how: dict[str, Any] = {"tau": self.tau, "dt": self.dt}
            # the baseline is only judged, which has no steps to report
            results = [inferring.tuned(model, x, chosen, "baseline", progress=quiet, **how)]
            for name in chosen.configurations:
                results.append(inferring.tuned(model, x, chosen, name, progress=progress, **how))
            return inferring.tuning(results)

        return self._once("tuning", Tuning, chosen, work, noisy=True)

    def report(
        self,
        path: str | os.PathLike[str],
        settings: ReportSettings | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Write the HTML report, computing what has not been computed yet."""
        write_report([self.findings(settings, progress=progress)], path)

    def findings(
        self, settings: ReportSettings | None = None, *, progress: Progress | None = quiet, tune: bool = True
    ) -> Run:
        """Return all that a report shows, computing what has not been computed yet."""
        chosen = settings or ReportSettings()
        portrait = free_run(self.model, self._x[0], _PORTRAIT_STEPS, 1000)
        return Run(
            name=self.about.name,
            facts=facts(
                self.about, self.model, self.config, self.noise, self.columns, self.dt, len(self.reference)
            ),
            columns=self.columns,
            dt=self.dt,
            reference=self.reference[:_PORTRAIT_STEPS],
            generated=self.standardizer.inverse(portrait.observed),
            codes=self.model.codes(portrait.states),
            forecast=judging.forecast(self.model, self._x[:_SHOWN_STEPS], self.standardizer, self.tau),
            loss=self.losses,
            invariants=self.invariants(chosen.judge),
            filtering=self.filtering(chosen.filter),
            geometry=self.geometry(chosen.geometry),
            tuning=self.tuning(chosen.tune, progress=progress) if tune else None,
        )

    @property
    def _x(self) -> Floats:
        return self.standardizer.transform(self.reference)

    def _once(
        self, name: str, kind: type[F], settings: Config, work: Callable[[], F], *, noisy: bool = False
    ) -> F:
        """Return the finding kept under these settings, or do the ``work`` and keep it."""
        key: dict[str, Any] = {"palrnn": __version__, "model": self._fingerprint()}
        key["settings"] = settings.model_dump(mode="json")
        if noisy:
            key["noise"] = self.noise.model_dump(mode="json") | {"tau": self.tau}
        else:
            key["about"] = self.about.model_dump(mode="json", include={"system", "process_std", "lyapunov"})
        found = self.kept.get(name, key, kind)
        if found is None:
            found = work()
            self.kept.keep(name, key, found)
        return found

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        scale = self.standardizer
        for array in (self.model.theta, self.model.E, scale.mean, scale.std, self.reference):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        digest.update(f"{self.model.gated} {self.dt}".encode())
        return digest.hexdigest()[:20]

    def __repr__(self) -> str:
        return (
            f"Reconstruction({self.about.name!r}, {self.model!r}, tau={self.tau}, dt={self.dt}, "
            f"{len(self.reference)} held-out steps)"
        )


def _chosen(kind: type[C], settings: C | None, changes: dict[str, Any]) -> C:
    return (settings or kind()).changed(**changes) if changes else settings or kind()
