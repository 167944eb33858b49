"""A search of a driven series: candidates learn from the inputs, are judged along them, and it goes on."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_search import results, tiny_search

import palrnn
from palrnn.data.packing import pack, unpack, unpack_inputs
from palrnn.searches.parts import parts


def _driven(rows=1200):
    """A damped turn that a random drive keeps going: without it nothing can be predicted."""
    rng = np.random.default_rng(3)
    s, x = rng.standard_normal((rows, 1)), np.zeros((rows, 3))
    turn = 0.9 * np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 0.5]])
    for t in range(rows - 1):
        x[t + 1] = turn @ x[t] + np.array([1.0, 0.0, 0.5]) * s[t]
    return x, s


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    x, s = _driven()
    folder = tmp_path_factory.mktemp("driven") / "found"
    return folder, tiny_search(x, inputs=s, learning_rate=0.02, run=folder)


def test_candidates_learn_the_response_to_the_drive(found):
    x, _ = _driven()
    best = found[1].best
    assert best.drift.input_dim == 1
    # one step ahead on the held-out rows: whoever is not told the drive cannot know what it does
    errors = palrnn.prediction_error(best.drift, best.x, 5, inputs=best.s)
    blind = tiny_search(x, learning_rate=0.02)
    alone = palrnn.prediction_error(blind.best.drift, blind.best.x, 5)
    assert errors.mse[0] < 0.5 * alone.mse[0]
    assert found[1].table[0]["error"] < blind.table[0]["error"]
    assert np.isfinite(best.generate(100)).all()


def test_it_goes_on_from_its_folder_with_the_same_inputs_only(found):
    folder, result = found
    x, s = _driven()
    before = results(folder)
    again = tiny_search(x, inputs=s, learning_rate=0.02, run=folder)
    np.testing.assert_array_equal(again.best.drift.theta, result.best.drift.theta)
    assert results(folder) == before
    with pytest.raises(ValueError, match="other data"):
        tiny_search(x, inputs=-s, learning_rate=0.02, run=folder)
    with pytest.raises(ValueError, match="inputs must be given, again"):
        tiny_search(x, learning_rate=0.02, run=folder)
    loaded = palrnn.Reconstruction.load(folder)
    np.testing.assert_array_equal(loaded.s, result.best.s)


def test_inputs_stay_beside_their_rows():
    x, s = _driven(400)
    trials, drives = [x[:250], x[250:]], [s[:250], s[250:]]
    data = parts(trials, 2, 3, drives)
    assert [len(part) for part in data.fit] == [len(part) for part in data.fit_inputs]
    assert len(data.validation) == len(data.validation_inputs)
    np.testing.assert_array_equal(data.validation_inputs, s[200:250])
    np.testing.assert_array_equal(data.fit_inputs[1], s[253:])
    packed = pack(trials, drives)
    np.testing.assert_array_equal(unpack(packed)[1], x[250:])
    np.testing.assert_array_equal(unpack_inputs(packed)[1], s[250:])
    assert unpack_inputs(pack(trials)) is None
