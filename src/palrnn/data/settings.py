"""`DataSettings`: where a series comes from and how it is prepared, as in the table [data] of config.toml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palrnn.engine.config import Config, Count, Level, Positive, Seed

#: What ``series`` says of data that were given as arrays or data frames.
IN_MEMORY = "in memory"
SIMULATED_ONLY = ("steps", "process_std", "observation_std", "data_seed", "parameters")


class DataSettings(Config):
    """Where a series comes from (a file, a simulated system, or memory), and how it is prepared."""

    series: str
    name: str | None = None
    dt: Positive | None = None
    test_fraction: Annotated[float, Field(gt=0, le=0.9)] = 0.2
    columns: tuple[str, ...] | None = None
    time: str | None = None
    trial: str = "trial"
    lags: Count = 1
    delay: Count | None = None
    steps: Annotated[Count, Field(ge=4)] | None = None
    process_std: Level | None = None
    observation_std: Level | None = None
    data_seed: Seed | None = None
    parameters: dict[str, int | float] | None = None
    system: str | None = None
    lyapunov: float | None = None
