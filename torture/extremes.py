"""Numbers at the edge: noise from 1e-4 to 10, models that explode, shapes at their limits.

Every case must end in finite results that keep their promises (variances positive, weights normalised,
evidence finite), or in one of the errors that say what happened.

    python -m torture.extremes      also takes series of a million steps, and prints what it saw as JSON
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.engine.progress import quiet

_SPOKEN = (ValueError, palrnn.TrainingDivergedError, palrnn.FilterDiedError)
NOISES = (1e-4, 1e-2, 1.0, 10.0)
#: Latent units, observed coordinates, gated units.
SHAPES = ((1, 1, 0), (1, 1, 1), (3, 3, 0), (3, 3, 3), (5, 2, 0), (5, 2, 5), (6, 3, 2))
#: Sizes of the linear part: nilpotent, contracting, marginal, exploding, exploding at once.
GAINS = (0.0, 0.5, 1.0, 3.0, 1e3)


class Case(NamedTuple):
    """A model, how it is used, and what was wrong with the outcome (empty: nothing)."""

    words: str
    fault: str
    refused: bool


def network(shape: tuple[int, int, int], gain: float, seed: int = 0) -> palrnn.ALRNN:
    """Return a random network of a shape, with weights of size ``gain``."""
    dim, seen, gated = shape
    rng = np.random.default_rng(seed)
    A, W = gain * rng.uniform(-1, 1, dim), gain * rng.standard_normal((dim, dim)) / np.sqrt(dim)
    return palrnn.ALRNN(A, W, rng.standard_normal(dim), rng.standard_normal((dim, seen)), gated)


def series(seen: int, steps: int = 40, seed: int = 1) -> np.ndarray:
    """Return a random walk that stays of order one."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.standard_normal((steps, seen)), axis=0)
    return (x - x.mean(axis=0)) / x.std(axis=0)


def cases() -> Iterator[Case]:
    """Try everything."""
    for shape in SHAPES:
        x = series(shape[1])
        for gain in GAINS:
            model = network(shape, gain)
            yield from _deterministic(model, x, f"M, N, P = {shape}, gain {gain:g}")
        for process in NOISES:
            for observation in NOISES:
                noisy = palrnn.PALRNN(network(shape, 0.5), process, observation, 0.5)
                words = f"M, N, P = {shape}, process {process:g}, observation {observation:g}"
                yield from _probabilistic(noisy, x, words)
        for gain in (0.0, 3.0, 1e3):
            for gate in (0.0, 1e-4, 10.0):
                noisy = palrnn.PALRNN(network(shape, gain), 0.1, 0.1, gate)
                yield from _probabilistic(noisy, x, f"M, N, P = {shape}, gain {gain:g}, gate {gate:g}")
        yield from _training(shape, x)


def _deterministic(model: palrnn.ALRNN, x: np.ndarray, words: str) -> Iterator[Case]:
    def lyapunov() -> Any:
        return palrnn.lyapunov_spectrum(model, x[0], steps=60, discard=5).exponents

    def loss_and_gradient(tau: int) -> Any:
        loss, gradient = palrnn.itf_gradient(model, x, tau)
        return [loss, gradient.theta]

    # a map that loses a dimension has an exponent of minus infinity
    yield _case(f"{words}: lyapunov_spectrum", lyapunov, infinite=True)
    yield _case(f"{words}: fixed_points", lambda: palrnn.fixed_points(model).points)
    for tau in (1, 5, len(x), 10 * len(x)):
        yield _case(f"{words}, tau {tau}: itf_gradient", lambda tau=tau: loss_and_gradient(tau))
        yield _case(f"{words}, tau {tau}: itf_fisher", lambda tau=tau: palrnn.itf_fisher(model, x, tau, 0.1))


