"""Is this tree as fast as another one? `python benchmarks/compare.py ../other-checkout [rounds]`.

Each tree's operations run in a process of their own with one thread; the two take turns, call by call, and
the best processor time of each counts, so that the load of the machine falls on both. It only makes calls
that look the same in all versions since 0.1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from run import ONE_THREAD

HERE = Path(__file__).resolve().parent


def operations() -> dict[str, Callable[[], object]]:
    """The work that is timed, at the paper's size: M = 30, P = 10, N = 3, 200 steps."""
    import numpy as np

    import palrnn
    from palrnn.engine.progress import quiet

    series = palrnn.lorenz63(20_000, process_std=0.1, seed=1)
    series = np.asarray(getattr(series, "x", series))
    x = (series - series.mean(0)) / series.std(0)
    settings = {"latent_dim": 30, "gated": 10, "tau": 16, "learning_rate": 1e-3, "seed": 0}
    settings |= {"gradient_clip": None, "input_noise": 0.0}  # both trees must have the same model
    drift = palrnn.train(x, palrnn.TrainConfig(updates=600, **settings), progress=quiet).model
    model, segment = palrnn.PALRNN(drift, 0.1, 0.1, 0.7), x[:201]
    filtered = palrnn.rbpf(model, segment, particles=256, seed=0)
    tuning = palrnn.SAEMConfig(length=200, particles=256, paths=8, iterations=1, windows=2)
    return {
        "200 updates of training": lambda: palrnn.train(
            x, palrnn.TrainConfig(updates=200, **settings), progress=quiet
        ),
        "filter, paper's target": lambda: palrnn.rbpf(model, segment, particles=256, seed=0),
        "filter, exact target": lambda: palrnn.rbpf(model, segment, particles=256, seed=0, target="exact"),
        "smoother, 64 paths": lambda: palrnn.smooth(filtered, paths=64, seed=0),
        "ITF Fisher": lambda: palrnn.itf_fisher(drift, segment, 16, 0.1),
        "ITF trace": lambda: palrnn.itf_trace(drift, segment, 16, 0.1),
        "Lyapunov spectrum": lambda: palrnn.lyapunov_spectrum(drift, x[0], steps=5000),
        "fixed points": lambda: palrnn.fixed_points(drift),
        "D_stsp": lambda: palrnn.dstsp(x[:9000], x[9000:18000]),
        "tuning, two windows": lambda: palrnn.saem(model, x[:2000], tuning, threads=1, progress=quiet),
    }


def worker() -> None:
    """Run the operations whose names come in, one line each, and answer with their processor time."""
    found = operations()
    for call in found.values():
        call()
    print("|".join(found), flush=True)
    for line in sys.stdin:
        call = found[line.strip()]
        start = time.process_time()
        call()
        print(time.process_time() - start, flush=True)


def main() -> None:
    """Compare this tree with another."""
    trees = {"other": Path(sys.argv[1]).resolve(), "this": HERE.parent}
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    workers = {
        name: subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--worker"],
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(tree / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, tree in trees.items()
    }
    names = {name: process.stdout.readline().strip().split("|") for name, process in workers.items()}
    print(f"{'':26}{'other':>10}{'this':>10}   this / other, best of {rounds}")
    for operation in names["this"]:
        best = dict.fromkeys(trees, float("inf"))
        for _ in range(rounds):
            for name, process in workers.items():
                process.stdin.write(operation + "\n")
                process.stdin.flush()
                best[name] = min(best[name], float(process.stdout.readline()))
        other, this = best["other"], best["this"]
        print(f"{operation:26}{1e3 * other:7.1f} ms{1e3 * this:7.1f} ms   {this / other:.3f}", flush=True)
    for process in workers.values():
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    worker() if "--worker" in sys.argv else main()
