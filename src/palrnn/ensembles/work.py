"""What a worker does: train one model of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.data.packing import unpack
from palrnn.engine.checks import Floats
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import generator, kernel_seed
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.model import checkpoint_bytes, checkpoint_from_bytes
from palrnn.sweeps import Kind, Task

DATA = Kind("data", "palrnn.ensembles.work:missing", ".safetensors", archived=False)
BASE = Kind("base", "palrnn.ensembles.work:missing", ".safetensors", archived=False)
MEMBER = Kind("member", "palrnn.ensembles.work:train_member", ".safetensors")
#: With as many trials as this, whole trials are drawn instead of blocks.
ENOUGH_TRIALS = 10


def member_task(number: int, config: TrainConfig, how: dict[str, Any], data: Task, base: Task) -> Task:
    """The training of member ``number``; ``how`` has the method, the length of blocks and the seed."""
    settings = how | {"number": number, "config": config.model_dump(mode="json")}
    return Task(MEMBER, settings, {"data": data, "base": base}, label=f"model {number + 1}")


def missing(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Say that a file that only the coordinator can write is gone."""
    raise RuntimeError("the series or the first model is missing: give the same call again")


def train_member(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train one model: on blocks drawn anew, from the first model; or on the same series, from a new seed."""
    number, seed = int(settings["number"]), int(settings["seed"])
    trials, base = unpack(inputs["data"]), checkpoint_from_bytes(inputs["base"])
    config = TrainConfig(**settings["config"]).changed(seed=kernel_seed(seed, "training", number))
    start = None
    if settings["method"] == "blocks":
        trials = resampled(trials, settings["block"], seed, number)
        start = base.drift
    notes: dict[str, Any] = {"number": number, "diverged": False}
    try:
        model = train(trials, config, model=start, progress=quiet).model
    except TrainingDivergedError as error:
        model, notes["diverged"] = error.model, True
    return checkpoint_bytes(model, standardizer=base.standardizer, dt=base.dt, training=notes)


def resampled(trials: Sequence[Floats], block: int, seed: int, number: int) -> list[Floats]:
    """Return as much data, drawn with replacement: whole trials where there are many, else moving blocks.

    A block starts anywhere in a trial that it fits into, and each row of data is as likely as any other
    but for those near the ends. Blocks are trials of their own, so that no sequence crosses from one to the
    next.
    """
    rng = generator(seed, "blocks", number)
    if len(trials) >= ENOUGH_TRIALS:
        return [trials[k] for k in rng.integers(len(trials), size=len(trials))]
    starts = np.array([max(0, len(trial) - block + 1) for trial in trials])
    count = -(-sum(map(len, trials)) // block)
    which = rng.choice(len(trials), size=count, p=starts / starts.sum())
    first = [int(rng.integers(starts[k])) for k in which]
    return [trials[k][begin : begin + block] for k, begin in zip(which, first, strict=True)]
