"""One teacher-forced update of a shallow PLRNN (M = 3, H = 50), against JAX and the floor of the BLAS."""

from __future__ import annotations

import numpy as np
from clock import aim, best_times
from peers_jax import jax_shallow_update
from training import RATE, Ours, lorenz_series

from palrnn.engine.kernel import kernel, pin_blas
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.forcing.batches import BLOCK
from palrnn.model import Forcing

ALPHA = 0.2
CONFIG = TrainConfig(
    family="shallow", latent_dim=3, hidden=50, forcing=Forcing.generalised(ALPHA), input_noise=0.0
)


@kernel
def products(z, y, W2, W1, u, out, count):
    """``count`` times to the hidden units and back, (B, M) (M, H) and (B, H) (H, M), by the BLAS."""
    for _ in range(count):
        np.dot(z, W2, u)
        np.dot(y, W1, out)


def main() -> None:
    pin_blas()
    series = lorenz_series()
    model = train(series, CONFIG.changed(updates=2000), progress=quiet).model
    length, batch = CONFIG.sequence_length, CONFIG.batch_size
    ours, peer = Ours(model, series, CONFIG), jax_shallow_update(model, series, length, ALPHA, RATE)
    starts, _ = ours.batches.draws(0, BLOCK)
    losses = {"palrnn": ours.run(BLOCK), "jax": peer(starts[0])}
    if np.ptp(list(losses.values())) > 1e-4 * losses["palrnn"]:
        raise AssertionError(f"the contenders compute different things: {losses}")
    rng = np.random.default_rng(0)
    z, y, W2, W1 = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((batch, 3), (batch, 50), (3, 50), (50, 3))
    )
    counts = {"floor": 10, "palrnn": 10, "jax": 5}
    best = best_times(
        {
            # to the hidden units and back, in the rollout, in its adjoint and for the weights
            "floor": lambda: products(
                z, y, W2, W1, np.empty_like(y), np.empty_like(z), 600 * counts["floor"]
            ),
            "palrnn": lambda: ours.run(counts["palrnn"]),
            "jax": lambda: [peer(row) for row in starts[: counts["jax"]]],
        },
        rounds=60,
    )
    ms = {name: 1e3 * seconds / counts[name] for name, seconds in best.items()}
    words = {
        "floor": "1200 products of 16x3 by 3x50 and 16x50 by 50x3, the same BLAS",
        "palrnn": "batch, forward, backward, RAdam",
        "jax": "lax.scan, value_and_grad, optax RAdam, jitted",
    }
    print("one update, M=3 H=50 N=3 B=16 L=200, forced at every step, float32, one thread, best of 60 turns:")
    for name, value in ms.items():
        print(f"  {name:7s} {value:8.3f} ms   {value / ms['palrnn']:7.2f} x palrnn   {words[name]}")
    floor, ratio = ms["palrnn"] / ms["floor"], ms["jax"] / ms["palrnn"]
    aim(f"an update takes at most 2.2 x the floor ({floor:.2f})", floor <= 2.2)
    aim(f"it is at least 5 x as fast as jax ({ratio:.1f})", ratio >= 5)


if __name__ == "__main__":
    main()
