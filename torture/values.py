"""Values that no argument should accept, and values that it may accept but must survive.

Each kind of argument (a series, a size, a deviation, ...) has *wrong* values, which must give a `ValueError`
that names the argument, and *hard* values, which may be refused or computed with, but must never give NaN in
silence, a foreign exception or a crash.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NAN, INF, BIG, SMALL = float("nan"), float("inf"), 1e300, 1e-300


class Kind(NamedTuple):
    """A sort of argument: its wrong and its hard values, each with a name."""

    wrong: dict[str, Any]
    hard: dict[str, Any]

    def without(self, *names: str) -> Kind:
        """Return the kind without some values that mean something for one function."""
        keep = [{k: v for k, v in part.items() if k not in names} for part in self]
        return Kind(*keep)


_OBJECTS: dict[str, Any] = {"text": "abc", "object": object(), "complex": 1j}
_SCALARS = _OBJECTS | {"nan": NAN, "infinity": INF, "-infinity": -INF, "list": [1.0, 2.0], "dict": {}}


def size(least: int = 1, *, optional: bool = False, most: int | None = None) -> Kind:
    """A whole number of at least ``least``."""
    wrong = _SCALARS | {"fraction": 1.5, "true": True, "too small": least - 1, "very negative": -(10**30)}
    wrong["absurd"] = 10**15
    if most is not None:
        wrong["too large"] = most + 1
    return Kind(wrong if optional else wrong | {"none": None}, {})


def seed() -> Kind:
    """A seed: any whole number from 0."""
    return Kind(size(0).without("absurd").wrong, {"huge": 10**30})


def number(*, above: float | None = None, least: float | None = None, optional: bool = False) -> Kind:
    """A real number, positive if ``above`` is 0."""
    wrong = _SCALARS | {"true": True}
    if above is not None:
        wrong |= {"boundary": above, "below": above - 1.0}
    if least is not None:
        wrong |= {"below": least - 1.0}
    return Kind(wrong if optional else wrong | {"none": None}, {"huge": BIG, "tiny": SMALL})


def deviation(*, optional: bool = False, zero: bool = False) -> Kind:
    """A positive number, or one per coordinate."""
    kind = number(least=0.0, optional=optional) if zero else number(above=0.0, optional=optional)
    return kind.without("list", "true")


def choice(*, optional: bool = False) -> Kind:
    """One of a few words."""
    wrong: dict[str, Any] = {"another word": "nope", "number": 3, "list": [], "dict": {}}
    return Kind(wrong if optional else wrong | {"none": None}, {})


def instance(*, optional: bool = False) -> Kind:
    """An object of one class of ours."""
    wrong: dict[str, Any] = {"text": "model", "number": 3.0, "list": [], "dict": {}, "array": np.ones(3)}
    return Kind(wrong if optional else wrong | {"none": None}, {})


def series(x: np.ndarray, *, columns: bool = True, trials: bool = False, gaps: bool = False) -> Kind:
    """A series like ``x (T, N)``; with fixed ``columns``, also as ``trials``, with NaN for ``gaps``."""
    wrong: dict[str, Any] = {
        "none": None,
        "text": "abc",
        "texts": np.full(x.shape, "a"),
        "objects": np.full(x.shape, None),
        "complex": x + 0j,
        "dict": {},
        "scalar": 1.0,
        "no rows": x[:0],
        "no columns": x[:, :0],
        "nothing": [],
        "four axes": x[None, None],
        "ragged": [[1.0, 2.0], [1.0]],
        "dates": np.full(x.shape, np.datetime64("2020-01-01")),
        "infinity": spoiled(x, INF),
        "-infinity": spoiled(x, -INF),
        "no values": np.full(x.shape, NAN),
    }
    if not gaps:
        wrong["nan"] = spoiled(x, NAN)
    if not trials:
        wrong["three axes"] = x[None]
    if columns:
        wrong |= {"too many columns": np.hstack([x, x]), "too few columns": x[:, :1]}
    hard = {
        "one row": x[:1],
        "two rows": x[:2],
        "booleans": x > 0,
        "integers": (10 * x).astype(np.int8),
        "constant": np.ones_like(x),
        "zero": np.zeros_like(x),
        "huge": x * BIG,
        "tiny": x * SMALL,
        "huge outlier": spoiled(x, BIG),
        "single precision": x.astype(np.float32),
        "big-endian": x.astype(">f8"),
        "column-major": np.asfortranarray(x),
        "backwards": x[::-1],
        "read-only": frozen(x),
    }
    return Kind(wrong, hard)


def array(value: np.ndarray, *, gaps: bool = False) -> Kind:
    """An array of one shape."""
    wrong: dict[str, Any] = {
        "none": None,
        "text": "abc",
        "complex": value + 0j,
        "objects": np.full(value.shape, None),
        "nothing": np.zeros((0,) * max(1, value.ndim)),
        "one axis more": value[..., None, None],
        "longer": np.concatenate([np.atleast_1d(value)] * 2),
        "infinity": spoiled(value, INF),
    }
    if not gaps:
        wrong["nan"] = spoiled(value, NAN)
    return Kind(wrong, {"huge": value * BIG, "tiny": value * SMALL, "zero": np.zeros_like(value)})


def path(*, optional: bool = False) -> Kind:
    """The name of a file to read."""
    wrong: dict[str, Any] = {
        "missing": "/nonexistent/file.csv",
        "folder": "/",
        "unknown type": "/dev/null",
        "number": 3,
        "list": [],
    }
    return Kind(wrong if optional else wrong | {"none": None}, {"null byte": "a\0b.csv", "empty": ""})


def spoiled(x: np.ndarray, value: float) -> np.ndarray:
    """Return ``x`` with one entry replaced."""
    copy = np.array(x, dtype=np.float64)
    copy.flat[copy.size // 2] = value
    return copy


def frozen(x: np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    copy = np.array(x)
    copy.flags.writeable = False
    return copy
