"""How much held-out evidence particle-SAEM gains in the same time, by how its E-step draws gate paths.

Three models of the zoo, tuned on windows of their own training series for so many seconds of processor time,
with several seeds. All contenders target the model itself, take the same windows, and differ in smoother,
particles and paths only; statistics are averaged with decreasing steps (proper SAEM), or a quarter of each
solution is taken over (the paper's blend). Every tuned model is judged by one filter of 512 particles on the
same held-out windows.

python benchmarks/paper_saem.py [results/paper] [seconds] [steps per window] [models ...]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from palrnn import PALRNN, SAEMConfig, load_from_zoo, saem, windowed_evidence
from palrnn.engine.progress import quiet
from palrnn.paper.presets import preset_in
from palrnn.paper.series import training_series

MODELS = ("p0.1-o0.1-t16-s0", "p0.3-o0.1-t16-s0", "p0.5-o0.1-t16-s0")
SEEDS, STEPS, STEPS_PER_ITERATION = range(3), 1500, 640
AVERAGED = {"robbins_monro": True}
CONTENDERS = {
    "ancestors, 256 particles, 8 paths, blend": {"particles": 256, "paths": 8},
    "ancestors, 256 particles, 8 paths": {"particles": 256, "paths": 8} | AVERAGED,
    "gibbs, 256 particles, 8 paths": {"smoother": "gibbs", "particles": 256, "paths": 8} | AVERAGED,
    "ancestors, 16 particles, 1 path": {"particles": 16, "paths": 1} | AVERAGED,
    "conditional, 16 particles, 1 path": {"smoother": "conditional", "particles": 16, "paths": 1} | AVERAGED,
}


def main() -> None:
    folder, seconds, length, *models = sys.argv[1:] + ["results/paper", "2", "32"][len(sys.argv) - 1 :]
    budget, steps, preset = float(seconds), int(length), preset_in(folder)
    for name in models or MODELS:
        process, observation = (float(part[1:]) for part in name.split("-")[:2])
        series = training_series(preset.data, process, observation)
        # noise as in the evidence study, which tuning is to find
        model = PALRNN(load_from_zoo(folder, name).drift, 0.1, 0.1, preset.gap.gate_std)
        before = heldout_evidence(model, series.test, steps)
        print(f"\n{name}, windows of {steps}: {before:.4f} nats per step and coordinate before tuning")
        print(f"| E-step | ms per iteration | iterations | gained in {budget:g} s | per second |")
        print("|---|---|---|---|---|")
        for words, settings in CONTENDERS.items():
            config = SAEMConfig(
                length=steps, windows=STEPS_PER_ITERATION // steps, ridge=1e-5, target="exact", **settings
            )
            each = seconds_per_iteration(model, series.train[:STEPS], config)
            count, gains = max(1, round(budget / each)), []
            for seed in SEEDS:
                after = tuned(model, series.train[:STEPS], config, count, seed)
                gains.append(heldout_evidence(after, series.test, steps) - before)
            error = np.std(gains, ddof=1) / np.sqrt(len(gains))
            gain, rate = np.mean(gains), np.mean(gains) / (count * each)
            print(
                f"| {words} | {1e3 * each:.0f} | {count} | {gain:+.4f} ± {error:.4f} | {rate:.4f} |",
                flush=True,
            )


def tuned(model: PALRNN, x: np.ndarray, config: SAEMConfig, iterations: int, seed: int) -> PALRNN:
    changed = config.changed(iterations=iterations)
    return saem(model, x, changed, seed=seed, threads=1, progress=quiet).model


def seconds_per_iteration(model: PALRNN, x: np.ndarray, config: SAEMConfig) -> float:
    """Processor time of one iteration, the mean of the third to the fifth, with compiled kernels."""
    tuned(model, x, config.changed(windows=2), 2, 0)
    spent = []
    for count in (2, 5):
        start = time.process_time()
        tuned(model, x, config, count, 0)
        spent.append(time.process_time() - start)
    return (spent[1] - spent[0]) / 3


def heldout_evidence(model: PALRNN, x: np.ndarray, steps: int) -> float:
    windows = 1280 // steps
    return windowed_evidence(
        model, x, steps, windows=windows, particles=512, target="exact", threads=1, progress=quiet
    ).mean


if __name__ == "__main__":
    main()
