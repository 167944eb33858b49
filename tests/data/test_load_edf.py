"""EDF: physical units, one rate, and claims that the file must bear out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from edf_file import edf_bytes

from palrnn.data import Dataset, SeriesError, load_series
from palrnn.data.readers import read_table
from palrnn.data.table import Wanted

X = np.random.default_rng(5).integers(-(2**14), 2**14, (60, 3)) / 2**12
FRAME = pd.DataFrame(X, columns=["EEG Fpz", "EEG Cz", "EOG"])


def _written(tmp_path, data):
    (tmp_path / "a.edf").write_bytes(data)
    return tmp_path / "a.edf"


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_series(path, **how)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("record", [60, 20, 1])
def test_records_are_put_one_after_the_other_in_physical_units(tmp_path, record):
    path = _written(tmp_path, edf_bytes(FRAME, record=record, duration=0.5))
    np.testing.assert_array_equal(load_series(path), X)
    found = read_table(path, Wanted(["EOG"]))
    assert found.time_step() == (pytest.approx(0.5 / record, rel=1e-8), "its sampling rate")
    data = Dataset.prepare(path)
    assert data.columns == ("EEG Fpz", "EEG Cz", "EOG")
    assert data.dt == pytest.approx(0.5 / record, rel=1e-8)
    assert data.dt_from == "its sampling rate"


def test_the_ranges_of_a_channel_are_a_line_through_two_points(tmp_path):
    data = edf_bytes(
        FRAME, physical_min="-3276.7", physical_max="3276.8", digital_min="-32767", digital_max="32768"
    )
    x = load_series(_written(tmp_path, data))
    digital = np.rint(X / 2.0 ** np.ceil(np.log2(np.abs(X).max(axis=0))) * 16384)
    np.testing.assert_allclose(x, digital / 10, rtol=1e-12, atol=1e-9)


def test_a_recording_of_unknown_length_is_as_long_as_the_file(tmp_path):
    data = edf_bytes(FRAME, record=20, records=-1)
    np.testing.assert_array_equal(load_series(_written(tmp_path, data)), X)
    # the last record was cut off
    np.testing.assert_array_equal(load_series(_written(tmp_path, data[:-1])), X[:40])


def test_annotations_are_left_out_and_rates_may_not_be_mixed(tmp_path):
    data = edf_bytes(FRAME.rename(columns={"EOG": "EDF Annotations"}), reserved="EDF+C")
    np.testing.assert_array_equal(load_series(_written(tmp_path, data)), X[:, :2])
    # two records of 20 and 10 samples
    raw = bytearray(edf_bytes(FRAME.iloc[:40], record=20, records=2))
    samples = 256 + 3 * 216
    raw[samples + 16 : samples + 24] = b"10".ljust(8)
    fast, slow = (np.rint(X[:40, i] * 4096).astype("<i2") for i in (0, 2))
    records = [
        b"".join((fast[:20].tobytes(), slow[:20].tobytes(), slow[20 * k : 20 * k + 10].tobytes()))
        for k in (0, 1)
    ]
    path = _written(tmp_path, bytes(raw[: 256 * 4]) + b"".join(records))
    assert _refused(path) == (
        "channels are sampled at different rates (20 Hz: EEG Fpz, EEG Cz; 10 Hz: EOG): "
        "name columns of one rate"
    )
    np.testing.assert_array_equal(
        load_series(path, columns=["EOG"])[:, 0] * 4096, np.r_[slow[:10], slow[20:30]]
    )
    np.testing.assert_array_equal(load_series(path, columns=["EEG Fpz"])[:20, 0], X[:20, 0])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"records": 99999999}, "claims 99999999 records of 360 bytes, holds 1"),
        ({"records": 0}, "claims 0 records"),
        (
            {"samples": "99999999"},
            "the samples in a record of channel 'EEG Fpz' must be a whole number from 1",
        ),
        ({"samples": "9999999"}, "claims 29999997 samples in a record"),
        ({"samples": "x"}, "the samples in a record of channel 'EEG Fpz' must be a number, is 'x'"),
        ({"physical_max": "1e999"}, "the physical range of channel 'EEG Fpz' must be a number, is '1e999'"),
        ({"digital_max": "-16384"}, "the ranges of channel 'EEG Fpz' are empty"),
        ({"reserved": "EDF+D"}, "is interrupted (EDF+D): export it as continuous EDF+C, or in parts"),
        ({"duration": -1.0}, "the duration of a record must not be negative, is -1"),
    ],
)
def test_what_a_header_claims_must_hold(tmp_path, how, words):
    assert _refused(_written(tmp_path, edf_bytes(FRAME, **how))).startswith(words)


@pytest.mark.torch
def test_channels_are_those_that_pyedflib_reads(tmp_path):
    pyedflib = pytest.importorskip("pyedflib")
    path = tmp_path / "a.edf"
    rng = np.random.default_rng(0)
    signals = [100 * rng.standard_normal(2_560), 3 + rng.standard_normal(2_560)]
    headers = [
        {
            "label": label,
            "dimension": "uV",
            "sample_frequency": 256,
            "physical_min": -500.25,
            "physical_max": 499.75,
            "digital_min": -32768,
            "digital_max": 32767,
            "transducer": "",
            "prefilter": "",
        }
        for label in ("EEG Fpz-Cz", "EMG")
    ]
    with pyedflib.EdfWriter(str(path), 2, file_type=pyedflib.FILETYPE_EDFPLUS) as writer:
        writer.setSignalHeaders(headers)
        writer.writeSamples(signals)
    with pyedflib.EdfReader(str(path)) as reader:
        expected = np.column_stack([reader.readSignal(0), reader.readSignal(1)])
    found = read_table(path, Wanted())
    assert found.names == ("EEG Fpz-Cz", "EMG")
    assert found.time_step()[0] == 1 / 256
    # both compute in float64, by differently arranged formulas
    np.testing.assert_allclose(found.values, expected, rtol=1e-12, atol=1e-9)
