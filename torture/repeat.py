"""The same seed, the same bytes: one pipeline, hashed, under other numbers of threads and other BLAS kernels.

python -m torture.repeat      prints the digest and the figures of the pipeline as JSON
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from torture.narrow import narrow_environment

_ROOT = Path(__file__).resolve().parents[1]


def pipeline() -> dict[str, Any]:
    """Train, filter, smooth, measure, tune; return every result as bytes' digest and a few figures."""
    import palrnn
    from palrnn.engine.progress import quiet

    # equal input for every part, whatever the processor: no simulated chaos, no trained model
    time = np.arange(3000)[:, None] / np.array([7.0, 11.3, 17.9])
    x = np.round(np.sin(time) + np.sin(1.7 * time[:, ::-1]), 6)
    rng = np.random.default_rng(0)
    A, W = np.round(rng.uniform(0.3, 0.8, 12), 3), np.round(0.1 * rng.standard_normal((12, 12)), 3)
    given = palrnn.ALRNN(A, W, np.full(12, 0.1), np.round(rng.standard_normal((12, 3)), 3), 4)
    model = palrnn.PALRNN(given, 0.1, 0.1, 0.5)
    config = palrnn.TrainConfig(
        latent_dim=12, gated=4, tau=8, updates=200, batch_size=8, sequence_length=60, learning_rate=1e-2
    )
    drift = palrnn.train(x, config, progress=quiet).model
    filtered = palrnn.rbpf(model, x[:80], particles=64)
    states = palrnn.smooth(filtered, paths=8).states
    with np.errstate(all="ignore"):
        information = palrnn.observed_information(model, x[:60], particles=32, passes=2, paths=8)
    fisher = palrnn.itf_fisher(given, x[:60], 8, 0.1)
    settings = palrnn.SAEMConfig(length=16, iterations=2, windows=8, particles=32, paths=4)
    tuned = palrnn.saem(
        model, x, settings, threads=int(os.environ.get("TORTURE_THREADS", "1")), progress=quiet
    )
    found = {
        "simulation, 500 steps": palrnn.lorenz63(500, discard=0, seed=4),
        "training": drift.theta,
        "evidence": filtered.increments,
        "smoothing": states,
        "observed information": information.observed,
        "ITF Fisher": fisher,
        "tuning": tuned.model.drift.theta,
    }
    digests = {
        name: hashlib.sha256(np.ascontiguousarray(v).tobytes()).hexdigest() for name, v in found.items()
    }
    figures = {name: np.asarray(value).ravel()[:200].tolist() for name, value in found.items()}
    return {"digests": digests, "figures": figures}


def compared(**environment: dict[str, str]) -> dict[str, dict[str, float]]:
    """Run the pipeline in each environment; return relative differences from the first, 0 for equal bytes."""
    runs = {name: _run(extra) for name, extra in environment.items()}
    first = next(iter(runs.values()))
    return {
        name: {part: _difference(first, run, part) for part in first["digests"]} for name, run in runs.items()
    }


def _difference(one: dict[str, Any], other: dict[str, Any], part: str) -> float:
    if one["digests"][part] == other["digests"][part]:
        return 0.0
    a, b = np.array(one["figures"][part]), np.array(other["figures"][part])
    return max(float(np.abs(a - b).max() / np.abs(a).max()), 1e-300)


def _run(extra: dict[str, str]) -> dict[str, Any]:
    environment = os.environ | extra
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torture.repeat"],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def tried() -> dict[str, Any]:
    """Compare one and two threads, kernels just compiled, and BLAS and compilers for other processors."""
    _run({})  # compiles what has to be compiled
    with tempfile.TemporaryDirectory() as kernels:
        differences = compared(
            **{
                "one thread": {"OPENBLAS_NUM_THREADS": "1"},
                "two threads": {"OPENBLAS_NUM_THREADS": "2", "TORTURE_THREADS": "2"},
                "just compiled": {"NUMBA_CACHE_DIR": f"{kernels}/same"},
                "BLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
                "kernels without AVX": {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": f"{kernels}/other"},
                "all without AVX-512": narrow_environment() | {"NUMBA_CACHE_DIR": f"{kernels}/narrow"},
            }
        )
        # the same with kernels from the cache that the last one has filled, and compiled once more
        narrow = narrow_environment()
        again = compared(
            cached=narrow | {"NUMBA_CACHE_DIR": f"{kernels}/narrow"},
            compiled=narrow | {"NUMBA_CACHE_DIR": f"{kernels}/again"},
        )
    same = {
        "the number of threads": differences["two threads"],
        "who compiled the kernels": differences["just compiled"],
        "who compiled the kernels, without AVX-512": again["compiled"],
    }
    faults = [
        f"{part} depends on {words}"
        for words, found in same.items()
        for part, difference in found.items()
        if difference
    ]
    return {"differences": differences, "faults": faults}


if __name__ == "__main__":
    print(json.dumps(tried() if "--compare" in sys.argv else pipeline()))
