"""External inputs of a series: columns of its table, or arrays of their own, row for row.

They are split as the series is, and standardised by the part to train on. Where the series is embedded in its
past, the rows that become past go from the inputs, too, so that a row of inputs stays that of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palrnn.data.split import train_test_split
from palrnn.data.standardize import Standardizer
from palrnn.data.table import SeriesError, Table
from palrnn.engine.checks import Floats, as_instance, as_trials
from palrnn.engine.text import quoted


@dataclass(frozen=True, eq=False)
class DatasetInputs:
    """The inputs of a `Dataset`, one row for each row of its series.

    ``columns`` are their K names; ``training`` those of the trials to train on and ``heldout_trials`` of
    those to judge by, standardised by ``standardizer``; ``reference (T, K)`` those of the held-out part in
    raw units.
    """

    columns: tuple[str, ...]
    training: list[Floats]
    heldout_trials: list[Floats]
    reference: Floats
    standardizer: Standardizer

    @property
    def heldout(self) -> Floats:
        """The standardised inputs of the held-out part."""
        return self.heldout_trials[-1]

    @property
    def arrays(self) -> tuple[Floats, ...]:
        """All that makes them, for a digest."""
        return (
            *self.training,
            *self.heldout_trials,
            self.reference,
            self.standardizer.mean,
            self.standardizer.std,
        )

    def __repr__(self) -> str:
        return f"DatasetInputs({', '.join(self.columns)})"


def names_or_arrays(inputs: Any) -> tuple[tuple[str, ...] | None, Any]:
    """Return the names of columns, or the arrays, that ``inputs`` are; the other is None."""
    if inputs is None:
        return None, None
    if isinstance(inputs, str):
        raise ValueError(f"inputs must be a sequence of names, or an array, got {quoted(inputs)}")
    if isinstance(inputs, (list, tuple)) and inputs and all(isinstance(name, str) for name in inputs):
        twice = [name for name in inputs if inputs.count(name) > 1]
        if twice:
            raise ValueError(f"inputs must name a column once, got {quoted(twice[0])} twice")
        return tuple(inputs), None
    return None, inputs


def taken_from(table: Table, names: Sequence[str]) -> tuple[Table, list[Floats]]:
    """Return ``table`` without the columns ``names``, and these, trial by trial."""
    places = [table.names.index(name) for name in names]
    kept = [i for i in range(len(table.names)) if i not in places]
    if not kept:
        raise SeriesError(f"{table.where}: has no columns of observations beside its inputs")
    values = np.ascontiguousarray(table.values[:, places])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = map(int, bad[0])
        kind = "missing (NaN)" if np.isnan(values[row, column]) else "infinite"
        raise SeriesError(
            f"{table.where}: inputs must have no gaps, column {names[column]}, {table.row(row)} is {kind}"
        )
    rest = replace(
        table,
        names=tuple(table.names[i] for i in kept),
        values=np.ascontiguousarray(table.values[:, kept]),
        left_out={name: why for name, why in table.left_out.items() if name not in names},
    )
    return rest, [np.asarray(part, dtype=np.float64) for part in table.in_trials(values)]


def beside(inputs: Any, trials: Sequence[Floats], name: str = "inputs") -> list[Floats]:
    """Return the arrays ``inputs`` as one series for each of ``trials``, row for row."""
    parts = as_trials(inputs, name, min_steps=1)
    if len(parts) != len(trials):
        raise ValueError(f"{name} must hold one series for each of {len(trials)} trials, got {len(parts)}")
    for k, (part, trial) in enumerate(zip(parts, trials, strict=True)):
        if len(part) != len(trial):
            which = name if len(parts) == 1 else f"{name}[{k}]"
            raise ValueError(f"{which} must have {len(trial)} rows, one for each row of x, got {len(part)}")
    return parts


def split_inputs(parts: list[Floats], test_fraction: float, lost: int) -> tuple[list[Floats], Floats]:
    """Return the inputs of the trials to train on and of the one to judge by, as `split_source` splits x.

    The first ``lost`` rows of each have become the past of others.
    """
    if len(parts) > 1:
        *seen, held = parts
    else:
        first, held = train_test_split(parts[0], test_fraction)
        seen = [first]
    return [part[lost:] for part in seen], held[lost:]


def prepared_inputs(
    columns: tuple[str, ...], seen: list[Floats], held: list[Floats], standardizer: Standardizer | None
) -> DatasetInputs:
    """Return raw inputs standardised, by the part to train on unless a ``standardizer`` is given."""
    count = seen[0].shape[1]
    if standardizer is None:
        try:
            scale = Standardizer.fit(np.concatenate(seen))
        except ValueError as error:
            raise ValueError(f"inputs{str(error).removeprefix('x')}") from None
    else:
        scale = as_instance(standardizer, "input_standardizer", Standardizer)
        if scale.dim != count:
            raise ValueError(f"input_standardizer must have {count} columns, as inputs have, got {scale.dim}")
    return DatasetInputs(
        columns,
        [scale.transform(part) for part in seen],
        [scale.transform(part) for part in held],
        np.ascontiguousarray(held[-1]),
        scale,
    )
