"""The calls of data, model and invariants: see `public_calls`."""

from __future__ import annotations

import numpy as np

import palrnn
from torture import values as v
from torture.calls import Kinds, Row, driven, inputs, noisy, optional, series
from torture.calls import drift as _drift


def rows() -> dict[str, Row]:
    """Return the table."""
    return _data() | _model() | _invariants()


def _data() -> dict[str, Row]:
    x = series()
    plain, trials = v.series(x, columns=False), v.series(x, columns=False, trials=True, gaps=True)
    simulated: Kinds = {
        "steps": v.size(),
        "dt": v.number(above=0.0),
        "process_std": v.number(least=0.0),
        "scale": optional(v.array(np.ones(3))),
        "discard": v.size(0),
        "seed": v.seed(),
    }
    return {
        "Dataset.prepare": Row(
            {"x": x, "inputs": inputs()},
            {
                "x": v.series(x, columns=False, trials=True, gaps=True),
                "columns": v.instance(optional=True).without("list", "dict", "array"),
                "time": v.choice(optional=True),
                "trial": None,
                "inputs": optional(v.series(inputs(), columns=False, trials=True)),
                "dt": v.number(above=0.0, optional=True),
                "lags": v.size(optional=True),
                "delay": v.size(optional=True),
                "test_fraction": v.number(above=0.0),
                "name": None,
                "system": v.choice(optional=True),
                "lyapunov": v.number(optional=True),
                "steps": v.size(optional=True),
                "process_std": v.number(least=0.0, optional=True),
                "observation_std": v.number(least=0.0, optional=True),
                "data_seed": v.seed().without("none"),
                "parameters": v.instance(optional=True).without("dict"),
                "standardizer": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
            },
            nan=True,  # gaps stay gaps
        ),
        "Standardizer": Row(
            {"mean": np.zeros(3), "std": np.ones(3)},
            {"mean": v.array(np.ones(3)).without("longer", "nothing"), "std": v.array(np.ones(3))},
        ),
        "noise_level": Row({"x": x}, {"x": v.series(x, columns=False, gaps=True)}),
        "add_observation_noise": Row(
            {"x": x, "std": 0.1, "scale": np.ones(3)},
            {
                "x": plain.without("three axes", "four axes"),
                "std": v.number(least=0.0),
                "scale": optional(v.array(np.ones(3))),
                "seed": v.seed(),
            },
        ),
        "autocorrelation": Row({"x": x, "lags": 5}, {"x": trials, "lags": v.size(0, most=159)}),
        "delay_embed": Row(
            {"x": x, "lags": 2, "delay": 2},
            {
                "x": v.series(x, columns=False, gaps=True).without("no values"),
                "lags": v.size(),
                "delay": v.size(),
            },
        ),
        "load_series": Row(
            {"path": ""},
            {"path": v.path()} | dict.fromkeys(("columns", "time", "dt", "min_steps", "allow_nan")),
        ),
        "load_trials": Row(
            {"path": ""},
            {"path": v.path()} | dict.fromkeys(("trial", "columns", "time", "dt", "min_steps", "allow_nan")),
        ),
        "lorenz63": Row(
            {"steps": 10, "discard": 5}, simulated | {name: v.number() for name in ("sigma", "rho", "beta")}
        ),
        "rossler": Row({"steps": 10, "discard": 5}, simulated | {name: v.number() for name in "abc"}),
        "lorenz96": Row(
            {"steps": 10, "discard": 5, "dim": 4},
            simulated | {"dim": v.size(4), "forcing": v.number(), "scale": optional(v.array(np.ones(4)))},
        ),
        "subsequences": Row(
            {"x": x, "count": 2, "length": 5},
            {
                "x": v.series(x, columns=False, gaps=True).without("no values"),
                "count": v.size(),
                "length": v.size(most=160),
                "seed": v.seed(),
            },
        ),
        "suggest_lags": Row({"x": x}, {"x": trials, "delay": v.size(optional=True), "most": v.size()}),
        "smoothed": Row(
            {"x": x, "windows": 5},
            {
                "x": v.series(x, columns=False, gaps=True).without("no values"),
                "windows": v.size(optional=True),
            },
        ),
        "suggest_windows": Row({"x": x}, {"x": v.series(x, columns=False, gaps=True)}),
        "suggest_tau": Row({"x": x}, {"x": trials, "level": v.number(above=0.0), "most": v.size()}),
        "train_test_split": Row(
            {"x": x},
            {
                "x": v.series(x, columns=False, gaps=True).without("no values"),
                "test_fraction": v.number(above=0.0),
            },
        ),
        "windows": Row(
            {"x": x, "length": 10},
            {"x": v.series(x, columns=False, gaps=True).without("no values"), "length": v.size()},
        ),
    }


