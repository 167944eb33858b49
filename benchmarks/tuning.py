"""Where the time of particle-SAEM goes at the paper's largest setting, and how long the whole of it takes.

One window of 200 steps with 256 particles and 8 smoothing samples (M = 30, P = 10, N = 3), part by part, with
the share of the Kalman kernels; the M-step against regressions on the samples themselves; then the whole
setting (80 windows x 8 iterations, 120 held-out windows before and after) from a few windows in two
threads, or measured with `python benchmarks/tuning.py --whole`.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from clock import aim, best_times

from palrnn import (
    PALRNN,
    Forcing,
    Standardizer,
    TrainConfig,
    lorenz63,
    lorenz63_sequences,
    rbpf,
    saem,
    smooth,
    train,
)
from palrnn.engine.kernel import kernel
from palrnn.engine.progress import lines, quiet
from palrnn.engine.vector_code import LANES
from palrnn.inference.filter_arrays import filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels.beliefs import condition, predict
from palrnn.inference.record import codes_of
from palrnn.tuning import SAEMConfig
from palrnn.tuning.anchor import anchored_solution
from palrnn.tuning.mstep import drift_solution
from palrnn.tuning.sequences import stretches
from palrnn.tuning.statistics import sufficient_statistics

LENGTH, PARTICLES, PATHS, THREADS, TARGET = 200, 256, 8, 2, 240.0
CONFIG = SAEMConfig(length=LENGTH, particles=PARTICLES, paths=PATHS)


def main() -> None:
    model, data, heldout = example()
    x = data[0, : LENGTH + 1]
    seconds, statistics, samples = window_parts(model, x)
    m_step(model, statistics, samples, data)
    windows = CONFIG.iterations * CONFIG.windows
    if "--whole" in sys.argv:
        start, used = time.perf_counter(), time.process_time()
        result = saem(model, data, CONFIG, heldout=heldout, threads=THREADS, progress=lines("tuning"))
        total, used = time.perf_counter() - start, time.process_time() - used
        print(result)
        print(
            f"the whole setting, measured: {total:.0f} s in {THREADS} threads, {used:.0f} s of processor time"
        )
    else:
        short = CONFIG.changed(iterations=1, windows=2 * THREADS)
        start, used = time.perf_counter(), time.process_time()
        saem(model, data, short, threads=THREADS, progress=quiet)
        spent = np.array([time.perf_counter() - start, time.process_time() - used]) / short.windows
        heldout_part = seconds["filter"] / sum(seconds.values())
        total, used = (windows + 2 * CONFIG.heldout_windows * heldout_part) * spent
        print(
            f"the whole setting, from {short.windows} windows in {THREADS} threads: {total:.0f} s, "
            f"{used:.0f} s of processor time ({1e3 * spent[0]:.0f} and {1e3 * spent[1]:.0f} ms per window)"
        )
    aim(f"the whole setting takes at most {TARGET:.0f} s ({total:.0f})", total <= TARGET)


def example() -> tuple[PALRNN, np.ndarray, np.ndarray]:
    """A trained model and the paper's data: on random ones, states that decay would slow everything down."""
    x = lorenz63(20_000, process_std=0.1)
    standardizer = Standardizer.fit(x)
    drift = train(standardizer.transform(x), TrainConfig.paper(updates=3000), progress=quiet).model
    heldout = lorenz63_sequences(steps=8000, seed=1)
    parts = (standardizer.transform(part) for part in (lorenz63_sequences(), heldout))
    return PALRNN(drift, 0.1, 0.1, 0.7), *parts


def window_parts(model: PALRNN, x: np.ndarray):
    filtered = rbpf(model, x, particles=PARTICLES)
    samples = smooth(filtered, paths=PATHS)
    seconds = best_times(
        {
            "filter": lambda: rbpf(model, x, particles=PARTICLES),
            "smoother": lambda: smooth(filtered, paths=PATHS),
            "statistics": lambda: sufficient_statistics(model, x, samples.codes, samples.states),
            "Kalman": kalman_run(model, x, filtered.code_words),
        },
        rounds=3,
    )
    kalman = seconds.pop("Kalman")
    total = sum(seconds.values())
    print(f"one window, {LENGTH} steps, {PARTICLES} particles, {PATHS} samples: {1e3 * total:.0f} ms")
    for name, value in seconds.items():
        print(f"  {name:12s} {1e3 * value:7.1f} ms  {value / total:6.1%}")
    print(f"  Kalman kernels of the filter {1e3 * kalman:.1f} ms: {kalman / total:.1%} of the window")
    statistics = sufficient_statistics(model, x, samples.codes, samples.states)
    return seconds, statistics, samples


@kernel
def kalman_steps(system, signs, x, mean, cov, room):
    """Predict and condition every bundle of particles at every step, and nothing else."""
    free, seen = system.latent_dim - system.gate.shape[0], np.empty((x.shape[1], LANES))
    loglik = np.empty(LANES)
    for t in range(signs.shape[0]):
        for n in range(x.shape[1]):
            seen[n] = x[t + 1, n]
        for b in range(mean.shape[0]):
            room.gates[free:] = signs[t, b]
            predict(system, t, mean[b], cov[b], room)
            condition(mean[b], cov[b], system.hidden, seen, system.observation, False, room, loglik, 0)


def kalman_run(model: PALRNN, x: np.ndarray, words: np.ndarray):
    """The Kalman part of a filter pass, along gates that are known: ``words (T-1, particles, words)``."""
    system, room = filter_arrays(model), workspace(model)
    start, beliefs = (initial_bundles(system, model, x[0], PARTICLES) for _ in range(2))
    gates = codes_of(words, model.drift.gated).reshape(len(words), -1, LANES, model.drift.gated)
    signs = np.ascontiguousarray(np.where(gates, 1.0, -1.0).swapaxes(2, 3))

    def run() -> None:
        for array, first in zip(beliefs, start, strict=True):
            array[:] = first
        kalman_steps(system, signs, x, *beliefs, room)

    return run


def m_step(model: PALRNN, statistics, samples, data: np.ndarray) -> None:
    """The closed form on sums, against ridge regressions that lay out every sample; and the anchored one."""
    anchor = stretches(list(data), CONFIG.anchor_length)
    before, after = samples.states[:, 0, :-1].reshape(-1, 30), samples.states[:, 0, 1:].reshape(-1, 30)
    opened = np.concatenate([np.ones((len(before), 20)), samples.codes.reshape(-1, 10)], axis=1)
    root = np.sqrt(CONFIG.ridge * len(before)) * np.eye(32)

    def direct() -> None:
        for i in range(30):
            design = np.column_stack([before[:, i], opened * before, np.ones(len(before))])
            target = np.concatenate([after[:, i], np.zeros(32)])
            np.linalg.lstsq(np.vstack([design, root]), target, rcond=None)

    def anchored() -> None:
        anchored_solution(
            statistics, model, anchor, forcing=Forcing.identity(16), beta=200.0, ridge=CONFIG.ridge
        )

    seconds = best_times(
        {
            "closed form": lambda: drift_solution(statistics, model, ridge=CONFIG.ridge),
            "regressions on the samples of one window": direct,
            "anchored, 50 steps of L-BFGS": anchored,
        },
        rounds=3,
    )
    print("one M-step of the drift")
    for name, value in seconds.items():
        print(f"  {name:41s} {1e3 * value:8.2f} ms  {value / seconds['closed form']:7.1f} x the closed form")


if __name__ == "__main__":
    main()
