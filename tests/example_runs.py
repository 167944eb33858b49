"""Runs with made-up findings, for tests of the report: every section has something to show."""

from __future__ import annotations

import numpy as np

from palrnn.data import lorenz63
from palrnn.report.findings import (
    Filtering,
    Forecast,
    Geometry,
    Invariants,
    Run,
    Spread,
    Stage,
    Symbols,
    Tuning,
)


def example_run(
    name: str = "lorenz", *, dim: int = 3, seed: int = 0, columns: tuple[str, ...] | None = None
) -> Run:
    """Return a run over ``dim`` of Lorenz-63's coordinates, "generated" by the true system itself."""
    rng = np.random.default_rng(seed)
    columns = columns or ("x", "y", "z")[:dim]
    truth, made = lorenz63(6000, seed=seed)[:, :dim], lorenz63(6000, seed=seed + 100)[:, :dim]
    codes = np.column_stack([made[:, 0] > c for c in (-6.0, 0.0, 6.0)])
    patterns, member = np.unique(codes, axis=0, return_inverse=True)
    share = np.bincount(member.ravel()) / len(codes)
    symbols = Symbols(
        codes=["".join("01"[int(bit)] for bit in pattern) for pattern in patterns],
        occupancy=share.tolist(),
        places=[made[member.ravel() == i].mean(axis=0).tolist() for i in range(len(patterns))],
        transitions=[(0, 1, 1.0), (1, 0, 0.6), (1, 2, 0.4), (2, 3, 0.5), (2, 1, 0.5), (3, 2, 1.0)],
        distinct=len(patterns),
        entropy=float(-(share * np.log2(share)).sum()),
    )
    eigenvalues = np.sort(rng.lognormal(-4, 3, 120))[::-1]
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
        forecast=Forecast(truth[:600], truth[:600] + 0.1 * rng.standard_normal((600, dim)), made[:600], 16),
        loss=[(100 * (i + 1), float(3 / (1 + i) + 0.02 * rng.random())) for i in range(200)],
        invariants=Invariants(
            steps=9000,
            dstsp=0.71,
            outside=0.004,
            dstsp_floor=Spread(low=0.39, median=0.63, high=2.13, pairs=20, length=3000),
            spectrum_distance=0.07,
            spectrum_floor=Spread(low=0.04, median=0.06, high=0.09, pairs=20, length=3000),
            exponents=[0.88, -0.01, -14.4, -20.0, None],
            exponents_stderr=[0.03, 0.004, 0.03, 0.1, 0.0],
            kaplan_yorke=2.06,
            reference_exponents=[0.9056, 0.0, -14.5723],
            reference_source="Sparrow (1982)",
            mse=[0.001 * k for k in range(1, 21)],
            valid_steps=310.0,
            valid_time=2.8,
            symbols=symbols,
        ),
        filtering=Filtering(
            particles=256,
            ess_threshold=0.5,
            target="paper",
            log_evidence=412.0,
            ess=(256 * rng.uniform(0.3, 0.9, 199)).tolist(),
            resampled=(rng.random(199) < 0.2).tolist(),
            entropy_bits=rng.uniform(1.5, 4.0, 199).tolist(),
            gated=10,
            process_std=0.1,
            observation_std=0.1,
            gate_std=0.7,
            paths=64,
            distinct_first=5,
        ),
        geometry=Geometry(
            steps=200,
            tau=16,
            particles=64,
            samples=8,
            target="paper",
            entropy_bits=2.9,
            gap=1.4,
            trace_itf=2.5e5,
            trace_observed=1e4,
            trace_complete=4e4,
            trace_state=1.8e4,
            trace_switching=1.2e4,
            mir=0.75,
            logdet_gap=-210.0,
            q90=-0.6,
            negative=7,
            dimension=960,
            eigenvalues_itf=(30 * eigenvalues).tolist(),
            eigenvalues_observed=(eigenvalues - 1e-6).tolist(),
            overlap=[(k, 0.1 + 0.004 * k) for k in range(1, 51)],
        ),
        tuning=Tuning(
            length=32,
            windows=40,
            particles=128,
            target="paper",
            stages=[
                Stage(
                    name="baseline",
                    evidence=0.4,
                    evidence_stderr=0.02,
                    process_std=0.1,
                    observation_std=0.1,
                    dstsp=0.7,
                    lyapunov=0.88,
                ),
                Stage(
                    name="calib",
                    evidence=0.9,
                    evidence_stderr=0.02,
                    process_std=0.02,
                    observation_std=0.08,
                    dstsp=0.7,
                    lyapunov=0.88,
                    history=[0.5, 0.7, 0.9],
                ),
                Stage(
                    name="full",
                    evidence=1.1,
                    evidence_stderr=0.02,
                    process_std=0.015,
                    observation_std=0.08,
                    dstsp=6.0,
                    lyapunov=-0.4,
                    history=[0.5, 0.9, 1.1],
                ),
            ],
        ),
    )
