"""Text from files in messages: nothing in it can be obeyed by a terminal."""

from __future__ import annotations

import pytest

from palrnn.engine.text import printable, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Größe, 漢字 ±", "plain Größe, 漢字 ±"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b2J", "\\x9b2J"),  # a control sequence in one character
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("name\udcff", "name\\udcff"),
        ("\u2028", "\\u2028"),
    ],
)
def test_what_cannot_be_shown_becomes_an_escape(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()
    printable(text).encode("utf-8")


def test_long_text_is_cut():
    assert printable("a" * 100, 10) == "a" * 10 + "..."
    assert quoted("a" * 100, 10) == "'" + "a" * 9 + "..."


def test_numbers_of_thousands_of_digits_are_told_by_their_length():
    assert printable(10**5000) == quoted(10**5000) == "a number of about 5000 digits"
    assert quoted([10**5000]) == "?"
    assert quoted(12) == "12"
