"""RAdam against the formulas of the paper in plain NumPy, and against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palrnn.forcing.kernels.updates import radam_step
from palrnn.forcing.objective import TINY


def recorded_gradients(steps, size, seed=0):
    # scales from 1e-4 to 1, with drift, as real gradients have
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-4, 0, size)
    return scale * (rng.standard_normal((steps, size)) + 0.3 * np.sin(np.arange(steps) / 50)[:, None])


def ours(start, gradients, rates, dtype):
    theta = start.astype(dtype)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    path = []
    tiny = theta.dtype.type(TINY[theta.dtype.name])
    for t, (gradient, rate) in enumerate(zip(gradients.astype(dtype), rates, strict=True), start=1):
        radam_step(theta, first, second, gradient, t, rate, tiny)
        path.append(theta.copy())
    return np.array(path)


def plain_radam(start, gradients, rates):
    # Liu et al. (2020), algorithm 2, with the warm-up steps unadapted
    theta, m, v = start.copy(), 0.0, 0.0
    limit = 2 / (1 - 0.999) - 1
    path = []
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        unbiased = m / (1 - 0.9**t)
        rho = limit - 2 * t * 0.999**t / (1 - 0.999**t)
        if rho > 5:
            r = math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
            unbiased = unbiased * r * math.sqrt(1 - 0.999**t) / (np.sqrt(v) + 1e-8)
        theta = theta - rate * unbiased
        path.append(theta)
    return np.array(path)


def test_radam_follows_the_published_algorithm():
    start, gradients = np.linspace(-1, 1, 40), recorded_gradients(1000, 40)
    rates = 1e-3 * 0.01 ** (np.arange(1000) / 1000)
    # equal up to rounding of a thousand float64 additions
    np.testing.assert_allclose(
        ours(start, gradients, rates, np.float64), plain_radam(start, gradients, rates), rtol=0, atol=1e-13
    )


def test_the_first_steps_are_not_rectified():
    # for rho <= 5, that is for t <= 5, the step is proportional to the gradient
    path = ours(np.zeros(2), np.array([[1.0, 100.0]] * 6), np.full(6, 1e-3), np.float64)
    np.testing.assert_allclose(np.diff(path[:5, 1]), 100 * np.diff(path[:5, 0]), rtol=1e-12)
    assert abs(path[5, 1] - path[4, 1]) < 2 * abs(path[5, 0] - path[4, 0])


@pytest.mark.torch
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 2e-6)])
def test_radam_equals_pytorch_over_a_thousand_steps(dtype, tolerance):
    torch = pytest.importorskip("torch")
    start, gradients = np.linspace(-1, 1, 40), recorded_gradients(1000, 40)
    rates = 1e-3 * 0.01 ** (np.arange(1000) / 1000)
    parameter = torch.nn.Parameter(torch.tensor(start.astype(dtype)))
    optimiser = torch.optim.RAdam([parameter], lr=1e-3)
    path = []
    for gradient, rate in zip(gradients.astype(dtype), rates, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        parameter.grad = torch.tensor(gradient)
        optimiser.step()
        path.append(parameter.detach().numpy().copy())
    # a thousand additions of float32 numbers of order 1 round by at most about 1e-7 each, mostly cancelling
    np.testing.assert_allclose(ours(start, gradients, rates, dtype), np.array(path), rtol=0, atol=tolerance)
