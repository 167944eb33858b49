"""Forecasts as samples: paths of what will be observed, with bands, scores and coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_floats
from palrnn.invariants.prediction import valid_prediction_time

#: What paths of a model with noise vary by; and what they vary by if there are several models.
OF_ONE_MODEL, PARAMETERS = ("state", "process noise", "observation noise"), "parameters"


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """``paths (S, steps, N)`` of observations to come; NaN from where a path has diverged.

    Bands and means are of the paths that have not; ``diverged`` counts the others. Paths are infinite where a
    `BandCalibration` found no width that is enough: bands are, too, and there is no mean.

    ``varies`` says what differs from path to path, as far as whoever made them knows: the state that they
    start from, noise of the process and of the observation, and the parameters. What is not named is taken
    for known, and bands do not show that it is not.
    """

    paths: Floats
    varies: tuple[str, ...] = ()

    @property
    def diverged(self) -> int:
        """How many paths diverged before the end."""
        return int(np.isnan(self.paths[:, -1]).any(axis=-1).sum())

    @property
    def mean(self) -> Floats:
        """The mean over paths, ``(steps, N)``; NaN where all have diverged, or any is infinite."""
        alive = ~np.isnan(self.paths)
        kept = np.where(np.isinf(self.paths).any(axis=0), np.nan, self.paths)
        total = np.where(alive, kept, 0.0).sum(axis=0)
        return np.asarray(np.where(alive.any(axis=0), total, np.nan) / np.maximum(alive.sum(axis=0), 1))

    def quantile(self, q: float) -> Floats:
        """Return the quantile ``q`` over paths at each step, ``(steps, N)``; NaN where all have diverged."""
        level = as_float(q, "q", least=0.0, most=1.0)
        ordered, count = np.sort(self.paths, axis=0), (~np.isnan(self.paths)).sum(axis=0)  # NaN comes last
        rank = level * np.maximum(count - 1, 0)
        low = np.floor(rank).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        below, above = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (low, high))
        with np.errstate(invalid="ignore"):
            between = np.where(above == below, 0.0, above - below) * (rank - low)
            return np.asarray(below + np.where(rank == low, 0.0, between))

    def band(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central interval that holds the share ``level`` of the paths."""
        share = as_float(level, "level", least=0.0, most=1.0)
        return self.quantile(0.5 - 0.5 * share), self.quantile(0.5 + 0.5 * share)

    def crps(self, truth: ArrayLike) -> Floats:
        """Return the continuous ranked probability score of each step, ``(steps, N)``; smaller is better.

            CRPS = E|X - x| - E|X - X'| / 2

        with X and X' two independent draws among the paths, and x the ``truth (steps, N)``: the integral of
        (F(y) - 1{y >= x})^2 over y for their distribution function F (Gneiting and Raftery, 2007), in the
        units of the data; the absolute error where there is one path. It is infinite from where a path has
        diverged, or is infinite, and NaN where the truth is.
        """
        seen, count = self._checked(truth), len(self.paths)
        # E|X - X'| = 2 / S^2 sum_i (2 i - S - 1) X_(i)
        ranks = (2.0 * np.arange(1, count + 1) - count - 1.0) / count**2
        lost = ~np.isfinite(self.paths).all(axis=0)
        kept = np.where(lost, np.nan, self.paths)
        spread = np.tensordot(ranks, np.sort(kept, axis=0), axes=1)
        score = np.abs(kept - seen).mean(axis=0) - spread
        return np.where(lost & ~np.isnan(seen), np.inf, score)

    def coverage(self, truth: ArrayLike, level: float = 0.9) -> Floats:
        """Return whether the central interval holds ``truth (steps, N)``: 1 or 0, NaN where it is not known.

        The mean over many forecasts is ``level`` if bands are calibrated. Where all paths have diverged
        nothing is held.
        """
        seen = self._checked(truth)
        low, high = self.band(level)
        return np.where(np.isnan(seen), np.nan, (low <= seen) & (seen <= high))

    def valid_time(
        self,
        truth: ArrayLike,
        lyapunov: float | None = None,
        dt: float = 1.0,
        *,
        threshold: float = 0.4,
        scale: ArrayLike | None = None,
    ) -> float:
        """Return how long the mean over paths is of use against ``truth (steps, N)``.

        Up to when it is within ``threshold`` deviations, ``scale (N,)``, as `valid_prediction_time` says: in
        Lyapunov times ``1 / lyapunov`` with the largest exponent of the system, which must be positive, and
        in units of time without; a step takes ``dt``.
        """
        seen = self._checked(truth)
        return valid_prediction_time(
            self.mean, seen, dt=dt, lyapunov=lyapunov, threshold=threshold, scale=scale
        )

    def _checked(self, truth: ArrayLike) -> Floats:
        seen = as_floats(truth, "truth", allow_nan=True)
        if seen.shape != self.paths.shape[1:]:
            raise ValueError(f"truth must have shape {self.paths.shape[1:]}, got {seen.shape}")
        return seen

    def __repr__(self) -> str:
        count, steps, dim = self.paths.shape
        gone = f", {self.diverged} diverged" if self.diverged else ""
        return f"Forecast({count} paths of {steps} steps, {dim} coordinates{gone}{self._sources()})"

    def _sources(self) -> str:
        if not self.varies:
            return ""
        taken = "" if any(part.startswith(PARAMETERS) for part in self.varies) else "; parameters are fixed"
        return f"; they vary by {', '.join(self.varies)}{taken}"
