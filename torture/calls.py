"""What every table of calls is made of: a row, small examples, and kinds that many functions share."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import palrnn
from torture.values import Kind

Kinds = dict[str, Kind | None]


class Row(NamedTuple):
    """A call that works, and the kinds of its arguments (None: not tried)."""

    arguments: dict[str, Any]
    kinds: Kinds
    nan: bool = False  # NaN in its result is documented


@cache
def series() -> np.ndarray:
    """A standardised series ``(160, 3)``."""
    x = palrnn.lorenz63(160, seed=5)
    return palrnn.Standardizer.fit(x).transform(x)


@cache
def drift() -> palrnn.ALRNN:
    """A network of five units, two of them gated, that stays where it is put."""
    model = palrnn.initial_alrnn(5, 3, 2, init_std=0.2, seed=3)
    return palrnn.ALRNN(0.7 * model.A, model.W, 0.1 * np.ones(5), model.E, 2)


@cache
def inputs() -> np.ndarray:
    """What drives the series, ``(160, 2)``."""
    return np.random.default_rng(7).standard_normal((160, 2))


@cache
def driven() -> palrnn.ALRNN:
    """The same network with two inputs."""
    model = drift()
    return palrnn.ALRNN(model.A, model.W, model.h, model.E, 2, 0.1 * np.ones((5, 2)))


@cache
def noisy() -> palrnn.PALRNN:
    """The same with noise."""
    return palrnn.PALRNN(drift(), 0.3, 0.3, 0.5)


def optional(kind: Kind) -> Kind:
    """The kind of an argument that may be None."""
    return kind.without("none")


#: How results are kept and progress is heard.
RUN: Kinds = {"run": None, "progress": None}
