"""A shallow PLRNN of Lorenz-63: three units, all of them observed, and a network of 30 hidden ones.

Its state is the observation, so that the picture shows all of it; the colour is the number of hidden
units that are open, and the map is linear wherever none of them switches.
"""

from __future__ import annotations

import sys

from matplotlib.figure import Figure

from palrnn.data import Standardizer, lorenz63
from palrnn.engine.progress import quiet
from palrnn.engine.style import SEQUENTIAL, save_figure, styled
from palrnn.forcing import TrainConfig, train
from palrnn.invariants import dstsp
from palrnn.model import Forcing

x = lorenz63(20_000, seed=1)
units = Standardizer.fit(x)
config = TrainConfig(family="shallow", hidden=30, forcing=Forcing.generalised(0.2), updates=6_000)
model = train(units.transform(x), config, progress=quiet).model
states = model.rollout(units.transform(x[0]), 10_000, discard=1_000).states
opened = model.codes(states).sum(axis=1)
free = units.inverse(states)

with styled():
    figure = Figure(figsize=(6.4, 3), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    left.plot(x[:10_000, 0], x[:10_000, 2], color="0.5", linewidth=0.4)
    left.set(title="Lorenz-63", xlabel="x", ylabel="z")
    points = right.scatter(free[:, 0], free[:, 2], c=opened, s=1, cmap=SEQUENTIAL)
    score = dstsp(free, x[:10_000]).value
    right.set(title=f"3 units, free: $D_{{stsp}}$ {score:.2f}", xlabel="x")
    figure.colorbar(points, ax=right, label="hidden units that are open")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "shallow.png")
