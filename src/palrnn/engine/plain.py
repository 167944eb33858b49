"""Values as JSON can hold them; everything that palrnn prints or writes as JSON goes through here."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return ``value`` in JSON's types: arrays and tuples as lists, paths as text, NaN and infinity as None.

    Keys become text. Anything else (a complex number, an object) is refused, so that nothing is written
    that a reader would have to guess at.
    """
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        value = value.tolist()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise ValueError(f"a {type(value).__name__} cannot be written as JSON")
