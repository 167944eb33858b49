"""A free run: its states, and whether it diverged."""

from __future__ import annotations

from dataclasses import dataclass

from palrnn.engine.checks import Floats

#: A state beyond this magnitude counts as diverged; models live in standardised coordinates of order one.
BOUND = 1e10


@dataclass(frozen=True, eq=False)
class Rollout:
    """The states of a run, ``states (steps, M)``.

    ``diverged_at`` is None, or the number of steps from the start (discarded ones included) to the first
    state that was not finite or exceeded 1e10. The states end before that one, so every number in them can
    be used; there may be none.
    """

    states: Floats
    diverged_at: int | None = None

    @property
    def diverged(self) -> bool:
        """Whether the run left every bound."""
        return self.diverged_at is not None

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        end = f", diverged after {self.diverged_at} steps" if self.diverged else ""
        return f"{type(self).__name__}({self.states.shape[0]} states of {self.states.shape[1]} units{end})"
