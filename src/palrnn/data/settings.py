"""`DataSettings`: where a series comes from and how it is prepared, as in the table [data] of config.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from palrnn.data.readers import named_array
from palrnn.engine.config import Config, Count, Level, Positive, Seed
from palrnn.engine.text import printable

#: What ``series`` says of data that were given as arrays or data frames.
IN_MEMORY = "in memory"
#: What a dataset is called that came from memory without a name.
UNNAMED = "reconstruction"
#: Settings that mean something for simulated systems only.
SIMULATED_ONLY = ("steps", "process_std", "observation_std", "data_seed", "parameters")


class DataSettings(Config):
    """Where a series comes from (a file, a simulated system, or memory), and how it is prepared.

    ``inputs`` are the columns that drive it, or "in memory" where they were given as arrays. ``lags`` and
    ``delay`` are None where nobody has said, or where the series was not embedded in its past.
    """

    series: str
    name: str | None = None
    dt: Positive | None = None
    test_fraction: Annotated[float, Field(gt=0, le=0.9)] = 0.2
    columns: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | Literal["in memory"] | None = None
    time: str | None = None
    trial: str = "trial"
    lags: Count | None = None
    delay: Count | None = None
    steps: Annotated[Count, Field(ge=4)] | None = None
    process_std: Level | None = None
    observation_std: Level | None = None
    data_seed: Seed | None = None
    parameters: dict[str, int | float] | None = None
    system: str | None = None
    lyapunov: float | None = None

    @property
    def past(self) -> tuple[int, int]:
        """The number of lags, 1 for none but the present, and the delay between them."""
        return self.lags or 1, self.delay or 1


def dataset_name(series: str) -> str:
    """Return what to call a dataset of this ``series``, if nobody gave it a name."""
    return UNNAMED if series == IN_MEMORY else printable(named_array(series)[0].stem)
