"""The pictures of the page of words: `python examples/words.py docs/pictures` makes all of them.

What is drawn is computed, apart from the two parabolas, which are a drawing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

import palrnn
from palrnn.engine.style import BLACK, BLUE, GREEN, ORANGE, PALETTE, VERMILION, save_figure, styled

_MODEL, _STANDARDIZER, _TEST = trained()


def forcing(figure: Figure) -> None:
    """Draw a forced run, which is put back onto the data every tau steps, and a free one, which is not."""
    tau, steps, x = 40, 400, _TEST[:401]
    free = _MODEL.rollout(x[0], steps).states[:, 0]
    axes = figure.add_subplot()
    axes.plot(x[:, 0], color="0.6", linewidth=3, label="data")
    axes.plot(np.arange(1, steps + 1), free, color=BLUE, linestyle=":", label="free run")
    z = _MODEL.embed(x[0])
    for begin in range(0, steps, tau):
        if begin:
            z = z.copy()
            z[:3] = x[begin]
        leg = [z]
        for _ in range(tau):
            leg.append(_MODEL.step(leg[-1]))
        label = "forced run" if begin == 0 else None
        axes.plot(np.arange(begin, begin + tau + 1), np.array(leg)[:, 0], color=VERMILION, label=label)
        z = leg[-1]
    for begin in range(tau, steps + 1, tau):
        axes.axvline(begin, color="0.85", linewidth=0.8, zorder=0)
    axes.set(xlabel=f"step; forced every tau = {tau}", ylabel="x, standardised", yticks=[-2, 0, 2])
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)


def codes(figure: Figure) -> None:
    """Draw a plane with two gates: four regions, in each of which the model is linear."""
    axes = figure.add_subplot()
    # two gates G z + g > 0 over the plane of two units
    G, g = np.array([[1.0, -0.5], [0.3, 1.0]]), np.array([0.1, -0.1])
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-1.5, 1.5, 201)), axis=-1)
    open_gates = (grid @ G.T + g > 0).astype(int)
    region, pale = 2 * open_gates[..., 0] + open_gates[..., 1], ["#dbe9f4", "#fbe3d3", "#d9efe6", "#f7ecd0"]
    axes.contourf(grid[..., 0], grid[..., 1], region, [-0.5, 0.5, 1.5, 2.5, 3.5], colors=pale)
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    path = np.column_stack([1.3 * np.cos(angle), 0.9 * np.sin(angle)])
    word = (path @ G.T + g > 0).astype(int)
    for bits, colour in zip([(0, 0), (0, 1), (1, 0), (1, 1)], (BLUE, VERMILION, GREEN, ORANGE), strict=True):
        here = (word == bits).all(axis=1)
        axes.scatter(*path[here].T, s=10, color=colour, label=f"code {bits[0]}{bits[1]}")
    axes.set(xlabel="unit 1", ylabel="unit 2", xticks=[], yticks=[])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)


def entropy(figure: Figure) -> None:
    """Draw a belief that lies across a gate's border, and one that does not."""
    axes = figure.subplots(1, 2, sharey=True)
    rng = np.random.default_rng(0)
    for panel, middle in zip(axes, (1.3, 0.15), strict=True):
        cloud = rng.normal((middle, 0.0), 0.45, size=(300, 2))
        share = float(np.mean(cloud[:, 0] > 0))
        bits = -sum(p * np.log2(p) for p in (share, 1 - share) if p > 0)
        colours = np.where(cloud[:, 0] > 0, VERMILION, BLUE)
        panel.scatter(*cloud.T, s=3, c=colours)
        panel.axvline(0, color=BLACK, linewidth=0.8)
        panel.set(title=f"open with {share:.0%}: {bits:.1f} bits", xlim=(-2, 3), xticks=[0], yticks=[])
        panel.set_xticklabels(["the gate"])


def evidence(figure: Figure) -> None:
    """Draw what a model holds for likely next, and what came: the evidence adds up log densities."""
    axes = figure.add_subplot()
    grid, came = np.linspace(-3, 3, 300), np.array([-0.4, 0.1, 0.7])
    for std, colour, name in ((0.5, VERMILION, "sure, and right"), (1.5, BLUE, "right, but not sure")):
        density = np.exp(-0.5 * (grid / std) ** 2) / (std * np.sqrt(2 * np.pi))
        total = float(np.sum(-0.5 * (came / std) ** 2 - np.log(std * np.sqrt(2 * np.pi))))
        axes.plot(grid, density, color=colour, label=f"{name}: {total / len(came):.2f} nats each")
    axes.plot(came, np.zeros(3), "o", color=BLACK, markersize=5, clip_on=False, label="what came")
    axes.set(xlabel="next observation", ylabel="density", yticks=[], ylim=(0, None))
    figure.legend(loc="outside upper center", fontsize=8)


