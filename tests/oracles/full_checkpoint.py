"""A checkpoint with everything in it that a checkpoint can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.networks import random_network

from palrnn.data import Standardizer
from palrnn.model import PALRNN

EXTRAS = {
    "first_moment": np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32),
    "second_moment": np.random.default_rng(1).standard_normal(5),
    "update": np.array(1234567890123, dtype=np.int64),
    "nothing": np.zeros((0, 3)),
    "half": np.float16([1.5, -0.0]),
    "mask": np.array([True, False]),
    "odd": np.array([-0.0, np.nan, np.inf, 5e-324, 1e308]),
    "big endian": np.arange(4, dtype=">i4"),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "name/with.dots and ünïcode": np.uint8([1, 2, 3]),
}
TRAINING = {"config": {"tau": 16, "rate": 1 / 3, "name": "ä"}, "seed": 7, "done": None, "loss": [1e-300, 0.1]}


def full_checkpoint(kind: str = "PALRNN") -> dict[str, Any]:
    """The arguments of `save_checkpoint`."""
    drift = random_network(4, 2, 3, seed=5)
    model = PALRNN(drift, 0.1, [0.2, 1 / 3], 0.7, 0.5) if kind == "PALRNN" else drift
    return {
        "model": model,
        "standardizer": Standardizer([1 / 3, -2.0], [1e-5, 7.0]),
        "dt": 0.01,
        "training": TRAINING,
        "arrays": EXTRAS,
    }
