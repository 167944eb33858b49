"""Streams are NumPy's spawned sequences, reached by number or name."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.engine.seeds import generator, kernel_seed


def test_a_numbered_stream_is_the_spawned_child():
    child = np.random.SeedSequence(7).spawn(3)[2].spawn(1)[0]
    expected = np.random.default_rng(child).random(8)
    np.testing.assert_array_equal(generator(7, 2, 0).random(8), expected)
    assert kernel_seed(7, 2, 0) == child.generate_state(1)[0]


def test_without_a_stream_it_is_numpys_own_generator():
    np.testing.assert_array_equal(generator(7).random(8), np.random.default_rng(7).random(8))


def test_streams_differ_from_each_other_and_from_their_parent():
    streams = [(), (0,), (1,), (0, 0), ("noise",), ("gates",), ("noise", 0)]
    draws = [tuple(generator(3, *stream).integers(0, 2**62, 4)) for stream in streams]
    assert len(set(draws)) == len(streams)
    assert len({kernel_seed(3, *stream) for stream in streams}) == len(streams)


def test_a_named_stream_is_the_same_in_every_process():
    # the digest of a name is CRC-32, not Python's salted hash: it is the same on every machine
    assert kernel_seed(0, "observation noise") == kernel_seed(0, 3165928320)


@pytest.mark.parametrize("seed", [-1, 0.5, None, "7"])
def test_a_bad_seed_is_named(seed):
    with pytest.raises(ValueError, match=r"^seed must be "):
        generator(seed)
    with pytest.raises(ValueError, match=r"^seed must be "):
        kernel_seed(seed)


def test_a_bad_stream_is_named():
    with pytest.raises(ValueError, match=r"^stream must be >= 0, got -1$"):
        generator(0, -1)


def test_kernel_seeds_fit_a_32_bit_word_and_hardly_ever_meet():
    seeds = [kernel_seed(0, k) for k in range(2000)]
    assert all(0 <= seed < 2**32 for seed in seeds)
    # 2000 draws from 2^32 meet with probability 5e-4; these do not
    assert len(set(seeds)) == 2000
