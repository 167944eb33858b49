"""Runs of the AL-RNN, and sampling from the PAL-RNN."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import fma_column, lane_count, load_pair, pair_rows, rows_of_pairs, store_tile, tile
from palrnn.engine.products import copy
from palrnn.engine.vector_code import REGISTER_BYTES


def padded(rows, columns):
    """Zeros ``(rows, columns)``, with as many more of both as fill tiles of pairs."""
    wide, many = 2 * REGISTER_BYTES // 8, rows_of_pairs(np.float64)
    return np.zeros((-(-rows // many) * many, -(-columns // wide) * wide))


@kernel
def advance(A, across, biases, gated, z, active, after, out):
    """Fill ``out (steps, S, M)`` with the states that follow each of ``z (S, M)``, side by side.

    z_{t+1} = A z_t + W phi*(z_t) + h (eq. alrnn), phi* = ReLU on the last ``gated`` units. ``across`` is
    W transposed; ``biases`` is h, or h + C s_t of each step and run: ``(1 or steps, 1 or S, M)``. All but
    these and A are `padded`; ``z``, ``active`` and ``after`` are written over. Runs are rows of tiles
    (`lanes`). Nothing is checked, so a run that diverges becomes infinite or NaN.
    """
    steps, count, dim = out.shape
    rows, width = z.shape
    pair = 2 * lane_count(z)
    moves, differ = 1 if biases.shape[0] > 1 else 0, 1 if biases.shape[1] > 1 else 0
    for t in range(steps):
        for s in range(count):
            for i in range(dim - gated):
                active[s, i] = z[s, i]
            for i in range(dim - gated, dim):
                active[s, i] = 0.0 if z[s, i] < 0.0 else z[s, i]
        for row in range(0, rows * width, pair_rows(z) * width):
            for c in range(0, width, pair):
                nothing = load_pair(across, dim * width)
                sums = tile(nothing)
                for k in range(dim):
                    sums = fma_column(active, row + k, width, load_pair(across, k * width + c), sums)
                store_tile(after, row + c, width, nothing, sums)
        for s in range(count):
            for i in range(dim):
                after[s, i] += A[i] * z[s, i] + biases[t * moves, s * differ, i]
                out[t, s, i] = after[s, i]
        z, after = after, z


@kernel
def sample(A, W, h, gated, gate_std, start, bound, process, uniforms, states, codes):
    """Draw states and codes of the PAL-RNN (eqs. ssmtransition and probit), in place.

    ``process (T-1, M)`` is the scaled noise, ``uniforms (T-1, P)`` decide the gates: c_{t,j} = 1 with
    probability Phi(z_{t,M-P+j} / gate_std), or the hard gate where ``gate_std`` is 0.
    Return the step at which the state left ``bound``, or -1.
    """
    steps, dim = states.shape
    gate = np.ones(dim)
    copy(start, states[0])
    for t in range(steps):
        for i in range(dim):
            if not abs(states[t, i]) <= bound:
                return t
        if t == steps - 1:
            break
        for j in range(gated):
            value = states[t, dim - gated + j]
            if gate_std > 0.0:
                probability = 0.5 * math.erfc(-value / (gate_std * math.sqrt(2.0)))
                opened = uniforms[t, j] < probability
            else:
                opened = value > 0.0
            codes[t, j] = opened
            gate[dim - gated + j] = 1.0 if opened else 0.0
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += W[i, j] * gate[j] * states[t, j]
            states[t + 1, i] = A[i] * states[t, i] + total + h[i] + process[t, i]
    return -1
