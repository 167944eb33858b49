"""Three models of the paper's curvature study, by samples and exactly: which findings are left?

    python benchmarks/paper_geometry.py [NAME ...]

Each model of the zoo is looked at on its own test segment (200 steps, gate noise 0.1): with the paper's
eight sampled states, with 4,096, and exactly given the gates, under the paper's target and under the exact
one. Errors are over independent passes of the filter. Takes some minutes for each model.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

from palrnn import PALRNN, GeometryConfig, compare_geometries, load_from_zoo
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series

RESULTS = Path(__file__).parents[1] / "results" / "paper"
MODELS = ("p0.1-o0.1-t16-s0", "p0.3-o0.3-t16-s0", "p0.5-o0.5-t16-s0")
MANY = GeometryConfig.paper().changed(paths=64, states_per_path=64)
EXACT = GeometryConfig(passes=8, paths=64, target="paper")
WAYS = {
    "8 samples, paper's target": GeometryConfig.paper(),
    "4,096 samples, paper's target": MANY,
    "exact given the gates, paper's": EXACT,
    "4,096 samples by ancestors, exact": MANY.changed(target="exact", method="ancestors"),
    "exact given the gates, exact": EXACT.changed(target="exact"),
}
COLUMNS = {
    "gap": ("gap", ".3f"),
    "log-det": ("identifiable_logdet_gap", ".0f"),
    "q90": ("identifiable_q90", ".2f"),
    "q90, all": ("q90", ".2f"),
    "overlap": ("overlap", ".3f"),
    "negative": ("negative", ".0f"),
    "MIR": ("mir", ".4f"),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or MODELS:
        model, x, tau = from_the_study(name)
        print(f"\n{name}: {model!r}")
        print(f"{'':34s}" + "".join(f"{column:>17s}" for column in [*COLUMNS, "by the gates"]))
        for words, config in WAYS.items():
            figures = compare_geometries(model, x, tau, config).figures
            cells = [with_error(figures, key, digits) for key, digits in COLUMNS.values()]
            switching, missing = figures["trace_missing_switching"], figures["trace_missing"]
            error = figures["trace_missing_switching_stderr"]
            share = "" if switching is None else f"{switching / missing:.1%}"
            share += f" ±{error / missing:.1%}" if error else ""
            print(f"{words:34s}" + "".join(f"{cell:>17s}" for cell in [*cells, share]), flush=True)


def with_error(figures: dict[str, float], key: str, digits: str) -> str:
    value, error = figures[key], figures.get(f"{key}_stderr")
    return f"{value:{digits}}" + (f" ±{error:.2g}" if error else "")


def from_the_study(name: str):
    """Return the PAL-RNN, its segment and the forcing interval of a model of the study."""
    found = re.fullmatch(r"p([\d.]+)-o([\d.]+)-t(\d+)-s\d+", name)
    if found is None:
        raise SystemExit(f"{name} is not a model of the curvature study, like {MODELS[0]}")
    process, observation, tau = float(found[1]), float(found[2]), int(found[3])
    preset = load_preset("paper")
    x = training_series(preset.data, process, observation).test[: preset.gap.length]
    return PALRNN(load_from_zoo(RESULTS, name).drift, process, observation, preset.gap.gate_std), x, tau


if __name__ == "__main__":
    main()
