"""A trajectory that knows whether it diverged."""

from __future__ import annotations

from typing import Any

import numpy as np

from palrnn.engine.checks import Floats

#: A state beyond this magnitude counts as diverged; models live in standardised coordinates of order one.
BOUND = 1e10


class DivergenceWarning(UserWarning):
    """A free-running model left every bound."""


class Trajectory(np.ndarray):
    """States ``(steps, M)``: an ordinary array with one attribute more.

    ``diverged_at`` is None, or the number of steps from the start (discarded ones included) to the first
    state that was not finite or exceeded 1e10. The array ends before that state, so every number in it can be
    used. Copies keep the attribute, also in another process; a part of a trajectory is an ordinary array, and
    so is what is computed from it.
    """

    diverged_at: int | None

    def __new__(cls, states: Floats, diverged_at: int | None = None) -> Trajectory:
        """View ``states`` as a trajectory."""
        trajectory = np.asarray(states).view(cls)
        trajectory.diverged_at = diverged_at
        return trajectory

    def __array_finalize__(self, parent: Any) -> None:
        self.diverged_at = getattr(parent, "diverged_at", None)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __reduce__(self) -> tuple[Any, ...]:
        return Trajectory, (np.asarray(self), self.diverged_at)
