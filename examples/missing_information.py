"""How ambiguity flattens the likelihood: the two-regime toy, with everything in closed form."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from palrnn.engine.style import BLUE, VERMILION, save_figure, styled
from palrnn.geometry import toy_study

study = toy_study(seeds=10)

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    left = figure.add_subplot()
    right = left.twinx()
    right.spines["right"].set_visible(True)
    entropy = study.entropy_bits.mean(axis=1)
    left.plot(entropy, study.mir.mean(axis=1), "o-", color=BLUE, markersize=3)
    right.plot(entropy, study.log10_trace.mean(axis=1), "s-", color=VERMILION, markersize=3)
    left.set(
        xlabel="posterior gate entropy (bits)",
        title="the more ambiguous the gates, the flatter the likelihood",
    )
    left.set_ylabel("missing-information ratio", color=BLUE)
    right.set_ylabel("log10 trace of the observed information", color=VERMILION)
assert np.all(np.diff(entropy) > 0), "entropy grows with the gate noise"
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "missing_information.png")
