"""One row for each public name of `palrnn` that people call: a call that works, the kind of each argument."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.engine.config import Config
from torture import values as v
from torture.values import Kind


class Row(NamedTuple):
    """A call that works, and the kinds of its arguments (None: not tried)."""

    arguments: dict[str, Any]
    kinds: dict[str, Kind | None]
    nan: bool = False  # NaN in its result is documented


def _series() -> np.ndarray:
    x = palrnn.lorenz63(160, seed=5)
    return palrnn.Standardizer.fit(x).transform(x)


def _drift() -> palrnn.ALRNN:
    model = palrnn.initial_alrnn(5, 3, 2, init_std=0.2, seed=3)
    return palrnn.ALRNN(0.7 * model.A, model.W, 0.1 * np.ones(5), model.E, 2)


def rows() -> dict[str, Row]:
    """Return the table."""
    x, drift = _series(), _drift()
    model = palrnn.PALRNN(drift, 0.3, 0.3, 0.5)
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
    filtered = palrnn.rbpf(model, x[:12], particles=4)
    smoothed = palrnn.smooth(filtered, paths=2)
    fisher = palrnn.itf_fisher(drift, x[:20], 4, 0.3)
    theta = drift.theta.size
    posterior = palrnn.laplace(drift, fisher, prior_std=0.01)
    held = np.stack([x[:9], x[9:18]])
    toy = palrnn.toy_series(0.3, steps=40)
    plain, fixed = v.series(x, columns=False), v.series(x)
    trials = v.series(x, columns=False, trials=True, gaps=True)
    short = v.series(x[:12], gaps=True)
    simulated = {
        "steps": v.size(),
        "dt": v.number(above=0.0),
        "process_std": v.number(least=0.0),
        "scale": v.array(np.ones(3)),
        "discard": v.size(0),
        "seed": v.seed(),
    }
    simulated["scale"] = simulated["scale"].without("none")  # type: ignore[union-attr]
    bayes: dict[str, Kind | None] = {
        "particles": v.size(),
        "target": v.choice(),
        "seed": v.seed(),
        "progress": None,
    }
    resampling = {"resampling": v.choice(), "ess_threshold": v.number(least=0.0)}
    judged: dict[str, Kind | None] = {
        "bins": v.size(),
        "smoothing": v.number(above=0.0),
        "protocol": v.choice(),
        "seed": v.seed(),
    }
    optional = lambda kind: kind.without("none")  # noqa: E731
    run: dict[str, Kind | None] = {"run": None, "progress": None}
    return {
        "Standardizer": Row(
            {"mean": np.zeros(3), "std": np.ones(3)},
            {"mean": v.array(np.ones(3)).without("longer", "nothing"), "std": v.array(np.ones(3))},
        ),
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
            {"path": ""}, {"path": v.path(), "columns": None, "min_steps": None, "allow_nan": None}
        ),
        "load_trials": Row(
            {"path": ""},
            {"path": v.path(), "trial": None, "columns": None, "min_steps": None, "allow_nan": None},
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
        "ALRNN": Row(
            {"A": drift.A, "W": drift.W, "h": drift.h, "E": drift.E, "gated": 2},
            {"A": v.array(drift.A).without("longer")}
            | {name: v.array(getattr(drift, name)) for name in "WhE"}
            | {"gated": v.size(0, most=5)},
        ),
        "PALRNN": Row(
            {"drift": drift, "process_std": 0.1, "observation_std": 0.1, "gate_std": 0.1},
            {
                "drift": v.instance(),
                "process_std": v.deviation(),
                "observation_std": v.deviation(),
                "gate_std": v.number(least=0.0),
                "initial_std": v.deviation(optional=True),
            },
        ),
        "import_torch": Row({"path": "", "gated": 2}, {"path": v.path(), "gated": None}),
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
            },
        ),
        "cycles": Row(
            {"model": drift, "trajectory": np.asarray(drift.rollout(x[0], 60)), "max_period": 3},
            {
                "model": v.instance(),
                "trajectory": v.series(np.asarray(drift.rollout(x[0], 60))),
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
            {"model": drift}, {"model": v.instance(), "virtual": None, "most_gated": v.size(0, most=24)}
        ),
        "lyapunov_spectrum": Row(
            {"model": drift, "x1": x[0], "steps": 50, "discard": 5},
            {
                "model": v.instance(),
                "x1": v.array(x[0]),
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "k": v.size(optional=True, most=5),
                "process_noise": None,
                "seed": v.seed(),
            },
        ),
        "prediction_error": Row(
            {"model": drift, "x": x, "n": 3, "horizon": 10, "starts": 5},
            {
                "model": v.instance(),
                "x": fixed,
                "n": v.size(),
                "dt": v.number(above=0.0),
                "lyapunov": v.number(above=0.0, optional=True),
                "threshold": v.number(above=0.0),
                "horizon": v.size(),
                "starts": v.size(),
            },
            nan=True,
        ),
        "quantities_of_interest": Row(
            {"model": drift, "reference": x, "discard": 10},
            {
                "model": v.instance(),
                "reference": fixed,
                "standardizer": v.instance(optional=True),
                "x1": optional(v.array(x[0])),
                "steps": v.size(optional=True),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "k": v.size(optional=True, most=5),
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
        "stochastic_counterparts": Row(
            {"model": model, "reference": x, "discard": 10},
            {"model": v.instance(), "reference": fixed, "settings": None},
            nan=True,
        ),
        "symbolic_dynamics": Row(
            {"codes": x > 0},
            {"codes": v.series(x, columns=False).without("booleans", "no columns")},
        ),
        "TrainConfig": Row({}, _settings(palrnn.TrainConfig)),
        "SAEMConfig": Row({}, _settings(palrnn.SAEMConfig)),
        "ReportSettings": Row(
            {}, {name: v.instance().without("dict") for name in palrnn.ReportSettings.model_fields}
        ),
        "free_running_evaluation": Row(
            {"model": drift, "heldout": x, "steps": 100, "discard": 10},
            {
                "model": v.instance(),
                "heldout": fixed,
                "update": None,
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
            },
            nan=True,
        ),
        "itf_gradient": Row(
            {"model": drift, "x": x, "tau": 4},
            {
                "model": v.instance(),
                "x": v.series(x, trials=True),
                "tau": v.size(),
                "alpha": v.number(least=0.0),
            },
        ),
        "itf_loss": Row(
            {"model": drift, "x": x, "tau": 4},
            {
                "model": v.instance(),
                "x": v.series(x, trials=True),
                "tau": v.size(),
                "alpha": v.number(least=0.0),
            },
        ),
        "train": Row(
            {"x": x, "config": config},
            {
                "x": v.series(x, columns=False, trials=True),
                "config": v.instance(optional=True),
                "heldout": optional(fixed),
                "standardizer": v.instance(optional=True),
                "dt": v.number(above=0.0, optional=True),
            }
            | run,
        ),
        "train_many": Row(
            {"x": x, "configs": [config], "workers": 1},
            {
                "x": v.series(x, columns=False, trials=True),
                "configs": v.instance().without("list"),
                "workers": v.size(optional=True),
                "runs": None,
                "heldout": optional(fixed),
                "standardizer": v.instance(optional=True),
                "dt": v.number(above=0.0, optional=True),
                "progress": None,
            },
        ),
        "path_posterior": Row(
            {"model": model, "x": x[:12], "codes": smoothed.codes[0]},
            {"model": v.instance(), "x": short, "codes": v.array(1.0 * smoothed.codes[0])},
        ),
        "rbpf": Row(
            {"model": model, "x": x[:12], "particles": 4},
            {
                "model": v.instance(),
                "x": short,
                "schedule": v.array(np.ones(11)).without(
                    "none", "text", "objects", "infinity", "nan", "huge", "complex"
                ),
            }
            | bayes
            | resampling,
        ),
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
            {"filtered": v.instance(), "paths": v.size(), "states_per_path": v.size(), "seed": v.seed()},
        ),
        "windowed_evidence": Row(
            {"model": model, "sequences": x[:30], "length": 8, "particles": 4},
            {
                "model": v.instance(),
                "sequences": v.series(x[:30], gaps=True, trials=True),
                "length": v.size(),
                "windows": v.size(optional=True),
                "threads": v.size(optional=True),
            }
            | bayes
            | resampling,
        ),
        "ITFOperator": Row(
            {"model": drift, "x": x[:20], "tau": 4, "observation_std": 0.3},
            {
                "model": v.instance(),
                "x": v.series(x[:20]),
                "tau": v.size(),
                "observation_std": v.deviation(),
                "alpha": v.number(least=0.0),
            },
        ),
        "compare_geometries": Row(
            {"model": model, "x": x[:12], "tau": 4, "particles": 4, "paths": 2, "k": 3},
            {
                "model": v.instance(),
                "x": v.series(x[:12]),
                "tau": v.size(),
                "alpha": v.number(least=0.0),
                "paths": v.size(),
                "states_per_path": v.size(),
                "ridge": v.number(above=0.0),
                "k": v.size(),
            }
            | bayes,
            nan=True,
        ),
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
                "draws": v.size(),
                "standardizer": v.instance(optional=True),
                "steps": v.size(),
                "discard": v.size(0),
                "dt": v.number(above=0.0),
                "seed": v.seed(),
                "progress": None,
            },
            nan=True,
        ),
        "itf_fisher": Row(
            {"model": drift, "x": x[:20], "tau": 4, "observation_std": 0.3},
            {
                "model": v.instance(),
                "x": v.series(x[:20]),
                "tau": v.size(),
                "observation_std": v.deviation(),
                "alpha": v.number(least=0.0),
            },
        ),
        "itf_trace": Row(
            {"model": drift, "x": x[:20], "tau": 4, "observation_std": 0.3},
            {
                "model": v.instance(),
                "x": v.series(x[:20]),
                "tau": v.size(),
                "observation_std": v.deviation(),
                "alpha": v.number(least=0.0),
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
            },
        ),
        "observed_information": Row(
            {"model": model, "x": x[:12], "particles": 4, "paths": 2},
            {"model": v.instance(), "x": short, "paths": v.size(), "states_per_path": v.size()}
            | bayes
            | resampling,
            nan=True,
        ),
        "subspace_overlap": Row(
            {"one": np.eye(theta)[:, :3], "other": np.eye(theta)[:, 1:4]},
            {"one": v.array(np.eye(theta)[:, :3]), "other": v.array(np.eye(theta)[:, :3])},
        ),
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
                "seed": v.seed(),
                "threads": v.size(optional=True),
                "standardizer": v.instance(optional=True),
            }
            | run,
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
                "threads": v.size(optional=True),
                "standardizer": v.instance(optional=True),
            }
            | run,
            nan=True,
        ),
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
                "x": v.series(np.vstack([x, x]), columns=False, trials=True),
                "dt": v.number(above=0.0, optional=True),
                "latent_dim": v.size(),
                "gated": v.size(0),
                "tau": v.size(optional=True),
                "updates": v.size(),
                "lags": v.size(),
                "delay": None,
                "test_fraction": v.number(above=0.0),
                "seed": v.seed(),
                "columns": v.instance(optional=True).without("list", "dict", "array"),
                "name": None,
                "system": v.choice(optional=True),
                "lyapunov": v.number(optional=True),
                "settings": None,
            }
            | run,
        ),
    }


def _settings(kind: type[Config]) -> dict[str, Kind | None]:
    """Return the wrong values of each setting, by its type."""
    kinds: dict[str, Kind | None] = {}
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
