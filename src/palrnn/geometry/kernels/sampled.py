"""Complete-data score and information of the drift, from samples of codes and states (Alg. rbpf-louis).

Given (z, c) the drift is a linear regression per latent row i, with residual e_{t,i} = z_{t+1,i} - A_i
z_{t,i} - W_i D(c_t) z_t - h_i - C_i s_t and regressors f_{t,i} = [z_{t,i}, D(c_t) z_t, 1, s_t]:

    s_i = 1/q_i sum_t e_{t,i} f_{t,i},   I_i = 1/q_i sum_t f_{t,i} f_{t,i}^T   (block diagonal over the rows)

All rows share the F = M + P + 1 + K features g_t = [D(c_t) z_t, z_t on the gated units, 1, s_t], because D(c)
z = z on the others; so one sample costs three matrix products, whatever the number of rows.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def complete_data(A, W, h, C, variances, codes, states, inputs, gram, scores, traces):
    """Add sum_t g_t g_t^T over all samples to ``gram (F, F)``; fill scores and traces of the information.

    A (M,), W (M, M), h (M,), C (M, K'), variances (M,) the diagonal of Q; codes (S, T-1, P), states (S, K, T,
    M) and inputs (T-1, K'), K' = 0 where there are none. scores (S, K, p) in the order of theta, [A, W, h,
    C]; traces (S,): tr I_comp, the mean over the K states.
    Louis' identity (eq. louis) takes the mean of the one and the covariance of the other.
    """
    paths, draws, times, dim = states.shape
    gated = codes.shape[2]
    more = inputs.shape[1]
    free, one = dim - gated, dim + gated
    size = one + 1 + more
    steps = times - 1
    drift = np.zeros((size, dim))
    for i in range(dim):
        for j in range(dim):
            drift[j, i] = W[i, j]
        drift[i if i < free else dim + i - free, i] += A[i]
        drift[one, i] = h[i]
        for k in range(more):
            drift[one + 1 + k, i] = C[i, k]
    precision = 0.0
    for i in range(dim):
        precision += 1.0 / variances[i]
    features, residuals = np.ones((steps, size)), np.empty((steps, dim))
    for t in range(steps):
        for k in range(more):
            features[t, one + 1 + k] = inputs[t, k]
    square, score = np.empty((size, size)), np.empty((size, dim))
    for s in range(paths):
        traces[s] = 0.0
        for k in range(draws):
            for t in range(steps):
                for j in range(free):
                    features[t, j] = states[s, k, t, j]
                for j in range(gated):
                    value = states[s, k, t, free + j]
                    features[t, dim + j] = value
                    features[t, free + j] = value if codes[s, t, j] else 0.0
            np.dot(features, drift, residuals)
            for t in range(steps):
                for i in range(dim):
                    residuals[t, i] = states[s, k, t + 1, i] - residuals[t, i]
            np.dot(features.T, residuals, score)
            np.dot(features.T, features, square)
            gram += square
            regressors = square[one, one]
            for j in range(one + 1, size):
                regressors += square[j, j]
            for j in range(dim):
                regressors += square[j, j]
            traces[s] += precision * regressors
            for i in range(dim):
                source = i if i < free else dim + i - free
                traces[s] += square[source, source] / variances[i]
                scores[s, k, i] = score[source, i] / variances[i]
                scores[s, k, dim + dim * dim + i] = score[one, i] / variances[i]
                for j in range(more):
                    scores[s, k, dim * (dim + 2) + i * more + j] = score[one + 1 + j, i] / variances[i]
                for j in range(dim):
                    scores[s, k, dim + i * dim + j] = score[j, i] / variances[i]
        traces[s] /= draws
