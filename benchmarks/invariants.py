"""Invariants of a network of the paper's size against plain NumPy versions of the same quantities."""

from __future__ import annotations

import numpy as np
from clock import best_times

from palrnn import ALRNN, PALRNN, dstsp, fixed_points, lyapunov_spectrum
from palrnn.data import lorenz63, lorenz96
from palrnn.invariants import dstsp_floor

M, P, N, STEPS = 30, 10, 3, 10_000


def network() -> ALRNN:
    """Ten coupled tent maps that drive twenty contracting units: bounded, chaotic, switching all the time."""
    rng = np.random.default_rng(0)
    slope = np.r_[np.zeros(M - P), np.full(P, 1.7)]
    W = 0.01 * rng.uniform(-1, 1, (M, M)) - 2 * np.diag(slope)
    A, h = np.r_[rng.uniform(0.2, 0.8, M - P), np.full(P, 1.7)], np.r_[rng.standard_normal(M - P), np.ones(P)]
    return ALRNN(A, W, h, 0.1 * rng.standard_normal((M, N)), P)


def numpy_lyapunov(model: ALRNN, x1: np.ndarray, steps: int, discard: int) -> np.ndarray:
    z, Q = model.embed(x1), np.eye(M)
    total = np.zeros(M)
    for t in range(discard + steps):
        gate = np.ones(M)
        gate[M - P :] = z[M - P :] > 0
        J = np.diag(model.A) + model.W * gate
        z = J @ z + model.h
        Q, R = np.linalg.qr(J @ Q)
        if t >= discard:
            total += np.log(np.abs(np.diag(R)))
    return total / steps


def numpy_dstsp(generated: np.ndarray, reference: np.ndarray) -> float:
    box = list(zip(reference.min(axis=0), reference.max(axis=0), strict=True))
    p, q = (np.histogramdd(x, bins=30, range=box)[0] + 1e-5 for x in (reference, generated))
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum(p * np.log(p / q)))


def numpy_mixture(generated: np.ndarray, reference: np.ndarray, samples: int) -> float:
    rng, s = np.random.default_rng(0), reference.std(axis=0)
    points = reference[rng.integers(0, len(reference), samples)] + s * rng.standard_normal((samples, len(s)))
    logs = []
    for x in (reference, generated):
        squares = np.stack([(((point - x) / s) ** 2).sum(axis=1) for point in points])
        least = squares.min(axis=1, keepdims=True)
        logs.append(np.log(np.exp(-0.5 * (squares - least)).mean(axis=1)) - 0.5 * least[:, 0])
    return float(np.mean(logs[0] - logs[1]))


def numpy_fixed_points(model: ALRNN) -> int:
    found = []
    for number in range(2**P):
        code = np.array([number >> bit & 1 for bit in range(P)])
        J = np.diag(model.A) + model.W * np.r_[np.ones(M - P), code]
        point = np.linalg.solve(np.eye(M) - J, model.h)
        if np.array_equal(point[M - P :] > 0, code == 1):
            found.append((point, np.linalg.eigvals(J)))
    return len(found)


def main() -> None:
    model, x1 = network(), np.zeros(N)
    a, b = lorenz63(9000, seed=1), lorenz63(9000, seed=2)
    wide = lorenz96(4000, seed=1), lorenz96(4000, seed=2)
    races = {
        f"Lyapunov spectrum, M = {M}, {STEPS} steps": {
            "palrnn": lambda: lyapunov_spectrum(model, x1, steps=STEPS, discard=1000),
            "NumPy": lambda: numpy_lyapunov(model, x1, STEPS, 1000),
        },
        f"largest exponent of a sampled PAL-RNN, {STEPS} steps": {
            "palrnn": lambda: lyapunov_spectrum(PALRNN(model, 1e-3, 0.1, 1e-3), x1, steps=STEPS, k=1),
        },
        "D_stsp, 9000 points, 3 dimensions": {
            "palrnn": lambda: dstsp(a, b),
            "NumPy": lambda: numpy_dstsp(a, b),
        },
        "D_stsp, 4000 points, 40 dimensions": {
            "palrnn": lambda: dstsp(*wide, samples=300),
            "NumPy": lambda: numpy_mixture(*wide, 300),
        },
        "D_stsp floor, 20 pairs of 9000 points": {
            "palrnn": lambda: dstsp_floor(np.concatenate([a, b] * 3), length=9000, pairs=20),
        },
        f"fixed points, {2**P} regions": {
            "palrnn": lambda: fixed_points(model),
            "NumPy": lambda: numpy_fixed_points(model),
        },
    }
    for name, contenders in races.items():
        times = best_times(contenders, rounds=3)
        ours = times.pop("palrnn")
        against = ", ".join(f"{other} takes {time / ours:.1f} times as long" for other, time in times.items())
        print(f"{name:<52} {1e3 * ours:8.1f} ms   {against}", flush=True)


if __name__ == "__main__":
    main()
