"""What a worker does: train the model of a data set, make error bars of it by one method, or forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from palrnn.coverage.methods import Work, block_length, drawn_models
from palrnn.coverage.truths import Flow, dataset_seed, truth
from palrnn.engine.checks import Floats
from palrnn.engine.progress import quiet
from palrnn.engine.seeds import kernel_seed
from palrnn.ensembles.reflection import own_series
from palrnn.ensembles.variation import alike, finite_distance, varied, varied_series
from palrnn.ensembles.work import REFIT_RULES, resampled
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.geometry.bars import draws_interval
from palrnn.geometry.reflection import reflected
from palrnn.model import checkpoint_bytes, checkpoint_from_bytes
from palrnn.sweeps import Kind, Task

MODEL = Kind("model", "palrnn.coverage.work:train_model", ".safetensors")
MEMBER = Kind("member", "palrnn.coverage.work:train_varied", ".safetensors", archived=False)
REFIT = Kind("refit", "palrnn.coverage.work:train_refit", ".safetensors", archived=False)
BARS = Kind("bars", "palrnn.coverage.work:make_bars")
#: To be raised when a method makes other bars of the same data: a study that goes on makes them again then.
RULES = {"likelihood": 2, "observed": 2, "varied": 3, "reflected": 3}
#: The same of the models of flows, and so of all that stands on them. 2: by SOAP, with the usual sizes.
_FLOW_RULES = 2
#: Of the intervals.
LEVELS = (0.5, 0.9)


def model_task(name: str, noise: tuple[float, float], rows: int, number: int, updates: int) -> Task:
    """The model of data set ``number`` of a truth."""
    settings = {"truth": name, "process": noise[0], "observation": noise[1], "rows": rows, "number": number}
    if isinstance(truth(name), Flow):
        settings["flow rules"] = _FLOW_RULES
    label = f"{name} p{noise[0]:g} o{noise[1]:g} {rows} #{number + 1}"
    return Task(MODEL, settings | {"updates": updates}, cost=float(updates), label=label)


def bars_task(model: Task, method: str, warm_updates: int, models: int, draws: int) -> Task:
    """Error bars around that model by one method."""
    amount = {"warm_updates": warm_updates, "models": models, "draws": draws}
    settings = {**model.settings, "method": method} | amount
    if method in RULES:
        settings["rules"] = RULES[method]
    needs = {"model": model}
    if method in ("varied", "reflected"):
        needs |= member_tasks(model, models)
    if method == "reflected":
        needs |= {f"refit of {role}": refit_task(task) for role, task in member_tasks(model, models).items()}
    return Task(BARS, settings, needs, label=f"{model.label} {method}")


def member_tasks(model: Task, count: int) -> dict[str, Task]:
    """The models of a varied ensemble around that model, by their roles."""
    return {
        f"member {k + 1}": Task(
            MEMBER,
            {**model.settings, "member": k, "rules": RULES["varied"]},
            label=f"{model.label} model {k + 1}",
        )
        for k in range(count)
    }


def refit_task(member: Task) -> Task:
    """A second model, trained in the same way on what that member makes by itself."""
    settings = {**member.settings, "refit": REFIT_RULES}
    return Task(REFIT, settings, {"member": member}, label=f"{member.label}, again")


def train_model(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train on one data set; of training that diverges, the last model before."""
    x, config = dataset(settings)
    try:
        model = train(x, config, progress=quiet).model
    except TrainingDivergedError as error:
        model = error.model
    return checkpoint_bytes(model, training={"config": config.model_dump(mode="json")})


