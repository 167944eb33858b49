"""Text files that are not `.csv`: blanks or tabs between columns, remarks in front."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.data import Dataset, SeriesError, load_series
from palrnn.data.readers import read_table
from palrnn.data.table import Wanted

X = np.random.default_rng(3).standard_normal((30, 3))


def _refused(path):
    with pytest.raises(SeriesError) as caught:
        load_series(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("separator", [" ", "  ", "\t", ",", ";"])
def test_what_numpy_writes_is_read_bit_for_bit(tmp_path, separator):
    np.savetxt(tmp_path / "a.txt", X, delimiter=separator)
    np.testing.assert_array_equal(load_series(tmp_path / "a.txt"), np.float64(np.char.mod("%.18e", X)))
    np.testing.assert_array_equal(load_series(tmp_path / "a.txt"), X)


def test_the_last_remark_in_front_names_the_columns_if_it_has_as_many_words(tmp_path):
    np.savetxt(tmp_path / "a.txt", X, header="made by a simulation, 2 of 3\nu v w")
    np.testing.assert_array_equal(load_series(tmp_path / "a.txt", columns=["w", "u"]), X[:, [2, 0]])
    np.savetxt(tmp_path / "a.tsv", X, header="u\tv w\tx", delimiter="\t", comments="% ")
    assert read_table(tmp_path / "a.tsv", Wanted()).names == ("u", "v w", "x")


def test_any_other_remark_is_passed_over_and_numbers_in_it_are_no_sample(tmp_path):
    for remark in ("made by a simulation", "1 2 3", "30 3"):
        np.savetxt(tmp_path / "a.txt", X, header=remark)
        found = read_table(tmp_path / "a.txt", Wanted())
        assert found.names == ("1", "2", "3")
        np.testing.assert_array_equal(found.values, X)


def test_lines_are_counted_with_the_remarks(tmp_path):
    (tmp_path / "a.txt").write_text("# one\n\n# two\na b\n1 2\n3 four\n")
    assert _refused(tmp_path / "a.txt") == "column b, line 6: 'four' is not a number"
    (tmp_path / "a.tsv").write_text("# one\n\n# two\na\tb\n1\t2\n3\t4 5\n")
    assert _refused(tmp_path / "a.tsv") == "column b, line 6: '4 5' is not a number"
    (tmp_path / "a.txt").write_text("# only\n% remarks\n")
    assert _refused(tmp_path / "a.txt") == "is empty"


def test_a_tab_alone_separates_the_cells_of_a_tsv(tmp_path):
    (tmp_path / "a.tsv").write_text("time (s)\tlfp; left, deep\tlfp right\n0\t1.5\t\n1\t2.5\t3\n2\t0.5\t1\n")
    found = read_table(tmp_path / "a.tsv", Wanted())
    assert found.names == ("lfp; left, deep", "lfp right")
    np.testing.assert_array_equal(found.values, [[1.5, np.nan], [2.5, 3], [0.5, 1]])
    assert found.time_step() == (1.0, "column time (s)")


def test_a_text_is_prepared_like_any_table(tmp_path):
    table = np.column_stack([np.arange(200) * 0.5, np.random.default_rng(1).standard_normal((200, 2))])
    np.savetxt(tmp_path / "a.txt", table, header="t a b")
    data = Dataset.prepare(tmp_path / "a.txt")
    assert (data.columns, data.dt, data.left_out) == (("a", "b"), 0.5, {"t": "tells the time"})


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tsv"])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Sunspot Number\n112\n115\n90\n", "Sunspot Number"),
        ("\nSunspot Number (v2, total)\n\n\n112\n115\n90\n".replace(",", ""), "Sunspot Number (v2 total)"),
        ("Channel 1\n112\n115\n90\n", "Channel 1"),
        ("Temp\u00a0(°C)\n112\n115\n90\n", "Temp\\xa0(°C)"),
        ('"x"\n112\n115\n90\n', "x"),  # as R writes it
        ('"x"\n"112"\n"115"\n"90"\n', "x"),
        ('"Sunspot  Number"\n"112"\n115\n90\n', "Sunspot  Number"),
        ('Sunspot Number\n"112"\n115\n"90"\n', "Sunspot Number"),
    ],
)
def test_a_single_column_has_a_name_of_any_number_of_words(tmp_path, suffix, text, name):
    path = tmp_path / f"a{suffix}"
    path.write_text(text)
    assert read_table(path, Wanted()).names == (name,)
    np.testing.assert_array_equal(load_series(path, columns=[name]), [[112], [115], [90]])


def test_quotes_round_names_and_numbers_between_blanks_are_no_part_of_them(tmp_path):
    (tmp_path / "a.txt").write_text('"u v"   "w" 5"\n"1" 2 3\n  4 "-5"  7 \n')
    found = read_table(tmp_path / "a.txt", Wanted())
    assert found.names == ("u v", "w", '5"')
    np.testing.assert_array_equal(found.values, [[1, 2, 3], [4, -5, 7]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # the first sample has a cell too many, and is no name
        ("1 2\n3\n4\n", "line 2: has 1 cells, expected 2"),
        ("nan oops\n3\n4\n", "line 2: has 1 cells, expected 2"),
        ("2020-01-01 2\n3\n4\n", "line 2: has 1 cells, expected 2"),
        ("1 oops\n3\n4\n", "column 2, line 1: 'oops' is a name among numbers; a header holds names only"),
        # a row has a cell too many
        ("x\n1\n2 3\n", "line 3: has 2 cells, expected 1"),
        ("Sunspot Number\n\n1\n2 3\n", "column Sunspot Number, line 4: '2 3' is not a number"),
        ('"x\n1\n2\n"3\n', "column \"x, line 4: '\"3' is not a number"),
        ("Sunspot Number\n1,5\n", "column Sunspot Number, line 2: '1,5' is not a number (write decimals"),
    ],
)
def test_a_damaged_column_is_not_taken_for_a_sound_one(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    assert _refused(tmp_path / "a.csv").startswith(message)
