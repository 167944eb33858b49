"""Ways to lower the variance of the exact target's log evidence: variance times seconds, on three models.

The exact target samples the noisy gate inputs u, of which only the signs matter to the drift. Tried here, in
the plain filter (`inference/reference.py`), all unbiased by construction:

- systematic: another resampling scheme, which exists
- Latin hypercube: for each gate the particles share out n intervals of equal probability between them
- look-ahead: codes first, then u given these codes and the next observation. The code c of a particle is that
  of its mean; under it x_{t+1} is linear in z_t, which gives a Gaussian q_c(u) = p(u | x_{t+1}, c). With u
  drawn from it the weight is p(u) p(x_{t+1} | u) / q_c(u), whichever code u turns out to have.
- both: look-ahead with a Latin hypercube and systematic resampling

The last lines are the compiled filter's, for both targets.

python benchmarks/paper_evidence_variance.py [results/paper] [particles steps repeats]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtri

from palrnn import PALRNN, load_from_zoo, rbpf
from palrnn.engine.kernel import pin_blas
from palrnn.inference import reference as plain
from palrnn.inference.resampling import SCHEMES
from palrnn.paper.presets import preset_in
from palrnn.paper.series import training_series

MODELS, GATE_STD = ("p0.1-o0.1-t16-s0", "p0.3-o0.1-t16-s0", "p0.5-o0.1-t16-s0"), 0.1
#: name: resampling scheme, Latin hypercube, look-ahead
WAYS = {
    "as it is": ("multinomial", False, False),
    "systematic": ("systematic", False, False),
    "Latin hypercube": ("multinomial", True, False),
    "look-ahead": ("multinomial", False, True),
    "all three": ("systematic", True, True),
}
COMPILED = {
    "exact": ("exact", "multinomial"),
    "exact, systematic": ("exact", "systematic"),
    "paper": ("paper", "multinomial"),
}


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "results/paper"
    particles, steps, repeats = (int(part) for part in sys.argv[2:5] or (64, 100, 40))
    pin_blas()
    preset = preset_in(folder)
    for name in MODELS:
        process, observation = (float(part[1:]) for part in name.split("-")[:2])
        x = training_series(preset.data, process, observation).test
        model = PALRNN(load_from_zoo(folder, name).drift, process, observation, GATE_STD)
        print(f"\n{name}, plain filter, {particles} particles x {steps} steps, {repeats} passes")
        table(
            {w: partial(log_evidence, model, x[: steps + 1], particles, way) for w, way in WAYS.items()},
            repeats,
        )
        print(f"{name}, compiled filter, 256 particles x 200 steps, {repeats} passes")
        table({w: partial(compiled, model, x[:201], *how) for w, how in COMPILED.items()}, repeats)


def table(ways: dict[str, Callable[[int], float]], repeats: int) -> None:
    base = None
    for words, call in ways.items():
        base = show(words, call, repeats, base)


def compiled(model: PALRNN, x: np.ndarray, target: str, resampling: str, seed: int) -> float:
    return rbpf(model, x, particles=256, seed=seed, target=target, resampling=resampling).log_evidence


def show(words: str, call: Callable[[int], float], repeats: int, base: float | None) -> float:
    """Print log mean, deviation, seconds, and variance x seconds relative to ``base``; return that."""
    call(0)
    start = time.process_time()
    values = np.array([call(seed) for seed in range(repeats)])
    seconds = (time.process_time() - start) / repeats
    std, top = values.std(ddof=1), values.max()
    mean = top + math.log(np.exp(values - top).mean())
    cost = std**2 * seconds
    error = std / math.sqrt(2 * (repeats - 1))
    print(
        f"| {words} | {mean:.2f} | {std:.3f} ± {error:.3f} | {1e3 * seconds:.0f} |"
        f" {1.0 if base is None else cost / base:.2f} |",
        flush=True,
    )
    return cost if base is None else base


def log_evidence(model: PALRNN, x: np.ndarray, n: int, way: tuple[str, bool, bool], seed: int) -> float:
    """One pass of the plain filter with the exact target, and what of `WAYS` is asked for."""
    scheme, hypercube, ahead = way
    rng, gates, total = np.random.default_rng(seed), plain.gates_of(model), 0.0
    beliefs, log_weights = plain.initial_beliefs(model, x[0], n), np.full(n, -math.log(n))
    for seen in x[1:]:
        noise = (latin_normals if hypercube else standard_normals)(rng, n, model.drift.gated)
        ratio = np.zeros(n)
        if ahead:
            noise, ratio = looking_ahead(model, beliefs, gates, seen, noise)
        codes, beliefs = plain.draw_gates(beliefs, gates, noise, "exact")
        beliefs = plain.predict(beliefs, *model.drift.affine(codes), model.process_covariance)
        beliefs, log_likelihood = plain.observe(beliefs, model, seen)
        log_weights, increment = plain.reweigh(log_weights, log_likelihood + ratio)
        total, weights = total + increment, np.exp(log_weights)
        if plain.effective_sample_size(weights) < 0.5 * n:
            ancestors = np.empty(n, dtype=np.int32)
            SCHEMES[scheme](weights, rng.random(n), ancestors)
            beliefs = plain.Beliefs(beliefs.mean[ancestors], beliefs.cov[ancestors])
            log_weights = np.full(n, -math.log(n))
    return total


def standard_normals(rng: np.random.Generator, n: int, gated: int) -> np.ndarray:
    return rng.standard_normal((n, gated))


def latin_normals(rng: np.random.Generator, n: int, gated: int) -> np.ndarray:
    order = rng.random((n, gated)).argsort(axis=0)
    return ndtri((order + rng.random((n, gated))) / n)


def looking_ahead(
    model: PALRNN, beliefs: plain.Beliefs, gates: plain.Gates, x: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise that makes u a draw from q_c, and log p(u) / q_c(u)."""
    G, g, _ = gates
    mean, GP = beliefs.mean @ G.T + g, G @ beliefs.cov
    S = GP @ G.T + gates.covariance
    J, b = model.drift.affine(mean > 0)
    B, d, R = model.observation_map.B, model.observation_map.d, model.observation_covariance
    H = B @ J
    error = x - (plain.times(H, beliefs.mean) + b @ B.T + d)
    _, inverse = plain.roots(H @ beliefs.cov @ plain.transposed(H) + B @ model.process_covariance @ B.T + R)
    whitened = inverse @ (H @ plain.transposed(GP))
    moved = mean + plain.times(plain.transposed(whitened), plain.times(inverse, error))
    root, _ = plain.roots(S - plain.transposed(whitened) @ whitened)
    prior, inverse = plain.roots(S)
    own = plain.times(inverse, moved + plain.times(root, noise) - mean)
    return own, log_density(own, prior) - log_density(noise, root)


def log_density(e: np.ndarray, root: np.ndarray) -> np.ndarray:
    """log N(L e; 0, L L^T) but for the constant."""
    return -(np.log(np.diagonal(root, axis1=-2, axis2=-1)) + 0.5 * e * e).sum(axis=-1)


if __name__ == "__main__":
    main()
