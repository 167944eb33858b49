from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_invariants import dense_dstsp

from palrnn import delay_embed, dstsp, lorenz63, suggest_tau
from palrnn.invariants.state_space import delay_for


def _clouds(seed, dims=3, steps=400):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((steps, dims)), 1.1 * rng.standard_normal((steps + 50, dims)) + 0.1


# of one column that is asked for on purpose here
@pytest.mark.filterwarnings("ignore:D_stsp of a single column")
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_paper_protocol_equals_a_dense_histogram(dims):
    reference, generated = _clouds(dims, dims)
    # sums over at most 7^3 bins in another order: rounding only
    expected = dense_dstsp(generated, reference, 7, 1e-5)
    assert dstsp(generated, reference, bins=7).value == pytest.approx(expected, rel=1e-12)


def test_alrnn_python_protocol_drops_the_first_bin_and_the_maximum():
    reference, generated = _clouds(1)
    result = dstsp(generated, reference, bins=6, protocol="alrnn-python")
    expected = dense_dstsp(generated, reference, 6, 1e-5, drop_first_bin=True)
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.kept_reference < len(reference)


def test_gtf_protocol_widens_the_box():
    reference, generated = _clouds(2)
    result = dstsp(generated, reference, bins=6, protocol="gtf")
    expected = dense_dstsp(generated, reference, 6, 1e-5, margin=0.1)
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.outside < dstsp(generated, reference, bins=6).outside


@pytest.mark.parametrize("protocol", ["paper", "alrnn-python", "gtf"])
def test_identical_series_are_at_distance_zero(protocol):
    x = lorenz63(2000)
    assert dstsp(x, x, protocol=protocol).value == 0.0
    assert dstsp(x[::-1], x, protocol=protocol).outside == 0.0


@pytest.mark.filterwarnings("ignore:D_stsp of a single column")
def test_a_shifted_series_gives_the_closed_form_on_a_toy_grid():
    # 4 bins with one point each; the generated series is one bin to the right, its last point outside
    reference = np.array([0.0, 1.0, 2.0, 4.0])
    generated = reference + 1.0
    a, K = 0.1, 4
    counts_p, counts_q = np.array([1, 1, 1, 1]), np.array([0, 1, 1, 1])
    p, q = (counts_p + a) / (4 + a * K), (counts_q + a) / (3 + a * K)
    result = dstsp(generated, reference, bins=4, smoothing=a)
    assert result.value == pytest.approx(float(np.sum(p * np.log(p / q))), rel=1e-12)
    assert result.outside == 0.25
    assert (result.kept_generated, result.kept_reference) == (3, 4)


def test_a_series_wholly_outside_is_finite_and_flagged():
    reference = lorenz63(3000)
    result = dstsp(reference + 1e6, reference)
    assert result.outside == 1.0
    assert result.kept_generated == 0
    # the smoothed empty histogram is uniform: KL = log K - H(p)
    expected = dense_dstsp(reference[:1] + 1e6, reference, 30, 1e-5)
    assert result.value == pytest.approx(expected, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_time_does_not_matter(seed):
    reference, generated = _clouds(seed, 2, 100)
    shuffle = np.random.default_rng(seed + 1).permutation
    again = dstsp(generated[shuffle(len(generated))], reference[shuffle(len(reference))], bins=5)
    assert again.value == dstsp(generated, reference, bins=5).value


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), bins=st.integers(2, 12), smoothing=st.floats(1e-8, 10.0))
def test_it_is_never_negative_and_never_beyond_the_empty_histogram(seed, bins, smoothing):
    reference, generated = _clouds(seed, 2, 60)
    value = dstsp(generated, reference, bins=bins, smoothing=smoothing).value
    # no bin's ratio p / q can exceed (T + a) / a * Z_q / Z_p
    most = math.log((len(reference) + smoothing) / smoothing) + math.log(
        (len(generated) + smoothing * bins**2) / (len(reference) + smoothing * bins**2)
    )
    assert 0.0 <= value <= max(most, 0.0) + 1e-12


