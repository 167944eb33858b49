"""Options that commands share: which series, and how it is simulated or read."""

from __future__ import annotations

from typing import Annotated

from palrnn.cli.app import option

SERIES = "The series"

Steps = Annotated[int | None, option("Steps to simulate, test part included (100000).", SERIES)]
TimeStep = Annotated[
    float | None, option("Time per step (simulated: the usual one; files: their time).", SERIES)
]
ProcessNoise = Annotated[float | None, option("Process noise of a simulated system (0).", SERIES)]
ObservationNoise = Annotated[
    float | None, option("Observation noise on the training part of a simulated series (0).", SERIES)
]
DataSeed = Annotated[int | None, option("Seed of the simulated series (0).", SERIES)]
Columns = Annotated[
    list[str] | None, option("A column of a table to use; once per column (all but time).", SERIES)
]
Inputs = Annotated[
    str | None,
    option("Columns that drive the system, not observed: names with commas between (none).", SERIES),
]
TrialColumn = Annotated[str | None, option("The column that tells trials apart (trial).", SERIES)]


def input_names(inputs: str | None) -> list[str] | None:
    """Return the names in what was given for `Inputs`."""
    return None if inputs is None else [name.strip() for name in inputs.split(",")]
