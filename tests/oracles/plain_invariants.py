"""Invariants by the most literal route: dense arrays, Python loops, library QR."""

from __future__ import annotations

import itertools
import math

import numpy as np


def dense_dstsp(generated, reference, bins, smoothing, drop_first_bin=False, margin=0.0):
    """KL between two dense Laplace-smoothed histograms, bin by bin in a loop."""
    dims = reference.shape[1]
    low = reference.min(axis=0) - margin * reference.std(axis=0, ddof=1)
    high = reference.max(axis=0) + margin * reference.std(axis=0, ddof=1)
    densities = []
    for series in (reference, generated):
        counts = np.zeros((bins,) * dims)
        for point in series:
            cell = []
            for value, a, b in zip(point, low, high, strict=True):
                if value < a or value > b:
                    break
                number = math.floor((value - a) / (b - a) * bins)
                if drop_first_bin and (number == 0 or number == bins):
                    break
                cell.append(min(number, bins - 1))
            if len(cell) == dims:
                counts[tuple(cell)] += 1
        densities.append((counts + smoothing) / (counts + smoothing).sum())
    total = 0.0
    for cell in itertools.product(range(bins), repeat=dims):
        p, q = densities[0][cell], densities[1][cell]
        total += p * math.log(p / q)
    return total


def slow_spectrum(column, sigma):
    """The periodogram from its definition, smoothed by an explicit, truncated and reflected Gaussian."""
    steps = len(column)
    centred = column - column.mean()
    t = np.arange(steps)
    waves = [np.exp(-2j * np.pi * f * t / steps) for f in range(steps // 2 + 1)]
    power = np.array([abs(np.sum(centred * wave)) ** 2 for wave in waves])
    reach = int(4 * sigma + 0.5)
    kernel = np.array([math.exp(-0.5 * (k / sigma) ** 2) for k in range(-reach, reach + 1)])
    kernel /= kernel.sum()
    padded = np.pad(power, reach, mode="symmetric")
    smooth = np.array([kernel @ padded[f : f + 2 * reach + 1] for f in range(len(power))])
    return smooth / smooth.sum()


def slow_spectrum_distance(generated, reference, sigma):
    distances = []
    for a, b in zip(generated.T, reference.T, strict=True):
        overlap = np.sum(np.sqrt(slow_spectrum(a, sigma) * slow_spectrum(b, sigma)))
        distances.append(math.sqrt(max(0.0, 1.0 - overlap)))
    return float(np.mean(distances))


def qr_exponents(jacobians, directions):
    """Sum of log |R_ii| over library QR factorisations of J_t Q, one Jacobian at a time."""
    Q, total = directions, np.zeros(directions.shape[1])
    for J in jacobians:
        Q, R = np.linalg.qr(J @ Q)
        total += np.log(np.abs(np.diag(R)))
    return total / len(jacobians)
