"""Short contexts, as zero-shot models of dynamics are judged on: palrnn learns from the context alone.

Lorenz-63 from 2,000 rows, Chua from 1,028 and Sprott M from 512, of the `dysts` collection, sampled as there.
Judged against a later stretch of 20,000 rows, and of the same length.
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
from palrnn.model import family_name

from .judge import exponents_of, judged
from .systems import Flow

#: Rows of the context, and published D_stsp and D_H.
CONTEXTS = {"Lorenz": (2000, 0.804, 0.064), "Chua": (1028, 2.206, 0.088), "SprottM": (512, 3.325, 0.097)}
SEEDS = 5


def jobs(_: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    for name in CONTEXTS:
        for seed in range(SEEDS):
            yield name, "default", seed, partial(measured, name, seed)


def measured(name: str, seed: int) -> dict[str, Any]:
    """Train on the whole context with the default settings; the best of ten is chosen on the context, too."""
    flow = Flow(name)
    rows, *published = CONTEXTS[name]
    raw = flow.rows[:rows]
    begun = time.perf_counter()
    # all of it to train on: the part held out is the same, and nothing is chosen by it
    result = palrnn.reconstruct(Dataset.from_parts(raw, raw, dt=flow.dt), seed=seed, progress=quiet)
    model, scale, spent = result.drift, result.standardizer, time.perf_counter() - begun

    about = {"seconds": spent, "published": published, "rows": rows, "family": family_name(model)}
    return judged(model, scale, flow, exponents_of(model, flow)) | about
