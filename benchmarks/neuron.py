"""A neuron seen at a tenth of its samples: learned from the gaps, and from values interpolated over them.

    python benchmarks/neuron.py --runs build/neuron --write docs/gaps.md --picture docs/pictures/neuron.png

A leaky integrate-and-fire neuron, V' = (I - V) / tau with I = 1.5 and tau = 20, fires at V = 1 and starts
again at 0; it is sampled every 0.5, 44 times in a period, from its exact solution and without noise. A
random tenth of 10,000 samples is seen. The same AL-RNN (M = 20 units, P = 10 gates) learns, from the same
starts, with the same settings, number of updates and forcings to choose from, from what was seen, with
gaps, and from the straight lines between what was seen. A third one, forced wherever something was seen,
goes on from the gaps by evidence: particle-SAEM on the same samples.

Judged on the 10,000 samples that follow, all of them: D_stsp over 30 bins and D_H of a free run of that
length, after 1,000 steps, and the mean absolute error of forecasts 1 to 20 steps ahead, in deviations.
One JSON file per model is kept, so the command continues where it stopped."""

from __future__ import annotations

import argparse
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from document import publish
from matplotlib.figure import Figure

from palrnn.data import Standardizer
from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.engine.progress import quiet
from palrnn.engine.style import BLACK, BLUE, GREEN, VERMILION, save_figure, styled
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.invariants import dstsp, spectrum_distance
from palrnn.model import ALRNN, PALRNN, Forcing, load_checkpoint, save_checkpoint
from palrnn.model.engine import advance
from palrnn.tuning import SAEMConfig, saem

BEGIN, END = "<!-- table of benchmarks/neuron.py -->", "<!-- end of neuron -->"
DRIVE, MEMORY, DT, ROWS, SEEN, DISCARD, AHEAD = 1.5, 20.0, 0.5, 10_000, 0.1, 1000, 20
SETTINGS: dict[str, Any] = {"latent_dim": 20, "gated": 10, "updates": 100_000, "optimizer": "radam"}
FORCINGS = {
    "every step": Forcing.identity(1),
    "every 10th step": Forcing.identity(10),
    "every 16th step": Forcing.identity(16),
    "every 44th step": Forcing.identity(44),
    "every step by 0.1": Forcing.generalised(0.1),
}
#: process, observation and gate noise from which tuning starts, and its settings
NOISES = (0.02, 0.02, 0.02)
TUNING: dict[str, Any] = {
    "configuration": "full",
    "target": "exact",
    "ridge_towards": "current",
    "length": 100,
    "iterations": 6,
    "windows": 30,
    "particles": 64,
    "paths": 4,
}
#: the forcing of the models that are tuned: wherever something was seen
TUNED = "every step"
LEARNED = ("from interpolated values", "from gaps", "from gaps, then by evidence")
COLOURS = (VERMILION, BLUE, GREEN)


def neuron(first: int, rows: int) -> np.ndarray:
    """Return samples ``first .. first + rows - 1`` of the membrane potential, (rows, 1), exactly."""
    period = MEMORY * np.log(DRIVE / (DRIVE - 1.0))
    phase = (DT * np.arange(first, first + rows)) % period
    return DRIVE * (1.0 - np.exp(-phase / MEMORY))[:, None]


@cache
def parts() -> dict[str, np.ndarray]:
    """Return the series to learn from and the one to judge by, in the units of what was seen."""
    x, times = neuron(0, ROWS), np.arange(ROWS)
    seen = np.random.default_rng(1).random(ROWS) < SEEN
    seen[0] = True
    units = Standardizer.fit(x[seen])
    gappy = units.transform(np.where(seen[:, None], x, np.nan))
    filled = np.interp(times, times[seen], gappy[seen, 0])[:, None]
    truth = units.transform(neuron(ROWS, ROWS + AHEAD))
    return {"from gaps": gappy, "from interpolated values": filled, "truth": truth}


