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
_LINES, _MARKERS = ("-", "--", "-.", ":"), "os^Dv"


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

        figure = Figure(figsize=(10, 4.2), layout="constrained")
        axes = figure.subplot_mosaic(
            [["ess", "entropy"], ["events", "entropy"]], height_ratios=[3, 1], width_ratios=[1.2, 1]
        )
        ess, events, entropy = (axes[name] for name in ("ess", "events", "entropy"))
        events.sharex(ess)
        runs = list(tables["diagnostics"].groupby(["configuration", "particles"], sort=False))
        kinds, bounds, names = list(dict.fromkeys(kind for (kind, _), _ in runs)), {}, []
        for place, ((configuration, particles), run) in enumerate(runs):
            names.append(f"{configuration}, {particles:g} particles")
            bounds[f"{particles:g}"] = run["entropy_bound"].iloc[0]
            # a colour for each configuration, a line for each number of particles, a mark for each run
            look: dict[str, Any] = {
                "color": PALETTE[kinds.index(configuration) % len(PALETTE)],
                "linestyle": _LINES[list(bounds).index(f"{particles:g}") % len(_LINES)],
                "marker": _MARKERS[place % len(_MARKERS)],
                "markersize": 4,
                "markevery": (place, len(runs)),
            }
            ess.plot(run["step"], run["ess"], label=names[-1], **look)
            entropy.plot(run["step"], run["entropy_bits"], **look)
            when = run.loc[run["resampled"].astype(bool), "step"]
            alone = look | {"linestyle": "", "markevery": None}
            events.plot(when, [-place] * len(when), **alone)
        for particles, bound in bounds.items():
            entropy.axhline(bound, color="0.4", linestyle=":", linewidth=0.9)
            # beside the axes, where no line can be
            at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            entropy.annotate(f"log2({particles})", (1, bound), xytext=(3, 0), va="center", fontsize=7, **at)
        ess.axhline(0.5, color="0.6", linewidth=0.8, zorder=0)
        ess.set(title="(a) effective sample size", ylabel="ESS / particles", ylim=(0, 1.02))
        ess.tick_params(labelbottom=False)
        events.set(xlabel="step", ylabel="resampled\nafter", ylim=(0.6 - len(runs), 0.4))
        events.set_yticks([])
        entropy.set(title="(b) code entropy", xlabel="step", ylabel="code entropy (bits)")
        entropy.set_ylim(bottom=0)
        figure.legend(*ess.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
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
