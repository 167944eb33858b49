"""Text for messages: what comes from files reaches a terminal only as characters that can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def printable(value: object, most: int | None = None) -> str:
    r"""Return ``value`` as text of one line in which every character can be shown.

    Control characters (a terminal would obey them), line breaks, characters that turn the direction of
    writing, and bytes of a name that is not UTF-8 become escapes such as ``\x1b``. Text longer than ``most``
    characters is cut, which three dots tell.
    """
    try:
        text = str(value)
    except ValueError:  # Python writes out no integer of more than 4300 digits
        text = (
            f"a number of about {value.bit_length() * 0.30103:.0f} digits" if isinstance(value, int) else "?"
        )
    if most is not None and len(text) > most:
        text = text[:most] + "..."
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def quoted(value: Any, most: int = 80) -> str:
    """Return ``repr(value)`` for a message: printable, and short."""
    try:
        text = repr(value)
    except ValueError:  # as above, perhaps deep inside a list
        text = str(value) if isinstance(value, str) else printable(value)
    return printable(text, most)


def counted(count: int, thing: str) -> str:
    """Return "1 step", "2 steps"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def past_names(names: Sequence[str], lags: int, delay: int) -> tuple[str, ...]:
    """Return names for the ``lags - 1`` past values of each column, the nearest first."""
    return tuple(f"{name}, {counted(k * delay, 'step')} ago" for k in range(1, lags) for name in names)