def test_memory_follows_the_points_not_the_bins():
    # a dense histogram of 40^6 bins would take 33 GB
    rng = np.random.default_rng(0)
    reference, generated = rng.standard_normal((500, 6)), rng.standard_normal((500, 6))
    assert math.isfinite(dstsp(generated, reference, bins=40).value)


def test_the_mixture_of_two_blurred_clouds_has_the_divergence_of_two_gaussians():
    rng = np.random.default_rng(3)
    reference = rng.standard_normal((400, 2))
    shift = np.array([30.0, 0.0])
    result = dstsp(reference + shift, reference, method="mixture", mixture_std=200.0, samples=20_000)
    # kernels far wider than the clouds make one Gaussian of each: KL = |shift / (200 s)|^2 / 2, to 1 / 200^2
    expected = 0.5 * np.sum((shift / (200.0 * reference.std(axis=0))) ** 2)
    assert abs(result.value - expected) < 4 * result.stderr + 0.02 * expected
    assert result.stderr > 0
    assert result.method == "mixture"


def test_mixture_equals_direct_summation():
    rng = np.random.default_rng(4)
    reference, generated = rng.standard_normal((60, 8)), 2.0 * rng.standard_normal((50, 8))
    result = dstsp(generated, reference, samples=4000, seed=5)
    assert result.method == "mixture"
    s = reference.std(axis=0)
    draws = reference[rng.integers(0, 60, 4000)] + s * rng.standard_normal((4000, 8))

    def log_density(points, centres):
        squares = (((points[:, None] - centres) / s) ** 2).sum(axis=2)
        return np.log(np.exp(-0.5 * squares).mean(axis=1))

    ratio = log_density(draws, reference) - log_density(draws, generated)
    # two independent Monte Carlo means: 4.5 joint standard errors
    error = math.hypot(result.stderr, ratio.std() / math.sqrt(len(ratio)))
    assert abs(result.value - ratio.mean()) < 4.5 * error


def test_mixture_of_identical_series_is_zero_and_of_far_ones_finite():
    x = np.random.default_rng(6).standard_normal((300, 10))
    assert dstsp(x, x).value == 0.0
    far = dstsp(x + 1e5, x)
    assert math.isfinite(far.value)
    assert far.outside == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"reference": np.ones((10, 2))}, "reference must vary in every column, column 0"),
        ({"generated": np.ones((10, 3))}, "generated must have 2 columns"),
        ({"protocol": "mine"}, "protocol must be one of paper"),
        ({"bins": 0}, "bins must be >= 1"),
        ({"smoothing": 0.0}, "smoothing must be greater than 0"),
        ({"generated": np.full((10, 2), np.nan)}, "generated must have a row without gaps, every row has a"),
        ({"method": "guess"}, "method must be one of"),
    ],
)
def test_errors_name_the_argument(arguments, words):
    good = {"reference": np.random.default_rng(0).random((10, 2)), "generated": np.zeros((10, 2))}
    with pytest.raises(ValueError, match=words):
        dstsp(**(good | arguments))


def test_one_coordinate_is_compared_in_its_delay_space():
    """Shuffling a series leaves its histogram as it is, and nothing of its dynamics."""
    x = lorenz63(6000, seed=1)[:, :1]
    shuffled = np.random.default_rng(0).permutation(x)
    with pytest.warns(UserWarning, match=r"sees no dynamics.* Give delay") as told:
        assert dstsp(shuffled, x).value == 0.0
    assert told[0].filename == __file__
    assert dstsp(shuffled, x, delay=16).value > 3
    # by hand
    embedded = [delay_embed(series, 3, 16) for series in (shuffled, x)]
    assert dstsp(shuffled, x, delay=16).value == dstsp(*embedded).value
    # the same system from elsewhere is as near as its own stretches are
    other = lorenz63(6000, seed=2)[:, :1]
    assert dstsp(other, x, delay=16).value < 1.5
    assert delay_for(lorenz63(100)) is None
    assert delay_for(x) == suggest_tau(x)
    assert delay_for(x[:12]) == 2
    with pytest.raises(ValueError, match="delay must be at most a third"):
        dstsp(x[:40], x[:40], delay=20)
