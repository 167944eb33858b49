"""Random numbers by counting: the draw of one gate at one step is a function of where it is, not of what came
before.

SplitMix64 (Steele, Lea and Flood, 2014): the n-th number of a stream is a bijective mix of ``key + n *
GAMMA``. The filter can thus leave no trace of the noise it used: when a gate path is walked again later, the
same numbers are made again from the step and the particle.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel

GAMMA = np.uint64(0x9E3779B97F4A7C15)
GATES, RESAMPLING = 0, 1


@kernel
def mixed(z):
    """A bijection of 64 bits in which every input bit flips every output bit with probability one half."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def stream_key(key, step, purpose):
    """The key of the stream that serves one purpose at one step."""
    return mixed(key + mixed(np.uint64(2 * step + purpose + 1) * GAMMA))


@kernel
def uniform(key, index):
    """The ``index``-th number of a stream, uniform on the open interval (0, 1)."""
    return (np.float64(mixed(key + np.uint64(index) * GAMMA) >> np.uint64(11)) + 0.5) * 2.0**-53


@kernel
def fill_uniforms(key, out):
    """Fill ``out (n,)`` with the first n numbers of a stream."""
    for index in range(out.shape[0]):
        out[index] = uniform(key, index)


@kernel
def fill_normals(key, block, out):
    """Fill ``out (n,)`` with the ``block``-th n normal numbers of a stream (Box and Muller, 1958)."""
    count = out.shape[0]
    pairs = (count + 1) // 2
    for pair in range(pairs):
        index = 2 * (block * pairs + pair)
        radius = math.sqrt(-2.0 * math.log(uniform(key, index)))
        angle = 2.0 * math.pi * uniform(key, index + 1)
        out[2 * pair] = radius * math.cos(angle)
        if 2 * pair + 1 < count:
            out[2 * pair + 1] = radius * math.sin(angle)
