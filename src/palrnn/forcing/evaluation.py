"""How good the model is when it runs freely: D_stsp and the largest Lyapunov exponent on held-out data."""

from __future__ import annotations

import math
import warnings

import numpy as np

from palrnn.engine.checks import Floats, as_instance, as_int, as_series
from palrnn.forcing.history import Evaluation
from palrnn.invariants import DivergenceError, dstsp, lyapunov_spectrum
from palrnn.model import ALRNN, DivergenceWarning


def free_running_evaluation(
    model: ALRNN,
    heldout: Floats,
    *,
    update: int = 0,
    steps: int = 10_000,
    discard: int = 1000,
    dt: float = 1.0,
) -> Evaluation:
    """Measure ``model`` on a free run of ``steps`` steps from ``heldout[0]``, the first ``discard`` left out.

    The reference is as long as what is kept of the run, if ``heldout (T, N)`` is, so that the value compares
    with `dstsp_floor` at that length. Histograms over the reference's box do not depend on the units of the
    coordinates, so standardised data will do. A model that diverges has D_stsp infinite and exponent NaN.
    """
    heldout = as_series(heldout, "heldout", dim=as_instance(model, "model", ALRNN).observed_dim)
    discard = as_int(discard, "discard")
    kept = as_int(steps, "steps", least=discard + 1) - discard
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the result says so
        states = model.rollout(heldout[0], kept, discard)
    if states.diverged_at is not None:
        return Evaluation(update, math.inf, 1.0, math.nan)
    generated = np.asarray(states)[:, : model.observed_dim]
    divergence = dstsp(generated, heldout[:kept])
    try:
        exponent = lyapunov_spectrum(model, heldout[0], steps=kept, discard=discard, dt=dt, k=1).largest
    except DivergenceError:
        return Evaluation(update, math.inf, divergence.outside, math.nan)
    return Evaluation(update, divergence.value, divergence.outside, exponent)
