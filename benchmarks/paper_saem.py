"""How much held-out evidence particle-SAEM gains in the same time, by how its E-step draws gate paths.

Three models of the zoo, tuned on windows of their own training series for so many seconds of processor time,
with several seeds. All contenders target the model itself, take the same windows, and differ in smoother,
particles and paths only; statistics are averaged with decreasing steps (proper SAEM), or a quarter of each
solution is taken over (the paper's blend). Every tuned model is judged by one filter of 512 particles on the
same held-out windows.

python benchmarks/paper_saem.py [results/paper] [seconds of each budget ...]
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
SEEDS, STEPS, LENGTH, WINDOWS = range(3), 1500, 32, 20
AVERAGED = {"robbins_monro": True}
CONTENDERS = {
    "ancestors, 256 particles, 8 paths, blend": {"particles": 256, "paths": 8},
    "ancestors, 256 particles, 8 paths": {"particles": 256, "paths": 8} | AVERAGED,
    "gibbs, 256 particles, 8 paths": {"smoother": "gibbs", "particles": 256, "paths": 8} | AVERAGED,
    "ancestors, 16 particles, 1 path": {"particles": 16, "paths": 1} | AVERAGED,
    "conditional, 16 particles, 1 path": {"smoother": "conditional", "particles": 16, "paths": 1} | AVERAGED,
}


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "results/paper"
    budgets = [float(part) for part in sys.argv[2:]] or [2.0]
    preset = preset_in(folder)
    for name in MODELS:
        process, observation = (float(part[1:]) for part in name.split("-")[:2])
        series = training_series(preset.data, process, observation)
        # noise as in the evidence study, which tuning is to find
        model = PALRNN(load_from_zoo(folder, name).drift, 0.1, 0.1, preset.gap.gate_std)
        before = heldout_evidence(model, series.test)
        print(f"\n{name}: {before:.4f} nats per step and coordinate before tuning")
        heads = (f"gained in {budget:g} s (iterations)" for budget in budgets)
        print("| E-step | ms per iteration | " + " | ".join(heads) + " |")
        print("|---" * (2 + len(budgets)) + "|")
        for words, settings in CONTENDERS.items():
            config = SAEMConfig(
                length=LENGTH, windows=WINDOWS, ridge=1e-5, target="exact", iterations=1, **settings
            )
            each, cells = seconds_per_iteration(model, series.train[:STEPS], config), []
            for budget in budgets:
                count = max(1, round(budget / each))
                gains = [
                    heldout_evidence(tuned(model, series.train[:STEPS], config, count, seed), series.test)
                    - before
                    for seed in SEEDS
                ]
                error = np.std(gains, ddof=1) / np.sqrt(len(gains))
                cells.append(f"{np.mean(gains):+.4f} ± {error:.4f} ({count})")
            print(f"| {words} | {1e3 * each:.0f} | " + " | ".join(cells) + " |", flush=True)


def tuned(model: PALRNN, x: np.ndarray, config: SAEMConfig, iterations: int, seed: int) -> PALRNN:
    changed = config.changed(iterations=iterations)
    return saem(model, x, changed, seed=seed, threads=1, progress=quiet).model


def seconds_per_iteration(model: PALRNN, x: np.ndarray, config: SAEMConfig) -> float:
    """Processor time of one iteration, without that of compiling kernels and of drawing first paths."""
    tuned(model, x, config.changed(windows=2), 2, 0)
    spent = []
    for count in (2, 5):
        start = time.process_time()
        tuned(model, x, config, count, 0)
        spent.append(time.process_time() - start)
    return (spent[1] - spent[0]) / 3


def heldout_evidence(model: PALRNN, x: np.ndarray) -> float:
    return windowed_evidence(
        model, x, LENGTH, windows=40, particles=512, target="exact", threads=1, progress=quiet
    ).mean


if __name__ == "__main__":
    main()
