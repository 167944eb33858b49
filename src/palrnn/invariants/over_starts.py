"""Scores of several free runs, since one run of a chaotic model is one draw.

A change of 1e-15 in the start moves D_stsp by 0.1 to 0.3 at 9,000 steps: its second digit is noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palrnn.data import Standardizer
from palrnn.engine.checks import Floats
from palrnn.engine.seeds import generator
from palrnn.invariants.free_run import drives_offsets
from palrnn.invariants.spectrum import spectrum_distance
from palrnn.invariants.state_space import dstsp
from palrnn.model import Surrogate
from palrnn.model.engine import BOUND, advance


@dataclass(frozen=True, eq=False)
class StartScores:
    """D_stsp and D_H of a free run of ``length`` steps from each start; infinite and 1 for one that diverges.

    ``dstsp (S,)`` and ``spectrum_distance (S,)``.
    """

    dstsp: Floats
    spectrum_distance: Floats
    length: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        found = {"dstsp": self.dstsp, "spectrum_distance": self.spectrum_distance}
        return {"length": self.length} | {
            name: {
                "median": float(np.median(values)),
                "low": float(values.min()),
                "high": float(values.max()),
                "starts": len(values),
            }
            for name, values in found.items()
        }

    def __repr__(self) -> str:
        low, high = self.dstsp.min(), self.dstsp.max()
        spread = f"{np.median(self.dstsp):.4g} ({low:.4g} to {high:.4g})"
        return f"StartScores(D_stsp {spread}, {len(self.dstsp)} starts of {self.length} steps)"


def scores_over_starts(
    drift: Surrogate,
    starts: Floats,
    reference: Floats,
    *,
    standardizer: Standardizer,
    discard: int,
    drives: Floats | None = None,
    noise: Floats | None = None,
    seed: int = 0,
    **counting: Any,
) -> StartScores:
    """Return the scores against ``reference (T, N)``, raw, of runs of its length from ``starts (S, N)``.

    A model may observe more than the reference has, its own past say: the first coordinates count.
    ``starts`` are in the model's coordinates; the first ``discard`` steps do not count. With ``noise (N,)``,
    white noise of these deviations, raw, is added to the runs. ``drives (S, T, K)`` are the inputs of each
    run of a driven model, repeated where they end. ``counting`` are settings of `dstsp`.
    """
    length = len(reference)
    pushes = drives_offsets(drift, drives, 0, discard + length)
    runs = advance(drift, drift.embed(starts), discard + length, pushes)[discard:, :, : drift.observed_dim]
    scores = np.tile([np.inf, 1.0], (len(starts), 1))
    for s in range(len(starts)):
        if np.abs(runs[:, s]).max() <= BOUND:
            made = standardizer.inverse(runs[:, s])[:, : reference.shape[1]]
            if noise is not None:
                made = made + noise * generator(seed, "observation noise", s).standard_normal(made.shape)
            scores[s] = (
                dstsp(made, reference, seed=seed, **counting).value,
                spectrum_distance(made, reference),
            )
    scores.flags.writeable = False
    return StartScores(scores[:, 0], scores[:, 1], length)
