"""The shallow PLRNN on Lorenz-63 by generalised teacher forcing, against D_stsp 0.26 of Hess et al. (2023).

    python benchmarks/shallow_lorenz.py --runs build/shallow --seeds 10 --write docs/shallow.md

Data and score are those of the paper's public code: 100,000 rows of step 0.01 to train on, with
observation noise of 5 % of the deviation; M = 3 units, all observed, H = 50 hidden ones; sequences of 200
rows, 16 at a time, forced by a tenth (alpha 0.1) at every step. Judged without noise: the model starts at
the first row of 100,000 that it has not seen, runs 125,000 steps, the first 25,000 are left out, and
D_stsp is over 30 bins for each coordinate of the box around the reference, 0.1 deviations wider on each
side. The floor is that of the true system: the same score between two of its stretches. Trained with
palrnn's defaults (30,000 updates, rates from 3e-3 to 1e-5, gradients clipped at 5, input noise 0.05), or
as published (250,000 updates, rates from 1e-3 to 1e-6, neither clipping nor noise). One JSON file per
model is kept, so the command continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from document import publish

from palrnn.data import Standardizer, add_observation_noise
from palrnn.data.systems import make_system
from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.invariants import dstsp, dstsp_floor, lyapunov_spectrum, spectrum_distance
from palrnn.invariants.viability import spread_starts, viability
from palrnn.model import Forcing

BEGIN, END = "<!-- table of benchmarks/shallow_lorenz.py -->", "<!-- end of shallow -->"
ROWS, DT, NOISE = 100_000, 0.01, 0.05
SIZES: dict[str, Any] = {
    "latent_dim": 3,
    "hidden": 50,
    "forcing": Forcing.generalised(0.1),
    "optimizer": "radam",
}
PUBLISHED: dict[str, Any] = {
    "updates": 250_000,
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-6,
    "gradient_clip": None,
    "input_noise": 0.0,
}
CANDIDATES: dict[str, dict[str, Any]] = {
    "shallow, defaults": {"family": "shallow"},
    "clipped, defaults": {"family": "clipped-shallow"},
    "shallow, as published": {"family": "shallow"} | PUBLISHED,
    "clipped, as published": {"family": "clipped-shallow"} | PUBLISHED,
}
SYSTEM = make_system("lorenz63")


@cache
def parts(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy rows to train on and clean ones to judge by, in the units of the former."""
    clean = SYSTEM.simulate(rows, dt=DT, discard=10_000, seed=0)
    seen = add_observation_noise(clean, NOISE, seed=1)
    truth = SYSTEM.simulate(rows, dt=DT, discard=10_000, seed=2)
    units = Standardizer.fit(seen)
    return units.transform(seen), units.transform(truth)


@cache
def floor(rows: int) -> float:
    """Return the median D_stsp between ten pairs of true stretches of the same length."""
    return dstsp_floor(SYSTEM, length=rows, pairs=10, dt=DT, protocol="gtf").median


def measured(candidate: str, seed: int, rows: int, updates: int | None) -> dict[str, Any]:
    """Train one model and return what became of it."""
    x, truth = parts(rows)
    begun = time.perf_counter()
    settings = SIZES | CANDIDATES[candidate] | ({} if updates is None else {"updates": updates})
    try:
        model = train(x, TrainConfig(**settings, seed=seed), progress=quiet).model
    except TrainingDivergedError as error:
        return {"diverged": error.update}
    seconds = time.perf_counter() - begun
    found: dict[str, Any] = {"seconds": seconds, "dstsp": np.inf, "spectrum": np.nan, "exponent": np.nan}
    run = model.rollout(truth[0], rows, discard=rows // 4)
    found["alive"] = viability(model, spread_starts(truth, 10), 100_000, data=x).alive
    if not run.diverged:
        found["dstsp"] = dstsp(run.states, truth, protocol="gtf").value
        found["spectrum"] = spectrum_distance(run.states, truth)
        found["exponent"] = lyapunov_spectrum(model, truth[0], steps=50_000, discard=1000, dt=DT, k=1).largest
    return found


def file_of(folder: Path, candidate: str, seed: int) -> Path:
    """Return where the result of one model is kept."""
    words = "".join(c if c.isalnum() else "-" for c in candidate)
    return folder / f"{words}-{seed}.json"


def table(folder: Path, rows: int) -> str:
    """Return the models in the folder, one line per candidate."""
    lines = [
        "| model | models | D_stsp of each | median | floor | D_H, median | largest exponent, median (true) "
        "| alive from 10 of 10 starts after 100,000 steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for candidate in CANDIDATES:
        files = [file_of(folder, candidate, seed) for seed in range(100)]
        found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
        if not found:
            continue
        scores = sorted(np.inf if each.get("dstsp") is None else each["dstsp"] for each in found)
        spectra, exponents = (
            np.median([np.nan if each.get(name) is None else each[name] for each in found])
            for name in ("spectrum", "exponent")
        )
        alive = sum(each.get("alive") == 10 for each in found)
        lines.append(
            f"| {candidate} | {len(found)} | {', '.join(f'{score:.2f}' for score in scores)} "
            f"| {np.median(scores):.2f} | {floor(rows):.2f} | {spectra:.3f} "
            f"| {exponents:.3f} ({SYSTEM.lyapunov}) | {alive} of {len(found)} |"
        )
    lines.append("| published (Hess et al., 2023) | | | 0.26 | | | | |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("build/shallow"), help="where results are kept")
    parser.add_argument("--candidates", type=int, nargs="*", help="numbers of candidates, from 0")
    parser.add_argument("--seeds", type=int, default=10, help="models per candidate")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows to train on, and to judge by")
    parser.add_argument("--updates", type=int, help="instead of those of the candidate")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    chosen = parser.parse_args()
    names = list(CANDIDATES)
    asked = names if chosen.candidates is None else [names[i] for i in chosen.candidates]
    chosen.runs.mkdir(parents=True, exist_ok=True)
    for seed in range(chosen.seeds):
        for candidate in asked:
            file = file_of(chosen.runs, candidate, seed)
            if file.exists():
                continue
            found = measured(candidate, seed, chosen.rows, chosen.updates)
            write_text(file, json.dumps(plain(found)))
            print(f"{candidate}, seed {seed}: {json.dumps(plain(found))}", flush=True)
    text = table(chosen.runs, chosen.rows)
    publish(text, chosen.write, BEGIN, END)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
