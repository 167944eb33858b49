"""Two reconstructions beside what they were learned from: Lorenz-63, and a laser that was measured.

Ten seeds each; the picture shows the median of the ten by D_stsp, whatever its verdict. Beside it goes a
table of all of them, from which README.md takes its caption. The laser is that of the Santa Fe competition,
which reservoirpy carries (`pip install 'palrnn[field]'`). Runs are kept, so that the same command goes on
where it stopped, about twenty minutes on one core in all:

    python examples/attractor.py docs/pictures/attractor.png --runs build/attractor
    python docs/refresh.py
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import palrnn
from palrnn.engine.files import write_text
from palrnn.engine.style import BLACK, BLUE, VERMILION, save_figure, styled

LORENZ, LASER = "Lorenz-63, 5 % noise", "a laser, measured"
DATA: dict[str, dict[str, Any]] = {
    LORENZ: {"steps": 50_000, "observation_std": 0.05, "optimizer": "radam"},
    LASER: {"lags": 5, "delay": 2, "forcing": palrnn.Forcing.generalised(0.1), "optimizer": "radam"},
}
POINTS, SHOWN = 5_000, 400


def laser() -> np.ndarray:
    """Return the intensity of the laser, (10093, 1), in counts."""
    from reservoirpy.datasets import santafe_laser

    return np.asarray(santafe_laser(), dtype=np.float64).reshape(-1, 1)


def reconstructed(name: str, seed: int, runs: Path, settings: dict[str, Any]) -> palrnn.Reconstruction | None:
    """Return the run of one seed, None if its training diverged; a finished one is not trained again."""
    x = "lorenz63" if name == LORENZ else laser()
    folder = runs / f"{'lorenz' if name == LORENZ else 'laser'}-{seed}"
    try:
        return palrnn.reconstruct(x, **DATA[name] | settings, seed=seed, run=folder)
    except palrnn.TrainingDivergedError:
        return None


def judged(result: palrnn.Reconstruction | None, seed: int) -> dict[str, Any]:
    """Return what the verdict rests on: D_stsp over starts, with noise as in the data where there is some."""
    if result is None:
        return {"seed": seed, "dstsp": None, "grade": "diverged in training", "shown": False}
    card = result.invariants()
    runs = card.over_starts_with_noise or card.over_starts
    score = float(np.median(runs.dstsp)) if runs is not None else np.inf
    life = card.viability
    return {
        "seed": seed,
        "dstsp": round(score, 4),
        "floor": round(card.dstsp_floor.median, 4),
        "exponent": round(card.hard.lyapunov.largest, 4) if card.hard.lyapunov is not None else None,
        "alive": 0 if life is None else life.alive,
        "grade": card.verdict.grade,
        "shown": False,
    }


def drawn(found: dict[str, palrnn.Reconstruction]) -> Figure:
    """Return the picture: what was measured above, and a free run of the model below."""
    with styled():
        figure = Figure(figsize=(8, 4.6), layout="constrained")
        panels = figure.subplots(2, 2, width_ratios=[1, 1.7], sharex="col", sharey="col")
        data = palrnn.Dataset.prepare("lorenz63", **DATA[LORENZ])
        noisy = data.standardizer.inverse(data.training[0])[:POINTS]
        own = found[LORENZ].generate(POINTS, discard=500)
        for panel, series, colour in zip(panels[:, 0], (noisy, own), (BLACK, VERMILION), strict=True):
            panel.plot(series[:, 0], series[:, 2], color=colour, linewidth=0.3)
            panel.set(ylabel="z")
        x, own = laser(), found[LASER].generate(SHOWN, discard=500)
        for panel, series, colour in zip(panels[:, 1], (x[-SHOWN:], own), (BLACK, BLUE), strict=True):
            panel.plot(series[:, 0], color=colour, linewidth=0.7)
            panel.set(ylabel="intensity")
        panels[0, 0].set(title="Lorenz-63, seen with 5 % noise")
        panels[0, 1].set(title="a laser, measured")
        panels[1, 0].set(title="a model of it, running freely", xlabel="x")
        panels[1, 1].set(title="a model of it, running freely", xlabel="step")
    return figure


def main() -> None:
    """Train, choose the median, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("picture", nargs="?", type=Path, default=Path("attractor.png"))
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "palrnn-attractor")
    parser.add_argument("--seeds", type=int, nargs=2, default=[10, 10], help="of Lorenz-63, of the laser")
    parser.add_argument("--updates", type=int, help="fewer than by default, to try this script")
    arguments = parser.parse_args()
    settings = {} if arguments.updates is None else {"updates": arguments.updates}
    table: dict[str, list[dict[str, Any]]] = {name: [] for name in DATA}
    results: dict[str, list[palrnn.Reconstruction | None]] = {name: [] for name in DATA}
    for name, seeds in zip(DATA, arguments.seeds, strict=True):
        for seed in range(seeds):
            results[name].append(reconstructed(name, seed, arguments.runs, settings))
            table[name].append(judged(results[name][-1], seed))
            print(name, table[name][-1], flush=True)
    medians: dict[str, palrnn.Reconstruction] = {}
    for name, rows in table.items():
        # of an even number the lower one of the two in the middle
        scores = [np.inf if row["dstsp"] is None else row["dstsp"] for row in rows]
        shown = int(np.argsort(scores)[(len(rows) - 1) // 2])
        rows[shown]["shown"] = True
        median = results[name][shown]
        if median is None:
            raise SystemExit(f"the training of most models of {name} diverged: there is nothing to show")
        medians[name] = median
    save_figure(drawn(medians), arguments.picture)
    write_text(arguments.picture.with_suffix(".json"), json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
