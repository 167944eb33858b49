"""Models of the paper's study from the zoo, with the segment and the noise that the study gave them."""

from __future__ import annotations

import re
from pathlib import Path

import palrnn
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series

RESULTS = Path(__file__).parents[2] / "results" / "paper"


def from_the_study(name):
    """Return the PAL-RNN called ``p<process>-o<observation>-t<tau>-s<seed>`` and its test segment."""
    process, observation = (float(part) for part in re.match(r"p([\d.]+)-o([\d.]+)-", name).groups())
    preset = load_preset("paper")
    drift = palrnn.load_from_zoo(RESULTS, name).drift
    x = training_series(preset.data, process, observation).test[: preset.gap.length]
    return palrnn.PALRNN(drift, process, observation, preset.gap.gate_std), x