def gap(figure: Figure) -> None:
    """Draw two bowls around one parameter: what each objective says about how well it is known."""
    axes = figure.add_subplot()
    grid = np.linspace(-1, 1, 200)
    axes.plot(grid, 0.5 * 100 * grid**2, color=VERMILION, label="teacher forcing, curvature 100")
    axes.plot(grid, 0.5 * grid**2, color=BLUE, label="log evidence, curvature 1")
    axes.set(
        xlabel="a parameter, from where it was learned", ylabel="loss", ylim=(-0.2, 8), xticks=[0], yticks=[]
    )
    figure.legend(loc="outside upper center", fontsize=8, title="a gap of 2: a hundred times sharper")


def floor(figure: Figure) -> None:
    """Draw D_stsp between true stretches of Lorenz-63, and that of a small model."""
    axes = figure.add_subplot()
    length = 5_000
    found = palrnn.dstsp_floor(palrnn.lorenz63(60_000, seed=7), length=length, pairs=40)
    run = _MODEL.rollout(_TEST[0], length, discard=500).states[:, :3]
    own = palrnn.dstsp(_STANDARDIZER.inverse(run), palrnn.lorenz63(length, seed=8)).value
    axes.hist(found.values, bins=12, color="0.7", label="true against true: the floor")
    axes.axvline(found.median, color=BLACK, label=f"its median, {found.median:.2f}")
    axes.axvline(own, color=VERMILION, linestyle="--", label=f"a model trained for seconds, {own:.1f}")
    axes.set(xlabel=f"D_stsp over {length:,} steps, nats", ylabel="pairs", xlim=(0, None))
    figure.legend(loc="outside upper center", fontsize=8)


def fates(figure: Figure) -> None:
    """Draw runs of four linear models, each called what `viability` calls it, and one that moves on."""
    shown, starts = 400, np.full((10, 1), 1.0)
    models = {
        "rests": _rotation(0.985, 37.3),
        "cycle": _rotation(1.0, 40),
        "diverges": _rotation(1.006, 37.3),
    }
    panels = figure.subplots(4, 1, sharex=True)
    series = palrnn.Standardizer.fit(_TEST).transform(_TEST)[:, :1]
    found = [("moves on", series[: shown + 1 : 1, 0])]
    for name, model in models.items():
        fate = palrnn.viability(model, starts, 20_000).fates[0]
        if fate.outcome != name:
            raise RuntimeError(f"{name} was expected, got {fate}")
        found.append((name, model.rollout([1.0], shown).states[:, 0]))
    for panel, (name, values), colour in zip(panels, found, PALETTE, strict=False):
        panel.plot(values, color=colour)
        panel.set(yticks=[])
        panel.set_ylabel(
            {"rests": "comes\nto rest"}.get(name, name.replace(" ", "\n")),
            rotation=0,
            ha="right",
            va="center",
        )
    panels[-1].set(xlabel="step")


def _rotation(length: float, period: float) -> palrnn.ALRNN:
    """Return a linear model of two units that turns once in ``period`` steps and scales by ``length``."""
    angle = 2 * np.pi / period
    turn = length * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return palrnn.ALRNN(np.diag(turn), turn - np.diag(np.diag(turn)), np.zeros(2), np.eye(2)[:, :1], 0)


PICTURES: dict[str, tuple[Callable[[Figure], None], tuple[float, float]]] = {
    "forcing": (forcing, (4.6, 2.2)),
    "codes": (codes, (3.8, 2.2)),
    "entropy": (entropy, (4.2, 1.9)),
    "evidence": (evidence, (3.6, 2.2)),
    "gap": (gap, (3.6, 2.4)),
    "floor": (floor, (3.6, 2.4)),
    "fates": (fates, (4.6, 2.8)),
}


def main() -> None:
    """Draw all pictures into a folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, (draw, size) in PICTURES.items():
        with styled():
            figure = Figure(figsize=size, layout="constrained")
            draw(figure)
            save_figure(figure, folder / f"words-{name}.png")


if __name__ == "__main__":
    main()
