"""`Predictor`: what a trained model makes of rows: free runs, forecasts, gaps filled in, forced steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_series, as_shape
from palrnn.engine.gaps import first_whole_row
from palrnn.geometry import ModelDraws
from palrnn.inference import Forecast
from palrnn.inference.calibration import BandCalibration
from palrnn.invariants.free_run import free_run
from palrnn.runs import bars, prediction
from palrnn.runs.prediction import Imputed, Tracking
from palrnn.runs.state import RunState

#: Stands for the ensemble that is kept in the folder of a run.
KEPT = "kept"
_TRACKED_STEPS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(RunState):
    """The part of a `Reconstruction` that predicts."""

    def generate(
        self,
        steps: int,
        *,
        inputs: ArrayLike | None = None,
        x1: ArrayLike | None = None,
        discard: int = 0,
    ) -> Floats:
        """Return ``(steps, N)`` of a free run in raw coordinates, from ``x1`` or the first held-out point.

        A held-out point with a gap is passed over. A driven model needs raw ``inputs (discard + steps, K)``,
        one row for each state from the start on; by default those of the held-out part, as far as they go.

        A model that diverges gives fewer steps, with a `RuntimeWarning`.
        """
        steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
        first = first_whole_row(self.held, "reference") if x1 is None else 0
        start = self.held[first] if x1 is None else as_shape(x1, "x1", (self.drift.observed_dim,))
        there = None if x1 is not None or inputs is not None else self._rows_of_inputs(slice(first, None))
        drive = self._inputs(inputs, discard + steps) if there is None else there[: discard + steps]
        if drive is not None and len(drive) < discard + steps:
            wanted = f"inputs must be given, {(discard + steps, drive.shape[1])}"
            raise ValueError(f"{wanted}: the held-out part has those of {len(drive)} rows")
        run = free_run(self.drift, self.standardizer.transform(start), steps, discard, inputs=drive)
        if run.diverged:
            warnings.warn(
                f"the free run diverged after {run.diverged_at} steps", RuntimeWarning, stacklevel=2
            )
        return self.standardizer.inverse(run.observed)

    def forecast(
        self,
        x: ArrayLike,
        steps: int,
        *,
        inputs: ArrayLike | None = None,
        paths: int = 200,
        seed: int = 0,
        posterior: ModelDraws | str | None = KEPT,
        calibration: BandCalibration | None = None,
        **settings: Any,
    ) -> Forecast:
        """Return what may be observed after the rows ``x (T, N)``, sampled, in raw coordinates.

        The state is filtered along ``x``, NaN where nothing was seen; ``settings`` are those of the filter,
        which targets the model itself unless they say otherwise.
        Paths differ by the state they start from, by process and observation noise, and by parameters:
        those of the ensemble that is kept in the folder of the run, if there is one (`ensemble`, `bars`), or
        of a ``posterior`` that is given; with None, and where there is none, parameters are fixed. What
        comes back says which (``varies``). Models of an ensemble that have hidden units of their own filter
        the rows each by itself. A driven model needs raw ``inputs (T + steps, K)``: those of
        the rows of ``x``, and of the rows to come. With a ``calibration``, of `hindcasts` of data that are
        known, bands are as wide as they had to be there.
        """
        rows = as_series(x, dim=self.drift.observed_dim, allow_nan=True)
        steps, count = as_int(steps, "steps", least=1), as_int(paths, "paths", least=1)
        posterior = self._posterior(posterior)
        if posterior is not None and not prediction.shares_units(self.drift, posterior):
            more: dict[str, Any] = {"paths": count, "seed": seed, "calibration": calibration} | settings
            more |= {} if inputs is None else {"inputs": inputs}
            return self._own_forecast(posterior)(rows, steps, **more)
        how: dict[str, Any] = {"inputs": self._inputs(inputs, len(rows) + steps), "posterior": posterior}
        how |= {"paths": count, "seed": seed} | settings
        made = prediction.forecast(self.probabilistic, rows, steps, self.standardizer, **how)
        return made if calibration is None else calibration(made)

    def hindcasts(
        self, x: ArrayLike, steps: int, *, posterior: ModelDraws | str | None = KEPT, **settings: Any
    ) -> list[tuple[Forecast, Floats]]:
        """Return forecasts within ``x (T, N)``, training data say, and the rows that came, both raw.

        `BandCalibration.fit` makes of them what `forecast` calls ``calibration``. There are 40 ``origins``,
        each with 60 rows ``seen`` and 200 ``paths``, unless ``settings`` say otherwise; the ``posterior`` is
        as in `forecast`, the other settings are those of the filter. It is for models without inputs.
        """
        posterior = self._posterior(posterior)
        if posterior is not None and not prediction.shares_units(self.drift, posterior):
            if self.drift.input_dim:
                raise ValueError("hindcasts are for models without inputs")
            return prediction.hindcast_by(self._own_forecast(posterior), x, steps, **settings)
        how: dict[str, Any] = {"posterior": posterior} | settings
        return prediction.hindcast(self.probabilistic, x, steps, self.standardizer, **how)

    def _posterior(self, posterior: ModelDraws | str | None) -> Any:
        """Return what parameters are drawn from; what is kept in the folder of the run, where asked for."""
        if not isinstance(posterior, str):
            return posterior
        if posterior != KEPT:
            raise ValueError(f"posterior must be models to draw, {KEPT!r} or None, got {posterior!r}")
        return bars.kept_ensemble(self)

    def _own_forecast(self, posterior: Any) -> Callable[..., Forecast]:
        """Return the forecast by models that cannot go on from a state of this one, with its noise."""
        if not hasattr(posterior, "around"):
            raise ValueError("posterior must share the hidden units of the model, or be an Ensemble")
        made: Callable[..., Forecast] = posterior.around(self).forecast
        return made

    def impute(
        self,
        x: ArrayLike | None = None,
        *,
        inputs: ArrayLike | None = None,
        coverage: float = 0.9,
        paths: int = 64,
        states_per_path: int = 4,
        seed: int = 0,
        **settings: Any,
    ) -> Imputed:
        """Return raw ``x (T, N)``, by default the held-out part, with its gaps filled in by the smoother.

        Gate paths and states are drawn given all data, before and after a gap; each gap gets their mean, and
        a band that holds what was not seen with probability ``coverage`` if the model and its noise are right
        (`with_noise` and tuning set the latter). A driven model needs raw ``inputs (T, K)`` with an ``x``
        that is given. ``settings`` are those of the filter.
        """
        series = self.held if x is None else as_series(x, dim=self.drift.observed_dim, allow_nan=True)
        drive = self.s if x is None and inputs is None else self._inputs(inputs, len(series))
        how: dict[str, Any] = {"coverage": coverage, "paths": paths, "states_per_path": states_per_path}
        how |= {"inputs": drive, "seed": seed} | settings
        return prediction.imputed(self.probabilistic, series, self.standardizer, **how)

    def tracking(self, steps: int = _TRACKED_STEPS) -> Tracking:
        """Return what the model makes of the first held-out steps: forced as in training, and left alone."""
        first = first_whole_row(self.x, "reference")
        rows = slice(first, first + as_int(steps, "steps", least=2))
        drive = self._rows_of_inputs(rows)
        return prediction.tracking(self.drift, self.x[rows], self.forcing, self.standardizer, drive)
