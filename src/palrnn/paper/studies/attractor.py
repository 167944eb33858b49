"""Free runs of one model before and after full tuning, beside the true system (fig. attractor_overlays)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.config import Count
from palrnn.invariants import free_run
from palrnn.model import checkpoint_from_bytes
from palrnn.paper.claim import Claim
from palrnn.paper.series import reference_series
from palrnn.paper.studies.evidence import EvidenceStudy, ExampleSettings
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# large, a table as well, and computed again in a second
ATTRACTOR = Kind("attractor", "palrnn.paper.studies.attractor:run_freely", archived=False)
_WHERE = "Fig. attractor_overlays"
_TITLES = {"truth": "true system", "baseline": "baseline", "full": "full SAEM"}
_ZOOM = 1000


class AttractorSettings(ExampleSettings):
    """How long the free runs are."""

    steps: Count


@study("attractor", place=70)
class AttractorStudy(Study[AttractorSettings]):
    """The attractors of truth, baseline and tuned model."""

    Settings = AttractorSettings
    pictures = (Picture(_WHERE, "attractor", "Attractors of the true system and of two models"),)

    def check(self) -> None:
        self.tasks()

    def tasks(self) -> list[Task]:
        needs = EvidenceStudy.of(self.preset).example_tasks(self.name, self.settings)
        discard, dt = self.preset.invariants.discard, self.preset.data.dt
        settings = {"steps": self.settings.steps, "discard": discard, "dt": dt}
        return [Task(ATTRACTOR, settings, needs, label=needs["full"].label)]

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per step: the three coordinates of truth, baseline and tuned model."""
        found = store.result_or_empty(self.tasks()[0])
        rows = []
        for step in range(self.settings.steps if found else 0):
            row: dict[str, Any] = {"step": step}
            for name, states in found.items():
                state = states[step] if step < len(states) else (None, None, None)
                row |= dict(zip((f"{name}_x", f"{name}_y", f"{name}_z"), state, strict=True))
            rows.append(row)
        return {"attractor.csv.gz": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["attractor"]), self.settings.steps

    def claims(self, tables: Tables) -> list[Claim]:
        """The baseline keeps the attractor, and tuning loses it."""
        attractor = tables["attractor"]
        second_half = attractor.iloc[len(attractor) // 2 :]

        def spread(name: str) -> Floats:
            return second_half[[f"{name}_{axis}" for axis in "xyz"]].std().to_numpy()

        baseline, full = (float(np.mean(spread(name) / spread("truth"))) for name in ("baseline", "full"))
        return [
            Claim.compare(
                _WHERE,
                "the baseline keeps the attractor's geometry",
                "closely matches",
                f"its deviation is {baseline:.2f} of the true one",
                bool(abs(baseline - 1) < 0.1),
                "within 10 %, second half of the rollout, mean over coordinates",
            ),
            Claim.compare(
                _WHERE,
                "the tuned model collapses to a strongly contracted orbit",
                "collapses",
                f"its deviation is {full:.3f} of the true one",
                bool(full < 0.5),
                "less than half, second half of the rollout, mean over coordinates",
            ),
        ]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        """Draw the attractors of truth, baseline and tuned model, and their start."""
        from matplotlib.figure import Figure

        from palrnn.engine.style import BLACK, BLUE, VERMILION

        attractor, figure = tables["attractor"], Figure(figsize=(10, 6), layout="constrained")
        grid = figure.add_gridspec(2, 3, height_ratios=(1.6, 1))
        colours = dict(zip(_TITLES, (BLACK, BLUE, VERMILION), strict=True))
        for place, (name, title) in enumerate(_TITLES.items()):
            ax: Any = figure.add_subplot(grid[0, place], projection="3d")
            x, y, z = (attractor[f"{name}_{axis}"] for axis in "xyz")
            ax.plot(x, y, z, color=colours[name], linewidth=0.25, rasterized=True)
            ax.plot(x[:1], y[:1], z[:1], "o", color=colours[name], markersize=3)
            ax.set(title=f"({'abc'[place]}) {title}", xlim=(-22, 22), ylim=(-28, 28), zlim=(0, 52))
            for axis, set_label in zip("xyz", (ax.set_xlabel, ax.set_ylabel, ax.set_zlabel), strict=True):
                set_label(axis, labelpad=-9 if axis != "z" else -14)
            ax.view_init(elev=18, azim=-60)
            ax.set_box_aspect((4, 4, 3.4), zoom=1.05)
            ax.locator_params(nbins=4)
            ax.tick_params(labelsize=6, pad=-2)
        zoom = figure.add_subplot(grid[1, :])
        first = attractor.iloc[:_ZOOM]
        for name, title in _TITLES.items():
            zoom.plot(first["step"], first[f"{name}_x"], color=colours[name], linewidth=1.0, label=title)
        zoom.set(title="(d) the same start", xlabel="step", ylabel="x")
        zoom.margins(x=0.01)
        zoom.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        return {"attractor": figure}


def run_freely(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Let the true system and both models run freely from the same true state, in raw coordinates."""
    steps = settings["steps"]
    truth = reference_series(steps, settings["discard"], settings["dt"])
    runs = {"truth": _rounded(truth)}
    for name in ("baseline", "full"):
        checkpoint = checkpoint_from_bytes(inputs[name])
        standardizer = checkpoint.standardizer
        assert standardizer is not None
        # a rollout that ends early is drawn so far
        run = free_run(checkpoint.drift, standardizer.transform(truth[0]), steps)
        runs[name] = _rounded(standardizer.inverse(run.observed))
    return runs


def _rounded(states: Floats) -> list[list[float]]:
    # a ten-thousandth of a unit is far below what a picture shows
    rounded: list[list[float]] = np.round(states, 4).tolist()
    return rounded
