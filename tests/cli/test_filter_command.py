"""`palrnn filter`: what it writes and prints, where its noise comes from, and how it refuses."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import call
from oracles.small_models import drawn_series, gated_model

from palrnn import Standardizer, rbpf, save_checkpoint


@pytest.fixture
def files(tmp_path):
    """A run folder with a PAL-RNN that knows its units, and a series in raw units with a gap."""
    model = gated_model(3, observed=2, latent=6, seed=4)
    units = Standardizer([10.0, -5.0], [2.0, 4.0])
    (tmp_path / "run").mkdir()
    save_checkpoint(tmp_path / "run" / "checkpoint.safetensors", model, standardizer=units)
    raw = units.inverse(drawn_series(model, 60))
    raw[30, 1] = np.nan
    pd.DataFrame(raw, columns=["a", "b"]).to_csv(tmp_path / "series.csv", index=False)
    return model, units.transform(raw), tmp_path


def test_the_table_holds_what_the_filter_found_in_standardised_units(files, capsys):
    model, x, folder = files
    words = ("filter", folder / "run", folder / "series.csv", "-o", folder / "out", "--particles", 40)
    code, out, _ = call(
        capsys, *words, "--start", 5, "--steps", 30, "--target", "exact", "--seed", 3, "--json"
    )
    assert code == 0
    expected = rbpf(model, x[5:36], particles=40, target="exact", seed=3)
    summary = json.loads(out)
    # the table and the JSON hold decimal numbers of full length; reading raw units back costs a few ulps
    assert summary["log_evidence"] == pytest.approx(expected.log_evidence, rel=1e-9)
    # three gates: fewer bits than 40 particles could show
    assert summary["entropy_bound_bits"] == 3.0
    assert summary["gate_std"] == model.gate_std
    table = pd.read_csv(folder / "out" / "filter.csv")
    assert table["row"].tolist() == list(range(6, 36))
    np.testing.assert_allclose(table["log_evidence"], expected.increments, atol=1e-9)
    np.testing.assert_allclose(table["gate_3"], expected.gate_probability[:, 2], atol=1e-9)
    assert (folder / "out" / "diagnostics.png").read_bytes().startswith(b"\x89PNG")


def test_people_read_the_evidence_beside_the_bound_of_the_entropy(files, capsys):
    _, _, folder = files
    code, out, _ = call(
        capsys, "filter", folder / "run", folder / "series.csv", "-o", folder / "out", "--particles", 64
    )
    assert code == 0
    for words in ("Log evidence", "per step and dimension", "multinomial", "at most 3.00", "wrote"):
        assert words in out


def test_noise_on_the_command_line_and_the_usual_start(files, capsys):
    model, _, folder = files
    save_checkpoint(folder / "plain.safetensors", model.drift)
    words = (
        "filter",
        folder / "plain.safetensors",
        folder / "series.csv",
        "-o",
        folder / "out",
        "--particles",
        8,
        "--json",
    )
    _, out, _ = call(capsys, *words, "--process-std", 5.0, "--observation-std", 2.5)
    summary = json.loads(out)
    assert (summary["process_std"], summary["observation_std"], summary["gate_std"]) == (5.0, 2.5, 0.7)


def test_what_cannot_be_filtered_is_said_in_a_line(files, capsys):
    _, _, folder = files
    words = ("filter", folder / "run", folder / "series.csv", "-o", folder / "out", "--particles", 8)
    code, _, err = call(capsys, *words, "--start", 50, "--steps", 30)
    assert code == 1
    assert "start 50 and steps 30 do not fit a series of 60 rows" in err
    code, _, err = call(capsys, *words, "--start", 30)
    assert code == 1
    assert "x[0] must be fully observed" in err
    code, _, err = call(capsys, *words, "--resampling", "none")
    assert "resampling: should be one of multinomial" in err


def test_rows_are_those_of_the_series_where_it_begins_with_gaps(files, capsys):
    model, x, folder = files
    raw = pd.read_csv(folder / "series.csv")
    raw.iloc[:3, 0] = np.nan
    raw.to_csv(folder / "series.csv", index=False)
    words = ("filter", folder / "run", folder / "series.csv", "-o", folder / "out", "--particles", 8)
    code, _, err = call(capsys, *words, "--target", "exact", "--steps", 20)
    assert code == 0, err
    table = pd.read_csv(folder / "out" / "filter.csv")
    assert table["row"].tolist() == list(range(4, 24))
    expected = rbpf(model, x[3:24], particles=8, target="exact", seed=0)
    np.testing.assert_allclose(table["log_evidence"], expected.increments, atol=1e-9)
