"""What a worker does: train one model of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.data.packing import unpack, unpack_inputs
from palrnn.engine.checks import Floats
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import generator, kernel_seed
from palrnn.ensembles.reflection import own_series
from palrnn.ensembles.variation import finite_distance, varied, varied_series
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.model import Checkpoint, checkpoint_bytes, checkpoint_from_bytes
from palrnn.sweeps import Kind, Task

DATA = Kind("data", "palrnn.ensembles.work:missing", ".safetensors", archived=False)
BASE = Kind("base", "palrnn.ensembles.work:missing", ".safetensors", archived=False)
MEMBER = Kind("member", "palrnn.ensembles.work:train_member", ".safetensors")
REFIT = Kind("refit", "palrnn.ensembles.work:train_refit", ".safetensors")
#: To be raised when varied models, or refits, are made otherwise: an ensemble that goes on makes them again.
VARIED_RULES, REFIT_RULES = 2, 1
#: With as many trials as this, whole trials are drawn instead of blocks.
ENOUGH_TRIALS = 10
_LEAST_MEASURED = 40
#: Methods whose models differ in their settings and learn from series without most of their noise.
VARIED = ("varied", "reflected")


def member_task(number: int, config: TrainConfig, how: dict[str, Any], data: Task, base: Task) -> Task:
    """The training of member ``number``; ``how`` has the method, the length of blocks and the seed."""
    training = config.model_dump(mode="json")
    if training["optimizer"] == "radam":  # as it was when there was no other, so that such models are found
        del training["optimizer"]
    if not training["polish"]:  # nor was there any of that
        del training["polish"]
    settings = how | {"number": number, "config": training}
    return Task(MEMBER, settings, {"data": data, "base": base}, label=f"model {number + 1}")


def refit_task(member: Task, data: Task, base: Task) -> Task:
    """The training of a second model, in the same way on what that member makes by itself."""
    needs = {"data": data, "base": base, "member": member}
    return Task(REFIT, {**member.settings, "refit": REFIT_RULES}, needs, label=f"{member.label}, again")


def missing(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Say that a file that only the coordinator can write is gone."""
    raise RuntimeError("the series or the first model is missing: give the same call again")


def train_member(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train one model: on blocks drawn anew, from the first model or a new seed; or on the same series."""
    number, seed = int(settings["number"]), int(settings["seed"])
    trials, base = unpack(inputs["data"]), checkpoint_from_bytes(inputs["base"])
    if settings["method"] in VARIED:
        return _varied_model(trials, base, settings, seed)
    drives = unpack_inputs(inputs["data"])
    config = TrainConfig.stored(settings["config"]).changed(seed=kernel_seed(seed, "training", number))
    start = None
    if settings["method"] != "seeds":
        trials, drives = _resampled_with_inputs(trials, drives, settings["block"], seed, number)
    if settings["method"] == "blocks":
        start = base.drift
    notes: dict[str, Any] = {"number": number, "diverged": False}
    try:
        how = _measured_on(trials, drives, config)
        model = train(trials, config, inputs=drives, model=start, progress=quiet, **how).model
    except TrainingDivergedError as error:
        model, notes["diverged"] = error.model, True
    return checkpoint_bytes(model, standardizer=base.standardizer, dt=base.dt, training=notes)


def train_refit(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train a second model on the series of a first one (`reflection`), in the same way."""
    seed = kernel_seed(int(settings["seed"]), "refit", int(settings["number"]))
    base, member = (checkpoint_from_bytes(inputs[name]) for name in ("base", "member"))
    made = None
    if not member.training["diverged"]:
        made = own_series(member.drift, unpack(inputs["data"]), seed)
    if made is None:
        notes = {"number": int(settings["number"]), "diverged": True}
        return checkpoint_bytes(member.drift, standardizer=base.standardizer, dt=base.dt, training=notes)
    return _varied_model(made, base, settings, seed)


def _varied_model(trials: list[Floats], base: Checkpoint, settings: dict[str, Any], seed: int) -> bytes:
    """Return a model of ``trials`` without their noise, with the settings of its number.

    ``seed`` is for blocks, start and batches: a refit has the settings of its model, and chances of its own.
    """
    number, drawn = int(settings["number"]), int(settings["seed"])
    config = varied(TrainConfig.stored(settings["config"]), drawn, number)
    config = config.changed(seed=kernel_seed(seed, "training", number))
    notes: dict[str, Any] = {"number": number, "diverged": False}
    try:
        blocks = resampled(varied_series(trials, drawn, number), settings["block"], seed, number)
        model = train(blocks, config, progress=quiet).model
        notes["distance"] = finite_distance(model, trials)
    except TrainingDivergedError as error:
        model, notes["diverged"] = error.model, True
    return checkpoint_bytes(model, standardizer=base.standardizer, dt=base.dt, training=notes)


def _measured_on(
    trials: Sequence[Floats], drives: Sequence[Floats] | None, config: TrainConfig
) -> dict[str, Any]:
    """Return what the model is measured on during training, as the first one was: the end of a trial."""
    if config.evaluate_every is None:
        return {}
    longest = max(range(len(trials)), key=lambda k: len(trials[k]))
    end = slice(-max(_LEAST_MEASURED, config.evaluate_steps - config.evaluate_discard), None)
    along = None if drives is None else drives[longest][end]
    return {"heldout": trials[longest][end], "heldout_inputs": along}


def _resampled_with_inputs(
    trials: list[Floats], drives: list[Floats] | None, block: int, seed: int, number: int
) -> tuple[list[Floats], list[Floats] | None]:
    """Return data drawn anew, with the inputs of the same rows."""
    if drives is None:
        return resampled(trials, block, seed, number), None
    seen = trials[0].shape[1]
    both = [np.concatenate(pair, axis=1) for pair in zip(trials, drives, strict=True)]
    drawn = resampled(both, block, seed, number)
    return [each[:, :seen] for each in drawn], [each[:, seen:] for each in drawn]


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
