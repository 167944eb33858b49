import numpy as np
import pytest
from scipy.linalg import eig, null_space, subspace_angles

from palrnn.geometry import (
    IndefiniteInformationWarning,
    curvature_gap,
    itf_fisher,
    louis_terms,
    mismatch,
    subspace_overlap,
)
from palrnn.model import ALRNN, PALRNN
from palrnn.model.families.alrnn_layout import identifiable_basis, null_units


def random_spd(size, rng, spread=2.0):
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return (basis * 10 ** rng.uniform(-spread, spread, size)) @ basis.T


def real_pair(gated=2, paths=40):
    """Return both matrices of a small model, from a forced rollout and arbitrary samples."""
    rng = np.random.default_rng(0)
    drift = ALRNN(
        rng.uniform(0.2, 0.8, 5),
        0.3 * rng.standard_normal((5, 5)),
        0.1 * rng.standard_normal(5),
        rng.standard_normal((5, 2)),
        gated,
    )
    # with this much noise arbitrary states are no surprise, and the observed information is mostly positive
    model = PALRNN(drift, 3.0, 0.1, 0.1)
    codes = rng.random((paths, 29, gated)) < 0.5
    terms = louis_terms(model, codes, rng.standard_normal((paths, 1, 30, 5)))
    return itf_fisher(drift, rng.standard_normal((30, 2)), 4, 0.1), terms


def test_the_gap_compares_traces_per_step():
    assert curvature_gap(np.eye(3), 2 * np.eye(3), 200) == pytest.approx(2.0)
    assert curvature_gap(3.0, 6.0, 200) == pytest.approx(2.0)


def test_a_gap_without_positive_curvature_is_not_a_number_and_says_so():
    with pytest.warns(IndefiniteInformationWarning, match="trace -3"):
        assert np.isnan(curvature_gap(np.eye(3), -np.eye(3), 10))


def test_the_figures_are_those_of_their_definitions():
    rng = np.random.default_rng(1)
    itf, observed = random_spd(12, rng), random_spd(12, rng)
    found = mismatch(itf, observed, ridge=1e-6, k=4)
    mu = 1e-6 * (np.trace(itf) + np.trace(observed)) / 24
    A, B = itf + mu * np.eye(12), observed + mu * np.eye(12)
    gamma = eig(np.linalg.solve(B, A))[0].real
    # the plain route solves with a matrix of condition 1e4
    np.testing.assert_allclose(found.log10_gamma, np.sort(np.log10(gamma)), atol=1e-8)
    assert found.q90 == pytest.approx(np.quantile(np.log10(gamma), 0.9), abs=1e-8)
    expected = (np.linalg.slogdet(A)[1] - np.linalg.slogdet(B)[1]) / np.log(10)
    assert found.logdet_gap == pytest.approx(expected, abs=1e-8)
    top = [np.linalg.eigh(matrix)[1][:, -4:] for matrix in (A, B)]
    assert found.overlap == pytest.approx((np.cos(subspace_angles(*top)) ** 2).mean(), abs=1e-8)
    assert found.ridge == pytest.approx(mu)
    assert (found.negative, found.null) == (0, 0)
    assert found.overlaps[3] == found.overlap
    assert found.overlaps[-1] == pytest.approx(1.0)


def test_a_uniform_rescaling_is_seen_as_one():
    rng = np.random.default_rng(2)
    itf = random_spd(10, rng, spread=1.0)
    found = mismatch(itf, itf / 100, ridge=1e-12, k=3)
    # the ridge of 1e-12 of the mean moves the smallest eigenvalue by less than 1e-8
    np.testing.assert_allclose(found.log10_gamma, 2.0, atol=1e-7)
    assert found.logdet_gap == pytest.approx(20.0, abs=1e-6)
    assert found.overlap == pytest.approx(1.0, abs=1e-6)


