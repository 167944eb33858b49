"""Noise taken out of a series: the exact smoother of a linear model, and less error through gates."""

import numpy as np
import pytest

from palrnn.coverage.truths import truth
from palrnn.geometry.denoising import denoised
from palrnn.model import ALRNN, PALRNN

J = np.array([[0.9, -0.3, 0.1], [0.3, 0.85, 0.0], [0.2, 0.1, 0.7]])


def test_of_a_linear_model_it_is_the_mean_of_the_joint_gaussian():
    drift = ALRNN(np.zeros(3), J, np.array([0.1, 0.0, -0.2]), np.array([[1.0, 0], [0, 1.0], [0.5, 0.2]]), 0)
    model = PALRNN(drift, np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.3]), 0.0)
    rng, length = np.random.default_rng(0), 9
    x = rng.standard_normal((length, 2))
    x[4, 1] = np.nan
    # states as a vector: z = mean + (I - shift)^{-1} noise, the first around its embedding
    size = 3 * length
    shift = np.zeros((size, size))
    for t in range(1, length):
        shift[3 * t : 3 * t + 3, 3 * t - 3 : 3 * t] = J
    # of the first state the row itself is the measurement, and hidden units have the noise of the process
    first = np.array([0.4, 0.3, 0.3]) ** 2
    spread = np.concatenate([first, np.tile(np.array([0.1, 0.2, 0.3]) ** 2, length - 1)])
    push = np.concatenate([drift.embed(x[0]), np.tile(drift.h, length - 1)])
    solve = np.linalg.inv(np.eye(size) - shift)
    mean, cov = solve @ push, solve @ np.diag(spread) @ solve.T
    seen = [3 * t + n for t in range(1, length) for n in range(2) if not np.isnan(x[t, n])]
    noise = np.diag([np.array([0.4, 0.3])[k % 3] ** 2 for k in seen])
    values = np.array([x[k // 3, k % 3] for k in seen])
    gain = cov[:, seen] @ np.linalg.inv(cov[np.ix_(seen, seen)] + noise)
    expected = (mean + gain @ (values - mean[seen])).reshape(length, 3)[:, :2]
    np.testing.assert_allclose(denoised(model, x), expected, atol=1e-12)


def test_through_a_gate_it_halves_the_error():
    known = truth("alrnn")
    clean, seen = (known.series(0.03, level, 1500, 3) for level in (0.0, 0.3))
    noise = seen - clean
    model = PALRNN(known.drift, 0.03, noise.std(axis=0), 0.0)
    assert np.sqrt(np.mean((denoised(model, seen) - clean) ** 2)) < 0.5 * noise.std()
    # almost no noise: nothing to take out
    exact = PALRNN(known.drift, 0.03, 1e-4, 0.0)
    np.testing.assert_allclose(denoised(exact, clean), clean, atol=1e-5)


def test_errors_name_the_argument():
    known = truth("alrnn")
    x = known.series(0.1, 0.1, 200, 0)
    model = PALRNN(known.drift, 0.1, 0.1, 0.0)
    gap = x.copy()
    gap[0, 0] = np.nan
    with pytest.raises(ValueError, match="x must start at a row without a gap"):
        denoised(model, gap)
    with pytest.raises(ValueError, match="x must have 3 columns"):
        denoised(model, x[:, :2])
    with pytest.raises(ValueError, match="model must be"):
        denoised(known.drift, x)
