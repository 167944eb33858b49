"""What reaches a terminal: no escape sequences, signs that it can show, tables in every kind of stream."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from palrnn.cli.terminal import aligned, clean, legible, print_table, print_text
from palrnn.report.blocks import Table

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202etxt\u200b"
TABLE = Table("λ₁ per step", ("", "Model"), (("Divergence", "1.2×10⁻³ ± 0.1"), (HOSTILE, "−∞")))


def test_escape_sequences_and_reversals_are_spelled_out():
    shown = clean(f"a\nb\t{HOSTILE}é λ")
    assert shown.startswith("a\nb")
    assert "\\x1b[2J" in shown
    assert "\\u202e" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.endswith("é λ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.71 ± 0.02", "0.71 +- 0.02"),
        ("1.20×10⁻³", "1.20e-3"),
        ("λ₁ = −∞ – τ", "lambda1 = -inf - tau"),
        ("90\N{NO-BREAK SPACE}%", "90 %"),
        ("naïve 体", "na\\xefve \\u4f53"),
    ],
)
def test_an_ascii_stream_gets_the_nearest_signs(text, expected):
    assert legible(text, "ascii") == expected
    assert legible(text, None) == expected
    assert legible(text, "utf-8") == text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_name_that_is_no_utf8_is_printed_with_its_bytes_spelled_out():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    print_text(os.fsdecode(b"caf\xe9.csv"), stream)
    assert stream.buffer.getvalue() == b"caf\\udce9.csv\n"


def test_a_closed_or_missing_stream_hears_nothing():
    stream = io.StringIO()
    stream.close()
    for nobody in (None, stream):
        print_text("words", nobody)
        print_table(TABLE, nobody)


def test_a_table_in_a_file_has_aligned_columns_and_all_its_cells():
    lines = aligned(TABLE).split("\n")
    assert lines[0].endswith("Model")
    assert set(lines[1]) == {"-"}
    assert lines[2].index("1.2") == lines[0].index("Model") == lines[3].index("−∞")
    assert lines[-1] == "λ₁ per step"
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_table(TABLE, stream)
    assert b"1.2e-3 +- 0.1" in stream.buffer.getvalue()


@pytest.mark.parametrize(
    ("settings", "framed"),
    [
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"PYTHONIOENCODING": "ascii"}, False),
        ({"NO_COLOR": "1"}, True),
    ],
)
def test_a_terminal_gets_a_drawn_table_where_it_can_show_one(settings, framed):
    code = (
        "import sys; sys.path.insert(0, 'tests'); from cli.test_terminal import TABLE; "
        "from palrnn.cli.terminal import print_table; print_table(TABLE, sys.stdout)"
    )
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=theirs, env=environment | settings, check=True, timeout=60
        )
    finally:
        os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 65536):
            printed += part
    except OSError:  # the end of what a terminal without writers holds
        pass
    os.close(ours)
    assert done.returncode == 0
    text = printed.decode()
    assert ("┃" in text or "│" in text) == framed
    # no sequence of the names: at most those of the drawing
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert "Divergence" in text
    if settings == {"NO_COLOR": "1"}:
        assert "\x1b[3" not in text
