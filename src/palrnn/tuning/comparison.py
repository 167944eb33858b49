"""Several configurations of one model side by side: what evidence buys, and what it costs.

The anchored configuration has a weight beta. Without it (``full``) evidence is all that counts; as it grows,
the drift stays where teacher forcing put it, or moves where teacher forcing likes it better. Neither end is
the answer, so beta is chosen by what it is for: the greatest held-out evidence among the models whose
free-running dynamics are still as good as before.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Standardizer
from palrnn.engine.checks import as_float, as_floats, as_instance
from palrnn.engine.display import Display
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, listening
from palrnn.engine.tables import write_table
from palrnn.model import PALRNN
from palrnn.tuning.config import SAEMConfig
from palrnn.tuning.history import TuningHistory
from palrnn.tuning.saem import SAEMResult, saem

_EXPONENT_SLACK = 0.2
COLUMNS = (
    "heldout_evidence",
    "heldout_stderr",
    "dstsp",
    "outside",
    "lyapunov",
    "lyapunov_error",
    "sampled_dstsp",
    "sampled_lyapunov",
    "process_std",
    "observation_std",
    "itf_loss",
)


@dataclass(frozen=True, eq=False)
class Comparison(Display):
    """Results by name, all from the same model, on the same data and held-out windows."""

    results: dict[str, SAEMResult]
    slack: float

    def row(self, name: str) -> dict[str, float]:
        """Return the figures of one result after tuning."""
        history = self.results[name].history
        return {column: float(history[column][-1]) for column in COLUMNS}

    @property
    def chosen(self) -> str | None:
        """The name of the anchored result to use; None if every one loses the dynamics.

        The greatest held-out evidence among those that keep the dynamics: the hard-gated rollout does not
        diverge, its D_stsp is at most ``slack`` nats above that of the untuned model, and its largest
        Lyapunov exponent errs at most a fifth of the true one (where that is unknown, of the untuned model's)
        more.
        """
        kept = [name for name, result in self.results.items() if self._keeps(result)]
        return max(kept, key=lambda name: self.row(name)["heldout_evidence"], default=None)

    def _keeps(self, result: SAEMResult) -> bool:
        history, true = result.history, result.config.reference_lyapunov
        (before, after), (old, new) = history["dstsp"][[0, -1]], history["lyapunov"][[0, -1]]
        true = old if true is None else true
        return bool(
            result.config.configuration == "anchored"
            and math.isnan(history["diverged_at"][-1])
            and after <= before + self.slack
            and abs(new - true) <= abs(old - true) + _EXPONENT_SLACK * abs(true)
        )

    @classmethod
    def of(cls, result: SAEMResult) -> Comparison:
        """Return one tuning before and after, side by side."""
        rows = result.history.rows
        before = replace(result, history=TuningHistory.of(rows[:1]))
        return cls({"before": before, result.config.configuration: result}, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the rows, the course of each tuning and which is chosen, as plain values."""
        course = {name: result.history.columns for name, result in self.results.items()}
        return plain(
            {
                "rows": {name: self.row(name) for name in self.results},
                "chosen": self.chosen,
                "history": course,
            }
        )

    def table(self) -> str:
        """Return the rows as text: evidence, D_stsp and Lyapunov error, hard-gated, then sampled D_stsp."""
        lines = [
            f"{'':14s} {'evidence':>16s} {'D_stsp':>7s} {'Lyapunov':>9s} {'error':>7s} {'sampled D':>10s}"
        ]
        for name in self.results:
            row = self.row(name)
            lines.append(
                f"{name:14s} {row['heldout_evidence']:8.4f} ± {row['heldout_stderr']:.4f} "
                f"{row['dstsp']:7.2f} {row['lyapunov']:9.3f} {row['lyapunov_error']:+7.3f} "
                f"{row['sampled_dstsp']:10.2f}"
            )
        return "\n".join(lines)

    def heading(self) -> str:
        """Return which result is chosen."""
        return f"Comparison of {len(self.results)} tunings, chosen: {self.chosen or 'none'}"

    def facts(self) -> list[tuple[str, str]]:
        """Return evidence, D_stsp and exponent of each result."""
        rows = {name: self.row(name) for name in self.results}
        return [
            (
                name,
                f"evidence {row['heldout_evidence']:.4f} ± {row['heldout_stderr']:.4f}, "
                f"D_stsp {row['dstsp']:.2f}, largest exponent {row['lyapunov']:.3f}",
            )
            for name, row in rows.items()
        ]

    def records(self) -> list[dict[str, Any]]:
        """Return one row per result: its name and figures."""
        return [{"name": name, **self.row(name)} for name in self.results]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per result, atomically; NaN becomes an empty cell."""
        rows = []
        for name, result in self.results.items():
            kind = result.config.configuration
            beta = result.config.beta if kind == "anchored" else None
            rows.append((name, kind, beta, *self.row(name).values()))
        write_table(path, ("name", "configuration", "beta", *COLUMNS), rows)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.results)}; chosen: {self.chosen})"


def comparison_configs(config: SAEMConfig, betas: Sequence[float]) -> dict[str, SAEMConfig]:
    """Return ``baseline``, ``calib``, ``full`` and one ``anchored`` configuration for each of ``betas``."""
    as_instance(config, "config", SAEMConfig)
    betas = np.atleast_1d(as_floats(betas, "betas")).ravel().tolist()
    named = {name: config.changed(configuration=name) for name in ("baseline", "calib", "full")}
    return named | {f"beta-{b:g}": config.changed(configuration="anchored", beta=b) for b in sorted(betas)}


def compare(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    configs: Mapping[str, SAEMConfig],
    *,
    heldout: ArrayLike | Sequence[ArrayLike],
    reference: ArrayLike,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    heldout_inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    reference_inputs: ArrayLike | None = None,
    slack: float = 0.5,
    seed: int = 0,
    progress: Progress | None = None,
    threads: int | None = None,
    run: str | os.PathLike[str] | None = None,
    standardizer: Standardizer | None = None,
    input_standardizer: Standardizer | None = None,
) -> Comparison:
    """Tune ``model`` once for each named configuration (see `comparison_configs`) and compare the results.

    Arguments are those of `saem`; with a folder ``run``, each configuration has a folder of its own in it.
    ``slack`` is how much D_stsp, in nats, an anchored model may lose and still be chosen. Two stretches of
    the same true system differ by about as much (`dstsp_floor`).
    """
    for config in as_instance(configs, "configs", Mapping).values():
        as_instance(config, "configs", SAEMConfig)
    slack = as_float(slack, "slack", least=0.0)
    given: dict[str, Any] = {"inputs": inputs, "heldout": heldout, "reference": reference, "seed": seed}
    given |= {"heldout_inputs": heldout_inputs, "reference_inputs": reference_inputs, "threads": threads}
    given |= {"standardizer": standardizer, "input_standardizer": input_standardizer}
    results: dict[str, SAEMResult] = {}
    total = sum(config.iterations for config in configs.values() if config.learns_noise)
    done = 0
    with listening(progress, "comparing") as report:

        def heard(iteration: int, _: int, figures: Mapping[str, float]) -> None:
            report(done + iteration, total, figures)

        for name, config in configs.items():
            folder = None if run is None else Path(run) / name
            results[name] = saem(model, sequences, config, progress=heard, run=folder, **given)
            done += config.iterations if config.learns_noise else 0
    return Comparison(results, slack)
