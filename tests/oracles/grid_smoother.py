"""Gates and states of a PAL-RNN with two units given all of the data, by sums over a grid of states.

Nothing is sampled and no Gaussian is conditioned: forward and backward densities are carried along on a grid,
summing over codes at every step. The trapezoid rule is exact to about nine digits for densities as smooth as
these.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import norm


class GridPosterior(NamedTuple):
    mean: np.ndarray  # E z_t, (T, 2)
    variance: np.ndarray  # Var z_t, (T, 2)
    codes: np.ndarray  # P(c_t = c), (T-1, 2^P)
    pairs: np.ndarray  # P(c_t = c, c_{t+1} = d), (T-2, 2^P, 2^P)


def grid_posterior(model, x, half_width=6.0, points=49) -> GridPosterior:
    """Return what all of ``x (T, N)`` says; codes are numbered in binary, the first gate first."""
    drift, seen = model.drift, x.shape[1]
    line = np.linspace(-half_width, half_width, points)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = (line[1] - line[0]) ** 2
    noise = np.sqrt(model.process_variances)
    moves = []
    for code in product((0, 1), repeat=drift.gated):
        open_units = np.concatenate([np.ones(2 - drift.gated), code])
        signs = 2.0 * np.array(code) - 1.0
        chance = norm.cdf(signs * grid[:, 2 - drift.gated :] / model.gate_std).prod(axis=1)
        after = drift.A * grid + (open_units * grid) @ drift.W.T + drift.h
        moves.append((chance, *(norm.pdf(line[None, :], after[:, [i]], noise[i]) for i in range(2))))

    def forth(density, move):
        chance, first, second = move
        return ((first * (chance * density * cell)[:, None]).T @ second).ravel()

    def back(density, move):
        chance, first, second = move
        return chance * np.einsum("gi,gj,ij->g", first, second, density.reshape(points, points)) * cell

    def likelihood(observation):
        density = norm.pdf(observation, grid[:, :seen], np.sqrt(model.observation_variances))
        return np.where(np.isnan(observation), 1.0, density).prod(axis=1)

    start = norm.pdf(grid, drift.embed(x[0]), np.sqrt(model.initial_variances)).prod(axis=1)
    ahead = [start]
    for observation in x[1:]:
        ahead.append(sum(forth(ahead[-1], move) for move in moves) * likelihood(observation))
    behind = [np.ones(len(grid))]
    for observation in x[:0:-1]:
        weighed = behind[-1] * likelihood(observation)
        behind.append(sum(back(weighed, move) for move in moves))
    behind = behind[::-1]
    evidence = ahead[-1].sum() * cell
    marginals = np.array([a * b for a, b in zip(ahead, behind, strict=True)]) * cell / evidence
    mean = marginals @ grid
    codes = np.array(
        [
            [(forth(ahead[t], move) * likelihood(x[t + 1]) * behind[t + 1]).sum() * cell for move in moves]
            for t in range(len(x) - 1)
        ]
    )
    pairs = np.array(
        [
            [
                [
                    (
                        forth(ahead[t], one)
                        * likelihood(x[t + 1])
                        * back(likelihood(x[t + 2]) * behind[t + 2], two)
                    ).sum()
                    * cell
                    for two in moves
                ]
                for one in moves
            ]
            for t in range(len(x) - 2)
        ]
    )
    return GridPosterior(mean, marginals @ grid**2 - mean**2, codes / evidence, pairs / evidence)
