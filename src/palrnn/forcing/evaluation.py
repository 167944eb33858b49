"""How good the model is when it runs freely: D_stsp and the largest Lyapunov exponent on held-out data."""

from __future__ import annotations

import math
from typing import Any

from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.gaps import first_whole_row
from palrnn.forcing.history import Evaluation
from palrnn.invariants import quantities_of_interest, spread_starts, viability
from palrnn.invariants.state_space import delay_for
from palrnn.model import PALRNN, Surrogate, drift_of


def free_running_evaluation(
    model: Surrogate | PALRNN,
    heldout: Floats,
    *,
    update: int = 0,
    steps: int = 10_000,
    discard: int = 1000,
    dt: float = 1.0,
    long_steps: int | None = None,
) -> Evaluation:
    """Measure ``model`` on a free run of ``steps`` steps, the first ``discard`` left out.

    It starts at the first row of ``heldout`` without a gap. The reference is as long as what is kept of the
    run, if ``heldout (T, N)`` is, so that the value compares with `dstsp_floor` at that length. Histograms
    over the reference's box do not depend on the units of the coordinates, so standardised data will do. A
    model that diverges has D_stsp infinite and exponent NaN.
    With ``long_steps``, it also runs so long from 10 rows of ``heldout``, to see from how many it lives.
    """
    heldout = as_series(heldout, "heldout", dim=drift_of(model).observed_dim, allow_nan=True)
    first_whole_row(heldout, "heldout")
    discard = as_int(discard, "discard")
    life_steps = None if long_steps is None else as_int(long_steps, "long_steps", least=1000)
    kept = as_int(steps, "steps", least=discard + 1) - discard
    how: dict[str, Any] = {"steps": kept, "discard": discard, "dt": dt, "delay": delay_for(heldout[:kept])}
    found = quantities_of_interest(model, heldout[:kept], **how).numbers()
    alive = math.nan
    if life_steps is not None:
        life = viability(model, spread_starts(heldout), life_steps, data=heldout)
        alive = life.alive / len(life.fates)
    return Evaluation(update, found["dstsp"], found["outside"], found["lyapunov"], alive)
