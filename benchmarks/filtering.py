"""The particle filter against the same filter in JAX, and against two matrix products per particle and step.

One pass with 256 particles over 200 steps, M = 30, P = 10, N = 3, float64, one thread, on a trained model;
then how time and memory grow with particles, steps and M, and what many smoothed states cost.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import numpy as np
from clock import aim, best_times, figure, stay_on_one_core
from peers_jax_filter import batched, jax_filter, textbook

from palrnn import PALRNN, Standardizer, TrainConfig, add_observation_noise, lorenz63, rbpf, smooth, train
from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.progress import quiet
from palrnn.engine.vector_code import LANES

PARTICLES, STEPS = 256, 200


def main() -> None:
    stay_on_one_core()
    model, x = example(30, 10, STEPS)
    textbook_peer, batched_peer = (jax_filter(model, x, PARTICLES, way(model)) for way in (textbook, batched))
    seconds = best_times(
        {
            "floor": floor_run(PARTICLES, STEPS),
            "jax, textbook": lambda: jax.block_until_ready(textbook_peer(jax.random.key(0))),
            "jax, batched": lambda: jax.block_until_ready(batched_peer(jax.random.key(0))),
            "palrnn": lambda: rbpf(model, x, particles=PARTICLES),
            "palrnn, exact": lambda: rbpf(model, x, particles=PARTICLES, target="exact"),
        }
    )
    same_answer(model, x, textbook_peer, batched_peer)
    print(
        f"one pass, {PARTICLES} particles x {STEPS} steps, M=30, P=10, N=3, {LANES} lanes; "
        "floor: two 32x32 products"
    )
    for name, value in seconds.items():
        over, ours = value / seconds["floor"], value / seconds["palrnn"]
        print(f"  {name:13s} {value * 1e3:7.1f} ms  {over:5.2f} x floor  {ours:5.2f} x palrnn")
    growth()
    smoothing(model, x)
    memory()
    over, faster = seconds["palrnn"] / seconds["floor"], seconds["jax, textbook"] / seconds["palrnn"]
    figure("one pass, 256 particles, 200 steps, M=30 P=10", 1e3 * seconds["palrnn"], "ms")
    figure("its time over that of two products per particle and step in BLAS", over, "x")
    figure("times as fast as a textbook filter in JAX", faster, "x")
    aim(f"the filter takes at most 2.5 x the floor ({over:.2f})", over <= 2.5)
    aim(f"it is at least 6 x as fast as the textbook filter in jax ({faster:.2f})", faster >= 6)


def example(dim: int, gated: int, steps: int, updates: int = 3000) -> tuple[PALRNN, np.ndarray]:
    """A trained model and data like its own: on random ones, decaying numbers would slow everything down."""
    train_x = lorenz63(20_000, process_std=0.1)
    standardizer = Standardizer.fit(train_x)
    config = TrainConfig(latent_dim=dim, gated=gated, updates=updates)
    drift = train(standardizer.transform(train_x), config, progress=quiet).model
    x = standardizer.transform(lorenz63(steps + 1, process_std=0.1, seed=1))
    return PALRNN(drift, 0.1, 0.1, 0.7), add_observation_noise(x, 0.1)


@kernel
def products(J, P, work, steps):
    for _ in range(steps):
        for i in range(P.shape[0]):
            np.dot(J, P[i], work)
            np.dot(work, J.T, P[i])


def floor_run(particles: int, steps: int):
    pin_blas()
    J = np.linalg.qr(np.random.default_rng(0).standard_normal((32, 32)))[0].copy()
    P, work = np.tile(np.eye(32), (particles, 1, 1)), np.empty((32, 32))
    return lambda: products(J, P, work, steps)


def same_answer(model: PALRNN, x: np.ndarray, *peers) -> None:
    ours = np.mean([rbpf(model, x, particles=PARTICLES, seed=s).log_evidence for s in range(8)])
    means = [np.mean([float(peer(jax.random.key(s))[0].sum()) for s in range(8)]) for peer in peers]
    print(f"log evidence, mean of 8 seeds: palrnn {ours:.2f}, jax {', '.join(f'{m:.2f}' for m in means)}")


def growth() -> None:
    """Time per particle and step should not grow with particles or steps."""
    print("growth: microseconds per particle and step")
    models = {dim: example(dim, min(10, dim // 3), 1000, updates=1000) for dim in (10, 30, 100)}
    cases = [(n, 200, 30) for n in (64, 256, 1024, 4096)]
    cases += [(256, steps, 30) for steps in (50, 1000)] + [(256, 200, 10), (64, 200, 100)]
    for particles, steps, dim in cases:
        model, x = models[dim]
        value = best_times({"run": partial(rbpf, model, x[: steps + 1], particles=particles)}, rounds=2)[
            "run"
        ]
        each = value / particles / steps * 1e6
        print(f"  {particles:5d} particles {steps:5d} steps M={dim:3d}  {value:7.3f} s  {each:6.2f}")


def smoothing(model: PALRNN, x: np.ndarray) -> None:
    """Many states of one path should cost little more than one."""
    filtered = rbpf(model, x, particles=PARTICLES)
    runs = {str(k): partial(smooth, filtered, paths=8, states_per_path=k) for k in (1, 100, 1000)}
    for k, value in best_times(runs, rounds=2).items():
        each = value / (8 * int(k) * STEPS) * 1e6
        print(f"smoothing 8 paths x {k:>4s} states: {value * 1e3:7.1f} ms, {each:5.2f} us per state and step")


def memory() -> None:
    """Memory added by 4,096 particles over 1,000 steps: what is kept, and the peak while it runs (Linux)."""
    model, x = example(30, 10, 1000, updates=500)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = memory_of("VmRSS")
    filtered = rbpf(model, x, particles=4096)
    kept = sum(a.nbytes for a in vars(filtered).values() if isinstance(a, np.ndarray)) / 2**20
    peak = memory_of("VmHWM") - before
    print(f"memory: 4096 particles x 1000 steps keep {kept:.0f} MB, the peak is {peak:.0f} MB higher")


def memory_of(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
