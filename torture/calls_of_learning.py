"""The calls of forcing, tuning, the zoo and the runs, and all settings: see `public_calls`."""

from __future__ import annotations

import numpy as np

import palrnn
from palrnn.engine.config import Config
from torture import values as v
from torture.calls import RUN, Kinds, Row, driven, inputs, noisy, optional, series
from torture.calls import drift as _drift


def rows() -> dict[str, Row]:
    """Return the table."""
    return _settings() | _forcing() | _tuning() | _front()


def _settings() -> dict[str, Row]:
    return {
        "TrainConfig": Row({}, _kinds(palrnn.TrainConfig)),
        "SAEMConfig": Row({}, _kinds(palrnn.SAEMConfig)),
        "NoiseFitConfig": Row({}, _kinds(palrnn.NoiseFitConfig)),
        "ReportSettings": Row(
            {}, {name: v.instance().without("dict") for name in palrnn.ReportSettings.model_fields}
        ),
    }


def _forcing() -> dict[str, Row]:
    x, drift = series(), _drift()
    fixed = v.series(x, gaps=True)
    config = palrnn.TrainConfig(
        latent_dim=5,
        gated=2,
        tau=4,
        updates=2,
        batch_size=2,
        sequence_length=20,
        evaluate_steps=100,
        evaluate_discard=10,
    )
    pushed = v.series(inputs())
    objective = Row(
        {"model": driven(), "x": x, "forcing": 4, "inputs": inputs()},
        {
            "model": v.instance(),
            "x": v.series(x, trials=True, gaps=True),
            "forcing": v.size(),
            "inputs": pushed,
        },
    )
    return {
        "itf_gradient": objective,
        "itf_loss": objective,
        "free_running_evaluation": Row(
            {"model": drift, "heldout": x, "steps": 100, "discard": 10},
            {
                "model": v.instance(),
                "heldout": fixed,
                "inputs": optional(pushed),
                "update": None,
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "long_steps": v.size(1000, optional=True),
            },
            nan=True,
        ),
        "polish": Row(
            {"model": drift, "x": x, "config": config, "rounds": 1, "updates": 2, "every": 1, "steps": 1000},
            {
                "model": v.instance(),
                "x": v.series(x, trials=True, gaps=True),
                "config": v.instance(),
                "rounds": v.size(),
                "updates": v.size(),
                "every": v.size(),
                "rate": v.number(above=0.0),
                "margin": v.number(optional=True),
                "steps": v.size(1000),
                "progress": None,
            },
        ),
        "train": Row(
            {"x": x, "config": config, "inputs": inputs(), "heldout": x, "heldout_inputs": inputs()},
            {
                "x": v.series(x, columns=False, trials=True, gaps=True),
                "config": v.instance(optional=True),
                "inputs": optional(v.series(inputs(), columns=False, trials=True)),
                "model": v.instance(optional=True),
                "heldout": optional(fixed),
                "heldout_inputs": pushed,
                "standardizer": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
                "dt": v.number(above=0.0, optional=True),
            }
            | RUN,
        ),
        "train_many": Row(
            {"x": x, "configs": [config], "workers": 1},
            {
                "x": v.series(x, columns=False, trials=True, gaps=True),
                "configs": v.instance().without("list"),
                "workers": v.size(optional=True),
                "runs": None,
                "inputs": optional(v.series(inputs(), columns=False, trials=True)),
                "heldout": optional(fixed),
                "heldout_inputs": v.instance(optional=True),
                "standardizer": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
                "dt": v.number(above=0.0, optional=True),
                "progress": None,
            },
        ),
    }


def _tuning() -> dict[str, Row]:
    x, model = series(), noisy()
    fixed, held = v.series(x, gaps=True), np.stack([x[:9], x[9:18]])
    tuning = palrnn.SAEMConfig(
        length=8,
        iterations=1,
        windows=2,
        particles=4,
        paths=2,
        heldout_windows=2,
        rollout_steps=60,
        rollout_discard=10,
    )
    return {
        "compare": Row(
            {
                "model": model,
                "sequences": x,
                "configs": {"full": tuning},
                "heldout": x,
                "reference": x,
                "threads": 1,
            },
            {
                "model": v.instance(),
                "sequences": v.series(x, trials=True, gaps=True),
                "configs": v.instance().without("dict"),
                "heldout": optional(v.series(x, trials=True, gaps=True)),
                "reference": optional(fixed),
                "slack": v.number(least=0.0),
                "inputs": v.instance(optional=True),
                "heldout_inputs": v.instance(optional=True),
                "reference_inputs": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
                "seed": v.seed(),
                "threads": v.size(optional=True),
                "standardizer": v.instance(optional=True),
            }
            | RUN,
            nan=True,
        ),
        "comparison_configs": Row(
            {"config": tuning, "betas": [1.0]},
            {
                "config": v.instance(),
                "betas": v.array(np.array([1.0])).without("longer", "nothing", "one axis more"),
            },
        ),
        "heldout_evaluation": Row(
            {"model": model, "config": tuning, "heldout": held, "reference": x},
            {
                "model": v.instance(),
                "config": v.instance(),
                "heldout": optional(v.array(held, gaps=True)).without("longer"),
                "heldout_inputs": v.instance(optional=True),
                "reference_inputs": v.instance(optional=True),
                "reference": optional(fixed),
                "seed": v.seed(),
                "threads": v.size(optional=True),
            },
            nan=True,
        ),
        "lorenz63_sequences": Row(
            {"count": 1, "steps": 20, "discard": 5},
            {
                "count": v.size(),
                "steps": v.size(6),
                "discard": v.size(0),
                "observation_std": v.number(least=0.0),
                "seed": v.seed(),
            },
        ),
        "saem": Row(
            {"model": model, "sequences": x, "config": tuning, "threads": 1},
            {
                "model": v.instance(),
                "sequences": v.series(x, trials=True, gaps=True),
                "config": v.instance(optional=True),
                "seed": v.seed(),
                "heldout": optional(v.series(x, trials=True, gaps=True)),
                "reference": optional(fixed),
                "inputs": v.instance(optional=True),
                "heldout_inputs": v.instance(optional=True),
                "reference_inputs": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
                "threads": v.size(optional=True),
                "standardizer": v.instance(optional=True),
            }
            | RUN,
            nan=True,
        ),
    }


