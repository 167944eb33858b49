"""Bias and variance per second of tr I_obs under the exact target, by smoother: three models of the zoo.

    python benchmarks/paper_smoothers.py [NAME ...]

Each estimate is exact given the gates; only how the gate paths are drawn differs. ``one pass`` takes the
covariance over the paths of one pass of the filter, ``four passes`` pools four of them (see
`palrnn.geometry.exact`). The reference is a long run of particle Gibbs, with seeds of its own. Bias and
deviation are in percent of it, seconds are of one core, and deviation^2 x seconds says what a method pays for
its precision. Takes some minutes for each model.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace

import numpy as np
from paper_geometry import MODELS, from_the_study

from palrnn import PALRNN, InformationConfig, observed_information
from palrnn.geometry import ExactInformation

REFERENCE = InformationConfig(passes=8, paths=96, sweeps=1, state_paths=2, seed=1000)
ANCESTORS = InformationConfig(method="ancestors", passes=8, paths=16, state_paths=1)
GIBBS = InformationConfig(method="gibbs", passes=16, paths=16, state_paths=1)
WAYS = {
    "ancestors, 256 particles": ANCESTORS.changed(particles=256),
    "ancestors, 1,024 particles": ANCESTORS.changed(particles=1024),
    "ancestors, 4,096 particles": ANCESTORS.changed(particles=4096),
    "gibbs, 1 sweep": GIBBS.changed(sweeps=1),
    "gibbs, 2 sweeps": GIBBS.changed(sweeps=2),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or MODELS:
        model, x, _ = from_the_study(name)
        observed_information(model, x[:20], passes=2, paths=2).traces  # noqa: B018  # compiles
        reference, seconds = timed(model, x, REFERENCE)
        truth, error = reference.trace_observed, reference.standard_errors["observed"]
        print(f"\n{name}: tr I_obs {truth:.4g} ± {error / truth:.1%}, {seconds:.0f} s")
        print("| smoother | passes | bias, % | deviation, % | seconds | deviation² x seconds |")
        print("|---|---|---|---|---|---|", flush=True)
        for words, config in WAYS.items():
            found, seconds = timed(model, x, config)
            # a deviation takes at least four estimates
            for together in (1, 4) if config.passes >= 16 else (1,):
                print(row(words, found, together, seconds / config.passes, truth, error), flush=True)


def timed(model: PALRNN, x: np.ndarray, config: InformationConfig) -> tuple[ExactInformation, float]:
    """Return the estimate with its traces computed, and the seconds of one core that it took."""
    start = time.process_time()
    found = observed_information(model, x, config)
    assert isinstance(found, ExactInformation)
    _ = found.traces
    return found, time.process_time() - start


def row(words: str, found: ExactInformation, together: int, each: float, truth: float, error: float) -> str:
    """Return a row of the table for estimates from ``together`` passes, of which there are several."""
    groups = [found.passes[i : i + together] for i in range(0, len(found.passes), together)]
    values = np.array([replace(found, passes=some).trace_observed for some in groups]) / truth
    bias, deviation = 100 * (values.mean() - 1.0), 100 * values.std(ddof=1)
    uncertain = np.hypot(deviation / np.sqrt(len(values)), 100 * error / truth)
    seconds = together * each
    number = "one" if together == 1 else "four"
    cost = deviation**2 * seconds
    cells = [
        words,
        number,
        f"{bias:+.1f} ± {uncertain:.1f}",
        f"{deviation:.1f}",
        f"{seconds:.2f}",
        f"{cost:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
