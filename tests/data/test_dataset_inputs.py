"""External inputs of a series: from arrays, frames and files, row for row beside what is observed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from palrnn.data import Dataset, Standardizer

RNG = np.random.default_rng(3)
X, S = RNG.standard_normal((200, 2)), RNG.standard_normal((200, 2)) * [1.0, 5.0] + [0.0, 2.0]
GAPPY = np.where(np.arange(400).reshape(200, 2) == 9, np.nan, S)
FRAME = pd.DataFrame({"t": 0.1 * np.arange(200), "x": X[:, 0], "u": S[:, 0], "y": X[:, 1], "v": S[:, 1]})


def test_an_array_of_inputs_is_split_and_standardised_like_x():
    data = Dataset.prepare(X, inputs=S)
    drive = data.inputs
    assert drive.columns == ("s1", "s2")
    assert [len(part) for part in drive.training] == [len(part) for part in data.training] == [160]
    np.testing.assert_array_equal(drive.reference, S[160:])
    scale = Standardizer.fit(S[:160])
    np.testing.assert_array_equal(drive.standardizer.mean, scale.mean)
    np.testing.assert_allclose(drive.training[0], (S[:160] - scale.mean) / scale.std, rtol=1e-12)
    np.testing.assert_allclose(drive.heldout, scale.transform(S[160:]), rtol=1e-12)
    np.testing.assert_array_equal(data.training[0], Dataset.prepare(X).training[0])
    assert "s1, s2" in repr(data)


def test_a_single_input_may_be_a_vector():
    assert Dataset.prepare(X, inputs=S[:, 0]).inputs.training[0].shape == (160, 1)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_named_columns_drive_and_are_not_observed(kind, tmp_path):
    source = FRAME
    if kind == "csv":
        source = tmp_path / "series.csv"
        FRAME.to_csv(source, index=False)
    if kind == "parquet":
        source = tmp_path / "series.parquet"
        FRAME.to_parquet(source)
    data = Dataset.prepare(source, inputs=["v", "u"])
    assert data.columns == ("x", "y")
    assert data.inputs.columns == ("v", "u")
    np.testing.assert_allclose(data.inputs.reference, S[160:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(data.reference, X[160:], rtol=1e-12)
    assert data.dt == pytest.approx(0.1)
    chosen = Dataset.prepare(source, columns=["y"], inputs=["u"])
    assert (chosen.columns, chosen.inputs.columns) == (("y",), ("u",))
    if kind != "frame":
        again = Dataset.from_settings(data.settings)
        assert again.fingerprint == data.fingerprint


def test_an_input_that_only_counts_up_is_kept_for_it_was_asked_for():
    ramp = FRAME.assign(u=np.arange(200.0))
    assert Dataset.prepare(ramp, inputs=["u"]).inputs.reference[0, 0] == 160.0


def test_with_lags_each_row_of_inputs_stays_that_of_its_time():
    clock = np.arange(200.0)
    data = Dataset.prepare(np.column_stack([np.sin(clock), clock % 7]), inputs=clock, lags=3, delay=4)
    assert len(data.training[0]) == 160 - 8
    raw = data.inputs.standardizer.inverse(data.inputs.training[0])[:, 0]
    now = data.standardizer.inverse(data.training[0])[:, 0]
    np.testing.assert_allclose(now, np.sin(raw), atol=1e-9)
    np.testing.assert_allclose(data.reference[:, 0], np.sin(data.inputs.reference[:, 0]), atol=1e-12)


def test_trials_take_a_list_of_inputs_and_the_last_is_held_out():
    data = Dataset.prepare([X[:80], X[80:150], X[150:]], inputs=[S[:80], S[80:150], S[150:]])
    assert [len(part) for part in data.inputs.training] == [80, 70]
    np.testing.assert_array_equal(data.inputs.reference, S[150:])


def test_a_column_of_trials_splits_the_inputs_too():
    named = FRAME.assign(trial=np.repeat(["a", "b"], 100))
    data = Dataset.prepare(named, inputs=["u"])
    np.testing.assert_array_equal(data.inputs.reference[:, 0], S[100:, 0])


def test_the_fingerprint_tells_inputs_apart():
    prints = {Dataset.prepare(X, **how).fingerprint for how in ({}, {"inputs": S}, {"inputs": -S})}
    assert len(prints) == 3


def test_inputs_in_memory_must_be_given_again():
    data = Dataset.prepare(X, inputs=S)
    assert Dataset.from_settings(data.settings, X, inputs=S).fingerprint == data.fingerprint
    with pytest.raises(
        ValueError, match="inputs must be given: the settings are of inputs that were in memory"
    ):
        Dataset.from_settings(data.settings, X)


def test_parts_take_inputs_of_each_part():
    data = Dataset.from_parts([X[:100]], [X[100:]], training_inputs=[S[:100]], heldout_inputs=[S[100:]])
    np.testing.assert_allclose(data.inputs.heldout, data.inputs.standardizer.transform(S[100:]))
    with pytest.raises(ValueError, match="training_inputs and heldout_inputs must come together"):
        Dataset.from_parts([X[:100]], [X[100:]], training_inputs=[S[:100]])


def refused(match, x=FRAME, **how):
    with pytest.raises(ValueError, match=match):
        Dataset.prepare(x, **how)


def test_inputs_that_do_not_fit_are_refused_by_name():
    refused(r"inputs must have 200 rows, one for each row of x, got 199", X, inputs=S[:199])
    refused(r"inputs must hold one series for each of 2 trials, got 1", [X[:100], X[100:]], inputs=S)
    refused(r"inputs\[1\] must have 100 rows", [X[:100], X[100:]], inputs=[S[:100], S[100:199]])
    refused(r"inputs must be finite, got nan at index \(4, 1\)", X, inputs=GAPPY)
    refused("no column 'w', there are t, x, u, y, v", inputs=["w"])
    refused("columns and inputs must not share a column, both name 'u'", columns=["x", "u"], inputs=["u"])
    refused(
        "inputs must have no gaps, column u, row 8 is missing",
        FRAME.assign(u=FRAME.u.where(FRAME.u.index != 7)),
        inputs=["u"],
    )
    refused("has no columns of observations beside its inputs", inputs=["x", "y", "u", "v"])
    refused("inputs must be a sequence of names, or an array, got 'u'", inputs="u")
    refused("inputs must name a column once, got 'u' twice", inputs=["u", "u"])
    refused(r"inputs must be an array \(T, K\): x has no names of columns", X, inputs=["u"])
    refused("inputs must be other columns than time and trial", time="t", inputs=["t"])
    refused("inputs is for recorded series, lorenz63 is a simulated system", "lorenz63", inputs=["u"])
    refused("inputs must vary in every column, column 0 is constant", X, inputs=np.ones((200, 1)))
    refused(
        "input_standardizer must have 2 columns", X, inputs=S, input_standardizer=Standardizer([0.0], [1.0])
    )
