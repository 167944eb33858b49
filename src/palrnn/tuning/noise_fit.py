"""Noise by the maximum of the evidence itself, instead of by the slow steps of EM.

EM trades process against observation noise slowly: after 60 iterations of ``calib`` both still move. A drift
that stays has two or three noise levels to fit, so the windowed evidence can be climbed directly. Every
evaluation sees the same windows and random numbers, and differs by the noise alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from palrnn.engine.checks import Floats, as_instance, as_int
from palrnn.engine.config import Config, Count, Positive
from palrnn.engine.progress import Progress, listening, quiet
from palrnn.inference import FilterConfig, FilterDiedError, windowed_evidence
from palrnn.inference.config import FilterSettings, filter_config
from palrnn.model import PALRNN


class NoiseFitConfig(Config):
    """How noise is fitted: on how many windows of which length, and when to stop.

    It ends when the levels agree within the share ``tolerance``, or with a warning after ``evaluations``
    filter passes over all windows. No level falls below ``floor``. The first step changes the logarithm of
    each level by ``step``: a small one is for a start near the maximum.
    """

    length: Count = 32
    windows: Count | None = None
    gate: bool = False
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.02
    evaluations: Count = 200
    floor: Positive = 1e-4
    step: Positive = 0.5


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """The ``model`` with the noise found, and the ``evidence`` of the windows under it.

    ``converged`` is whether the levels came to agree within the tolerance before the ``evaluations`` filter
    passes that were allowed; ``evaluations`` is how many there were.
    """

    model: PALRNN
    evidence: float
    converged: bool
    evaluations: int

    def __repr__(self) -> str:
        how = "converged" if self.converged else "still moved"
        evidence = f"evidence {self.evidence:.4f}"
        return f"NoiseFit({how} after {self.evaluations} evaluations, {evidence}, {self.model!r})"


def fit_noise(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    config: NoiseFitConfig | None = None,
    filtering: FilterConfig | None = None,
    *,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **settings: Unpack[FilterSettings],
) -> NoiseFit:
    """Fit ``model`` the isotropic process and observation noise of the highest evidence.

    With ``config.gate`` also the gate noise, which wants ``target="exact"``: the evidence of the paper's
    target is no likelihood of it. The drift stays. The search (Nelder and Mead) starts from the levels
    of ``model``, their root mean square where they differ between coordinates, and finds a maximum near them.
    ``inputs``, ``threads`` and the rest of the keywords are as in `windowed_evidence`.
    """
    from scipy.optimize import minimize  # half a second that training does not wait for

    as_instance(model, "model", PALRNN)
    how = NoiseFitConfig() if config is None else as_instance(config, "config", NoiseFitConfig)
    if filtering is not None:
        as_instance(filtering, "filtering", FilterConfig)
    chosen = filter_config(filtering, settings)
    if threads is not None:
        as_int(threads, "threads", least=1)
    start = [model.process_variances.mean() ** 0.5, model.observation_variances.mean() ** 0.5]
    start += [model.gate_std] if how.gate else []
    if how.gate and model.gate_std <= 0:
        raise ValueError("model must start with gate noise above 0")

    def noisy(levels: Floats) -> PALRNN:
        process, observation, *gate = np.maximum(np.exp(levels), how.floor)
        gate_std = float(gate[0]) if gate else None
        return model.with_noise(process=float(process), observation=float(observation), gate_std=gate_std)

    best = -math.inf
    with listening(progress, "evaluations") as report:
        done = 0

        def loss(levels: Floats) -> float:
            nonlocal done, best
            try:
                found = windowed_evidence(
                    noisy(levels),
                    sequences,
                    how.length,
                    chosen,
                    inputs=inputs,
                    windows=how.windows,
                    threads=threads,
                    progress=quiet,
                ).mean
            except FilterDiedError:
                found = -math.inf
            done, best = done + 1, max(best, found)
            report(done, how.evaluations, {"evidence": best})
            return -found

        levels = np.log(start)
        simplex = np.vstack([levels, levels + how.step * np.eye(levels.size)])
        options = {
            "initial_simplex": simplex,
            "xatol": how.tolerance,
            "fatol": math.inf,  # the levels decide
            "maxfev": how.evaluations,
        }
        result = minimize(loss, levels, method="Nelder-Mead", options=options)
    if not math.isfinite(result.fun):
        raise FilterDiedError("no noise near that of the model explains the windows; start with more noise")
    if not result.success:
        warnings.warn(
            f"the noise still moved after evaluations={how.evaluations}; allow more",
            UserWarning,
            stacklevel=2,
        )
    return NoiseFit(noisy(result.x), -float(result.fun), bool(result.success), int(result.nfev))
