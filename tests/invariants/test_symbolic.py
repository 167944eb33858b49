from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palrnn import ALRNN
from palrnn.invariants import symbolic_dynamics


def _tent(slope):
    """z' = 1 - slope |z|, as an AL-RNN with one gated unit."""
    return ALRNN([slope], [[-2 * slope]], [1.0], [[1.0]], 1)


def _bits(text):
    return np.array([[int(bit) for bit in word] for word in text.split()], dtype=bool)


def test_a_short_sequence_counted_by_hand():
    result = symbolic_dynamics(_bits("01 01 01 10 01 01 11"))
    assert result.numbers == [1, 2, 3]
    np.testing.assert_array_equal(result.symbols, [0, 0, 0, 1, 0, 0, 2])
    np.testing.assert_allclose(result.occupancy, [5 / 7, 1 / 7, 1 / 7])
    np.testing.assert_array_equal(result.visits, [2, 1, 1])
    np.testing.assert_allclose(result.dwell_times, [2.5, 1, 1])
    np.testing.assert_array_equal(result.runs, [[0, 3], [1, 1], [0, 2], [2, 1]])
    np.testing.assert_allclose(result.transitions.toarray(), [[0.6, 0.2, 0.2], [1, 0, 0], [0, 0, 0]])


def test_the_entropy_rate_of_known_sources():
    assert symbolic_dynamics(_bits("0 1 " * 50)).entropy_rate() == pytest.approx(0.0, abs=1e-12)
    coin = np.random.default_rng(0).random((50_000, 1)) < 0.5
    # the plug-in estimate of one bit is low by 1 / (2 T log 2) and scatters by less than 1e-4
    assert symbolic_dynamics(coin).entropy_rate() == pytest.approx(1.0, abs=3e-4)
    # a two-state Markov chain that stays with probability 0.9
    flips = np.random.default_rng(1).random(200_000) < 0.1
    chain = symbolic_dynamics((np.cumsum(flips) % 2 == 1)[:, None])
    expected = -0.9 * np.log2(0.9) - 0.1 * np.log2(0.1)
    assert chain.entropy_rate() == pytest.approx(expected, abs=5e-3)
    assert chain.dwell_times == pytest.approx([10, 10], rel=0.05)


def test_the_entropy_of_a_tent_map_is_its_lyapunov_exponent():
    # Pesin: the entropy rate of a generating partition is log2 of the slope; words of 9 codes are seen often
    slope = 1.7
    model = _tent(slope)
    result = symbolic_dynamics(model.codes(model.rollout([0.1234], 200_000, discard=100).states))
    assert result.entropy_rate(order=8) == pytest.approx(np.log2(slope), abs=0.02)
    assert result.entropy_rate(order=8) < result.entropy_rate(order=1)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), gates=st.sampled_from([0, 1, 3, 62, 63, 200]))
def test_it_agrees_with_a_dictionary_for_any_number_of_gates(seed, gates):
    rng = np.random.default_rng(seed)
    book = rng.random((6, gates)) < 0.5
    codes = book[rng.integers(0, 6, 80)]
    result = symbolic_dynamics(codes)
    counts = Counter(code.tobytes() for code in codes)
    assert [round(80 * share) for share in result.occupancy] == [
        counts[code.tobytes()] for code in result.codes
    ]
    assert list(result.occupancy) == sorted(result.occupancy, reverse=True)
    np.testing.assert_array_equal(result.codes[result.symbols], codes)
    assert result.numbers == [int("0" + "".join(map(str, code.astype(int))), 2) for code in result.codes]
    pairs = Counter(zip(result.symbols[:-1], result.symbols[1:], strict=True))
    dense = result.transitions.toarray()
    for (a, b), count in pairs.items():
        assert dense[a, b] == pytest.approx(count / np.sum(result.symbols[:-1] == a))
    assert result.transitions.nnz == len(pairs)


def test_errors_say_what_codes_are():
    with pytest.raises(ValueError, match=r"codes must be \(T, P\) with T >= 2"):
        symbolic_dynamics(np.zeros(5, dtype=bool))
    with pytest.raises(ValueError, match="codes must hold 0 and 1 only"):
        symbolic_dynamics(np.array([[0.3], [0.4]]))
    with pytest.raises(ValueError, match="order must be from 1 to 3"):
        symbolic_dynamics(_bits("0 1 0 1")).entropy_rate(4)
