"""Bias and variance per second of tr I_obs under the exact target, by smoother: three models of the zoo.

    python benchmarks/paper_smoothers.py [--default | --study] [NAME ...]

Each estimate is exact given the gates; only how the gate paths are drawn differs. ``one pass`` takes the
covariance over the paths of one pass of the filter, ``four passes`` pools four of them (see
`palrnn.geometry.exact`). The reference is a long run of particle Gibbs, with seeds of its own. Bias and
deviation are in percent of it, seconds are of one core, and deviation^2 x seconds says what a method pays for
its precision. Takes some minutes for each model. With ``--default`` only the default settings are held
against a longer reference, from 48 independent estimates.

With ``--study`` two ways of the paper's studies are held against paths six sweeps apart with seeds of their
own, for models of other forcing intervals: closed forms from passes of 12 paths two sweeps apart (study
`truth`), and eight paths of one pass six sweeps apart (study `gap`). Of these only the covariance over paths
can be off: it is compared with that of all passes of the reference together.
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

DEFAULT = InformationConfig(passes=192)
LONG_REFERENCE = InformationConfig(passes=32, paths=96, sweeps=2, state_paths=2, seed=2000)
REFERENCE = InformationConfig(passes=8, paths=96, sweeps=1, state_paths=2, seed=1000)
ANCESTORS = InformationConfig(method="ancestors", passes=8, paths=16, state_paths=1)
GIBBS = InformationConfig(method="gibbs", passes=16, paths=16, state_paths=1)
STUDY = InformationConfig(passes=64)
STUDY_REFERENCE = InformationConfig(passes=36, paths=16, sweeps=6, state_paths=4, seed=3000)
STUDY_MODELS = (
    "p0.1-o0.1-t4-s0",
    "p0.3-o0.3-t4-s0",
    "p0.5-o0.5-t4-s0",
    "p0.1-o0.1-t64-s0",
    "p0.3-o0.3-t64-s0",
    "p0.5-o0.5-t64-s0",
    "p0.5-o0.1-t64-s1",
)
EIGHT = 8
WAYS = {
    "ancestors, 256 particles": ANCESTORS.changed(particles=256),
    "ancestors, 1,024 particles": ANCESTORS.changed(particles=1024),
    "ancestors, 4,096 particles": ANCESTORS.changed(particles=4096),
    "gibbs, 1 sweep": GIBBS.changed(sweeps=1),
    "gibbs, 2 sweeps": GIBBS.changed(sweeps=2),
}


def main() -> None:
    warnings.simplefilter("ignore")
    if "--study" in sys.argv:
        return study([word for word in sys.argv[1:] if word != "--study"] or list(STUDY_MODELS))
    only_default = "--default" in sys.argv
    chosen, ways = (LONG_REFERENCE, {"default": DEFAULT}) if only_default else (REFERENCE, WAYS)
    for name in [word for word in sys.argv[1:] if word != "--default"] or MODELS:
        model, x, _ = from_the_study(name)
        observed_information(model, x[:20], passes=2, paths=2).traces  # noqa: B018  # compiles
        reference, seconds = timed(model, x, chosen)
        truth, error = reference.trace_observed, reference.standard_errors["observed"]
        print(f"\n{name}: tr I_obs {truth:.4g} ± {error / truth:.1%}, {seconds:.0f} s")
        print("| smoother | passes | bias, % | deviation, % | seconds | deviation² x seconds |")
        print("|---|---|---|---|---|---|", flush=True)
        for words, config in ways.items():
            found, seconds = timed(model, x, config)
            # a deviation takes at least four estimates
            for together in (1, 4) if config.passes >= 16 else (1,):
                print(row(words, found, together, seconds / config.passes, truth, error), flush=True)


def study(names: list[str]) -> None:
    """Print the bias of both ways by model, and its mean over models."""
    print("| model | seconds | closed forms, bias, % | deviation, % | eight paths, bias, % |")
    print("|---|---|---|---|---|", flush=True)
    biases, errors = [], []
    for name in names:
        model, x, _ = from_the_study(name)
        reference, first = timed(model, x, STUDY_REFERENCE)
        found, second = timed(model, x, STUDY)
        truth = reference.trace_observed
        unknown = reference.standard_errors["observed"], found.standard_errors["observed"]
        bias, error = 100 * (found.trace_observed / truth - 1.0), 100 * float(np.hypot(*unknown)) / truth
        groups = [found.passes[i : i + 4] for i in range(0, len(found.passes), 4)]
        fours = [replace(found, passes=some).trace_observed / truth for some in groups]
        eight, eight_error = short_paths(reference)
        cells = [
            name,
            f"{first:.0f} + {second:.0f}",
            f"{bias:+.1f} ± {error:.1f}",
            f"{100 * np.std(fours, ddof=1):.0f}",
            f"{100 * eight / truth:+.1f} ± {100 * eight_error / truth:.1f}",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
        biases.append((bias, 100 * eight / truth))
        errors.append((error, 100 * eight_error / truth))
    mean, error = np.mean(biases, axis=0), np.sqrt(np.square(errors).sum(axis=0)) / len(names)
    print(f"| mean of {len(names)} | | {mean[0]:+.1f} ± {error[0]:.1f} | | {mean[1]:+.1f} ± {error[1]:.1f} |")


def short_paths(reference: ExactInformation) -> tuple[float, float]:
    """Return what eight neighbouring paths of one pass leave out of the trace of the covariance over paths.

    That is what they add to tr I_obs, and its standard error over passes (jackknife).
    """
    within = np.array(
        [
            np.mean([group.var(axis=0, ddof=1).sum() for group in np.split(scores, len(scores) // EIGHT)])
            for scores in (part.scores for part in reference.passes)
        ]
    )
    without = [
        part.traces["missing_switching"] - np.delete(within, r).mean()
        for r, part in enumerate(reference.leave_one_out)
    ]
    return float(reference.traces["missing_switching"] - within.mean()), reference.error_of(without)


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