def train_varied(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train one of a varied ensemble: on blocks drawn anew of a series without most of its noise, from a
    random start, with settings of its own."""
    x, config = dataset(settings)
    return _varied_model(x, config, settings, dataset_seed(settings["number"]))


def train_refit(settings: dict[str, Any], inputs: dict[str, bytes]) -> bytes:
    """Train a second model in the same way on a series that the first one makes (`reflection`)."""
    x, config = dataset(settings)
    seed = kernel_seed(dataset_seed(settings["number"]), "refit", settings["member"])
    made = own_series(checkpoint_from_bytes(inputs["member"]).drift, [x], seed)
    if made is None:
        return checkpoint_bytes(checkpoint_from_bytes(inputs["member"]).drift, training={"distance": None})
    return _varied_model(made[0], config, settings, seed)


def _varied_model(x: Floats, config: TrainConfig, settings: dict[str, Any], seed: int) -> bytes:
    """Return a model with the settings of its member; ``seed`` is for blocks, start and batches."""
    number, drawn = settings["member"], dataset_seed(settings["number"])
    config = varied(config, drawn, number).changed(seed=kernel_seed(seed, "member", number))
    try:
        trials = varied_series([x], drawn, number)
        blocks = resampled(trials, block_length(config, len(x)), seed, number)
        model = train(blocks, config, progress=quiet).model
        away: float | None = finite_distance(model, [x])
    except TrainingDivergedError as error:
        model, away = error.model, None
    return checkpoint_bytes(model, training={"config": config.model_dump(mode="json"), "distance": away})


def members(inputs: dict[str, bytes]) -> dict[str, Any]:
    """Return the models of a varied ensemble that resemble the data, by their roles."""
    return _alike({role: data for role, data in inputs.items() if role.startswith("member")})


def _alike(found: dict[str, bytes]) -> dict[str, Any]:
    read = {role: checkpoint_from_bytes(data) for role, data in found.items()}
    kept = alike([each.training["distance"] for each in read.values()])
    return {role: each.drift for (role, each), stays in zip(read.items(), kept, strict=True) if stays}


def make_bars(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Return what the model says, and the ends of intervals over the draws, for each thing asked."""
    known = truth(settings["truth"])
    raw, (x, config) = raw_series(settings), dataset(settings)
    scale, model = known.standardizer(raw), checkpoint_from_bytes(inputs["model"]).drift
    work = Work(
        model,
        x,
        config,
        settings["warm_updates"],
        settings["models"],
        settings["draws"],
        dataset_seed(settings["number"]),
    )

    def measured(models: list[Any]) -> Floats:
        return np.array([known.measure(each, scale, raw) for each in models]).reshape(-1, len(known.names))

    if settings["method"] in ("varied", "reflected"):
        kept = members(inputs)
        values = measured(list(kept.values()))
        if settings["method"] == "reflected":
            again = _alike({f"refit of {role}": inputs[f"refit of {role}"] for role in kept})
            refits = np.full_like(values, np.nan)
            for k, role in enumerate(kept):
                if f"refit of {role}" in again:
                    refits[k] = measured([again[f"refit of {role}"]])[0]
            values = reflected(values, refits)
        notes: Mapping[str, float] = {"left out": settings["models"] - len(kept)}
    else:
        found = drawn_models(settings["method"], work)
        values, notes = measured(found.models), found.notes
    result: dict[str, Any] = {"names": list(known.names), "truth": known.true_values(settings["process"])}
    result |= {"model": known.measure(model, scale, raw), "notes": notes}
    for level in LEVELS:
        ends = [draws_interval(column, level) for column in values.T]
        result |= {f"low {level:g}": [low for low, _ in ends], f"high {level:g}": [high for _, high in ends]}
    return result


def raw_series(settings: dict[str, Any]) -> Floats:
    """Return the data set of these settings, raw."""
    noise = float(settings["process"]), float(settings["observation"])
    seed = dataset_seed(settings["number"])
    return truth(settings["truth"]).series(*noise, settings["rows"], seed)


def dataset(settings: dict[str, Any]) -> tuple[Floats, TrainConfig]:
    """Return the series as it is learned, and how."""
    known, raw = truth(settings["truth"]), raw_series(settings)
    config = known.training(settings["updates"], len(raw))
    return known.standardizer(raw).transform(raw), config.changed(seed=settings["number"])
