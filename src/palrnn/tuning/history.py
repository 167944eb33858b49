"""What happened at each iteration, as a table."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.tables import write_table

COLUMNS = (
    "iteration",
    "evidence",
    "died",
    "process_std",
    "observation_std",
    "gate_std",
    "itf_loss",
    "heldout_evidence",
    "heldout_stderr",
    "dstsp",
    "outside",
    "lyapunov",
    "lyapunov_error",
    "diverged_at",
    "sampled_dstsp",
    "sampled_outside",
    "sampled_lyapunov",
    "sampled_lyapunov_error",
    "sampled_diverged_at",
)


@dataclass(frozen=True, eq=False)
class TuningHistory:
    """One row per model: the start, then the model after each iteration. ``history["evidence"]`` is a column.

    ``evidence`` is that of the mini-batch on which the E-step used this model (none for the last one),
    ``heldout_evidence`` that of the fixed held-out windows. NaN: not evaluated there. Deviations per
    coordinate are shown as their root mean square.
    """

    columns: dict[str, Floats]

    @classmethod
    def of(cls, rows: list[dict[str, float]]) -> TuningHistory:
        """Return the table of ``rows``; what a row does not hold is NaN."""
        return cls({name: np.array([row.get(name, math.nan) for row in rows]) for name in COLUMNS})

    @property
    def rows(self) -> list[dict[str, float]]:
        """One dict per row."""
        names, values = list(self.columns), zip(*self.columns.values(), strict=True)
        return [dict(zip(names, map(float, row), strict=True)) for row in values]

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.columns["iteration"])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, atomically; NaN becomes an empty cell."""
        rows = ([int(v) if v.is_integer() else v for v in row.values()] for row in self.rows)
        write_table(path, list(self.columns), rows)

    def __repr__(self) -> str:
        held = self["heldout_evidence"]
        seen = np.flatnonzero(~np.isnan(held))
        words = f", held-out evidence {held[seen[0]]:.4f} to {held[seen[-1]]:.4f}" if seen.size else ""
        return f"TuningHistory({len(self) - 1} iterations{words})"
