"""How much work each analysis of a run takes; the same defaults in Python, in the shell and in a report."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Seed, Whole
from palrnn.geometry import GeometryConfig
from palrnn.inference import FilterConfig
from palrnn.runs.record import TuningSettings


class InvariantSettings(Config):
    """A free run of ``steps`` after ``discard``, its ``exponents`` (None: all), forecasts ``ahead``, floors.

    ``process_std`` is the noise of the true system (None: that of the data), ``lyapunov`` its largest
    exponent, where no system tells it.
    """

    steps: Annotated[Count, Field(ge=20)] = 9000
    discard: Whole = 1000
    exponents: Count | None = None
    ahead: Count = 20
    pairs: Count = 20
    protocol: str = "paper"
    process_std: Level | None = None
    lyapunov: float | None = None
    seed: Seed = 0


class FilterSettings(FilterConfig):
    """The particle filter on ``steps`` rows after row ``start`` (None: all), ``paths`` drawn after it."""

    start: Whole = 0
    steps: Count | None = None
    paths: Count = 64

    def segment(self, x: Floats) -> Floats:
        """Return the rows of ``x``: the first starts the filter and is not scored."""
        steps = len(x) - 1 - self.start if self.steps is None else self.steps
        if steps < 1 or self.start + steps >= len(x):
            raise ValueError(f"start {self.start} and steps {steps} do not fit a series of {len(x)} rows")
        return x[self.start : self.start + steps + 1]

    @property
    def filter_config(self) -> FilterConfig:
        """The settings of the filter itself."""
        return FilterConfig(**{name: getattr(self, name) for name in FilterConfig.model_fields})


class GeometrySettings(GeometryConfig):
    """The two information matrices on ``steps`` rows from ``start``, and what the observed one rests on."""

    start: Whole = 0
    steps: Annotated[Count, Field(ge=2)] = 200

    def segment(self, x: Floats) -> Floats:
        """Return the rows of ``x``."""
        if self.start + self.steps > len(x):
            raise ValueError(
                f"start {self.start} and steps {self.steps} do not fit a series of {len(x)} rows"
            )
        return x[self.start : self.start + self.steps]

    @property
    def budget(self) -> dict[str, Any]:
        """The settings of `compare_geometries`."""
        return self.model_dump(exclude={"start", "steps"})


class ReportSettings(Config):
    """All analyses of a report."""

    invariants: InvariantSettings = InvariantSettings()
    filter: FilterSettings = FilterSettings(steps=200)
    geometry: GeometrySettings = GeometrySettings()
    tuning: TuningSettings = TuningSettings()

    def with_seed(self, seed: int) -> ReportSettings:
        """Return the same settings with one seed for all analyses."""
        parts = {
            name: getattr(self, name).changed(seed=seed) for name in ("invariants", "filter", "geometry")
        }
        task = self.tuning.task.changed(seed=seed)
        return self.changed(tuning=self.tuning.changed(task=task), **parts)
