"""The calls of inference and geometry: see `public_calls`."""

from __future__ import annotations

import numpy as np

import palrnn
from torture import values as v
from torture.calls import Kinds, Row, noisy, series
from torture.calls import drift as _drift

#: Arguments that every function with a particle filter in it has.
_BAYES: Kinds = {"particles": v.size(), "target": v.choice(), "seed": v.seed(), "progress": None}
_RESAMPLING: Kinds = {"resampling": v.choice(), "ess_threshold": v.number(least=0.0)}
_CONFIG: Kinds = {"config": v.instance(optional=True), "settings": None}
_BAYES_CONFIG: Kinds = {name: kind for name, kind in _BAYES.items() if name != "progress"} | _RESAMPLING
_DRAWING: Kinds = {
    "paths": v.size(),
    "states_per_path": v.size(),
    "method": v.choice(optional=True),
    "sweeps": v.size(),
    "seed": v.seed(),
}
_PATHS: Kinds = {
    "states": v.choice(),
    "passes": v.size(),
    "paths": v.size(2),
    "state_paths": v.size(),
    "states_per_path": v.size(),
    "method": v.choice().without("none"),
    "sweeps": v.size(),
    "lags": v.size().without("none"),
}
_MISMATCH: Kinds = {"ridge": v.number(above=0.0), "k": v.size()}
_LARGE: Kinds = {"most_dense": v.size(0), "lanczos": None}


#: What the autonomous models of this table refuse.
_NO_INPUTS = v.instance(optional=True)


def rows() -> dict[str, Row]:
    """Return the table."""
    return _inference() | _geometry() | _toy()


def _inference() -> dict[str, Row]:
    x, model = series(), noisy()
    short = v.series(x[:12], gaps=True)
    filtered = palrnn.rbpf(model, x[:12], particles=4)
    smoothed = palrnn.smooth(filtered, paths=2)
    signs = 2.0 * smoothed.codes[0] - 1.0
    return {
        "path_posterior": Row(
            {"model": model, "x": x[:12], "codes": smoothed.codes[0]},
            {
                "inputs": _NO_INPUTS,
                "model": v.instance(),
                "x": short,
                "codes": v.array(1.0 * smoothed.codes[0]),
                "gate_inputs": v.array(signs).without("none"),
            },
        ),
        "FilterConfig": Row({}, _BAYES_CONFIG),
        "SampleConfig": Row({}, _DRAWING),
        "rbpf": Row(
            {"model": model, "x": x[:12], "particles": 4},
            {
                "inputs": _NO_INPUTS,
                "model": v.instance(),
                "x": short,
                "schedule": v.array(np.ones(11)).without(
                    "none", "text", "objects", "infinity", "nan", "huge", "complex"
                ),
                "collect": v.instance(optional=True).without("dict"),
            }
            | _BAYES
            | _RESAMPLING
            | _CONFIG,
        ),
        "Stepper": Row(
            {"model": model, "x0": x[0], "particles": 4},
            {"inputs": _NO_INPUTS, "model": v.instance(), "x0": v.array(x[0])} | _BAYES_CONFIG | _CONFIG,
        ),
        "Forecast": Row({"paths": np.zeros((3, 4, 2))}, {"paths": None, "varies": None}),
        "resample": Row(
            {"weights": np.ones(4), "n": 3, "rng": np.random.default_rng(0)},
            {
                "weights": v.array(np.ones(4)).without("longer"),
                "n": v.size(),
                "rng": v.instance(),
                "scheme": v.choice(),
            },
        ),
        "smooth": Row(
            {"filtered": filtered, "paths": 2},
            {"filtered": v.instance()} | _DRAWING | _CONFIG,
            nan=True,  # the gate inputs, which the paper's target does not draw
        ),
        "fit_noise": Row(
            {
                "model": model,
                "sequences": x[:30],
                "config": palrnn.NoiseFitConfig(length=8, evaluations=3),
                "particles": 4,
                "threads": 1,
            },
            {
                "inputs": _NO_INPUTS,
                "model": v.instance(),
                "sequences": v.series(x[:30], gaps=True, trials=True),
                "config": v.instance(optional=True),
                "filtering": v.instance(optional=True),
                "settings": None,
                "threads": v.size(optional=True),
            }
            | _BAYES
            | _RESAMPLING,
        ),
        "windowed_evidence": Row(
            {"model": model, "sequences": x[:30], "length": 8, "particles": 4},
            {
                "inputs": _NO_INPUTS,
                "model": v.instance(),
                "sequences": v.series(x[:30], gaps=True, trials=True),
                "length": v.size(),
                "windows": v.size(optional=True),
                "threads": v.size(optional=True),
            }
            | _BAYES
            | _RESAMPLING
            | _CONFIG,
        ),
    }


