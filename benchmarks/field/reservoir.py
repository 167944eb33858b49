"""An echo-state network of reservoirpy as a peer: fitted by ridge regression, searched at random.

The network is built by reservoirpy; it then runs here, several starts at once, since a run of 100,000 steps
in the package's own loop takes longer than the fit. A test compares the two.

    r' = (1 - a) r + a tanh(W r + W_in x + b),    x' = W_out (1, r')

A candidate is judged as palrnn's search judges its own, by whether long free runs live, then by D_stsp and
D_H above their floors against all rows, and by how far its exponents of map and flow differ. (Those of seed 0
were compared with a fifth of the rows, as searches were then.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from reservoirpy.nodes import Reservoir
from scipy.linalg import solve
from scipy.sparse import csr_matrix

from palrnn.engine.seeds import generator
from palrnn.model.engine import step
from palrnn.searches.judge import judge_model
from palrnn.searches.parts import Parts

UNITS, WASHOUT = (200, 300, 500), 100
RADIUS, LEAK, INPUT_SCALE, RIDGE = (0.1, 1.4), (0.1, 1.0), (0.05, 2.0), (1e-8, 1e-2)
INPUT_NOISE = (0.0, 1e-3, 1e-2, 3e-2)
# free runs that tell during the search whether a candidate lives
_LONG = 10_000


@dataclass(eq=False)
class EchoState:
    """A fitted network; its state is what it sees, x, and its units, r."""

    W: csr_matrix
    W_in: np.ndarray
    bias: np.ndarray
    leak: float
    W_out: np.ndarray
    driven: tuple[np.ndarray, np.ndarray] | None = None
    gated: int = 0
    input_dim: int = 0
    theta: Any = ()

    @property
    def observed_dim(self) -> int:
        return len(self.W_out)

    @property
    def latent_dim(self) -> int:
        return self.observed_dim + len(self.bias)

    def units(self, x: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the units after seeing ``x (..., N)`` in state ``r (..., H)``."""
        return (1 - self.leak) * r + self.leak * np.tanh((self.W @ r.T).T + x @ self.W_in.T + self.bias)

    def read(self, r: np.ndarray) -> np.ndarray:
        return self.W_out[:, 0] + r @ self.W_out[:, 1:].T

    def listen(self, x: np.ndarray) -> np.ndarray:
        """Return the units after each row of ``x (T, N)``, from rest."""
        found, r = np.empty((len(x), len(self.bias))), np.zeros(len(self.bias))
        for t, row in enumerate(x):
            found[t] = r = self.units(row, r)
        return found

    def remember(self, x: np.ndarray) -> EchoState:
        """Know the states along ``x``, so that a row of it can be a start."""
        self.driven = (x, self.listen(x))
        return self

    def embed(self, starts: np.ndarray) -> np.ndarray:
        """Return the states at rows of the series that was listened to: the units have seen their past."""
        assert self.driven is not None
        x, units = self.driven
        at = [int(np.abs(x[WASHOUT:] - row).max(axis=1).argmin()) + WASHOUT for row in np.atleast_2d(starts)]
        before = units[np.array(at) - 1]
        return np.concatenate([x[at], before], axis=1)

    def no_gates(self, *_: Any) -> Any:
        """Say so: the protocol of `palrnn.Surrogate` asks for more than a judge of free runs needs."""
        raise TypeError("an echo-state network has no gates")

    with_theta = arrays = from_arrays = gate_map = affine = pullback = no_gates

    def exponents(
        self, start: np.ndarray, steps: int, k: int, dt: float = 1.0, flow: bool = False
    ) -> np.ndarray:
        """Return the ``k`` largest Lyapunov exponents of the free run, from QR decompositions.

        With ``flow`` those of the flow that it samples, as `palrnn.lyapunov_spectrum` has them.
        """
        n = self.observed_dim
        x, r = np.split(self.embed(start)[0], [n])
        Q = np.linalg.qr(generator(0).standard_normal((len(self.bias), k + flow)))[0]
        sums, out, speed = np.zeros(k + flow), self.W_out[:, 1:], 0.0
        window = [r]
        for _ in range(4):
            r = self.units(x, r)
            # the next step sees x = W_out r: as a map of the units alone
            x = self.read(r)
            window.append(r)
        for t in range(1000 + steps):
            r = window[2]
            slope = 1 - np.tanh(self.W @ r + self.read(r) @ self.W_in.T + self.bias) ** 2
            V = (1 - self.leak) * Q + self.leak * slope[:, None] * (self.W @ Q + self.W_in @ (out @ Q))
            window = [*window[1:], self.units(self.read(window[-1]), window[-1])]
            if flow:
                along = 8.0 * (window[3] - window[1]) - (window[4] - window[0])
                length = float(np.linalg.norm(along))
                moves = length > 1e-10 * (1.0 + np.linalg.norm(window[2]))
                if moves:
                    V[:, 0] = along / (speed or length)
                speed = length if moves else 0.0
            Q, R = np.linalg.qr(V)
            if t >= 1000:
                sums += np.log(np.abs(np.diag(R)))
        return np.sort(sums / (steps * dt))[::-1][:k]

    def largest(self, start: np.ndarray, steps: int, flow: bool) -> float:
        """Return the largest exponent per step, of the map or of the flow."""
        return float(self.exponents(start, steps, 1, flow=flow)[0])


