from __future__ import annotations

import numpy as np
import pytest

from palrnn.data import load_series, save_series


def test_a_saved_series_comes_back_bit_for_bit(tmp_path):
    x = np.random.default_rng(0).standard_normal((50, 3))
    save_series(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(load_series(tmp_path / "x.npy"), x)


@pytest.mark.parametrize(
    ("name", "x", "words"), [("x.csv", [[1.0]], "must end in .npy"), ("x.npy", "a", "x must be")]
)
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(tmp_path, name, x, words):
    with pytest.raises(ValueError, match=words):
        save_series(tmp_path / name, x)
    assert not list(tmp_path.iterdir())
