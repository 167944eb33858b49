from __future__ import annotations

import base64
import csv
import io
import json

import numpy as np
import pytest

from palrnn.report.blocks import csv_download, json_download, number, typed_array, with_error


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.906, "0.906"),
        (0.0, "0"),
        (-14.5723, "−14.6"),
        (12345.0, "12345"),
        (2.5e5, "2.50×10⁵"),
        (4.2e-7, "4.20×10⁻⁷"),
        (0.9999, "1.00"),
        (None, "–"),
        (float("nan"), "–"),
        (float("-inf"), "–"),
    ],
)
def test_numbers_are_shown_as_people_read_them(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_typed_arrays_are_what_plotly_decodes() -> None:
    values = np.array([1.5, np.nan, -3.25])
    spec = typed_array(values)
    assert spec["dtype"] == "f4"
    decoded = np.frombuffer(base64.b64decode(spec["bdata"]), dtype="<f4")
    # these values are exact in float32
    np.testing.assert_array_equal(decoded, values)


def test_a_csv_download_reads_back_with_hostile_cells_intact() -> None:
    name = 'a "quoted", comma\nand line'
    file = csv_download("x.csv", ("name", "value"), [(name, 1.25), ("nan", float("nan"))])
    content = base64.b64decode(file.uri.split(",", 1)[1]).decode()
    assert list(csv.reader(io.StringIO(content))) == [["name", "value"], [name, "1.25"], ["nan", ""]]


def test_a_json_download_has_no_nan_and_no_numpy() -> None:
    file = json_download("x.json", {"a": np.array([1.0, np.inf]), "b": np.float64(2), "c": (np.int64(3),)})
    assert json.loads(file.content) == {"a": [1.0, None], "b": 2.0, "c": [3]}


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (0.908, 0.0021, "0.908 ± 0.0021"),
        (-2.51, 2.5e-16, "−2.51"),  # rounding, no error
        (0.0, 0.1, "0 ± 0.10"),
        (1.0, None, "1.00"),
        (None, 0.1, "–"),
    ],
)
def test_an_error_is_told_if_a_digit_shows_it(value, error, told):
    assert with_error(value, error) == told
