"""Forecasts of held-out Lorenz-63 with bands: do they hold, and are they better than three others?

The model's forecasts are sampled with process and observation noise by the likelihood, around the trained
model and around those of a block bootstrap. Beside them stand climatology (rows of the training part),
persistence (the last row), and an ensemble of echo-state networks with their own one-step error as noise.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from palrnn.coverage.methods import Work, drawn_models
from palrnn.coverage.reservoir import reservoir_ensemble
from palrnn.coverage.truths import dataset_seed, truth
from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator, kernel_seed
from palrnn.forcing import TrainConfig
from palrnn.geometry.likelihood import fit_noise
from palrnn.inference import Forecast, Stepper
from palrnn.model import checkpoint_from_bytes
from palrnn.sweeps import Kind, Task

FORECASTS = Kind("forecasts", "palrnn.coverage.forecasting:forecast_truth")
#: Leads at which scores are given, as ends of bins in Lyapunov times.
BINS = (0.25, 0.5, 1.0, 1.5, 2.0)


def forecast_task(model: Task, settings: dict[str, Any]) -> Task:
    """Forecasts by one model, and by the others on the same data."""
    return Task(FORECASTS, {**model.settings, **settings}, {"model": model}, label=f"{model.label} forecasts")


def forecast_truth(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Return coverage of 90 % bands and CRPS of each forecaster by lead, in raw units."""
    known, seed = truth(settings["truth"]), dataset_seed(settings["number"])
    noise = float(settings["process"]), float(settings["observation"])
    time = 1.0 / (0.9056 * 0.01)
    steps, context = round(BINS[-1] * time), settings["context"]
    held = context + settings["starts"] * (steps // 2) + steps
    raw = known.series(*noise, settings["rows"] + held, seed)
    # the model has seen the series of its own length; a longer one begins with the same states
    past = known.series(*noise, settings["rows"], seed)
    scale = Standardizer.fit(past)
    x, coming = scale.transform(past), scale.transform(raw[settings["rows"] :])
    starts = [context + k * (steps // 2) for k in range(settings["starts"])]
    drift = checkpoint_from_bytes(inputs["model"]).drift
    model = fit_noise(drift, x)
    config = known.training(settings["updates"], len(x))
    members = _members(drift, x, config, settings, seed)
    networks = reservoir_ensemble(x, settings["units"], settings["reservoirs"], seed)
    count, rng = settings["paths"], generator(seed, "forecasts")
    scores: dict[str, list[tuple[Floats, Floats]]] = {}
    for number, start in enumerate(starts):
        rows, target = coming[start - context : start], coming[start : start + steps]
        stepper = Stepper(model, rows[0], seed=kernel_seed(seed, number), target="exact")
        for row in rows[1:]:
            stepper.update(row)
        draws = [members[k] for k in rng.integers(len(members), size=count)]
        runs = np.concatenate([each.forecast(rows[None], steps) for each in networks])
        spread = np.array([each.error for each in networks])[:, None] * rng.standard_normal(
            (len(networks), steps, x.shape[1])
        )
        found = {
            "model": stepper.forecast(steps, paths=count, seed=number).paths,
            "model, block bootstrap": stepper.forecast(steps, paths=count, seed=number, drifts=draws).paths,
            "echo-state networks": runs + spread,
            "climatology": np.repeat(x[rng.integers(len(x), size=(count, 1))], steps, axis=1),
            "persistence": np.repeat(rows[None, -1:], steps, axis=1),
        }
        for name, paths in found.items():
            ahead = Forecast(np.clip(np.where(np.isnan(paths), 1e3, paths), -1e3, 1e3))
            scores.setdefault(name, []).append((ahead.coverage(target, 0.9), ahead.crps(target)))
    edges = np.round(np.array((0.0, *BINS)) * time).astype(int)
    result: list[dict[str, Any]] = []
    for name, parts in scores.items():
        held_share, crps = (np.mean([part[k] for part in parts], axis=(0, 2)) for k in (0, 1))
        for first, last in pairwise(edges):
            row = {"forecaster": name, "until": BINS[len(result) % len(BINS)]}
            row |= {"coverage": held_share[first:last].mean(), "crps": crps[first:last].mean()}
            result.append(row)
    noises = [model.process.typical_std, model.observation.typical_std]
    return {"rows": result, "noise": noises}


def _members(drift: Any, x: Floats, config: TrainConfig, settings: dict[str, Any], seed: int) -> list[Any]:
    work = Work(drift, x, config, settings["warm_updates"], settings["models"], settings["models"], seed)
    return drawn_models("blocks", work).models or [drift]
