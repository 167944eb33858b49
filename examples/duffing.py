"""Chaos that needs its drive: a Duffing oscillator, learned with its drive as an input and without.

    x'' + 0.3 x' - x + x^3 = u(t),   u held for each step of 0.1

A particle in two wells, which comes to rest in one of them as soon as nothing drives it. Under size * cos(1.2
t) it goes round in one well, visits both in turn, or moves chaotically, as the size of the drive has it.
Seven recordings under drives of other sizes are learned from; that under 0.5, which is chaotic, is held out.
A model of position and velocity alone cannot know which drive it is under.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import palrnn
from palrnn.engine.progress import quiet
from palrnn.engine.style import BLACK, BLUE, VERMILION, save_figure, styled
from palrnn.invariants import dstsp, dstsp_floor, lyapunov_spectrum

DT, SHOWN, JUDGED = 0.1, 400, 6000
SIZES = (0.1, 0.2, 0.3, 0.4, 0.45, 0.55, 0.6)


def duffing(u: np.ndarray, x: float, v: float) -> np.ndarray:
    """Return position and velocity at each step of the drive ``u (T, 1)``, ``(T, 2)``, by RK4."""

    def slope(x: float, v: float, push: float) -> tuple[float, float]:
        return v, push - 0.3 * v + x - x**3

    states = np.empty((len(u), 2))
    for t, push in enumerate(u[:, 0].tolist()):
        states[t] = x, v
        a1, b1 = slope(x, v, push)
        a2, b2 = slope(x + 0.5 * DT * a1, v + 0.5 * DT * b1, push)
        a3, b3 = slope(x + 0.5 * DT * a2, v + 0.5 * DT * b2, push)
        a4, b4 = slope(x + DT * a3, v + DT * b3, push)
        x += DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        v += DT / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    return states


def cosine(steps: int, size: float) -> np.ndarray:
    """Return a drive, ``(steps, 1)``."""
    return size * np.cos(1.2 * DT * np.arange(steps))[:, None]


def true_exponent(x: np.ndarray, u: np.ndarray, tiny: float = 1e-7) -> float:
    """Return the largest exponent of the oscillator, by a neighbour that is brought back each 10 steps."""
    gap, logs = np.array([tiny, 0.0]), []
    for t in range(0, len(x) - 11, 10):
        near = duffing(u[t : t + 11], *(x[t] + gap))[-1] - x[t + 10]
        logs.append(np.log(np.linalg.norm(near) / tiny))
        gap = near * (tiny / np.linalg.norm(near))
    return float(np.mean(logs[50:])) / (10 * DT)


rng = np.random.default_rng(0)
drives = [*(cosine(4000, size) for size in SIZES), cosine(12_000, 0.5)]
series = [duffing(u, *rng.uniform(-1.0, 1.0, 2)) for u in drives]
settings = {"latent_dim": 30, "gated": 15, "tau": 15, "updates": 20_000, "keep": "last", "dt": DT}
settings |= {"optimizer": "radam"}  # as the table in docs/how-to/inputs.md was made
settings |= {"seed": int(sys.argv[2]) if len(sys.argv) > 2 else 0, "progress": quiet}
models = {
    "told the drive": palrnn.reconstruct(series, inputs=drives, **settings),
    "not told": palrnn.reconstruct(series, **settings),
}

held, u = series[-1], drives[-1]
runs = {name: model.generate(len(held)) for name, model in models.items()}
scores = {name: dstsp(run[-JUDGED:], held[:JUDGED]).value for name, run in runs.items()}
floor = dstsp_floor(held, length=JUDGED, pairs=10).median
errors = {
    name: palrnn.prediction_error(model.model, model.x, 50, inputs=model.s, dt=DT).mse
    for name, model in models.items()
}
driven = models["told the drive"]
exponent = lyapunov_spectrum(driven.model, driven.x[0], inputs=driven.s, steps=10_000, dt=DT, k=1).largest
for name in models:
    near, far = errors[name][0], errors[name][49]
    print(
        f"{name}: D_stsp {scores[name]:.2f} (floor {floor:.2f}); squared error of forecasts from one row: "
        f"{near:.1e} after 1 step, {far:.2g} after 50"
    )
print(
    f"largest exponent: {exponent:.3f} along the held-out drive, {true_exponent(held, u):.3f} the oscillator"
)

# the drive is switched off: the oscillator comes to rest in one of its wells
off = np.concatenate([u[:200], np.zeros((300, 1))])
answers = duffing(off, *held[0]), driven.generate(len(off), inputs=off, x1=held[0])

with styled():
    figure = Figure(figsize=(6.8, 5.2), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    panels = top.subplots(1, 3, sharex=True, sharey=True)
    pictures = {"oscillator, held-out drive": held} | {f"model {name}": run for name, run in runs.items()}
    for axes, (name, run), colour in zip(panels, pictures.items(), (BLACK, BLUE, VERMILION), strict=True):
        axes.plot(run[-JUDGED:, 0], run[-JUDGED:, 1], color=colour, linewidth=0.15)
        score = scores.get(name.removeprefix("model "))
        axes.set_title(name if score is None else f"{name}\n$D_{{stsp}}$ {score:.2f}")
        axes.set_xlabel("position")
    panels[0].set_ylabel("velocity")
    left, right = bottom.subplots(1, 2, sharey=True)
    for axes, truth, model, title in (
        (left, held, runs["told the drive"], "free run along the held-out drive"),
        (right, *answers, "the drive ends at time 20"),
    ):
        time = DT * np.arange(min(SHOWN, len(truth), len(model)))
        axes.plot(time, truth[: len(time), 0], color="0.6", linewidth=2.5, label="oscillator")
        axes.plot(time, model[: len(time), 0], color=BLUE, label="model told the drive")
        axes.set_title(title)
        axes.set_xlabel("time")
    left.set_ylabel("position")
    right.legend(loc="lower right")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "duffing.png")
