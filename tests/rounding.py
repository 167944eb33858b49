"""Results from another processor: the same, but for rounding."""

from __future__ import annotations

from typing import Any

import pytest


def differences(one: Any, other: Any, relative: float, place: str = "") -> list[str]:
    """Return where two trees of JSON values differ: numbers by more than ``relative``, the rest at all."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [text for key in one for text in differences(one[key], other[key], relative, f"{place}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [text for i, (a, b) in pairs for text in differences(a, b, relative, f"{place}[{i}]")]
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        same = one == pytest.approx(other, rel=relative, abs=0.0)
    else:
        same = one == other
    return [] if same else [f"{place}: {one!r}, {other!r}"]
