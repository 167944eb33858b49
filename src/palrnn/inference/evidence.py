"""`windowed_evidence`: how likely are short windows given where they start?"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_trials
from palrnn.engine.gaps import spaced_starts
from palrnn.engine.processors import available_processors
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import generator
from palrnn.inference.config import FilterConfig, FilterSettings, filter_config
from palrnn.inference.particle_filter import checked_model, run_filter, stream
from palrnn.inference.record import FilterDiedError
from palrnn.model import PALRNN
from palrnn.model.inputs import checked_trial_inputs

_FILTER, _PICK = 0, 1


@dataclass(frozen=True, eq=False)
class Evidence:
    """Log evidence of windows given their left boundary, per step and per observed dimension.

    ``per_window (K,)``, their ``mean`` (eq. evidence) and its standard error ``stderr`` over windows.
    """

    per_window: Floats = field(repr=False)
    length: int
    particles: int

    @property
    def mean(self) -> float:
        """The mean over windows."""
        return float(self.per_window.mean())

    @property
    def stderr(self) -> float:
        """The standard error of the mean over windows; NaN for a single window."""
        count = len(self.per_window)
        return float(self.per_window.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")

    def __repr__(self) -> str:
        return (
            f"Evidence(mean={self.mean:.4f} +- {self.stderr:.4f} per step and dimension, "
            f"{len(self.per_window)} windows of length {self.length}, {self.particles} particles)"
        )


def windowed_evidence(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    length: int,
    config: FilterConfig | None = None,
    *,
    inputs: ArrayLike | Sequence[ArrayLike] | None = None,
    windows: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **settings: Unpack[FilterSettings],
) -> Evidence:
    """Return log p(x_{t+1:t+L} | x_t) / (L N) of the non-overlapping windows of ``sequences`` (eq. evidence).

    A window starts at a row without gaps (NaN): after one that has some, at the next that has none.

    ``sequences`` is one series ``(T, N)``, several ``(K, T, N)``, or a list of series; a driven model needs
    the ``inputs`` of each, in the same form. ``windows`` picks that many windows at random, without
    repetition; by default all. A window keeps its random stream whichever
    others are picked. Windows run in parallel ``threads`` (by default one per processor); the result does not
    depend on them. ``config`` and the rest of the keywords are as in `rbpf`.
    """
    chosen = filter_config(config, settings)
    stretches = _windows(model, sequences, inputs, as_int(length, "length", least=1))
    picked = np.arange(len(stretches))
    if windows is not None:
        count = as_int(windows, "windows", least=1, most=len(stretches))
        picked = np.sort(generator(chosen.seed, _PICK).permutation(len(stretches))[:count])
    workers = as_int(threads, "threads", least=1) if threads is not None else available_processors()

    def score(k: int) -> float:
        x, given = stretches[k]
        key = stream(chosen.seed, _FILTER, int(k))
        try:
            return run_filter(model, x, chosen, key, inputs=given).log_evidence
        except FilterDiedError as error:
            raise FilterDiedError(f"window {k}: {error}") from None

    per_window = np.empty(len(picked))
    with listening(progress, "windows") as report, ThreadPoolExecutor(workers) as pool:
        for done, value in enumerate(pool.map(score, picked)):
            per_window[done] = value / (length * model.drift.observed_dim)
            report(done + 1, len(picked), {"evidence": float(per_window[: done + 1].mean())})
    return Evidence(per_window, length, chosen.particles)


def _windows(
    model: PALRNN,
    sequences: ArrayLike | Sequence[ArrayLike],
    inputs: ArrayLike | Sequence[ArrayLike] | None,
    length: int,
) -> list[tuple[Floats, Floats | None]]:
    """Return the windows ``(length + 1, N)``, each with its inputs."""
    checked_model(model)
    several = as_trials(
        sequences, "sequences", min_steps=length + 1, dim=model.drift.observed_dim, allow_nan=True
    )
    drives = checked_trial_inputs(model, inputs, [len(series) for series in several])
    stretches: list[tuple[Floats, Floats | None]] = []
    for number, (series, given) in enumerate(zip(several, drives, strict=True)):
        name = f"sequences[{number}]" if len(several) > 1 else "sequences"
        starts = spaced_starts(series, length + 1, length)
        if not starts:
            raise ValueError(f"{name} must have a row without gaps that {length} rows follow, has none")
        # kernels want memory of their own
        for start in starts:
            rows = slice(start, start + length + 1)
            stretches.append((series[rows].copy(), None if given is None else given[rows].copy()))
    return stretches
