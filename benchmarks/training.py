"""One teacher-forced update at the paper's setting, against PyTorch, JAX and the floor of the same BLAS.

All contenders start from the same trained model, see the same batches, and must report the same loss.
"""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
from clock import aim, best_times, figure

from palrnn.data import Standardizer, lorenz63
from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.forcing.batches import BLOCK, Batches
from palrnn.forcing.objective import Moments, Updates, run_updates
from palrnn.model import ALRNN, ShallowPLRNN, initial_alrnn
from palrnn.model.surrogate import training_vector

PAPER = TrainConfig.paper()
RATE = 1e-5


@kernel
def products(a, b, out, count):
    """``count`` products of ``a (B, M)`` and ``b (M, M)`` into ``out``: what the BLAS itself needs."""
    for _ in range(count):
        np.dot(a, b, out)


class Ours:
    """Whole updates from the library: drawing batches, rollout, adjoint, RAdam."""

    def __init__(self, model: ALRNN | ShallowPLRNN, series: np.ndarray, config: TrainConfig) -> None:
        self.model, self.config, self.done = model, config, 0
        self.batches = Batches([series], config, np.float32)
        self.theta = training_vector(model).astype(np.float32)
        self.first, self.second = np.zeros_like(self.theta), np.zeros_like(self.theta)

    def run(self, count: int) -> float:
        starts, noise = self.batches.draws(self.done, self.done + count)
        todo = Updates(
            done=self.done,
            series=self.batches.series,
            whole=self.batches.whole,
            drive=self.batches.drive,
            starts=starts,
            noise=noise,
            length=self.config.sequence_length,
            interval=self.config.tau,
            strengths=np.full(count, self.config.forcing.strength),
            rates=np.full(count, RATE),
            clip=np.inf,
        )
        losses, norms = np.empty(count), np.empty(count)
        moments = Moments(self.first, self.second)
        diverged = run_updates(self.model, self.theta, moments, todo, (losses, norms))
        if diverged >= 0:
            raise ArithmeticError(f"the benchmark diverged at update {self.done + diverged + 1}")
        self.done = (self.done + count) % (1000 * BLOCK)
        return float(losses[0])


def lorenz_series() -> np.ndarray:
    x = lorenz63(80_000, process_std=0.1, discard=10_000)
    return Standardizer.fit(x).transform(x)


def against_peers(series: np.ndarray, model: ALRNN) -> None:
    from peers_jax import jax_update
    from peers_torch import torch_update

    ours = Ours(model, series, PAPER)
    starts, _ = ours.batches.draws(0, BLOCK)
    length, tau = PAPER.sequence_length, PAPER.tau
    with_torch = torch_update(model, series, length, tau, RATE)
    with_jax = jax_update(model, series, length, tau, RATE)
    losses = {"palrnn": ours.run(BLOCK), "torch": with_torch(starts[0]), "jax": with_jax(starts[0])}
    if np.ptp(list(losses.values())) > 1e-4 * losses["palrnn"]:
        raise AssertionError(f"the contenders compute different things: {losses}")
    rng = np.random.default_rng(0)
    a = rng.standard_normal((PAPER.batch_size, PAPER.latent_dim)).astype(np.float32)
    b = rng.standard_normal((PAPER.latent_dim, PAPER.latent_dim)).astype(np.float32)
    # short turns, which a busy machine is likely to leave alone now and then
    counts = {"floor": 10, "palrnn": 10, "jax": 5, "torch": 1}
    best = best_times(
        {
            "floor": lambda: products(a, b, np.empty_like(a), 600 * counts["floor"]),
            "palrnn": lambda: ours.run(counts["palrnn"]),
            "jax": lambda: [with_jax(row) for row in starts[: counts["jax"]]],
            "torch": lambda: with_torch(starts[1]),
        },
        rounds=60,
    )
    ms = {name: 1e3 * seconds / counts[name] for name, seconds in best.items()}
    print("one update, M=30 P=10 N=3 B=16 L=200 tau=16, float32, one thread, best of 60 turns:")
    words = {
        "floor": "600 products of 16x30 by 30x30, the same BLAS",
        "palrnn": "batch, forward, backward, RAdam",
        "jax": "lax.scan, value_and_grad, optax RAdam, jitted",
        "torch": "loop over time, autograd, torch.optim.RAdam",
    }
    for name, value in ms.items():
        print(f"  {name:7s} {value:8.3f} ms   {value / ms['palrnn']:7.2f} x palrnn   {words[name]}")
    floor, torchs, jaxs = ms["palrnn"] / ms["floor"], ms["torch"] / ms["palrnn"], ms["jax"] / ms["palrnn"]
    figure("one update, M=30 P=10 B=16 L=200", ms["palrnn"], "ms")
    figure("its time over that of the same products in BLAS", floor, "x")
    figure("times as fast as JAX", jaxs, "x")
    figure("times as fast as PyTorch", torchs, "x")
    aim(f"an update takes at most 2.2 x the floor ({floor:.2f})", floor <= 2.2)
    aim(f"it is at least 60 x as fast as torch ({torchs:.1f})", torchs >= 60)
    aim(f"it is at least 6 x as fast as jax ({jaxs:.1f})", jaxs >= 6)


