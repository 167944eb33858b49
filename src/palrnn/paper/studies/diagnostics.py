"""The filter at work on one held-out window, before and after tuning (fig. rbpf_diagnostics)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palrnn.data import windows
from palrnn.engine.config import Whole
from palrnn.inference import rbpf
from palrnn.model import PALRNN, checkpoint_from_bytes
from palrnn.paper.claim import Claim
from palrnn.paper.presets import Counts
from palrnn.paper.studies.evidence import EvidenceStudy, ExampleSettings, filter_config, tuning_data
from palrnn.paper.study import Picture, Study, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRACES = Kind("traces", "palrnn.paper.studies.diagnostics:trace_filter")
_WHERE = "Fig. rbpf_diagnostics"


class DiagnosticsSettings(ExampleSettings):
    """Which held-out window, and with how many particles."""

    window: Whole
    particles: Counts


@study("diagnostics", place=60)
class DiagnosticsStudy(Study[DiagnosticsSettings]):
    """Effective sample size, resampling and code entropy along one window."""

    Settings = DiagnosticsSettings
    pictures = (Picture(_WHERE, "diagnostics", "Effective sample size and code entropy over a window"),)

    def check(self) -> None:
        EvidenceStudy.of(self.preset).example_tasks(self.name, self.settings)

    def named_tasks(self) -> dict[tuple[str, int], Task]:
        """The traces, by configuration and number of particles."""
        evidence, how = EvidenceStudy.of(self.preset), self.settings
        settings = evidence.filter_settings() | {"length": how.length, "window": how.window}
        return {
            (name, count): Task(
                TRACES,
                settings | {"particles": count},
                {"model": model},
                label=f"{model.label} {count} particles",
            )
            for name, model in evidence.example_tasks(self.name, how).items()
            for count in how.particles
        }

    def tasks(self) -> list[Task]:
        return list(self.named_tasks().values())

    def tables(self, store: Store) -> dict[str, Rows]:
        """One row per configuration, number of particles and step."""
        rows = []
        for (name, count), task in self.named_tasks().items():
            found = store.result_or_empty(task)
            bound = found.pop("entropy_bound", None)
            for step, values in enumerate(zip(*found.values(), strict=True), start=1):
                how = {"configuration": name, "particles": count, "step": step, "entropy_bound": bound}
                rows.append(how | dict(zip(found, values, strict=True)))
        return {"diagnostics.csv": rows}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["diagnostics"]), len(self.tasks()) * self.settings.length

    def claims(self, tables: Tables) -> list[Claim]:
        """Particles do not collapse."""
        diagnostics = tables["diagnostics"]
        first = diagnostics[diagnostics["particles"] == diagnostics["particles"].iloc[0]]
        ess, resampled = first["ess"], first["resampled"].astype(float).mean()
        return [
            Claim.compare(
                _WHERE,
                "particle degeneracy is controlled",
                "controlled",
                f"ESS / particles: mean {ess.mean():.2f}, least {ess.min():.3f}; "
                f"resampled after {resampled:.0%} of steps",
                bool(ess.mean() > 0.25 and ess.min() > 0.02),
                "mean above a quarter, and never below 2 % of the particles",
            )
        ]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        """Draw ESS with resampling events, and code entropy with its bound."""
        from matplotlib.figure import Figure

        from palrnn.engine.style import PALETTE

        figure = Figure(figsize=(9, 3.4), layout="constrained")
        ess, entropy = figure.subplots(1, 2)
        runs = tables["diagnostics"].groupby(["configuration", "particles"], sort=False)
        for colour, ((configuration, particles), run) in zip(PALETTE, runs, strict=False):
            label = f"{configuration}, {particles:g} particles"
            ess.plot(run["step"], run["ess"], color=colour, label=label)
            events = run[run["resampled"].astype(bool)]
            ess.plot(events["step"], events["ess"], "v", color=colour, markersize=5)
            entropy.plot(run["step"], run["entropy_bits"], color=colour, label=label)
            entropy.axhline(run["entropy_bound"].iloc[0], color=colour, linestyle=":", linewidth=0.9)
        ess.axhline(0.5, color="0.6", linewidth=0.8, zorder=0)
        ess.set(
            title="(a) triangles: resampling follows", xlabel="step", ylabel="ESS / particles", ylim=(0, 1.02)
        )
        entropy.set(title="(b) dotted: log2(particles)", xlabel="step", ylabel="code entropy (bits)")
        entropy.set_ylim(bottom=0)
        ess.legend(fontsize=7, loc="lower left")
        return {"diagnostics": figure}


def trace_filter(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Filter one held-out window."""
    checkpoint = checkpoint_from_bytes(inputs["model"])
    assert isinstance(checkpoint.model, PALRNN)
    heldout = tuning_data(settings, checkpoint).heldout
    window = windows(heldout[0], settings["length"])[settings["window"]]
    found = rbpf(checkpoint.model, window, filter_config(settings))
    return {
        "ess": found.ess / found.particles,
        "resampled": found.resampled,
        "entropy_bits": found.code_entropy,
        "entropy_bound": found.entropy_bound,
        "log_evidence": found.increments,
    }
