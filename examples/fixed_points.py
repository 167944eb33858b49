"""All fixed points of a learned model, found exactly: one linear solve in each of its 2^P regions."""

from __future__ import annotations

import sys

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import BLUE, VERMILION, save_figure, styled
from palrnn.invariants import fixed_points

model, standardizer, test = trained()
found = fixed_points(model)
x = standardizer.inverse(model.rollout(test[0], 6_000, discard=500).states[:, :3])
points = standardizer.inverse(found.points[:, :3])
root = np.sqrt(8 / 3 * 27)

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(x[:, 0], x[:, 2], color="0.8", linewidth=0.4, label="free-running model")
    axes.plot(
        [-root, root, 0], [27, 27, 0], "o", mfc="none", color=BLUE, markersize=10, label="Lorenz-63's own"
    )
    near = np.abs(points[:, 0]) < 40
    axes.plot(points[near, 0], points[near, 2], "x", color=VERMILION, markersize=8, label="the model's")
    axes.set(title=f"{len(found)} fixed points in {found.regions} regions", xlabel="x", ylabel="z")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "fixed_points.png")