def scores(model: ALRNN) -> dict[str, float]:
    """Return D_stsp, D_H and the mean absolute error of forecasts."""
    truth = parts()["truth"]
    starts = np.arange(0, ROWS, 20)
    ahead = advance(model, model.embed(truth[starts]), AHEAD + 1)[1:, :, :1]
    seen = np.stack([truth[starts + k] for k in range(1, AHEAD + 1)])
    run = model.rollout(truth[0], ROWS, discard=DISCARD)
    error = float(np.abs(ahead - seen).mean())
    if run.diverged:
        return {"dstsp": np.inf, "spectrum": np.nan, "mae": error}
    free, truth = run.states[:, :1], truth[:ROWS]
    # of the one coordinate, as docs/gaps.md says; what that cannot see, D_H and the forecasts can
    warnings.filterwarnings("ignore", "D_stsp of a single column")
    return {"dstsp": dstsp(free, truth).value, "spectrum": spectrum_distance(free, truth), "mae": error}


def trained(learned: str, forcing: str, seed: int, updates: int) -> ALRNN:
    """Return the model of one way to learn, one forcing and one seed."""
    config = TrainConfig(**(SETTINGS | {"updates": updates}), forcing=FORCINGS[forcing], seed=seed)
    return train(parts()[learned], config, progress=quiet).model


def tuned(model: ALRNN, forcing: str, seed: int) -> ALRNN:
    """Return what the evidence of what was seen makes of a model that was learned from gaps."""
    gappy = parts()["from gaps"]
    config = SAEMConfig(forcing=FORCINGS[forcing], **TUNING)
    start = PALRNN(model, *NOISES)
    return saem(start, gappy, config, seed=seed, threads=1, progress=quiet).model.drift


def measured(folder: Path, learned: str, forcing: str, seed: int, updates: int) -> dict[str, Any]:
    """Learn one model, keep it, and return its scores; `from gaps` must have been there before its tuning."""
    file = file_of(folder, learned, forcing, seed)
    try:
        if learned == LEARNED[2]:
            begun = load_checkpoint(file_of(folder, LEARNED[1], forcing, seed).with_suffix(".safetensors"))
            model = tuned(begun.model, forcing, seed)
        else:
            model = trained(learned, forcing, seed, updates)
    except TrainingDivergedError as error:
        return {"diverged": error.update}
    save_checkpoint(file.with_suffix(".safetensors"), model)
    return scores(model)


def file_of(folder: Path, learned: str, forcing: str, seed: int) -> Path:
    """Return where the scores of one model are kept."""
    words = "".join(c if c.isalnum() else "-" for c in f"{learned} {forcing}")
    return folder / f"{words}-{seed}.json"


def found(folder: Path, learned: str, forcing: str) -> dict[int, dict[str, float]]:
    """Return the scores of all seeds that are done; what diverged is infinitely bad."""
    files = {seed: file_of(folder, learned, forcing, seed) for seed in range(100)}
    kept = {seed: json.loads(file.read_text("utf-8")) for seed, file in files.items() if file.exists()}
    names = ("dstsp", "spectrum", "mae")
    return {
        seed: {name: np.inf if each.get(name) is None else each[name] for name in names}
        for seed, each in kept.items()
    }