def test_negative_directions_are_counted_and_kept_out_of_the_logarithms():
    rng = np.random.default_rng(3)
    itf = random_spd(12, rng)
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    observed = (basis * np.r_[np.full(9, 1.0), np.full(3, -5.0)]) @ basis.T
    found = mismatch(itf, observed, k=4)
    assert found.negative == 3
    assert len(found.log10_gamma) == 9
    assert (found.observed_eigenvalues < 0).sum() == 3
    assert np.isfinite(found.logdet_gap)
    assert "3 negative" in repr(found)


def test_an_observed_information_of_negative_trace_still_has_a_mismatch():
    found = mismatch(np.eye(4), np.diag([1.0, -5.0, -5.0, -5.0]), k=1)
    assert found.negative == 3
    assert found.ridge == pytest.approx(1e-6 / 2)
    assert np.isnan(mismatch(np.eye(2), -np.eye(2)).q90)


def test_the_ungated_units_are_found_as_null_directions_of_both_matrices():
    itf, terms = real_pair(gated=2)
    assert null_units(itf, terms.observed).tolist() == [0, 1, 2]
    found = mismatch(itf, terms.observed / 30, k=10)
    assert found.null == 3
    # the ridge alone fills them: gamma is exactly 1 there
    assert (np.abs(found.log10_gamma) < 1e-6).sum() >= 3


def test_without_gates_all_units_are_null_and_with_gates_everywhere_none_is():
    assert null_units(*(lambda pair: (pair[0], pair[1].observed))(real_pair(gated=0))).size == 5
    assert null_units(*(lambda pair: (pair[0], pair[1].observed))(real_pair(gated=5))).size == 0


def test_the_identifiable_basis_is_orthonormal_and_orthogonal_to_the_null_directions():
    itf, terms = real_pair(gated=2, paths=400)
    units = null_units(itf, terms.observed)
    basis = identifiable_basis(35, units).toarray()
    np.testing.assert_allclose(basis.T @ basis, np.eye(32), atol=1e-15)
    null = null_space(terms.complete, rcond=1e-10)
    assert null.shape[1] == 3
    assert np.abs(basis.T @ null).max() < 1e-7


def test_projecting_takes_the_null_directions_out_and_nothing_else():
    itf, terms = real_pair(gated=2, paths=400)
    whole = mismatch(itf, terms.observed / 30, k=10)
    inside = mismatch(itf, terms.observed / 30, k=10, project=True)
    assert len(inside.itf_eigenvalues) == 32
    assert inside.null == 3
    assert inside.negative == whole.negative
    # the projection keeps the traces, so that only the p of the ridge differs
    assert inside.ridge * 32 == pytest.approx(whole.ridge * 35)
    before, after = whole.observed_eigenvalues - whole.ridge, inside.observed_eigenvalues - inside.ridge
    np.testing.assert_allclose(after[:10], before[:10], rtol=1e-10)


def test_leading_vectors_of_operators_give_the_same_overlap():
    itf, terms = real_pair(paths=400)
    k = 6
    top = np.linalg.eigh(itf)[1][:, -k:]
    _, other = terms.leading(k)
    # the ridge moves eigenvalues, not eigenvectors
    assert subspace_overlap(top, other) == pytest.approx(
        mismatch(itf, terms.observed / 30, k=k).overlap, abs=1e-8
    )


def test_a_small_model_is_compared_on_all_its_directions():
    found = mismatch(np.eye(4), np.eye(4))
    assert found.k == 4
    assert found.overlap == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("itf", "observed", "message"),
    [
        (np.eye(3), np.eye(4), "same shape"),
        (np.ones(3), np.eye(3), "itf must be a square matrix"),
        (-np.eye(3), np.eye(3), "itf must have a positive trace"),
    ],
)
def test_wrong_matrices_are_named(itf, observed, message):
    with pytest.raises(ValueError, match=message):
        mismatch(itf, observed)


def test_wrong_traces_are_named():
    with pytest.raises(ValueError, match="itf must have a positive trace"):
        curvature_gap(0.0, 1.0, 10)
    with pytest.raises(ValueError, match="observed must be a square matrix or its trace"):
        curvature_gap(1.0, [1.0, 2.0], 10)
