"""Runs with made-up results, for tests of the report: every section has something to show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from palrnn.data import lorenz63
from palrnn.forcing import Evaluation
from palrnn.geometry import GeometryComparison
from palrnn.inference import FilterConfig, FilterDiagnostics, Forecast
from palrnn.invariants import (
    FixedPoints,
    Floor,
    LyapunovSpectrum,
    PredictionError,
    Quantities,
    Scorecard,
    StateSpaceDivergence,
    symbolic_dynamics,
)
from palrnn.model import ALRNN, PALRNN, Forcing
from palrnn.report.view import Fan, Run
from palrnn.runs import Tracking
from palrnn.tuning import Comparison, SAEMConfig, SAEMResult, TuningHistory


def example_run(
    name: str = "lorenz",
    *,
    dim: int = 3,
    seed: int = 0,
    columns: tuple[str, ...] | None = None,
    gates_each: int = 1,
) -> Run:
    """Return a run over ``dim`` of Lorenz-63's coordinates, "generated" by the true system itself.

    Its codes are of three thresholds, with ``gates_each``.
    """
    rng = np.random.default_rng(seed)
    columns = columns or ("x", "y", "z")[:dim]
    truth, made = lorenz63(6000, seed=seed)[:, :dim], lorenz63(6000, seed=seed + 100)[:, :dim]
    codes = np.column_stack([made[:, 0] > c for c in (-6.0, 0.0, 6.0) for _ in range(gates_each)])
    noise = 0.1 * rng.standard_normal((600, dim))
    return Run(
        name=name,
        facts={
            "Data": {"file": "lorenz.csv", "steps": 6000, "columns": list(columns), "time step": 0.01},
            "Model": {"latent units": 30, "gated units": 10, "parameters": 960},
            "Settings": {"tau": 16, "updates": 20000, "seed": seed},
            "Versions": {"palrnn": "0.1.0", "numpy": np.__version__},
        },
        columns=columns,
        dt=0.01,
        reference=truth,
        generated=made,
        codes=codes,
        losses=[(100 * (i + 1), float(3 / (1 + i) + 0.02 * rng.random())) for i in range(200)],
        measured=[Evaluation(2000 * k, 4.0 / k, 0.01, 0.9, 1.0) for k in range(1, 10)]
        + [Evaluation(20_000, np.inf, np.nan, np.nan, 0.0)],
        results={
            "tracking": Tracking(truth[:600], truth[:600] + noise, made[:600], Forcing.identity(16)),
            "invariants": example_card(truth, made, codes),
            "diagnostics": example_diagnostics(rng),
            "geometry": GeometryComparison.from_dict(example_measures(rng)),
            "tuning": example_tuning(),
        },
        fan=example_fan(truth, rng),
        resting=np.array([[0.0, 0.0, 0.0], [8.5, 8.5, 27.0]])[:, :dim],
    )


def example_fan(truth: Any, rng: np.random.Generator) -> Fan:
    """Return forty paths around the truth, the farther from it the farther ahead."""
    ahead = truth[1060:1260]
    spread = 0.02 * np.exp(0.02 * np.arange(200))[:, None] * rng.standard_normal((40, 1, ahead.shape[1]))
    forecast = Forecast(ahead + spread + 0.1 * rng.standard_normal((40, *ahead.shape)))
    return Fan(truth[1000:1060], ahead, forecast, {0.5: 0.47, 0.9: 0.88}, 6, "that of the model itself")


def changed_run(run: Run, **changes: Any) -> Run:
    """Return the run with other results; None takes one away."""
    results = {name: value for name, value in (dict(run.results) | changes).items() if value is not None}
    return replace(run, results=results)


def example_card(truth: Any, made: Any, codes: Any) -> Scorecard:
    """Return a score card of 9000 steps with five exponents, the last minus infinity."""
    exponents = np.array([0.88, -0.01, -14.4, -20.0, -np.inf])
    errors = np.array([0.03, 0.004, 0.03, 0.1, 0.0])
    times = np.array([45.0, 90.0])
    spectrum = LyapunovSpectrum(exponents, errors, np.array([exponents, exponents]), times, 30)
    known = np.array([0.9056, 0.0, -14.5723])
    reference = LyapunovSpectrum(known, np.full(3, 0.002), np.array([known, known]), times, 3)
    hard = Quantities(StateSpaceDivergence(0.71, 0.004, 9000, 9000), 0.07, spectrum, made, made)
    return Scorecard(
        hard=hard,
        sampled=None,
        dstsp_floor=Floor(np.r_[0.39, np.full(18, 0.63), 2.13], 3000),
        spectrum_floor=Floor(np.r_[0.04, np.full(18, 0.06), 0.09], 3000),
        reference_exponents=reference,
        lyapunov=0.9056,
        prediction=PredictionError(0.001 * np.arange(1, 21), np.full(10, 310.0), 2.8, 1000, 0.4),
        symbols=symbolic_dynamics(codes),
        fixed_points=example_fixed_points(),
        reference=np.resize(truth, (9000, truth.shape[1])),
        gated=3,
    )


def example_fixed_points() -> FixedPoints:
    """Return one fixed point that attracts and one that does not, of all eight regions."""
    codes = np.array([[False, True, True], [True, True, True]])
    eigenvalues = np.array([[0.98, 0.5], [1.02, 0.99]], dtype=np.complex128)
    return FixedPoints(np.zeros((2, 2)), codes, eigenvalues, np.ones(2, dtype=bool), 8, 0)


def example_diagnostics(rng: np.random.Generator) -> FilterDiagnostics:
    """Return a pass of 256 particles whose gate paths have coalesced at the start."""
    return FilterDiagnostics(
        FilterConfig(particles=256),
        412.0,
        ess=256 * rng.uniform(0.3, 0.9, 199),
        resampled=rng.random(199) < 0.2,
        code_entropy=rng.uniform(1.5, 4.0, 199),
        bit_entropy=rng.uniform(2.5, 5.0, 199),
        distinct=np.linspace(5, 64, 199).astype(np.int64),
        paths=64,
        gated=10,
        observed_dim=3,
        process_std=0.1,
        observation_std=0.1,
        gate_std=0.7,
    )


def example_measures(rng: np.random.Generator) -> dict[str, Any]:
    """Return the plain form of a comparison with matrices, 7 directions of which are negative."""
    eigenvalues = np.sort(rng.lognormal(-4, 3, 120))[::-1]
    traces = {"observed": 1e4, "complete": 4e4, "missing": 3e4, "missing_state": 1.8e4}
    traces["missing_switching"] = 1.2e4
    return {
        "forcing": {"policy": "identity", "interval": 16},
        "parameters": 960,
        "steps": 200,
        "particles": 64,
        "paths": 8,
        "target": "paper",
        "entropy_bits": 2.9,
        "entropy_bound": 6.0,
        "ess": 30.0,
        "gap": 1.4,
        "gap_stderr": 0.05,
        "trace_itf": 2.5e5,
        **{f"trace_{name}": value for name, value in traces.items()},
        **{f"trace_{name}_stderr": 0.01 * value for name, value in traces.items()},
        "mir": 0.75,
        "logdet_gap": -210.0,
        "q90": -0.6,
        "negative": 7,
        "overlap": 0.3,
        "k": 50,
        "eigenvalues_itf": (30 * eigenvalues).tolist(),
        "eigenvalues_observed": (eigenvalues - 1e-6).tolist(),
        "overlaps": [0.1 + 0.004 * k for k in range(1, 51)],
    }


def example_tuning(**last: float) -> Comparison:
    """Return three stages of tuning, the last of which gains evidence and loses the dynamics."""
    model = PALRNN(ALRNN([0.5], [[0.0]], [0.0], [[1.0]], 0), 0.1, 0.1, 0.7)
    figures = {
        "process_std": 0.1,
        "observation_std": 0.1,
        "heldout_stderr": 0.02,
        "dstsp": 0.7,
        "lyapunov": 0.88,
    }
    stages = {
        "baseline": [{"heldout_evidence": 0.4}],
        "calib": [{"evidence": 0.5}, {"evidence": 0.7}, {"evidence": 0.9}, {"heldout_evidence": 0.9}],
        "full": [
            {"evidence": 0.5},
            {"evidence": 0.9},
            {"evidence": 1.1},
            {"heldout_evidence": 1.1, "dstsp": 6.0, "lyapunov": -0.4} | last,
        ],
    }
    config = SAEMConfig(heldout_windows=40, particles=128)
    results = {}
    for name, rows in stages.items():
        history = TuningHistory.of([{"iteration": float(i), **figures, **row} for i, row in enumerate(rows)])
        results[name] = SAEMResult(model, history, config.changed(configuration=name), 0, 1.0)
    return Comparison(results, 0.5)
