"""Learn Lorenz-63 from a noisy series and let the model run freely, beside the true attractor."""

from __future__ import annotations

import sys

from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.data import lorenz63
from palrnn.engine.style import BLACK, VERMILION, save_figure, styled

model, standardizer, test = trained()
generated = standardizer.inverse(model.rollout(test[0], 6_000, discard=500).states[:, :3])
true = lorenz63(6_000, seed=5)

with styled():
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    panels[0].plot(true[:, 0], true[:, 2], color=BLACK, linewidth=0.4)
    panels[1].plot(generated[:, 0], generated[:, 2], color=VERMILION, linewidth=0.4)
    panels[0].set(title="the system", xlabel="x", ylabel="z")
    panels[1].set(title="the model, running freely", xlabel="x")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "attractor.png")
