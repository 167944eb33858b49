"""One way to JSON, one way to CSV."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from palrnn.engine.plain import plain
from palrnn.engine.tables import from_records, table_text, write_table


def test_arrays_scalars_and_paths_become_json():
    value = {
        1: np.arange(3),
        "f": np.float32(0.5),
        "b": np.bool_(True),
        "n": [math.nan, math.inf, -math.inf, None],
        "t": (1, "x", Path("a/b")),
        "m": np.array([[1.0, math.nan]]),
    }
    expected = {
        "1": [0, 1, 2],
        "f": 0.5,
        "b": True,
        "n": [None] * 4,
        "t": [1, "x", "a/b"],
        "m": [[1.0, None]],
    }
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


@pytest.mark.parametrize("value", [1j, np.array([1j]), object(), {"a": {1, 2}}, b"x"])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        plain(value)


def test_a_table_keeps_every_digit_unless_told_how_many():
    rows = [(1, 0.1 + 0.2, math.nan, math.inf), (2, np.float64(1 / 3), None, "a,b")]
    assert (
        table_text(["i", "x", "y", "z"], rows)
        == 'i,x,y,z\n1,0.30000000000000004,,inf\n2,0.3333333333333333,,"a,b"\n'
    )
    assert table_text(["x"], [[1 / 3], [2e10]], digits=3) == "x\n0.333\n2e+10\n"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="a row must have 2 cells, got 1"):
        table_text(["a", "b"], [[1]])


def test_a_table_is_written_plain_or_zipped_the_same_bytes_each_time(tmp_path):
    for name in ("a.csv", "b.csv.gz", "c.csv.gz"):
        write_table(tmp_path / name, ["x"], [[1.5]])
    assert (tmp_path / "a.csv").read_bytes() == b"x\n1.5\n"
    assert gzip.decompress((tmp_path / "b.csv.gz").read_bytes()) == b"x\n1.5\n"
    assert (tmp_path / "b.csv.gz").read_bytes() == (tmp_path / "c.csv.gz").read_bytes()


def test_records_with_different_names_share_one_header():
    assert from_records([{"a": 1}, {"b": 2, "a": 3}]) == (["a", "b"], [[1, None], [3, 2]])
