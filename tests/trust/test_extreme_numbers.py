"""Noise from 1e-4 to 10, exploding models, M = 1, N = M, P = 0 or M, tau beyond T, one particle, one path."""

from __future__ import annotations

import numpy as np
import pytest

import palrnn
from torture.extremes import SHAPES, cases, network, series


@pytest.fixture(scope="module")
def tried():
    return list(cases())


@pytest.mark.slow
def test_every_extreme_gives_finite_numbers_or_an_error_that_says_why(tried):
    assert [case for case in tried if case.fault] == []


@pytest.mark.slow
def test_most_extremes_are_computed_not_refused(tried):
    # gains of 1000 and learning rates of 10^6 may be refused; noises and shapes may not
    assert sum(case.refused for case in tried) < 0.15 * len(tried)
    refused = {case.words for case in tried if case.refused}
    assert [words for words in refused if "gain" not in words and "rate" not in words] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_filtered_covariances_are_symmetric_and_positive(shape):
    model = palrnn.PALRNN(network(shape, 0.9), 1e-4, 10.0, 0.5)
    x = series(shape[1])
    found = palrnn.path_posterior(model, x, np.ones((len(x) - 1, shape[2])))
    for cov in (found.filtered_cov, found.cov):
        np.testing.assert_allclose(cov, np.swapaxes(cov, 1, 2), atol=1e-15 * np.abs(cov).max())
        # rounding of a sum of M products, relative to the largest entry
        assert np.linalg.eigvalsh(cov).min() > -1e-14 * np.abs(cov).max()
