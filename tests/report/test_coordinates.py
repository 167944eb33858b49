"""Few columns are drawn as they are, many by their principal components."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.report.coordinates import MOST_COLUMNS, Coordinates


def mixed(dim, rows=400):
    rng = np.random.default_rng(0)
    sources = rng.standard_normal((rows, 3)) * [3.0, 2.0, 1.0]
    return 5.0 + sources @ rng.standard_normal((3, dim)) + 0.01 * rng.standard_normal((rows, dim))


@pytest.mark.parametrize("dim", [1, 2, 3, MOST_COLUMNS])
def test_a_few_columns_are_themselves(dim):
    x, names = mixed(dim), tuple(f"c{i}" for i in range(dim))
    chosen = Coordinates.of(x, names)
    assert chosen.names == names[:3]
    assert chosen.note == ""
    np.testing.assert_array_equal(chosen(x), x[:, :3])


@pytest.mark.parametrize("dim", [7, 20, 64])
def test_many_columns_give_the_components_of_a_singular_value_decomposition(dim):
    x = mixed(dim)
    chosen = Coordinates.of(x, [f"c{i}" for i in range(dim)])
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    drawn = chosen(x)
    assert drawn.shape == (len(x), 3)
    for k in range(3):
        # a component is known up to its sign: rounding of two ways to the same eigenvectors
        assert abs(drawn[:, k] @ left[:, k]) == pytest.approx(sizes[k], rel=1e-8)
        along = np.linalg.lstsq(scaled, drawn[:, k], rcond=None)[0]
        assert along[np.abs(along).argmax()] > 0
    share = (sizes[:3] ** 2).sum() / (sizes**2).sum()
    assert f"of the {dim} standardised columns, with {100 * share:.3g}" in chosen.note


def test_paths_are_projected_as_series_are():
    x = mixed(20)
    chosen = Coordinates.of(x, [""] * 20)
    paths = np.stack([x[:50], x[50:100]])
    np.testing.assert_allclose(chosen(paths)[1], chosen(x[50:100]), rtol=1e-12)


def test_gaps_and_constant_columns_do_no_harm():
    x = mixed(20)
    x[:, 4] = 2.0
    x[::7, 3] = np.nan
    chosen = Coordinates.of(x, [""] * 20)
    drawn = chosen(x)
    assert np.isnan(drawn[::7]).all()
    assert np.isfinite(np.delete(drawn, np.s_[::7], axis=0)).all()
    x[:, 5] = np.where(np.arange(len(x)) % 2, x[:, 5], np.nan)
    x[1::2, 6] = np.nan  # now no row is whole
    assert np.isfinite(Coordinates.of(x, [""] * 20).weights).all()
