"""A checkpoint with everything in it that a checkpoint can hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from oracles.networks import random_network
from safetensors.numpy import load

from palrnn.data import Standardizer
from palrnn.model import PALRNN, Forcing

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
        "forcing": Forcing.generalised(0.3, 2),
    }


def version_1(data: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays and the text that format 1, of AL-RNNs with diagonal noise, had for a checkpoint."""
    size = int.from_bytes(data[:8], "little")
    words = json.loads(data[8 : 8 + size])["__metadata__"]
    header = json.loads(words["header"])
    held = load(data)
    places = {f"model.{name}": name for name in ("A", "W", "h", "E")}
    places |= {f"noise.{name}": f"{name}_std" for name in ("process", "observation", "initial")}
    places |= {f"scale.{name}": name for name in ("mean", "std")}
    header |= {"gated": int(held.pop("model.gated"))}
    header["kind"] = "PALRNN" if header["kind"] == "PALRNN" else "ALRNN"
    for name in ("family", "forcing"):
        del header[name]
    old = {places.get(name, name): array for name, array in held.items()}
    return old, words | {"version": "1", "header": json.dumps(header)}
