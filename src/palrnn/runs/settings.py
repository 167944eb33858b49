"""How much work each analysis of a run takes; the same defaults in Python, in the shell and in a report."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field

from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, Count, Level, Positive, Seed, Whole
from palrnn.engine.gaps import whole_rows
from palrnn.geometry import GeometryConfig
from palrnn.inference import FilterConfig
from palrnn.runs.record import TuningSettings


class InvariantSettings(Config):
    """A free run of ``steps`` after ``discard``, its ``exponents``, forecasts ``ahead``, floors.

    ``exponents`` are as many as the Kaplan-Yorke dimension takes, or so many. From ``starts`` the model runs
    as long, and for ``long_steps``, to see whether it lives.

    ``process_std`` is the noise of the true system (None: that of the data), ``lyapunov`` its largest
    exponent, where no system tells it.
    """

    steps: Annotated[Count, Field(ge=20)] = 9000
    discard: Whole = 1000
    exponents: Count | None = None
    ahead: Count = 20
    pairs: Count = 20
    protocol: str = "paper"
    starts: Annotated[Count, Field(ge=10)] = 10
    long_steps: Annotated[Count, Field(ge=1000)] = 100_000
    process_std: Level | None = None
    lyapunov: float | None = None
    seed: Seed = 0


class BarSettings(Config):
    """Free runs of ``steps`` after ``discard`` of ``count`` models, and the curvature gap of each.

    ``count`` is 20 by default, and of an ensemble all of its models, each once. The gap is that of the first
    ``gap_rows`` held-out rows; 0 leaves it out. ``prior_std`` holds what the data are silent about, where a
    posterior of teacher forcing is made (None: as `gibbs_posterior` has it).
    """

    count: Annotated[Count, Field(ge=2)] | None = None
    steps: Annotated[Count, Field(ge=20)] = 9000
    discard: Whole = 1000
    gap_rows: Annotated[Whole, Field(le=2000)] = 50
    prior_std: Positive | None = None
    seed: Seed = 0


class FilterSettings(FilterConfig):
    """The particle filter on ``steps`` rows after row ``start`` (None: all), ``paths`` drawn after it."""

    start: Whole = 0
    steps: Count | None = None
    paths: Count = 64

    def segment(self, x: Floats) -> slice:
        """Return which rows of ``x`` are filtered: the first starts the filter and is not scored.

        A row with a gap (NaN) cannot start it: unless one was asked for, it is the next that has none.
        """
        start = _start(self, x, self.start)
        steps = _steps(self, start, self.steps, len(x), len(x) - 1 - start, least=1)
        return slice(start, start + steps + 1)

    def settled(self, x: Floats) -> Self:
        """Return the same settings, asking for the very rows of ``x`` that `segment` takes."""
        rows = self.segment(x)
        return self.changed(start=rows.start, steps=rows.stop - rows.start - 1)

    @property
    def filter_config(self) -> FilterConfig:
        """The settings of the filter itself."""
        return FilterConfig(**{name: getattr(self, name) for name in FilterConfig.model_fields})


class GeometrySettings(GeometryConfig):
    """The two information matrices on ``steps`` rows from ``start``, and what the observed one rests on."""

    start: Whole = 0
    steps: Annotated[Count, Field(ge=2)] = 200

    def segment(self, x: Floats) -> slice:
        """Return which rows of ``x`` are taken, from the first one without a gap (NaN) on."""
        start = _start(self, x, self.start)
        steps = _steps(self, start, self.steps, len(x), len(x) - start, least=2)
        return slice(start, start + steps)

    def settled(self, x: Floats) -> Self:
        """Return the same settings, asking for the very rows of ``x`` that `segment` takes."""
        rows = self.segment(x)
        return self.changed(start=rows.start, steps=rows.stop - rows.start)

    @property
    def budget(self) -> dict[str, Any]:
        """The settings of `compare_geometries`."""
        return self.model_dump(exclude={"start", "steps"})


def _start(settings: Config, x: Floats, start: int) -> int:
    """Return the row to start at: the one asked for, or the first without a gap, if there is any."""
    return start if "start" in settings.model_fields_set else start + int(whole_rows(x[start:]).argmax())


def _steps(settings: Config, start: int, asked: int | None, rows: int, most: int, *, least: int) -> int:
    """Return how many steps to take of ``most``: those asked for; a default is no more than there are."""
    steps = most if asked is None else asked
    if "steps" not in settings.model_fields_set:
        steps = min(steps, most)
    if not least <= steps <= most:
        raise ValueError(f"start {start} and steps {steps} do not fit a series of {rows} rows")
    return steps


class FilterOfReport(FilterSettings):
    """The same, on the first 200 rows."""

    steps: Count | None = 200


class ReportSettings(Config):
    """All analyses of a report."""

    invariants: InvariantSettings = InvariantSettings()
    filter: FilterOfReport = FilterOfReport()
    geometry: GeometrySettings = GeometrySettings()
    tuning: TuningSettings = TuningSettings()

    def for_toml(self) -> dict[str, Any]:
        """Return the settings that were given, as TOML can hold them.

        What was left open (rows, windows, forcing, time step) is chosen for each run, and must stay open for
        a file to give the same report again.
        """
        return self.model_dump(mode="json", exclude_unset=True, exclude_none=True)

    def with_seed(self, seed: int) -> ReportSettings:
        """Return the same settings with one seed for all analyses."""
        parts = {
            name: getattr(self, name).changed(seed=seed) for name in ("invariants", "filter", "geometry")
        }
        task = self.tuning.task.changed(seed=seed)
        return self.changed(tuning=self.tuning.changed(task=task), **parts)
