"""Both curvatures at the paper's size, against JAX, plain NumPy and the floor of the BLAS; growth over M.

M = 30, P = 10, N = 3, T = 200, tau = 16, float64, one thread, on a model trained for a short while. The
floors are the matrix products that the computation cannot do without: for the ITF Fisher one
(30 x 30)(30 x 960) per step and the Gram matrix of 597 x 960 rows, for Louis' terms three products per sample
and the Gram matrix of the scores.
"""

from __future__ import annotations

import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from clock import aim, best_times

from palrnn import (
    ALRNN,
    PALRNN,
    IndefiniteInformationWarning,
    ITFOperator,
    Standardizer,
    TrainConfig,
    itf_fisher,
    lorenz63,
    louis_terms,
    mismatch,
    observed_information,
    rbpf,
    smooth,
    train,
)
from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.progress import quiet

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore", IndefiniteInformationWarning)

STEPS, TAU, NOISE = 200, 16, 0.1


def main() -> None:
    pin_blas()
    x = lorenz63(20_000, process_std=NOISE)
    x = Standardizer.fit(x).transform(x)
    model, segment = trained(x, 30, 10), x[:STEPS]
    forcing(model, segment)
    observed(PALRNN(model, NOISE, NOISE, NOISE), segment)
    growth(x)


def trained(x: np.ndarray, dim: int, gated: int, updates: int = 2000) -> ALRNN:
    config = TrainConfig(latent_dim=dim, gated=gated, tau=TAU, updates=updates)
    return train(x, config, progress=quiet).model


def forcing(model: ALRNN, x: np.ndarray) -> None:
    """The ITF Fisher as a matrix, a trace and a product."""
    operator, peer = ITFOperator(model, x, TAU, NOISE), jax_fisher(model, x)
    v = np.random.default_rng(0).standard_normal(operator.shape[0])
    ours, theirs = itf_fisher(model, x, TAU, NOISE), np.asarray(peer())
    worst = np.abs(ours - theirs).max() / np.abs(theirs).max()
    seconds = best_times(
        {
            "floor": fisher_floor(model.latent_dim, model.observed_dim),
            "jax": lambda: peer().block_until_ready(),
            "numpy": lambda: numpy_fisher(model, x),
            "palrnn matrix": lambda: itf_fisher(model, x, TAU, NOISE),
            "palrnn trace": operator.trace,
            "palrnn product": lambda: operator @ v,
        },
        rounds=5,
    )
    print(f"ITF Fisher, M=30, T={STEPS}, p={operator.shape[0]}; largest difference from jax {worst:.1e}")
    table(seconds, ("jax", "numpy"))
    start = time.perf_counter()
    operator.leading(50)
    print(f"  50 leading eigenpairs by Lanczos: {time.perf_counter() - start:.2f} s")
    best = seconds["palrnn matrix"]
    aim(f"the ITF Fisher as a matrix takes less than 0.3 s ({best:.3f})", best < 0.3)


def observed(model: PALRNN, x: np.ndarray) -> None:
    """The observed information: few samples as in the paper, then thousands."""
    samples = smooth(rbpf(model, x, particles=64), paths=16, states_per_path=16)
    terms = louis_terms(model, samples.codes, samples.states)
    fisher = itf_fisher(model.drift, x, TAU, NOISE)
    seconds = best_times(
        {
            "floor": louis_floor(model.drift, 256),
            "plain numpy": lambda: numpy_louis(model, samples.codes, samples.states),
            "palrnn": lambda: louis_terms(model, samples.codes, samples.states).missing,
        },
        rounds=5,
    )
    same = np.allclose(numpy_louis(model, samples.codes, samples.states), terms.observed)
    assert same, "Louis' terms are not those of plain numpy"
    print("Louis' terms of 256 given samples, dense; equal to plain numpy")
    table(seconds, ("plain numpy",))
    for paths, states, limit in ((8, 1, 0.5), (64, 64, 15.0)):
        for target in ("paper", "exact"):
            best = best_times(
                {
                    "all": lambda p=paths, s=states, t=target: (
                        observed_information(
                            model, x, particles=64, paths=p, states_per_path=s, target=t
                        ).observed
                    )
                },
                rounds=2,
            )["all"]
            label = f"64 particles, {paths} paths x {states} states"
            aim(f"{label}, {target}, take less than {limit:g} s ({best:.3f})", best < limit)
    best = best_times({"all": lambda: mismatch(fisher, terms.observed / STEPS)}, rounds=2)["all"]
    print(f"  mismatch of two 960 x 960 matrices          {best:7.3f} s")