def _probabilistic(model: palrnn.PALRNN, x: np.ndarray, words: str) -> Iterator[Case]:
    for target in ("paper", "exact"):
        for particles, paths in ((1, 1), (8, 4)):
            how = f"{words}, {target}, {particles} particles, {paths} paths"

            def filter_and_smooth(
                target: str = target, particles: int = particles, paths: int = paths
            ) -> Any:
                filtered = palrnn.rbpf(model, x, particles=particles, target=target)
                if not ((filtered.ess > 0.999) & (filtered.ess <= particles * 1.001)).all():
                    raise AssertionError(
                        f"effective sample size {filtered.ess.min()} to {filtered.ess.max()}"
                    )
                drawn = palrnn.smooth(filtered, paths=paths)
                return [filtered.increments, filtered.code_entropy, filtered.mean, drawn.states]

            yield _case(f"{how}: rbpf and smooth", filter_and_smooth)

    def information() -> Any:
        found = palrnn.observed_information(model, x, particles=8, paths=4)
        return [found.complete, found.observed]

    def posterior() -> Any:
        codes = np.zeros((len(x) - 1, model.drift.gated))
        found = palrnn.path_posterior(model, x, codes)
        for name in ("filtered_cov", "cov"):
            cov = getattr(found, name)
            low = np.linalg.eigvalsh(cov)[:, 0].min()
            if low < -1e-12 * np.abs(cov).max():
                raise AssertionError(f"{name} has the eigenvalue {low:g}")
        return [found.log_likelihood, found.cov]

    def tuning() -> Any:
        config = palrnn.SAEMConfig(length=8, iterations=1, windows=3, particles=8, paths=2)
        tuned = palrnn.saem(model, x, config, threads=1, progress=quiet).model
        return [tuned.drift.theta, tuned.process_variances, tuned.observation_variances]

    yield _case(f"{words}: observed_information", information)
    yield _case(f"{words}: path_posterior", posterior)
    yield _case(f"{words}: saem", tuning)


def _training(shape: tuple[int, int, int], x: np.ndarray) -> Iterator[Case]:
    for tau in (1, 5, 1000):
        for rate in (1e-3, 10.0, 1e6):
            config = palrnn.TrainConfig(
                latent_dim=shape[0],
                gated=shape[2],
                tau=tau,
                updates=20,
                batch_size=2,
                sequence_length=20,
                learning_rate=rate,
                final_learning_rate=rate,
            )
            words = f"M, N, P = {shape}, tau {tau}, rate {rate:g}: train"
            yield _case(words, lambda config=config: palrnn.train(x, config, progress=quiet).model.theta)


def _case(words: str, work: Any, *, infinite: bool = False) -> Case:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            found = work()
    except _SPOKEN as error:
        return Case(words, "" if str(error) else "an error without words", True)
    except ArithmeticError as error:
        spoken = type(error).__module__.startswith("palrnn")
        return Case(words, "" if spoken else f"{type(error).__name__}: {error}", True)
    except BaseException as error:
        return Case(words, f"{type(error).__name__}: {error}"[:300], True)
    parts = found if isinstance(found, list) else [found]
    if any(np.isnan(part).any() for part in parts):
        return Case(words, "NaN in the result", False)
    if not infinite and any(np.isinf(part).any() for part in parts):
        return Case(words, "infinity in the result", False)
    return Case(words, "", False)


def million_steps() -> Iterator[Case]:
    """Take a million steps of training data, rollout, exponents, teacher forcing, filter and smoother."""
    steps = 1_000_000
    x = palrnn.lorenz63(steps, seed=2)
    x = palrnn.Standardizer.fit(x).transform(x)
    config = palrnn.TrainConfig(
        latent_dim=5,
        gated=2,
        tau=8,
        updates=300,
        batch_size=4,
        sequence_length=50,
        learning_rate=1e-2,
    )
    drift = network((5, 3, 2), 0.6)
    model = palrnn.PALRNN(drift, 0.3, 0.3, 0.5)

    def filtered_and_smoothed() -> Any:
        found = palrnn.rbpf(model, x, particles=4)
        return [found.increments, found.mean, palrnn.smooth(found, paths=2).states]

    yield _case("train on a million steps", lambda: palrnn.train(x, config, progress=quiet).model.theta)
    yield _case("roll out a million steps", lambda: np.asarray(drift.rollout(x[0], steps).states))
    yield _case(
        "exponents of a million steps", lambda: palrnn.lyapunov_spectrum(drift, x[0], steps=steps).exponents
    )
    yield _case("teacher forcing on a million steps", lambda: palrnn.itf_gradient(drift, x, 16)[1].theta)
    yield _case("ITF trace of a million steps", lambda: palrnn.itf_trace(drift, x, 16, 0.1))
    yield _case("filter and smooth a million steps", filtered_and_smoothed)
    yield _case("D_stsp of a million steps", lambda: palrnn.dstsp(x[::-1], x).value)


if __name__ == "__main__":
    seen = list(cases())
    begun = time.monotonic()
    long = list(million_steps())
    words = [f"{case.words} | {case.fault}" for case in (*seen, *long) if case.fault]
    result = {"cases": len(seen), "refused": sum(case.refused for case in seen), "long": len(long)}
    print(json.dumps(result | {"long_seconds": round(time.monotonic() - begun, 1), "faults": words}))