def _model() -> dict[str, Row]:
    drift, W = _drift(), 0.1 * np.ones((5, 7))
    shallow = Row(
        {"A": drift.A, "W1": W, "W2": W.T, "h1": drift.h, "h2": np.ones(7), "E": drift.E},
        {"A": v.array(drift.A).without("longer"), "W1": v.array(W), "W2": v.array(W.T)}
        | {"h1": v.array(drift.h), "h2": v.array(np.ones(7)), "E": v.array(drift.E).without("none")}
        | {"C": optional(v.array(np.ones((5, 2))))},
    )
    written = v.path().without("missing", "folder", "unknown type")
    return {
        "ALRNN": Row(
            {"A": drift.A, "W": drift.W, "h": drift.h, "E": drift.E, "gated": 2},
            {"A": v.array(drift.A).without("longer")}
            | {name: v.array(getattr(drift, name)) for name in "WhE"}
            | {"gated": v.size(0, most=5), "C": optional(v.array(np.ones((5, 2))))},
        ),
        "ShallowPLRNN": shallow,
        "ClippedShallowPLRNN": shallow,
        "PALRNN": Row(
            {"drift": drift, "process": 0.1, "observation": 0.1, "gate_std": 0.1},
            {
                "drift": v.instance(),
                "process": v.deviation(),
                "observation": v.deviation(),
                "gate_std": v.number(least=0.0),
                "initial": v.deviation(optional=True),
                "observation_map": v.instance(optional=True),
            },
        ),
        "Noise": Row({"kind": "isotropic", "values": 0.1}, {"kind": v.choice(), "values": v.deviation()}),
        "ObservationMap": Row(
            {"B": np.eye(3, 5), "d": np.zeros(3)},
            {"B": v.array(np.eye(3, 5)).without("longer"), "d": v.array(np.zeros(3)).without("none")},
        ),
        "check_surrogate": Row(
            {"model": drift},
            {"model": v.instance(), "states": v.size(), "scale": v.number(above=0.0), "seed": v.seed()},
        ),
        "register_family": Row({"name": "alrnn", "cls": palrnn.ALRNN}, {"name": None, "cls": v.instance()}),
        "export_torch": Row({"model": drift, "path": ""}, {"model": v.instance(), "path": written}),
        "export_onnx": Row({"model": drift, "path": ""}, {"model": v.instance(), "path": written}),
        "import_julia": Row({"path": ""}, {"path": v.path()}),
        "import_torch": Row(
            {"path": "", "gated": 2}, {"path": v.path(), "gated": None, "family": v.choice()}
        ),
        "initial_alrnn": Row(
            {"latent_dim": 5, "observed_dim": 3, "gated": 2},
            {
                "latent_dim": v.size(),
                "observed_dim": v.size(most=5),
                "gated": v.size(0, most=5),
                "init_std": v.number(least=0.0),
                "seed": v.seed(),
            },
        ),
        "load_checkpoint": Row({"path": ""}, {"path": v.path()}),
        "save_checkpoint": Row(
            {"path": "/nonexistent/x", "model": drift},
            {
                "path": v.path().without("unknown type"),
                "model": v.instance(),
                "standardizer": v.instance(optional=True),
                "dt": v.number(above=0.0, optional=True),
                "training": v.instance(optional=True).without("dict", "list"),
                "arrays": v.instance(optional=True).without("dict", "list"),
                "forcing": v.instance(optional=True),
                "input_standardizer": v.instance(optional=True),
            },
        ),
    }