def growth(x: np.ndarray) -> None:
    """How time grows with M; the matrix is left out where it would not fit comfortably."""
    print("growth over M (P = M / 3), T = 200: seconds, and tr by the trace-only form")
    print("    M       p   matrix    trace  product  leading 50  observed 64/8 (traces)")
    for dim in (10, 20, 30, 60, 100):
        model = trained(x, dim, dim // 3, updates=200)
        operator = ITFOperator(model, x[:STEPS], TAU, NOISE)
        v, noisy = np.ones(operator.shape[0]), PALRNN(model, NOISE, NOISE, NOISE)
        contenders = {
            "trace": operator.trace,
            "product": lambda o=operator, v=v: o @ v,
            "leading": lambda o=operator: o.leading(50),
            "observed": lambda m=noisy: observed_information(m, x[:STEPS]).trace_observed,
        }
        if dim <= 60:
            contenders["matrix"] = operator.dense
        s = best_times(contenders, rounds=1)
        matrix = f"{s['matrix']:8.3f}" if "matrix" in s else "       -"
        print(
            f"  {dim:3d}  {operator.shape[0]:6d} {matrix} {s['trace']:8.3f} {s['product']:8.4f} "
            f"{s['leading']:11.2f} {s['observed']:9.2f}"
        )


def table(seconds: dict[str, float], peers: tuple[str, ...]) -> None:
    for name, value in seconds.items():
        against = "  ".join(f"{seconds[peer] / value:6.1f} x as fast as {peer}" for peer in peers)
        floor = f"{value / seconds['floor']:6.2f} x floor"
        print(f"  {name:15s} {value * 1e3:9.2f} ms  {floor}  {against}")


@kernel
def products(J, S, out, count):
    for _ in range(count):
        np.dot(J, S, out)


def fisher_floor(dim: int, seen: int):
    size = dim * (dim + 2)
    J, S, out = np.eye(dim), np.ones((dim, size)), np.empty((dim, size))
    rows = np.ones(((STEPS - 1) * seen, size))

    def run():
        products(J, S, out, STEPS - 1)
        return rows.T @ rows

    return run


@kernel
def sample_products(features, drift, residuals, score, gram, count):
    for _ in range(count):
        np.dot(features, drift, residuals)
        np.dot(features.T, residuals, score)
        np.dot(features.T, features, gram)


def louis_floor(drift: ALRNN, samples: int):
    dim, size = drift.latent_dim, drift.latent_dim + drift.gated + 1
    features, weights, residuals = np.ones((STEPS - 1, size)), np.ones((size, dim)), np.ones((STEPS - 1, dim))
    score, gram, scores = np.ones((size, dim)), np.ones((size, size)), np.ones((samples, dim * (dim + 2)))

    def run():
        sample_products(features, weights, residuals, score, gram, samples)
        return scores.T @ scores

    return run


def jax_fisher(model: ALRNN, x: np.ndarray):
    """Forward-mode automatic differentiation of the forced rollout, jitted, and its Gram matrix."""
    dim, seen = model.E.shape
    free = jnp.arange(dim) < dim - model.gated
    forced = jnp.asarray([t > 0 and t % TAU == 0 for t in range(STEPS - 1)])
    start = jnp.asarray(model.embed(x[0]))

    def predictions(theta):
        A, W, h = theta[:dim], theta[dim : dim + dim * dim].reshape(dim, dim), theta[dim + dim * dim :]

        def step(z, given):
            seen_now, force = given
            z = jnp.where(force, z.at[:seen].set(seen_now), z)
            z = A * z + W @ jnp.where(free | (z > 0), z, 0.0) + h
            return z, z[:seen]

        return jax.lax.scan(step, start, (jnp.asarray(x[:-1]), forced))[1].ravel()

    @jax.jit
    def run():
        J = jax.jacfwd(predictions)(jnp.asarray(model.theta))
        return J.T @ J / (NOISE**2 * (STEPS - 1))

    return run


def numpy_fisher(model: ALRNN, x: np.ndarray) -> np.ndarray:
    """The paper's recursion as written: one outer product of size p x p per step."""
    dim, seen = model.E.shape
    size = dim * (dim + 2)
    z, S, total = model.embed(x[0]), np.zeros((dim, size)), np.zeros((size, size))
    eye = np.eye(dim)
    for t in range(STEPS - 1):
        if t > 0 and t % TAU == 0:
            z[:seen] = x[t]
            S[:seen] = 0.0
        V = np.hstack([np.diag(z), np.kron(eye, model.gates(z) * z), eye])
        S = model.jacobian(z) @ S + V
        z = model.step(z)
        total += S[:seen].T @ S[:seen]
    return total / (NOISE**2 * (STEPS - 1))


def numpy_louis(model: PALRNN, codes: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Scores and information of each sample by vectorised NumPy, and both terms of the identity."""
    drift, q = model.drift, model.process_variances
    paths, draws, _, dim = states.shape
    size = dim * (dim + 2)
    scores, complete = np.empty((paths, draws, size)), np.zeros((size, size))
    for s in range(paths):
        gates = np.hstack([np.ones((STEPS - 1, dim - drift.gated)), codes[s]])
        for k in range(draws):
            z, after = states[s, k, :-1], states[s, k, 1:]
            phi = gates * z
            error = (after - drift.A * z - phi @ drift.W.T - drift.h) / q
            scores[s, k] = np.concatenate([(error * z).sum(0), (error.T @ phi).ravel(), error.sum(0)])
            for i in range(dim):
                f = np.column_stack([z[:, i], phi, np.ones(STEPS - 1)])
                at = np.r_[i, dim + i * dim : dim + (i + 1) * dim, size - dim + i]
                complete[np.ix_(at, at)] += f.T @ f / q[i]
    means = scores.mean(axis=1)
    within = (scores - means[:, None]).reshape(-1, size)
    missing = np.cov(means.T) + within.T @ within / (paths * draws)
    return complete / (paths * draws) - missing


if __name__ == "__main__":
    main()
