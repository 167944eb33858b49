"""Random numbers by counting: the draw of one gate at one step is a function of where it is, not of what came
before.

SplitMix64 (Steele, Lea and Flood, 2014): the n-th number of a stream is a bijective mix of ``key + n *
GAMMA``. The filter can thus leave no trace of the noise it used: when a gate path is walked again later, the
same numbers are made again from the step and the particle.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import intrinsic

from palrnn.engine.kernel import kernel

# the bits of 1.0, of 1/sqrt(2), and of the fraction of a float64
ONE_BITS, LOW_BITS, FRACTION_BITS = 0x3FF0000000000000, 0x3FE6A09E667F3BCD, 0x000FFFFFFFFFFFFF
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
    """Fill ``out (n, K)``: column k gets the ``(block * K + k)``-th n normal numbers of a stream.

    Box and Muller (1958). Written so that the columns of a row are made together, as vectors.
    """
    count, columns = out.shape
    pairs = (count + 1) // 2
    for pair in range(pairs):
        row, other = 2 * pair, min(2 * pair + 1, count - 1)
        for k in range(columns):
            index = 2 * ((block * columns + k) * pairs + pair)
            radius = math.sqrt(-2.0 * log_of_fraction(uniform(key, index)))
            cosine, sine = cosine_and_sine(uniform(key, index + 1))
            # of an odd count, the last pair's cosine overwrites its sine
            out[other, k] = radius * sine
            out[row, k] = radius * cosine


@kernel
def gate_normals(key, step, out):
    """Fill ``out (P, n)``: column i gets what particle i draws its gates with at one step."""
    fill_normals(stream_key(key, step, GATES), 0, out)


@kernel
def resampling_uniforms(key, step, out):
    """Fill ``out (n,)`` with what resampling uses at one step."""
    fill_uniforms(stream_key(key, step, RESAMPLING), out)


@intrinsic
def _bits(typing, number):
    """The 64 bits of a float64 as an integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _number(typing, bits):
    """The float64 with the given 64 bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@kernel
def log_of_fraction(u):
    """log u for 0 < u <= 1, to within two units in the last place, without branches.

    u = 2^e m with m between 1/sqrt(2) and sqrt(2), and log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...) with
    s = (m - 1) / (m + 1), at most 0.172 in size.
    """
    # adding the difference of 1 and 1/sqrt(2) carries into the exponent from sqrt(2) on
    bits = _bits(u) + (ONE_BITS - LOW_BITS)
    exponent = (bits >> 52) - 1023
    m = _number((bits & FRACTION_BITS) + LOW_BITS)
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    series = 1.0 / 21.0
    for n in range(19, 2, -2):
        series = series * q + 1.0 / n
    return np.float64(exponent) * math.log(2.0) + 2.0 * (s + s * q * series)


@kernel
def cosine_and_sine(u):
    """cos(2 pi u) and sin(2 pi u) for 0 <= u <= 1, to within two units of 2^-53, without branches.

    The nearest quarter turn is taken off, which is exact; the Taylor series of what is left, at most pi / 4,
    has 8 terms.
    """
    quarter = math.floor(4.0 * u + 0.5)
    r = (4.0 * u - quarter) * (0.5 * math.pi)
    q = r * r
    cosine, sine = 1.0, 1.0
    for n in range(16, 1, -2):
        cosine = 1.0 - cosine * q / (n * (n - 1))
        sine = 1.0 - sine * q / (n * (n + 1))
    sine *= r
    odd = quarter - 2.0 * math.floor(0.5 * quarter)
    turned = 1.0 if quarter == 0.0 or quarter == 3.0 or quarter == 4.0 else -1.0
    upper = -1.0 if quarter == 2.0 or quarter == 3.0 else 1.0
    return turned * (sine if odd > 0.0 else cosine), upper * (cosine if odd > 0.0 else sine)