def table(folder: Path) -> str:
    """Return medians over seeds (and ranges), one line per way to learn and forcing."""
    lines = ["| learned | forced | models | D_stsp | D_H | MAE |", "|---|---|---|---|---|---|"]
    best: dict[str, dict[str, float]] = {}
    for learned in LEARNED:
        for forcing in FORCINGS:
            each = list(found(folder, learned, forcing).values())
            if not each:
                continue
            values = {name: np.array([one[name] for one in each]) for name in each[0]}
            words = " | ".join(
                f"{np.median(each):.3g} ({each.min():.3g} to {each.max():.3g})" for each in values.values()
            )
            lines.append(f"| {learned} | {forcing} | {len(values['dstsp'])} | {words} |")
            medians = {name: float(np.median(value)) for name, value in values.items()}
            known = best.setdefault(learned, medians)
            best[learned] = {name: min(known[name], medians[name]) for name in medians}
    for learned in LEARNED[1:]:
        if LEARNED[0] in best and learned in best:
            ratios = [best[LEARNED[0]][name] / best[learned][name] for name in best[learned]]
            words = " | ".join(f"{ratio:.3g}" for ratio in ratios)
            lines.append(f"| ratio of the best: {LEARNED[0]} / {learned} | | | {words} |")
    lines.append("| published: AL-RNN on interpolated values | | | 4.3 | 0.50 | 0.17 |")
    lines.append("| published: model in continuous time | | | 0.26 | 0.232 | 0.064 |")
    lines.append("| published: ratio | | | 16.5 | 2.16 | 2.66 |")
    return "\n".join(lines)


def picture(folder: Path, path: Path, shown: int = 260) -> None:
    """Draw free runs of the model with the middle D_stsp of each way to learn, at its best forcing."""
    truth, gappy = parts()["truth"], parts()["from gaps"]
    with styled():
        figure = Figure(figsize=(7.2, 5.6), layout="constrained")
        panels = figure.subplots(4, 1, sharex=True, sharey=True)
        x, _ = neuron(0, ROWS), panels[0].set_title("the neuron, and the tenth of its samples that are seen")
        scale = Standardizer.fit(x[~np.isnan(gappy[:, 0])])
        panels[0].plot(scale.transform(x)[:shown], color="0.7")
        panels[0].plot(gappy[:shown], "o", color=BLACK, markersize=3)
        for axes, learned, colour in zip(panels[1:], LEARNED, COLOURS, strict=True):
            medians = {
                forcing: np.median([each["dstsp"] for each in found(folder, learned, forcing).values()])
                for forcing in FORCINGS
                if found(folder, learned, forcing)
            }
            if not medians:
                continue
            forcing = min(medians, key=lambda name: medians[name])
            each = found(folder, learned, forcing)
            seed = sorted(each, key=lambda seed: each[seed]["dstsp"])[(len(each) - 1) // 2]
            model = load_checkpoint(file_of(folder, learned, forcing, seed).with_suffix(".safetensors")).model
            axes.plot(truth[:shown], color="0.85")
            axes.plot(model.rollout(truth[0], shown).states[:, 0], color=colour)
            words = ", ".join(
                f"{name} {each[seed][key]:.2g}"
                for name, key in (("$D_{stsp}$", "dstsp"), ("$D_H$", "spectrum"), ("MAE", "mae"))
            )
            axes.set_title(f"{learned} (forced {forcing}): {words}", fontsize=9)
        panels[-1].set_xlabel("step")
        figure.supylabel("membrane potential, deviations")
    save_figure(figure, path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("build/neuron"), help="where results are kept")
    parser.add_argument("--seeds", type=int, default=5, help="models per line")
    parser.add_argument("--updates", type=int, default=SETTINGS["updates"])
    parser.add_argument("--learned", type=int, nargs="*", default=[0, 1, 2], help="numbers of ways to learn")
    parser.add_argument("--write", type=Path, help="the document that holds the table")
    parser.add_argument("--picture", type=Path, help="the picture to draw")
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    for seed in range(chosen.seeds):
        for learned in (LEARNED[i] for i in chosen.learned):
            for forcing in FORCINGS:
                file = file_of(chosen.runs, learned, forcing, seed)
                if file.exists() or (learned == LEARNED[2] and forcing != TUNED):
                    continue
                scored = plain(measured(chosen.runs, learned, forcing, seed, chosen.updates))
                write_text(file, json.dumps(scored))
                print(f"{learned}, forced {forcing}, seed {seed}: {json.dumps(scored)}", flush=True)
    text = table(chosen.runs)
    publish(text, chosen.write, BEGIN, END)
    if chosen.picture is not None:
        picture(chosen.runs, chosen.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
