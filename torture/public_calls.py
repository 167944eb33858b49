"""One row for each public name of `palrnn` that people call: a call that works, the kind of each argument."""

from __future__ import annotations

from torture import calls_of_inference, calls_of_learning, calls_of_series
from torture.calls import Row


def rows() -> dict[str, Row]:
    """Return the table."""
    return calls_of_series.rows() | calls_of_learning.rows() | calls_of_inference.rows()