def _invariants() -> dict[str, Row]:
    x, drift, model = series(), _drift(), noisy()
    pushed = v.series(inputs())
    plain, fixed = v.series(x, columns=False, gaps=True), v.series(x, gaps=True)
    judged: Kinds = {
        "bins": v.size(),
        "smoothing": v.number(above=0.0),
        "protocol": v.choice(),
        "delay": v.size(optional=True),
        "seed": v.seed(),
    }
    return {
        "cycles": Row(
            {"model": drift, "trajectory": np.asarray(drift.rollout(x[0], 60).states), "max_period": 3},
            {
                "model": v.instance(),
                "trajectory": v.series(np.asarray(drift.rollout(x[0], 60).states)),
                "max_period": v.size(),
                "min_period": v.size(),
                "most_words": v.size(),
                "closeness": v.number(above=0.0),
            },
        ),
        "dstsp": Row(
            {"generated": x, "reference": x[::-1]},
            {
                "generated": fixed,
                "reference": plain,
                "method": v.choice(optional=True).without("list", "dict"),
                "mixture_std": None,
                "samples": None,
            }
            | judged,
        ),
        "dstsp_floor": Row(
            {"source": x, "length": 20, "pairs": 2},
            {
                "source": plain,
                "length": v.size(),
                "pairs": v.size(),
                "dt": v.number(above=0.0),
                "process_std": v.number(least=0.0),
            }
            | judged,
        ),
        "fixed_points": Row(
            {"model": drift, "within": np.zeros((1, drift.gated), dtype=bool)},
            {
                "model": v.instance(),
                "virtual": None,
                "most_gated": v.size(0, most=24),
                "within": v.instance(optional=True),
            },
        ),
        "lyapunov_spectrum": Row(
            {"model": driven(), "x1": x[0], "inputs": inputs(), "steps": 50, "discard": 5},
            {
                "model": v.instance(),
                "x1": v.array(x[0]),
                "inputs": pushed,
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "k": v.size(optional=True, most=5),
                "flow": None,
                "process_noise": None,
                "seed": v.seed(),
            },
        ),
        "prediction_error": Row(
            {"model": driven(), "x": x, "inputs": inputs(), "n": 3, "horizon": 10, "starts": 5},
            {
                "model": v.instance(),
                "x": fixed,
                "inputs": pushed,
                "n": v.size(),
                "dt": v.number(above=0.0),
                "lyapunov": v.number(above=0.0, optional=True),
                "threshold": v.number(above=0.0),
                "horizon": v.size(),
                "starts": v.size(),
            },
            nan=True,
        ),
        "valid_prediction_time": Row(
            {"forecast": x, "truth": x},
            {
                "forecast": fixed.without("no values"),  # it has diverged: of no use
                "truth": fixed,
                "dt": v.number(above=0.0),
                "lyapunov": v.number(above=0.0, optional=True),
                "threshold": v.number(above=0.0),
                "scale": optional(v.array(np.ones(x.shape[1]))),
            },
            nan=True,
        ),
        "quantities_of_interest": Row(
            {"model": driven(), "reference": x, "inputs": inputs(), "discard": 10},
            {
                "model": v.instance(),
                "reference": fixed,
                "inputs": pushed,
                "standardizer": v.instance(optional=True),
                "x1": optional(v.array(x[0])),
                "steps": v.size(optional=True),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "k": v.size(optional=True, most=5),
                "flow": None,
                "observation_noise": None,
                "sigma": v.number(least=0.0),
            }
            | judged,
            nan=True,
        ),
        "spectrum_distance": Row(
            {"generated": x, "reference": x[::-1]},
            {"generated": fixed, "reference": plain, "sigma": v.number(least=0.0)},
        ),
        "spectrum_floor": Row(
            {"source": x, "length": 20, "pairs": 2},
            {
                "source": plain,
                "length": v.size(),
                "pairs": v.size(),
                "dt": v.number(above=0.0),
                "process_std": v.number(least=0.0),
                "sigma": v.number(least=0.0),
                "seed": v.seed(),
            },
        ),
        "spread_starts": Row({"x": x}, {"x": plain, "count": v.size()}),
        "stochastic_counterparts": Row(
            {"model": model, "reference": x, "discard": 10},
            {"model": v.instance(), "reference": fixed, "settings": None},
            nan=True,
        ),
        "symbolic_dynamics": Row(
            {"codes": x > 0},
            {"codes": v.series(x, columns=False).without("booleans", "no columns")},
        ),
        "viability": Row(
            {"model": driven(), "starts": x[:10], "inputs": inputs(), "steps": 1000, "data": x},
            {
                "model": v.instance(),
                "starts": fixed,
                "inputs": pushed,
                "steps": v.size(1000),
                "data": optional(fixed),
                "still": v.number(above=0.0),
            },
        ),
    }
