"""Forecasts of held-out Lorenz-63 with bands: do they hold, and are they better than three others?

``model`` is the trained model, ``ensemble`` the better half of a varied ensemble, each filtered by its own
model, with paths in equal parts. Observation noise is by the likelihood, process noise the one of a few
whose forecasts of the training part are best. ``calibrated`` bands are as wide as forecasts of the training
part ask for (`BandCalibration`). Nothing held out has a say in any of it. Beside them stand climatology (rows
of the training part), persistence (the last row), and an ensemble of echo-state networks with their own
one-step error as noise, calibrated in the same way.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from palrnn.coverage.reservoir import Reservoir, reservoir_ensemble
from palrnn.coverage.truths import dataset_seed, truth
from palrnn.coverage.work import member_tasks, members
from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.geometry.likelihood import with_fitted_noise
from palrnn.inference import BandCalibration, Forecast, hindcasts
from palrnn.inference.calibration import spaced
from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.sweeps import Kind, Task

FORECASTS = Kind("forecasts", "palrnn.coverage.forecasting:forecast_truth")
Made = list[tuple[Forecast, Floats]]
#: The forecaster that others are compared with.
NETWORKS = "echo-state networks"
#: Leads at which scores are given, as ends of bins in Lyapunov times.
BINS = (0.25, 0.5, 1.0, 1.5, 2.0)
_PARTICLES = 32
# rows that noise of observation is found from; deviations of the process that are tried, in forecasts each
_NOISE_ROWS, _PROCESS, _FEW = 1500, (0.0015, 0.003, 0.006, 0.012, 0.025), 12


def forecast_task(model: Task, settings: dict[str, Any]) -> Task:
    """Forecasts by one model, and by the others on the same data."""
    needs = {"model": model} | member_tasks(model, settings["models"])
    return Task(FORECASTS, {**model.settings, **settings}, needs, label=f"{model.label} forecasts")


def forecast_truth(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Return coverage of 90 % bands and CRPS of each forecaster by lead, in standardised units."""
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
    how = {"origins": settings["starts"], "seen": context, "paths": settings["paths"], "seed": seed}
    scores: dict[str, list[tuple[Floats, Floats]]] = {}
    base = checkpoint_from_bytes(inputs["model"]).drift
    noisy = with_fitted_noise(base, x[:_NOISE_ROWS])
    single = _with_process(base, noisy, x, steps, how)
    behind, found = (hindcasts(single[0], rows, steps, particles=_PARTICLES, **how) for rows in (x, coming))
    scores |= _both("model", behind, found)
    ranked = sorted(
        (_with_process(drift, noisy, x, steps, how) for drift in members(inputs).values()),
        key=lambda each: each[1],
    )
    # the better half, by forecasts of the training part
    best = [model for model, _ in ranked[: max(2, (len(ranked) + 1) // 2)]]
    behind, found = (_pooled(best, rows, steps, how) for rows in (x, coming))
    scores |= _both("ensemble", behind, found)
    networks = reservoir_ensemble(x, settings["units"], settings["reservoirs"], seed)
    rng = generator(seed, "forecasts")
    behind, found = (_by_networks(networks, rows, steps, rng, **how) for rows in (x, coming))
    scores |= _both(NETWORKS, behind, found)
    for begin in spaced(coming, context + steps, settings["starts"]):
        rows, target = coming[begin : begin + context], coming[begin + context : begin + context + steps]
        climate = np.repeat(x[rng.integers(len(x), size=(settings["paths"], 1))], steps, axis=1)
        for name, paths in (("climatology", climate), ("persistence", np.repeat(rows[None, -1:], steps, 1))):
            scores.setdefault(name, []).append(_score(Forecast(paths), target))
    edges = np.round(np.array((0.0, *BINS)) * time).astype(int)
    result: list[dict[str, Any]] = []
    for name, parts in scores.items():
        held_share, crps = (np.mean([part[k] for part in parts], axis=(0, 2)) for k in (0, 1))
        for first, last in pairwise(edges):
            row = {"forecaster": name, "until": BINS[len(result) % len(BINS)]}
            row |= {"coverage": held_share[first:last].mean(), "crps": crps[first:last].mean()}
            result.append(row)
    noises = [single[0].process.typical_std, noisy.observation.typical_std]
    return {"rows": result, "noise": noises, "models": len(best)}


def _with_process(
    drift: Any, noisy: PALRNN, x: Floats, steps: int, how: dict[str, int]
) -> tuple[PALRNN, float]:
    """Return ``drift`` with the process noise that forecasts the training part best, and their CRPS."""
    few: dict[str, Any] = how | {"origins": _FEW, "paths": 50, "particles": _PARTICLES}
    found = []
    for deviation in _PROCESS:
        model = PALRNN(drift, deviation, noisy.observation, 0.0, initial=noisy.observation.typical_std)
        made = hindcasts(model, x, steps, **few)
        score = np.mean([_score(ahead, came)[1] for ahead, came in made]) if made else np.inf
        found.append((model, float(score)))
    return min(found, key=lambda each: each[1])


def _pooled(models: list[PALRNN], x: Floats, steps: int, how: dict[str, int]) -> Made:
    """Return forecasts whose paths come from all models in equal parts, each filtered by its own."""
    share: dict[str, Any] = how | {"paths": -(-how["paths"] // len(models)), "particles": _PARTICLES}
    own = [
        share | {"seed": int(generator(how["seed"], "member", k).integers(10**9))} for k in range(len(models))
    ]
    parts = [hindcasts(model, x, steps, **each) for model, each in zip(models, own, strict=True)]
    whole = [part for part in parts if len(part) == how["origins"]]
    return [
        (Forecast(np.concatenate([ahead.paths for ahead, _ in made])), made[0][1])
        for made in zip(*whole, strict=True)
    ]


def _both(name: str, behind: Made, found: Made) -> dict[str, list[tuple[Floats, Floats]]]:
    """Return the scores of forecasts as they are, and with their width by those ``behind``."""
    widths = BandCalibration.fit(behind)
    return {
        name: [_score(ahead, target) for ahead, target in found],
        f"{name}, calibrated": [_score(widths(ahead), target) for ahead, target in found],
    }


def _score(ahead: Forecast, target: Floats) -> tuple[Floats, Floats]:
    kept = Forecast(np.clip(np.where(np.isnan(ahead.paths), 1e3, ahead.paths), -1e3, 1e3))
    return kept.coverage(target, 0.9), kept.crps(target)


def _by_networks(
    networks: list[Reservoir], x: Floats, steps: int, rng: np.random.Generator, **how: int
) -> Made:
    """Return forecasts by ``networks``, one path each, from the places that `hindcasts` takes."""
    begins, seen = spaced(x, how["seen"] + steps, how["origins"]), how["seen"]
    contexts = np.stack([x[begin : begin + seen] for begin in begins])
    runs = np.stack([each.forecast(contexts, steps) for each in networks], axis=1)
    errors = np.array([each.error for each in networks])[:, None]
    runs = runs + errors * rng.standard_normal(runs.shape)
    return [
        (Forecast(paths), x[begin + seen : begin + seen + steps])
        for paths, begin in zip(runs, begins, strict=True)
    ]
