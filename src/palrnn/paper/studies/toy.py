"""Panel (a): in a switching AR(1), more gate noise means more ambiguity and a flatter likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from palrnn.engine.config import Config, Count, Positive
from palrnn.geometry import toy_information, toy_series
from palrnn.paper.claim import Claim
from palrnn.paper.presets import plain_settings
from palrnn.paper.statistics import bootstrap, rank_correlations
from palrnn.paper.study import Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

TOY = Kind("toy", "palrnn.paper.studies.toy:run_toy")
_COLUMNS = ("entropy_bits", "mir", "log10_trace")


class ToySettings(Config):
    """The switching AR(1)."""

    a0: float
    a1: float
    sigma: Positive
    steps: Annotated[Count, Field(ge=2)]
    seeds: Count
    gate_std_from: Positive
    gate_std_to: Positive
    gate_stds: Annotated[Count, Field(ge=2)]


@study("toy", place=10)
class ToyStudy(Study[ToySettings]):
    """Entropy, missing information and observed curvature of the toy, over gate noise."""

    Settings = ToySettings
    panel_width = 1.0

    def tasks(self) -> list[Task]:
        """One task per gate noise, with all its seeds."""
        toy = self.settings
        fixed = {
            name: value for name, value in plain_settings(toy).items() if not name.startswith("gate_std")
        }
        # powers differ in the last bit between processors, and what names a result must not
        gates = [
            float(f"{gate:.12g}") for gate in np.geomspace(toy.gate_std_from, toy.gate_std_to, toy.gate_stds)
        ]
        return [Task(TOY, fixed | {"gate_std": gate}, label=f"gate noise {gate:.3g}") for gate in gates]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per gate noise and seed."""
        rows: Rows = []
        for task in self.tasks():
            found = store.result_or_empty(task)
            for seed in range(self.settings.seeds if found else 0):
                row = {name: found[name][seed] for name in _COLUMNS}
                rows.append({"sigma_g": task.settings["gate_std"], "seed": seed} | row)
        return {"toy.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["toy"]), self.settings.gate_stds * self.settings.seeds

    def claims(self, tables: Tables) -> list[Claim]:
        """Three directions; whole seeds are resampled."""
        toy, claims = tables["toy"], []
        for a, b, words, sign in (
            ("sigma_g", "entropy_bits", "more gate noise means more entropy", 1),
            ("entropy_bits", "mir", "more entropy means more missing information", 1),
            ("entropy_bits", "log10_trace", "more entropy means less observed curvature", -1),
        ):
            found = bootstrap(
                toy[[a, b]],
                lambda rows: rank_correlations(rows[..., 0], rows[..., 1]),
                groups=toy["seed"],
                resamples=self.preset.resamples,
            )
            agrees = bool(found.low > 0 if sign > 0 else found.high < 0)
            direction = "increases" if sign > 0 else "decreases"
            rule = "the interval of Spearman r is on the side of the claim"
            claims.append(Claim.compare("Fig. results a", words, direction, found, agrees, rule))
        return claims

    def panel(self, figure: SubFigure, tables: Tables) -> None:
        """Missing information and observed curvature against entropy."""
        from matplotlib import colormaps
        from matplotlib.lines import Line2D

        from palrnn.engine.style import SEQUENTIAL

        toy = tables["toy"]
        top, bottom = figure.subplots(2, 1, sharex=True)
        grouped = toy.groupby("sigma_g")
        mean, sem = grouped.mean(), grouped.sem()
        colours = colormaps[SEQUENTIAL](np.linspace(0.1, 0.9, len(mean)))
        for ax, column, label in (
            (top, "mir", "missing-information ratio"),
            (bottom, "log10_trace", r"$\log_{10}$ tr $I_{obs}$"),
        ):
            ax.plot(toy["entropy_bits"], toy[column], ".", color="0.8", markersize=2, zorder=0)
            ax.errorbar(
                mean["entropy_bits"],
                mean[column],
                xerr=sem["entropy_bits"],
                yerr=sem[column],
                fmt="none",
                ecolor="0.4",
                linewidth=0.8,
            )
            ax.scatter(mean["entropy_bits"], mean[column], c=colours, s=22, zorder=3)
            ax.set_ylabel(label)
        top.set_title("(a) switching AR(1)")
        bottom.set_xlabel("posterior gate entropy (bits)")
        ends = [rf"$\sigma_g$ = {value:.2g}" for value in (mean.index[0], mean.index[-1])]
        handles = [Line2D([], [], marker="o", linestyle="", color=colours[k]) for k in (0, -1)]
        top.legend(handles, ends, loc="upper left")


def run_toy(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Simulate and decompose the toy once per seed."""
    a0, a1, sigma, gate = (settings[name] for name in ("a0", "a1", "sigma", "gate_std"))
    runs = []
    for seed in range(settings["seeds"]):
        x = toy_series(gate, steps=settings["steps"], a0=a0, a1=a1, sigma=sigma, seed=seed)
        runs.append(toy_information(x, a0, a1, sigma, gate))
    return {name: [getattr(run, name) for run in runs] for name in _COLUMNS}
