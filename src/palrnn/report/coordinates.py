"""In which coordinates a run is drawn: its first columns, or of many columns their principal components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.gaps import whole_rows
from palrnn.report.drawing import percent

#: Columns beyond which principal components are drawn instead of the first few.
MOST_COLUMNS = 6


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A linear map from columns ``(..., N)`` to the few coordinates ``(..., K)`` that are drawn.

    ``names`` are those of the latter; ``note`` says what they are where they are not columns.
    """

    names: tuple[str, ...]
    mean: Floats
    weights: Floats
    note: str = ""

    @classmethod
    def of(cls, reference: Floats, columns: Sequence[str], most: int = 3) -> Coordinates:
        """Return the first ``most`` of a few columns, or the leading principal components of many.

        Components are those of the standardised columns of ``reference (T, N)``, over its rows without gaps;
        each points to where its largest weight is positive.
        """
        dim = reference.shape[1]
        if dim <= MOST_COLUMNS:
            kept = min(most, dim)
            return cls(tuple(columns[:kept]), np.zeros(dim), np.eye(dim)[:, :kept])
        mean, spread = np.nanmean(reference, axis=0), np.nanstd(reference, axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        scaled = (reference - mean) / scale
        rows = whole_rows(scaled)
        scaled = scaled[rows] if rows.sum() > dim else np.nan_to_num(scaled)
        variances, directions = np.linalg.eigh(scaled.T @ scaled / len(scaled))
        variances, directions = variances[::-1], directions[:, ::-1][:, :most]
        directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(most)])
        shares = variances[:most] / variances.sum()
        names = tuple(f"PC {i + 1}" for i in range(most))
        note = (
            f"Drawn are the {most} leading principal components (PC) of the {dim} standardised columns, with "
            f"{percent(shares.sum())} of their variance ({', '.join(map(percent, shares))})."
        )
        return cls(names, mean, directions / scale[:, None], note)

    def __call__(self, series: Floats) -> Floats:
        """Return ``series (..., N)`` in these coordinates; NaN where a column that counts is NaN."""
        if not self.note:
            return np.asarray(series[..., : len(self.names)])
        return np.asarray((series - self.mean) @ self.weights)
