"""Noise of observation taken out of a series, by the Gaussian smoother of a model that knows its size.

Teacher forcing takes what was measured for the state. A model trained on noisy observations is therefore
another than one trained on the states, less chaotic as a rule (errors in variables). The smoother knows the
rows before and after: what it leaves of the noise is a third or less where a flow is sampled finely, and a
model that is trained on its means has that much less of the error.

The filter is that of `likelihood_posterior`; back in time each belief is corrected by what came after it,

    m_t <- m_t + G_t (m_{t+1} - E[z_{t+1} | x_{0..t}]),    G_t = V_t F_t^T Var[z_{t+1} | x_{0..t}]^{-1}

(Rauch, Tung and Striebel, 1965), with F_t the regression of the next state on this one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_instance, as_series
from palrnn.engine.kernel import pin_blas
from palrnn.geometry.kernels.gaussian_filter import filtered
from palrnn.model import ALRNN, PALRNN


def denoised(model: PALRNN, x: ArrayLike) -> Floats:
    """Return ``x (T, N)`` without its noise: the mean of what was observed given all rows, in their place.

    ``x`` is in the model's coordinates, and its first row has no gap; others (NaN) are filled in. The model
    is an AL-RNN with diagonal noise (`with_fitted_noise` finds one). Exact for a linear model; through gates,
    with the moments of `likelihood_posterior`, and its start: the first row is a measurement of the first
    state, whatever ``initial`` says.
    """
    drift = as_instance(model, "model", PALRNN).drift
    if not isinstance(drift, ALRNN) or drift.input_dim or not model.is_standard:
        raise ValueError("model must be of an ALRNN without inputs, with diagonal noises")
    rows = as_series(x, dim=drift.observed_dim, allow_nan=True)
    if np.isnan(rows[0]).any():
        raise ValueError("x must start at a row without a gap")
    pin_blas()
    length, units = len(rows), drift.latent_dim
    deviations = np.sqrt(np.concatenate([model.process_variances, model.observation_variances]))
    start = np.ascontiguousarray(drift.embed(rows[0]))
    means, coming = np.empty((length, units)), np.empty((length, units))
    covs, spreads = np.empty((length, units, units)), np.empty((length, units, units))
    maps = np.empty((length - 1, units, units))
    how = (drift.theta.copy(), units, drift.gated, deviations, model.gate_std, start, rows)
    filtered(*how, means, covs, maps, coming, spreads)
    if not np.isfinite(means).all():
        raise ValueError("model must be able to follow x: its filter diverges")
    # G^T = Var^{-1} F V
    gains = np.linalg.solve(spreads[1:], maps @ covs[:-1]).transpose(0, 2, 1)
    for t in range(length - 2, -1, -1):
        means[t] += gains[t] @ (means[t + 1] - coming[t + 1])
    return np.ascontiguousarray(means[:, : drift.observed_dim])