def _front() -> dict[str, Row]:
    x = series()
    quick = {"latent_dim": 5, "gated": 2, "sequence_length": 5, "batch_size": 2, "updates": 2}
    return {
        "load_from_zoo": Row({"path": "", "name": "x"}, {"path": v.path(), "name": None}),
        "zoo_models": Row({"path": ""}, {"path": v.path()}),
        "reconstruct": Row(
            {
                "x": np.vstack([x, x]),
                "latent_dim": 5,
                "gated": 2,
                "updates": 2,
                "sequence_length": 20,
                "batch_size": 2,
            },
            {
                "x": v.series(np.vstack([x, x]), columns=False, trials=True, gaps=True),
                "dt": v.number(above=0.0, optional=True),
                "latent_dim": v.size(optional=True),
                "gated": v.size(0, optional=True),
                "tau": v.size(optional=True),
                "forcing": v.instance(optional=True),
                "updates": v.size(optional=True),
                "lags": v.size(optional=True),
                "delay": None,
                "test_fraction": v.number(above=0.0, optional=True),
                "seed": v.seed().without("none"),
                "columns": v.instance(optional=True).without("list", "dict", "array"),
                "inputs": optional(v.series(np.vstack([inputs()] * 2), columns=False, trials=True)),
                "name": None,
                "system": v.choice(optional=True),
                "lyapunov": v.number(optional=True),
                "model": v.instance(optional=True),
                "config": v.instance(optional=True),
                "on_data": None,
                "settings": None,
            }
            | RUN,
        ),
        "bootstrap": Row(
            {
                "x": np.vstack([x, x]),
                "models": 2,
                "method": "blocks",
                "updates": 2,
                "workers": 1,
                "base": palrnn.reconstruct(np.vstack([x, x]), **quick),
            },
            {
                "x": v.series(np.vstack([x, x]), columns=False, trials=True, gaps=True),
                "models": v.size(2, optional=True, most=100_000),
                "method": v.choice(optional=True),
                "base": v.instance().without("none"),
                "block": v.size(5, optional=True),
                "updates": v.size(optional=True),
                "seed": v.seed(),
                "workers": v.size(optional=True),
                "scheduler": None,
                "announce": None,
                "settings": None,
            }
            | RUN,
        ),
        "search": Row(
            {
                "x": np.vstack([x, x]),
                "updates": 4,
                "candidates": 2,
                "workers": 1,
                "latent_dim": 5,
                "gated": 2,
                "sequence_length": 20,
                "batch_size": 2,
            },
            {
                "x": v.series(np.vstack([x, x]), columns=False, trials=True, gaps=True),
                "minutes": v.number(above=0.0, optional=True),
                "updates": v.size(optional=True),
                "candidates": v.size(2, optional=True),
                "families": v.choice(optional=True),
                # several numbers are several choices
                "lags": v.size(optional=True).without("list"),
                "delay": v.size(optional=True).without("list"),
                "seed": v.seed().without("none"),
                "workers": v.size(optional=True),
                "scheduler": None,
                "on_data": None,
                "announce": None,
                "settings": None,
            }
            | RUN,
        ),
    }


def _kinds(kind: type[Config]) -> Kinds:
    """Return the wrong values of each setting, by its type."""
    kinds: Kinds = {}
    for name, setting in kind.model_fields.items():
        words = str(setting.annotation)
        if setting.annotation is bool:
            kinds[name] = None
        elif name == "seed":
            kinds[name] = v.seed()
        elif "Literal" in words:
            kinds[name] = v.choice()
        elif "int" in words:
            least = next((m.ge for m in setting.metadata if hasattr(m, "ge")), 0)
            # a number written as text, or 2.0 for 2, is understood
            kinds[name] = v.size(least, optional="None" in words)
        else:
            kinds[name] = v.number(optional="None" in words)
    return kinds
