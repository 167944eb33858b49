"""What a `Dataset` is made from: arrays, trials, data frames, files and simulated systems, as one thing.

`DataSettings` tell how, as in the table [data] of config.toml; the parts of a source are what to train on and
what to judge by, each embedded in its own past.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from palrnn.data.embedding import delay_embed
from palrnn.data.frame import frame_table, is_frame
from palrnn.data.grid import on_grid
from palrnn.data.inputs import beside, taken_from
from palrnn.data.noise import add_observation_noise
from palrnn.data.readers import named_array, read_table, reader_of
from palrnn.data.series import check_values
from palrnn.data.split import train_test_split
from palrnn.data.standardize import mean_and_deviation
from palrnn.data.systems import System, known_systems, make_system
from palrnn.data.table import Labels, SeriesError, Table, Wanted, counters
from palrnn.engine.checks import Floats, as_trials
from palrnn.engine.config import Config, Count, Level, Positive, Seed
from palrnn.engine.seeds import kernel_seed
from palrnn.engine.text import printable, quoted

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


# trajectories can stay near an unstable fixed point for a few thousand steps
_SETTLE = 10_000
_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Source:
    """Raw trials with what is known of them, before any embedding.

    ``clean`` is the trial without observation noise where it was simulated with some; ``dt_from`` says in
    words where ``dt`` comes from; ``first_gap`` where the first missing value is; ``inputs`` are those of
    each trial, where there are any.
    """

    trials: list[Floats]
    columns: tuple[str, ...]
    left_out: dict[str, str]
    dt: float | None
    dt_from: str
    first_gap: str | None = None
    system: System | None = None
    clean: Floats | None = None
    inputs: list[Floats] | None = None
    input_columns: tuple[str, ...] = ()


def is_system(x: Any) -> bool:
    """Whether ``x`` names a simulated system."""
    return isinstance(x, str) and x in known_systems()


def effective(settings: DataSettings) -> DataSettings:
    """Return the settings of a simulated system with its usual ones where they leave something open."""
    usual = {
        "dt": make_system(settings.series).customary_dt,
        "steps": _STEPS,
        "process_std": 0.0,
        "observation_std": 0.0,
        "data_seed": 0,
    }
    return settings.changed(**{key: value for key, value in usual.items() if getattr(settings, key) is None})


def simulated(settings: DataSettings) -> Source:
    """Return one trajectory of a system, with observation noise on the part to train on.

    The noise is scaled by the deviation of that part; what comes after it is the truth to judge by.
    """
    parameters: dict[str, Any] = dict(settings.parameters or {})
    flow = make_system(settings.series, **parameters)
    how = effective(settings).model_dump()
    dt, seed, noise = how["dt"], how["data_seed"], how["observation_std"]
    clean = flow.simulate(how["steps"], dt=dt, process_std=how["process_std"], discard=_SETTLE, seed=seed)
    seen = clean
    if noise > 0:
        part, rest = train_test_split(clean, settings.test_fraction)
        noise_seed = kernel_seed(seed, "observation noise")
        seen = np.concatenate(
            [add_observation_noise(part, noise, scale=mean_and_deviation(part)[1], seed=noise_seed), rest]
        )
    columns = tuple(f"x{i + 1}" for i in range(flow.dim))
    told = f"the usual step of {flow.name}" if dt == flow.customary_dt else "given"
    return Source([seen], columns, {}, dt, told, system=flow, clean=clean)


def recorded(x: Any, settings: DataSettings, inputs: Any = None) -> Source:
    """Return the trials in ``x``: an array, a list of trials, a data frame, or the path of a file.

    ``inputs`` are arrays of external inputs; columns of ``x`` are named in the settings.
    """
    named = tuple(map(printable, settings.inputs)) if isinstance(settings.inputs, tuple) else ()
    table = _table_with_inputs(x, settings, named) if named else _table(x, settings)
    _refuse_transposed(table)
    check_values(table, 2, allow_nan=True)
    columns = table.names
    if table.from_array:
        columns = settings.columns or tuple(f"x{i + 1}" for i in range(len(table.names)))
        if len(columns) != len(table.names):
            raise ValueError(f"columns must name {len(table.names)} coordinates, got {len(columns)}")
        if settings.columns is None and (found := counters(table)):
            raise SeriesError(
                f"{table.where}: column {found[0]} only counts up, like a time or an index, "
                "which is no observation: leave it out, or give names to all columns to keep it"
            )
    if settings.time is not None and table.times is None:
        raise SeriesError(f"{table.where}: column {settings.time} does not tell times")
    dt, told = (settings.dt, "given") if settings.dt else table.time_step()
    if settings.time is not None and settings.dt is not None:
        table, told = on_grid(table, settings.dt), f"the grid that column {settings.time} was put on"
    drives: list[Floats] | None = None
    if named:
        table, drives = taken_from(table, named)
        columns = table.names
    elif inputs is not None:
        drives = beside(inputs, table.trials)
    missing = np.isnan(table.values)
    gap = table.place(*map(int, np.argwhere(missing)[0])) if missing.any() else None
    system = None
    if settings.system is not None:
        whole = settings.lags == 1 or (settings.lags is None and len(columns) > 1)
        system = make_system(settings.system, dim=len(columns) if whole else None)
        if whole and dt is None:
            raise ValueError(f"dt must be given where system is, got None with {settings.system!r}")
    source = Source(table.trials, columns, table.left_out, dt, told, gap, system)
    if drives is None:
        return source
    names = named or tuple(f"s{k + 1}" for k in range(drives[0].shape[1]))
    return replace(source, inputs=drives, input_columns=names)


def _table_with_inputs(x: Any, settings: DataSettings, inputs: tuple[str, ...]) -> Table:
    """Return the observed columns of ``x`` and those that drive it, as one table."""
    both = [name for name in settings.columns or () if printable(name) in inputs]
    if both:
        raise ValueError(f"columns and inputs must not share a column, both name {quoted(both[0])}")
    if any(name is not None and printable(name) in inputs for name in (settings.time, settings.trial)):
        raise ValueError(f"inputs must be other columns than time and trial, got {', '.join(inputs)}")
    observed = settings.columns
    if observed is None:
        table = _table(x, settings)
        if table.from_array:
            raise ValueError(f"inputs must be an array (T, K): {table.where} has no names of columns")
        observed = tuple(name for name in table.names if name not in inputs)
        if not observed:
            raise SeriesError(f"{table.where}: has no columns of observations beside its inputs")
    # asked for by name, no column is taken for a time or an index
    table = _table(x, settings.changed(columns=(*observed, *inputs)))
    if table.from_array:
        raise ValueError(f"inputs must be an array (T, K): {table.where} has no names of columns")
    return table


def _table(x: Any, settings: DataSettings) -> Table:
    wanted = Wanted(settings.columns, settings.trial, settings.time)
    if isinstance(x, (str, os.PathLike)):
        return read_table(x, wanted if reader_of(x)[1].named else Wanted(trial=settings.trial))
    if is_frame(x):
        return frame_table(x, wanted)
    if isinstance(x, (list, tuple)) and x and all(is_frame(trial) for trial in x):
        return _joined([frame_table(trial, wanted, f"x[{k}]") for k, trial in enumerate(x)])
    if settings.time is not None:
        raise ValueError(
            f"time must be None for an array, whose columns have no names, got {settings.time!r}"
        )
    trials = as_trials(x, allow_nan=True)
    numbers = np.repeat(np.arange(len(trials)), [len(trial) for trial in trials])
    names = tuple(str(k) for k in range(len(trials)))
    return Table(
        "x",
        tuple(str(i + 1) for i in range(trials[0].shape[1])),
        trials[0] if len(trials) == 1 else np.concatenate(trials),
        labels=None if len(trials) == 1 else Labels(numbers, names),
        from_array=True,
    )


def _joined(tables: list[Table]) -> Table:
    """Return data frames of one trial each as one table."""
    first = tables[0]
    for k, table in enumerate(tables):
        if table.labels is not None:
            raise SeriesError(f"x[{k}]: has a column of trials; a list of data frames has one trial in each")
        if table.names != first.names:
            raise SeriesError(f"x[{k}]: must have the columns of x[0], {', '.join(first.names)}")
    timed = all(table.times is not None for table in tables)
    return Table(
        "x",
        first.names,
        np.concatenate([table.values for table in tables]),
        labels=Labels(
            np.repeat(np.arange(len(tables)), [len(table.values) for table in tables]),
            tuple(str(k) for k in range(len(tables))),
        ),
        clock=first.clock if timed else None,
        times=np.concatenate([table.times for table in tables if table.times is not None]) if timed else None,
        dated=timed and first.dated,
        left_out=first.left_out,
    )


def _refuse_transposed(table: Table) -> None:
    steps, width = table.values.shape
    if width > steps:
        hint = "one row per time step"
        if table.from_array:
            hint = f"{'give' if table.where == 'x' else 'save'} the transpose, ({width}, {steps})"
        raise SeriesError(
            f"{table.where}: must have time in rows, got {steps} rows of {width} columns. "
            f"Is time in columns? Then {hint}"
        )


def series_name(x: Any) -> str:
    """Return what the settings call ``x``: a system, the full path of a file, or data in memory."""
    if is_system(x):
        return str(x)
    if isinstance(x, (str, os.PathLike)):
        file, array = named_array(x)
        name = os.path.abspath(file) + ("" if array is None else f"::{array}")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SeriesError(f"{name}: the name of the file must be UTF-8, to be kept with a run") from None
        return name
    return IN_MEMORY


def refuse_foreign(x: Any, settings: DataSettings) -> None:
    """Refuse settings that mean nothing for this kind of source."""
    if is_system(x):
        used = [
            name for name in ("columns", "inputs", "time", "system") if getattr(settings, name) is not None
        ]
        used += ["trial"] if settings.trial != "trial" else []
        if used:
            raise ValueError(f"{used[0]} is for recorded series, {settings.series} is a simulated system")
    elif used := [name for name in SIMULATED_ONLY if getattr(settings, name) is not None]:
        kind = "x is in memory" if settings.series == IN_MEMORY else f"{printable(settings.series)} is a file"
        raise ValueError(f"{used[0]} is for simulated systems, {kind}")


def split_source(source: Source, test_fraction: float) -> tuple[list[Floats], Floats, list[Floats]]:
    """Return the trials to train on, the one to judge by, and the former without observation noise."""
    if len(source.trials) > 1:
        *seen, held = source.trials
        return seen, held, seen
    seen_part, held = train_test_split(source.trials[0], test_fraction)
    if source.clean is None:
        return [seen_part], held, [seen_part]
    return [seen_part], held, [source.clean[: len(seen_part)]]


def embedded(part: Floats, lags: int, delay: int) -> Floats:
    """Return ``part`` with its past beside it; refuse one that is too short to have a past."""
    lost = (lags - 1) * delay
    if len(part) < lost + 2:
        raise ValueError(
            f"lags = {lags} with delay = {delay} must leave two steps of every part, got {len(part)} steps "
            f"of which {lost} become the past: give fewer lags, a shorter delay or more data"
        )
    return delay_embed(part, lags, delay)


def first_gap(trials: list[Floats]) -> str | None:
    """Return where the first missing value is, in words; None if there is none."""
    for k, trial in enumerate(trials):
        missing = np.argwhere(np.isnan(trial))
        if len(missing):
            return f"trial {k}, column x{missing[0][1] + 1}, row {missing[0][0] + 1}"
    return None
