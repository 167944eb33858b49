"""Both curvatures at the paper's size, against JAX, plain NumPy and the floor of the BLAS; their growth.

M = 30, P = 10, N = 3, T = 200, tau = 16, float64, one thread, on a model trained for a short while. The
floors are the matrix products that the computation cannot do without: for the ITF Fisher one
(30 x 30)(30 x 960) per step and the Gram matrix of 597 x 960 rows, for the information given a gate path
three of (30 x 30)(30 x 28,800) per step. Seconds are those that the processor spends.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from clock import aim, best_times
from peers_jax_kalman import path_hessian_product

from palrnn import (
    ALRNN,
    PALRNN,
    InformationConfig,
    ITFOperator,
    PathInformation,
    Standardizer,
    TrainConfig,
    itf_fisher,
    lorenz63,
    observed_information,
    path_information,
    rbpf,
    smooth,
    train,
)
from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.progress import quiet

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")

STEPS, TAU, NOISE = 200, 16, 0.1
# of one core, whatever else the machine does
lap = partial(best_times, clock=time.process_time)


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
    seconds = lap(
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
    """The information given one gate path: matrix, trace and product, against 960 products in JAX."""
    codes = smooth(rbpf(model, x, particles=64), paths=1).codes[0]
    peer, size = path_hessian_product(model, x, codes), model.drift.theta.size
    units = [jax.device_put(v) for v in np.eye(size)]
    path = path_information(model, x, codes)
    v = np.random.default_rng(0).standard_normal(size)
    seconds = lap(
        {
            "floor": path_floor(model.drift),
            "palrnn matrix": lambda: path_information(model, x, codes).observed,
            "palrnn traces": lambda: traces_of(path_information(model, x, codes)),
            "palrnn score": lambda: path_information(model, x, codes).score,
            "palrnn product": lambda: path @ v,
            "jax product": lambda: peer(units[0]).block_until_ready(),
        },
        rounds=3,
    )
    start = time.process_time()
    theirs = np.stack([np.asarray(peer(unit)) for unit in units])
    seconds["960 jax products"] = time.process_time() - start
    worst = np.abs(path.observed - theirs).max() / np.abs(theirs).max()
    print(
        f"given one gate path, M=30, T={STEPS}; largest difference from jax {worst:.1e} of the largest entry"
    )
    table(seconds, ("960 jax products",))
    ratio, memory = seconds["960 jax products"] / seconds["palrnn matrix"], peak_memory(model, x, codes)
    print(f"  memory that the matrix takes beside itself: {memory:.0f} MB")
    matrix, trace = seconds["palrnn matrix"], seconds["palrnn traces"]
    aim(f"a path's matrix takes at most 4 s ({matrix:.2f})", matrix <= 4.0)
    aim(f"it is at least 10 times as fast as 960 products in JAX ({ratio:.1f})", ratio >= 10.0)
    aim(f"a path's traces take at most 0.2 s ({trace:.3f})", trace <= 0.2)
    aim(f"a path's matrix takes less than 1 GB ({memory:.0f} MB)", memory < 1000)
    aim(f"it differs from JAX by less than 1e-8 ({worst:.1e})", worst < 1e-8)
    for target in ("paper", "exact"):
        start = time.process_time()
        found = observed_information(model, x, target=target)
        value, error = found.trace_observed, found.standard_errors["observed"]
        traces = time.process_time() - start
        found.build()
        print(
            f"  the default, {target:5s} target: traces {traces:.1f} s, then matrices "
            f"{time.process_time() - start - traces:.1f} s; tr {value:.4g} ± {error:.2g}"
        )
        aim(
            f"all traces at default settings, {target} target, take at most 5 s ({traces:.2f})", traces <= 5.0
        )
    eight = lap({"all": lambda: observed_information(model, x, InformationConfig.paper()).observed}, rounds=2)
    print(f"  the paper's 8 samples: {eight['all']:.2f} s")
    lags(path)


def traces_of(path: PathInformation) -> tuple[float, float]:
    return path.trace_complete, path.trace_observed()


def lags(path: PathInformation) -> None:
    """What is left out of a trace with pairs of times up to some lag, and the bound on it."""
    whole = path.trace_observed()
    print("  lags kept in a trace   seconds   left out, relative   bound, relative")
    for kept in (20, 50, 100, 150, None):
        seconds = lap({"trace": lambda k=kept: path.trace_observed(k)}, rounds=2)["trace"]
        error, bound = abs(path.trace_observed(kept) - whole) / whole, path.left_out(kept) / whole
        print(f"  {kept or 'all':>20}  {seconds:8.3f}  {error:19.1e}  {bound:16.1e}")


def peak_memory(model: PALRNN, x: np.ndarray, codes: np.ndarray) -> float:
    """Return what one matrix takes at its peak, in MB, as the interpreter counts it."""
    tracemalloc.start()
    path_information(model, x, codes).observed  # noqa: B018
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def path_floor(drift: ALRNN):
    """The products that carry all parameters over all steps, in bundles that fit a cache."""
    dim, bundle = drift.latent_dim, 48
    count = (STEPS - 1) * -(-drift.theta.size // bundle)
    H, gain, both = np.ones((dim, dim * bundle)), np.eye(dim), np.ones((2 * dim, dim))
    out, pair = np.empty((dim, dim * bundle)), np.empty((2 * dim, dim * bundle))

    def run():
        products(gain, H, out, count)
        products(both, out, pair, count)

    return run


def growth(x: np.ndarray) -> None:
    """How time grows with M and T; a matrix is left out where it would take more than a minute."""
    print("growth over M (P = M / 3), T = 200, and over T, M = 30: seconds")
    print("    M     T       p  | ITF: matrix    trace  product | a path: matrix    trace    score  product")
    for dim, steps in (
        (10, 200),
        (20, 200),
        (30, 200),
        (60, 200),
        (100, 200),
        (30, 400),
        (30, 800),
        (30, 1600),
    ):
        model = trained(x, dim, dim // 3, updates=200)
        segment = x[:steps]
        operator, noisy = ITFOperator(model, segment, TAU, NOISE), PALRNN(model, NOISE, NOISE, NOISE)
        codes = smooth(rbpf(noisy, segment, particles=64), paths=1).codes[0]
        v, path = np.ones(operator.shape[0]), path_information(noisy, segment, codes)
        contenders = {
            "itf trace": operator.trace,
            "itf product": lambda o=operator, v=v: o @ v,
            "trace": path.trace_observed,
            "score": lambda m=noisy, s=segment, c=codes: path_information(m, s, c).score,
            "product": lambda p=path, v=v: p @ v,
        }
        if dim <= 60:
            contenders["itf matrix"] = operator.dense
            contenders["matrix"] = lambda m=noisy, s=segment, c=codes: path_information(m, s, c).observed
        s = lap(contenders, rounds=1)
        matrix, theirs = (f"{s[n]:8.3f}" if n in s else "       -" for n in ("matrix", "itf matrix"))
        forced = f"{theirs} {s['itf trace']:8.3f} {s['itf product']:8.4f}"
        given = f"{matrix} {s['trace']:8.3f} {s['score']:8.3f} {s['product']:8.4f}"
        print(f"  {dim:3d}  {steps:4d}  {operator.shape[0]:6d}  |    {forced} |       {given}", flush=True)


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


if __name__ == "__main__":
    main()