@step.register
def _(model: EchoState, z: np.ndarray) -> np.ndarray:
    n = model.observed_dim
    units = model.units(z[..., :n], z[..., n:])
    return np.concatenate([model.read(units), units], axis=-1)


def built(settings: dict[str, float], dim: int, seed: int) -> EchoState:
    """Return a network of reservoirpy with these settings, not yet fitted."""
    node = Reservoir(
        units=int(settings["units"]),
        sr=settings["radius"],
        lr=settings["leak"],
        input_scaling=settings["input_scale"],
        rc_connectivity=min(1.0, 10 / settings["units"]),
        input_connectivity=1.0,
        seed=seed,
    )
    node.initialize(np.zeros((1, dim)))
    W, W_in, bias = (
        each.toarray() if hasattr(each, "toarray") else each for each in (node.W, node.Win, node.bias)
    )
    units = len(W)
    return EchoState(
        csr_matrix(W),
        np.asarray(W_in),
        np.asarray(bias).ravel() * np.ones(units),
        settings["leak"],
        np.zeros((dim, 1 + units)),
    )


def fitted(network: EchoState, trials: list[np.ndarray], settings: dict[str, float], seed: int) -> EchoState:
    """Fit the readout to predict the next row of each trial ``(T, N)``, with noise on what it hears."""
    noise, rng = settings["input_noise"], generator(seed, "noise")
    heard = [x + noise * rng.standard_normal(x.shape) if noise else x for x in trials]
    units = np.concatenate([network.listen(x[:-1])[WASHOUT:] for x in heard])
    features = np.concatenate([np.ones((len(units), 1)), units], axis=1)
    gram = features.T @ features / len(features)
    gram[np.diag_indices_from(gram)] += settings["ridge"]
    ahead = np.concatenate([x[1 + WASHOUT :] for x in trials])
    network.W_out = solve(gram, features.T @ ahead / len(features), assume_a="pos").T
    return network


def drawn(number: int, seed: int) -> dict[str, float]:
    """Return the settings of candidate ``number``: always the same ones."""
    rng = generator(seed, "reservoir", number)

    def between(bounds: tuple[float, float]) -> float:
        return float(np.exp(rng.uniform(*np.log(bounds))))

    return {
        "units": float(rng.choice(UNITS)),
        "radius": between(RADIUS),
        "leak": between(LEAK),
        "input_scale": between(INPUT_SCALE),
        "ridge": between(RIDGE),
        "input_noise": float(rng.choice(INPUT_NOISE)),
    }


def searched(data: Parts, seconds: float, seed: int) -> tuple[EchoState, dict[str, Any]]:
    """Return the best network found in so many seconds of processor time, fitted to all rows, and how."""
    begun, best, number = time.process_time(), None, 0
    whole, dim, by_all = data.whole[0], data.validation.shape[1], data.scored_by_all_rows()
    while best is None or time.process_time() - begun < seconds:
        settings = drawn(number, seed)
        network = fitted(built(settings, dim, seed + number), data.fit, settings, seed).remember(whole)
        with np.errstate(over="ignore", invalid="ignore"):
            found = judge_model(network, by_all, long_steps=_LONG, exponent=network.largest)
        order = (found.key, number)
        if best is None or order < best[0]:
            best = order, settings, number
        number += 1
    _, settings, chosen = best
    # as palrnn's winner: fitted to all rows in the end, unless that makes it worse
    ends = [
        fitted(built(settings, dim, seed + chosen), trials, settings, seed).remember(whole)
        for trials in (data.whole, data.fit)
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        after, before = (judge_model(each, by_all, long_steps=_LONG, exponent=each.largest) for each in ends)
    worse = after.key[:2] > before.key[:2] or (after.grade == "not usable" and after.loss > before.loss)
    final = ends[int(worse)]
    return final, settings | {"candidates": number, "chosen": chosen, "all_rows": final is ends[0]}