def _geometry() -> dict[str, Row]:
    x, drift, model = series(), _drift(), noisy()
    fixed, short = v.series(x, gaps=True), v.series(x[:12], gaps=True)
    smoothed = palrnn.smooth(palrnn.rbpf(model, x[:12], particles=4), paths=2)
    fisher, theta = palrnn.itf_fisher(drift, x[:20], 4, 0.3), drift.theta.size
    posterior = palrnn.laplace(drift, fisher, prior_std=0.01)
    forced = Row(
        {"model": drift, "x": x[:20], "forcing": 4, "observation": 0.3},
        {
            "model": v.instance(),
            "x": v.series(x[:20], gaps=True),
            "inputs": _NO_INPUTS,
            "forcing": v.size(),
            "observation": v.deviation(),
        },
    )
    codes = smoothed.codes[0]
    path: Kinds = {"model": v.instance(), "inputs": _NO_INPUTS, "x": short, "codes": v.array(1.0 * codes)}
    return {
        "path_information": Row(
            {"model": model, "x": x[:12], "codes": codes},
            path | {"gate_inputs": v.array(2.0 * codes - 1.0).without("none")},
        ),
        "paper_path_derivatives": Row({"model": model, "x": x[:12], "codes": codes}, path),
        "ITFOperator": forced,
        "itf_fisher": forced,
        "itf_trace": forced,
        "compare_geometries": Row(
            {"model": model, "x": x[:12], "forcing": 4, "particles": 4, "paths": 2, "k": 3},
            {
                "model": v.instance(),
                "x": v.series(x[:12], gaps=True),
                "inputs": _NO_INPUTS,
                "forcing": v.size(),
            }
            | _BAYES
            | _RESAMPLING
            | _PATHS
            | _MISMATCH
            | _CONFIG,
            nan=True,
        ),
        "gibbs_posterior": Row(
            {"model": drift, "x": x[:20], "forcing": 4, "prior_std": 0.1, "observation": 0.3, "block": 4},
            {
                "model": v.instance(),
                "x": v.series(x[:20], gaps=True),
                "inputs": _NO_INPUTS,
                "forcing": v.size(),
                "prior_std": v.number(above=0.0, optional=True),
                "calibration": v.choice(),
                "observation": v.deviation().without("none"),
                "block": v.size(optional=True),
                "leading": v.size(optional=True),
            },
        ),
        "InformationConfig": Row({}, _BAYES_CONFIG | _PATHS),
        "GeometryConfig": Row({}, _BAYES_CONFIG | _PATHS | _MISMATCH | _LARGE),
        "curvature_gap": Row(
            {"itf": fisher, "observed": fisher, "steps": 20},
            {"itf": v.array(fisher), "observed": v.array(fisher), "steps": v.size()},
            nan=True,
        ),
        "invariant_error_bars": Row(
            {"posterior": posterior, "reference": x, "draws": 2, "steps": 60, "discard": 5},
            {
                "posterior": v.instance(),
                "reference": fixed,
                "inputs": _NO_INPUTS,
                "draws": v.size(),
                "standardizer": v.instance(optional=True),
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "flow": None,
                "seed": v.seed(),
                "progress": None,
            },
            nan=True,
        ),
        "model_bars": Row(
            {"posterior": posterior, "reference": x, "count": 2, "steps": 60, "discard": 5},
            {
                "posterior": v.instance(),
                "reference": fixed,
                "method": None,
                "count": v.size(2),
                "standardizer": v.instance(optional=True),
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "exponents": v.size(),
                "columns": None,
                "extra": None,
                "flow": None,
                "seed": v.seed(),
                "progress": None,
            },
            nan=True,
        ),
        "likelihood_posterior": Row(
            {"model": drift, "x": x, "iterations": 2, "calibration": "none"},
            {
                "model": v.instance(),
                "x": v.series(x, trials=True, gaps=True),
                "calibration": v.choice(),
                "learn_noise": None,
                "block": v.size(optional=True),
                "least": v.number(above=0.0),
                "iterations": v.size(0),
                "progress": None,
            },
        ),
        "observed_posterior": Row(
            {"model": model, "x": x[:20], "window": 8, "windows": 2, "particles": 4, "paths": 2},
            {
                "model": v.instance(),
                "x": v.series(x[:20], gaps=True),
                "inputs": _NO_INPUTS,
                "least": v.number(above=0.0),
                "window": v.size(2),
                "windows": v.size(optional=True),
                "particles": v.size(),
                "paths": v.size(),
                "seed": v.seed(),
                "progress": None,
            },
        ),
        "parameter_posterior": Row(
            {"model": drift, "x": x, "method": "laplace", "forcing": 4, "observation": 0.3},
            {
                "model": v.instance(),
                "x": v.series(x, gaps=True),
                "method": v.choice(),
                "forcing": v.size(),
                "settings": None,
            },
        ),
        "laplace": Row(
            {"model": drift, "information": fisher, "prior_std": 0.01},
            {"model": v.instance(), "information": v.array(fisher), "prior_std": v.number(above=0.0)},
        ),
        "louis_terms": Row(
            {"model": model, "codes": smoothed.codes, "states": smoothed.states},
            {
                "model": v.instance(),
                "codes": v.array(1.0 * smoothed.codes),
                "states": v.array(smoothed.states).without("longer"),
                "inputs": _NO_INPUTS,
            },
        ),
        "mismatch": Row(
            {"itf": fisher, "observed_per_step": fisher},
            {
                "itf": v.array(fisher),
                "observed_per_step": v.array(fisher),
                "ridge": v.number(above=0.0),
                "k": v.size(),
                "project": None,
                "input_dim": v.size(0),
            },
        ),
        "observed_information": Row(
            {"model": model, "x": x[:12], "particles": 4, "paths": 2},
            {"model": v.instance(), "x": short, "inputs": _NO_INPUTS}
            | _BAYES
            | _RESAMPLING
            | _PATHS
            | _CONFIG,
            nan=True,
        ),
        "subspace_overlap": Row(
            {"one": np.eye(theta)[:, :3], "other": np.eye(theta)[:, 1:4]},
            {"one": v.array(np.eye(theta)[:, :3]), "other": v.array(np.eye(theta)[:, :3])},
        ),
    }


def _toy() -> dict[str, Row]:
    toy = palrnn.toy_series(0.3, steps=40)
    return {
        "toy_information": Row(
            {"x": toy, "a0": 0.9, "a1": 0.6, "sigma": 0.15, "gate_std": 0.3},
            {
                "x": v.array(toy).without("longer"),
                "a0": v.number(),
                "a1": v.number(),
                "sigma": v.number(above=0.0),
                "gate_std": v.number(above=0.0),
            },
        ),
        "toy_series": Row(
            {"gate_std": 0.3, "steps": 20},
            {
                "gate_std": v.number(least=0.0),
                "steps": v.size(),
                "a0": v.number(),
                "a1": v.number(),
                "sigma": v.number(above=0.0),
                "seed": v.seed(),
            },
        ),
        "toy_study": Row(
            {"gate_stds": [0.3], "seeds": 1, "steps": 20},
            {
                "gate_stds": v.array(np.array([0.3])).without("longer"),
                "seeds": v.size(),
                "steps": v.size(),
                "a0": v.number(),
                "a1": v.number(),
                "sigma": v.number(above=0.0),
                "progress": None,
            },
        ),
    }
