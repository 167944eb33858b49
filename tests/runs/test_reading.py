"""A series that comes after training is read and prepared as the run's own data were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import call
from tiny_reconstruction import SAEM, SIZES

from palrnn import reconstruct
from palrnn.data import Dataset, lorenz63
from palrnn.engine.progress import quiet
from palrnn.runs import Reconstruction
from palrnn.runs.tuning import TuningTask, tuning_data

SMALL = SIZES | {"updates": 1, "tau": 8, "progress": quiet}


def written(path, length=400, seed=3, **more):
    """Write a table with the columns x, y, z and others, and return the file."""
    x = lorenz63(length, seed=seed)
    pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "z": x[:, 2], **more}).to_csv(path, index=False)
    return path


def table(file):
    """Return the table in a file, as exact as we read it ourselves."""
    found = pd.read_csv(file)
    numbers = found.select_dtypes("float").columns
    return found.assign(**pd.read_csv(file, usecols=numbers, dtype=str).astype(float))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run of two columns, in another order than that of the file, which has a column of remarks."""
    folder = tmp_path_factory.mktemp("two")
    remarks = ["fine", "see p2"] * 200
    file = written(folder / "series.csv", remark=remarks)
    reconstruct(file, columns=["z", "x"], dt=0.01, run=folder / "run", **SMALL)
    return folder / "run", file


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """A run of one column with its past."""
    folder = tmp_path_factory.mktemp("embedded")
    x = lorenz63(1500, seed=3)[:, :1]
    reconstruct(x, lags=4, delay=11, dt=0.01, run=folder / "run", **SMALL)
    return folder / "run"


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A run whose times, in a column that does not look like them, were put on a grid of 0.01."""
    folder = tmp_path_factory.mktemp("uneven")
    clock = np.cumsum(np.random.default_rng(0).integers(1, 3, 400)) * 0.01
    file = written(folder / "series.csv", clock=clock)
    how = {"columns": ["x", "y", "z"], "time": "clock", "dt": 0.01}
    reconstruct(file, run=folder / "run", **how, **SMALL)
    return folder / "run", file, Dataset.prepare(file, **how)


def test_columns_are_found_by_name(two, tmp_path):
    run, file = two
    raw = table(file)[["z", "x"]].to_numpy()
    np.testing.assert_array_equal(Reconstruction.load(run, reference=file).reference, raw)
    # a file of these two alone, in their own order
    table(file)[["x", "z"]].to_csv(tmp_path / "alone.csv", index=False)
    found = Reconstruction.load(run, reference=tmp_path / "alone.csv").reference
    np.testing.assert_array_equal(found, raw)


def test_a_file_without_these_names_is_read_as_it_is(two, tmp_path):
    run, _ = two
    x = lorenz63(50, seed=4)[:, :2]
    np.save(tmp_path / "x.npy", x)
    pd.DataFrame(x, columns=["a", "b"]).to_csv(tmp_path / "x.csv", index=False)
    for name in ("x.npy", "x.csv"):
        np.testing.assert_array_equal(Reconstruction.load(run, reference=tmp_path / name).reference, x)
    np.savetxt(tmp_path / "headless.csv", lorenz63(400, seed=3)[:, :2], delimiter=",")
    reconstruct(tmp_path / "headless.csv", run=tmp_path / "run", **SMALL)
    pd.DataFrame(x).to_csv(tmp_path / "numbered.csv", index=False)
    found = Reconstruction.load(tmp_path / "run", reference=tmp_path / "numbered.csv").reference
    np.testing.assert_array_equal(found, x)


def test_a_file_with_some_of_the_columns_must_have_all_of_them(two, tmp_path):
    run, _ = two
    x = lorenz63(50, seed=4)[:, :2]
    pd.DataFrame(x, columns=["a", "x"]).to_csv(tmp_path / "half.csv", index=False)
    with pytest.raises(ValueError, match="no column 'z', there are a, x"):
        Reconstruction.load(run, reference=tmp_path / "half.csv")
    with pytest.raises(ValueError, match="no such file"):
        Reconstruction.load(run, reference=tmp_path / "none.csv")


def test_uneven_times_are_put_on_the_grid_of_the_run(uneven):
    run, file, own = uneven
    found = Reconstruction.load(run, reference=file).reference
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found, own.trials[0])


def test_a_driven_run_puts_its_inputs_on_the_grid_as_well(tmp_path):
    clock = np.repeat(np.arange(200), 2) * 0.01  # two rows at each time, whose mean is taken
    push = np.random.default_rng(1).standard_normal(400)
    file = written(tmp_path / "series.csv", clock=clock, push=push)
    how = {"columns": ["x", "y"], "inputs": ["push"], "time": "clock", "dt": 0.01}
    own = reconstruct(file, run=tmp_path / "run", **how, **SMALL)
    found = Reconstruction.load(tmp_path / "run", reference=file)
    assert (len(found.reference), len(found.inputs)) == (200, 200)
    np.testing.assert_array_equal(found.reference[160:], own.reference)
    np.testing.assert_array_equal(found.inputs[160:], own.inputs)


def test_a_reference_must_be_one_trial_which_the_runs_own_column_tells(tmp_path):
    # the labels are no numbers: the file cannot be read without knowing what they are
    file = written(tmp_path / "series.csv", subject=["s1"] * 200 + ["s2"] * 200)
    reconstruct(file, trial="subject", dt=0.01, run=tmp_path / "run", **SMALL)
    with pytest.raises(ValueError, match=r"reference must be one trial, .*series\.csv has 2"):
        Reconstruction.load(tmp_path / "run", reference=file)
    table(file)[200:].to_csv(tmp_path / "last.csv", index=False)
    found = Reconstruction.load(tmp_path / "run", reference=tmp_path / "last.csv")
    np.testing.assert_array_equal(found.reference, Reconstruction.load(tmp_path / "run").reference)


def test_tuning_takes_the_columns_time_and_trial_of_the_run(two, uneven, tmp_path):
    run, file = two
    data = tuning_data(Reconstruction.load(run), TuningTask(), file)
    assert data.columns == ("z", "x")
    frame = tuning_data(Reconstruction.load(run), TuningTask(), table(file))
    np.testing.assert_array_equal(frame.training[0], data.training[0])
    run, file, own = uneven
    data = tuning_data(Reconstruction.load(run), TuningTask(), file)
    np.testing.assert_array_equal(data.trials[0], own.trials[0])
    trials = written(tmp_path / "trials.csv", subject=["s1"] * 200 + ["s2"] * 200)
    reconstruct(trials, trial="subject", dt=0.01, run=tmp_path / "run", **SMALL)
    data = tuning_data(Reconstruction.load(tmp_path / "run"), TuningTask(), trials)
    assert [len(trial) for trial in data.trials] == [200, 200]


def test_tuning_embeds_a_series_in_its_past_as_training_did(embedded, tmp_path):
    run = Reconstruction.load(embedded)
    x = lorenz63(1200, seed=4)[:, :1]
    np.savetxt(tmp_path / "other.csv", x, header="v", comments="")
    np.save(tmp_path / "other.npy", x)
    for series in (x, [x, x], pd.DataFrame({"v": x[:, 0]}), tmp_path / "other.csv", tmp_path / "other.npy"):
        data = tuning_data(run, TuningTask(), series)
        assert (data.lags, data.delay) == (4, 11)
        np.testing.assert_allclose(data.trials[0][:, 1], x[22:-11, 0])
    # what has its past already, such as the held-out part in the folder, gets none
    data = tuning_data(run, TuningTask(), embedded / "reference.npy")
    np.testing.assert_array_equal(data.trials[0], run.reference)


def test_the_command_tunes_on_a_file_of_one_column(embedded, tmp_path, capsys):
    np.savetxt(tmp_path / "other.csv", lorenz63(1200, seed=4)[:, :1], header="v", comments="")
    sizes = [word for name, value in SAEM.items() for word in (f"--{name.replace('_', '-')}", value)]
    words = ("tune", embedded, tmp_path / "other.csv", "--configuration", "baseline", *sizes)
    code, _, err = call(capsys, *words, "-o", tmp_path / "tuned", "-q")
    assert code == 0, err
