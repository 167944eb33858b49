"""How good the model is when it runs freely: D_stsp and the largest Lyapunov exponent on held-out data."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.gaps import first_whole_row
from palrnn.forcing.history import Evaluation
from palrnn.invariants import quantities_of_interest, viability
from palrnn.invariants.free_run import drives_from
from palrnn.invariants.state_space import delay_for
from palrnn.invariants.viability import spread_rows
from palrnn.model import PALRNN, Surrogate, drift_of
from palrnn.model.inputs import checked_inputs


def free_running_evaluation(
    model: Surrogate | PALRNN,
    heldout: Floats,
    *,
    inputs: ArrayLike | None = None,
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
    A driven model needs ``inputs (T, K)`` of ``heldout``, which are repeated where a run outlasts them.
    With ``long_steps``, it also runs so long from 10 rows of ``heldout``, to see from how many it lives.
    """
    heldout = as_series(heldout, "heldout", dim=drift_of(model).observed_dim, allow_nan=True)
    first_whole_row(heldout, "heldout")
    discard = as_int(discard, "discard")
    life_steps = None if long_steps is None else as_int(long_steps, "long_steps", least=1000)
    kept = as_int(steps, "steps", least=discard + 1) - discard
    how: dict[str, Any] = {"steps": kept, "discard": discard, "dt": dt, "delay": delay_for(heldout[:kept])}
    drive = checked_inputs(model, inputs, len(heldout))
    how["inputs"] = None if drive is None else drive[:kept]
    found = quantities_of_interest(model, heldout[:kept], **how).numbers()
    alive = math.nan
    if life_steps is not None:
        rows = spread_rows(heldout)
        drives = drives_from(drive, rows)
        life = viability(model, heldout[rows], life_steps, inputs=drives, data=heldout)
        alive = life.alive / len(life.fates)
    return Evaluation(update, found["dstsp"], found["outside"], found["lyapunov"], alive)