def gaps(series: np.ndarray, model: ALRNN) -> None:
    """Print what gaps cost, with nearly every step forced and with few."""
    lost = np.where(np.random.default_rng(0).random(series.shape) < 0.1, np.nan, series)
    for tau in (16, 1):
        config = PAPER.changed(forcing=tau)
        runs = {name: Ours(model, x, config) for name, x in (("whole", series), ("gaps", lost))}
        turns = {name: lambda run=run: run.run(10) for name, run in runs.items()}
        best = best_times(turns, rounds=60)
        ratio = best["gaps"] / best["whole"]
        aim(
            f"with a tenth of all values missing and tau={tau}, 1.3 x as long at most ({ratio:.2f})",
            ratio <= 1.3,
        )


def growth(series: np.ndarray) -> None:
    print("time per update, as a multiple of M=30 L=200 (linear in L would be 0.25, 1, 5 times):")
    times = {}
    for dim in (10, 30, 100):
        for length in (50, 200, 1000):
            config = PAPER.changed(latent_dim=dim, gated=dim // 3, sequence_length=length)
            ours = Ours(initial_alrnn(dim, 3, dim // 3), series, config)
            # every call makes its work space anew, so at least a few updates per call, as in training
            count = max(c for c in (5, 10, 20, 50) if c == 5 or c * length * dim <= 60_000)
            best = best_times({"ours": lambda ours=ours, count=count: ours.run(count)}, rounds=30)
            times[dim, length] = best["ours"] / count
    for dim in (10, 30, 100):
        row = "   ".join(
            f"L={length} {times[dim, length] / times[30, 200]:6.2f}" for length in (50, 200, 1000)
        )
        print(f"  M={dim:3d}  {row}   L x 5: time x {times[dim, 1000] / times[dim, 200]:.2f}")


def _one_model(barrier, out, turns: int) -> None:
    pin_blas()
    ours = Ours(initial_alrnn(30, 3, 10), lorenz_series(), PAPER)
    count = BLOCK // 4
    ours.run(count)
    for turn in range(turns):
        barrier.wait()
        wall, processor = time.perf_counter(), time.process_time()
        ours.run(count)
        out.put((turn, count / (time.perf_counter() - wall), count / (time.process_time() - processor)))


def _throughput(models: int, turns: int) -> tuple[float, float]:
    """Return the best total throughput of models side by side, per second of time and of processor time."""
    context = multiprocessing.get_context("spawn")
    barrier, out = context.Barrier(models), context.Queue()
    processes = [context.Process(target=_one_model, args=(barrier, out, turns)) for _ in range(models)]
    for process in processes:
        process.start()
    rates = np.zeros((turns, 2))
    for _ in range(models * turns):
        turn, *rate = out.get()
        rates[turn] += rate
    for process in processes:
        process.join()
    wall, processor = rates.max(axis=0)
    return float(wall), float(processor)


def two_models() -> None:
    one, two = _throughput(1, 200), _throughput(2, 200)
    print(f"throughput of two models side by side: {two[0] / one[0]:.2f} x that of one (two cores: 2);")
    print(f"  counted by processor time, which other programs do not take: {two[1] / one[1]:.2f} x")


def _memory() -> None:
    x = lorenz_series()
    before = _peak_megabytes()
    train(x, PAPER.changed(updates=2000), progress=quiet)
    # the history of a full run has room from its start
    peak = _peak_megabytes() + 3 * 8 * PAPER.updates / 2**20
    aim(f"the peak memory of a training run is below 400 MB ({peak:.0f})", peak < 400)
    print(f"  of which {before:.0f} MB before training: Python, NumPy, SciPy, Numba and the series")


def _peak_megabytes() -> float:
    # not getrusage, whose peak a child inherits from its parent
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    pin_blas()
    series = lorenz_series()
    model = train(series, PAPER.changed(updates=3000), progress=quiet).model
    against_peers(series, model)
    gaps(series, model)
    growth(series)
    two_models()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_memory)
    process.start()
    process.join()
    assert process.exitcode == 0


if __name__ == "__main__":
    main()
