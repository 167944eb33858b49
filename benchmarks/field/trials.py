"""Other settings than the defaults, tried once or twice on flows and short contexts: why the defaults are so.

Single seeds: they show what can happen, not how often. All are judged as the defaults are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import palrnn
from palrnn.data import Dataset
from palrnn.engine.progress import quiet
from palrnn.model import Forcing

from .judge import exponents_of, judged
from .systems import ROWS, Flow

_USUAL = {"latent_dim": 50, "gated": 20}
_SHALLOW: dict[str, Any] = {"family": "shallow", "hidden": 50, "forcing": Forcing.generalised(0.1)}
SETTINGS: dict[str, dict[str, Any]] = {
    "AL-RNN M 50 P 20, noise 0.05": _USUAL,
    "AL-RNN M 50 P 20, noise 0.01": _USUAL | {"input_noise": 0.01},
    "AL-RNN M 60 P 40, noise 0.01": {"latent_dim": 60, "gated": 40, "input_noise": 0.01},
    "AL-RNN M 20 P 10, noise 0.05": {"latent_dim": 20, "gated": 10},
    "shallow H 50, noise 0.05": _SHALLOW,
    "shallow H 50, noise 0.02": _SHALLOW | {"input_noise": 0.02},
    "shallow H 50, noise 0": _SHALLOW | {"input_noise": 0.0},
}
#: Rows to train on, and which settings were tried on them.
TRIED: dict[tuple[str, int], tuple[int, ...]] = {
    ("SprottM", 512): (0, 3, 4, 6),
    ("Chua", 1028): (0, 3, 4, 6),
    ("Lorenz", 2000): (0, 4),
    ("Chua", ROWS): (6,),
    ("Aizawa", ROWS): (5,),
    ("Dadras", ROWS): (5,),
    ("Arneodo", ROWS): (1, 2),
}


def jobs(_: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    for (flow, rows), listed in TRIED.items():
        for number in listed:
            how = list(SETTINGS)[number]
            yield f"{flow} {rows}, {how}", "trial", 0, partial(measured, flow, rows, how, 0)


def measured(name: str, rows: int, how: str, seed: int) -> dict[str, Any]:
    """Train on so many rows, of a whole series nine tenths as `flows` does, and judge."""
    flow = Flow(name)
    raw, about = flow.rows[:rows], {"dt": flow.dt}
    data = Dataset.from_parts(raw, raw, **about)
    if rows == ROWS:
        data = Dataset.prepare(raw, test_fraction=0.1, **about)
    begun = time.perf_counter()
    result = palrnn.reconstruct(data, seed=seed, optimizer="radam", progress=quiet, **SETTINGS[how])
    spent = time.perf_counter() - begun
    found = judged(result.drift, result.standardizer, flow, exponents_of(result.drift, flow))
    return found | {"seconds": spent, "flow": name, "rows": rows, "settings": how}
