"""The contract of a family, as a test that anyone can run: `check_surrogate`.

Each claim of the `Surrogate` protocol is checked on random states, most of them against finite differences of
the map itself, so that a wrong derivative, a swapped axis or a forgotten parameter is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, as_float, as_int
from palrnn.engine.seeds import generator
from palrnn.model import engine
from palrnn.model.inputs import input_parameters, offsets
from palrnn.model.surrogate import MEMBERS, Surrogate, family_name

_EMBEDDING = ("embedding", "with_embedding", "embed_pullback")
_STEP = 1e-6
# central differences of a smooth function at steps of 1e-6 are good to about 1e-9 of its size
_TOLERANCE = 1e-6


class SurrogateError(AssertionError, ValueError):
    """What a family does not do as the protocol says."""


def check_surrogate(model: Any, *, states: int = 5, scale: float = 1.0, seed: int = 0) -> None:
    """Raise `SurrogateError` at the first claim of the `Surrogate` protocol that ``model`` does not keep.

    ``states`` random states of deviation ``scale`` are looked at. The family must be registered.
    """
    states, scale = as_int(states, "states", least=1), as_float(scale, "scale", above=0.0)
    missing = [name for name in MEMBERS if not hasattr(model, name)]
    _claim(not missing, f"it has no {', '.join(missing)}")
    try:
        family_name(model)
    except ValueError as error:
        raise SurrogateError(str(error)) from None
    z = scale * generator(seed, "check surrogate").standard_normal((states, model.latent_dim))
    for check in (_sizes, _embedding, _round_trips, _regions, _map, _parameters, _gates, _batches, _inputs):
        check(model, z)


def _claim(kept: bool, otherwise: str) -> None:
    if not kept:
        raise SurrogateError(f"model breaks the contract of a Surrogate: {otherwise}")


def _shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    _claim(np.shape(array) == shape, f"{name} must have shape {shape}, has {np.shape(array)}")


def _agree(one: Any, other: Any, otherwise: str, tolerance: float = _TOLERANCE) -> None:
    size = 1.0 + np.abs(other).max(initial=0.0)
    worst = np.abs(np.subtract(one, other)).max(initial=0.0)
    _claim(bool(worst <= tolerance * size), f"{otherwise}: off by {worst:.3g}")


def _sizes(model: Surrogate, z: Floats) -> None:
    M, N, P = model.latent_dim, model.observed_dim, model.gated
    for name, value in (("latent_dim", M), ("observed_dim", N), ("gated", P), ("input_dim", model.input_dim)):
        _claim(isinstance(value, int) and value >= 0, f"{name} must be a whole number, is {value!r}")
    _claim(1 <= N <= M, f"observed_dim must be from 1 to latent_dim = {M}, is {N}")
    _claim(np.ndim(model.theta) == 1, f"theta must be a vector, has shape {np.shape(model.theta)}")
    G, g = model.gate_map()
    _shape("G of gate_map", G, (P, M))
    _shape("g of gate_map", g, (P,))


def _embedding(model: Any, z: Floats) -> None:
    x = z[:, : model.observed_dim]
    embedded = model.embed(x)
    _shape("embed(x (S, N))", embedded, z.shape)
    _claim(np.array_equal(embedded[:, : x.shape[1]], x), "the first N entries of embed(x) must be x itself")
    _agree(model.embed(x[0]), embedded[0], "embed of one observation differs from that of many", 1e-12)
    held = [name for name in _EMBEDDING if hasattr(model, name)]
    if not held:
        return
    _claim(len(held) == len(_EMBEDDING), f"it has {held[0]} without the others of {', '.join(_EMBEDDING)}")
    r = np.roll(z, 1, axis=0)
    slopes = [
        ((model.with_embedding(up).embed(x) - model.with_embedding(down).embed(x)) * r).sum(axis=1)
        for up, down in _neighbours(model.embedding)
    ]
    found = model.embed_pullback(x, r)
    _shape("embed_pullback", found, (len(x), model.embedding.size))
    _agree(found, _differences(slopes, len(x)), "embed_pullback disagrees with differences of embed")


def _round_trips(model: Any, z: Floats) -> None:
    theta = np.array(model.theta)
    shifted = theta + 0.125
    moved = model.with_theta(shifted)
    _claim(type(moved) is type(model), "with_theta must return a model of the same family")
    _agree(moved.theta, shifted, "theta of with_theta(theta) is another", 1e-12)
    _claim(np.array_equal(model.theta, theta), "with_theta must leave the model as it was")
    again = type(model).from_arrays({name: np.array(value) for name, value in model.arrays().items()})
    same = np.array_equal(again.theta, theta) and np.array_equal(engine.step(again, z), engine.step(model, z))
    _claim(same, "from_arrays(arrays()) is another model")
    x = z[:, : model.observed_dim]
    _claim(np.array_equal(again.embed(x), model.embed(x)), "from_arrays(arrays()) embeds otherwise")


def _regions(model: Surrogate, z: Floats) -> None:
    M, P = model.latent_dim, model.gated
    codes = engine.codes(model, z)
    _shape("codes", codes, (len(z), P))
    G, g = model.gate_map()
    _claim(np.array_equal(codes, z @ G.T + g > 0), "codes disagree with gate_map")
    J, b = model.affine(codes)
    _shape("J of affine", J, (len(z), M, M))
    _shape("b of affine", b, (len(z), M))


def _map(model: Surrogate, z: Floats) -> None:
    J, b = model.affine(engine.codes(model, z))
    ahead = engine.step(model, z)
    _agree(ahead, np.einsum("sij,sj->si", J, z) + b, "step disagrees with affine at its code", 1e-9)
    _agree(engine.jacobian(model, z), J, "jacobian disagrees with affine", 1e-12)
    G, g = model.gate_map()
    # within its region the map is affine; a state near a border would step out of it
    clear = np.abs(z @ G.T + g).min(axis=1, initial=np.inf) > 2 * _STEP * (1.0 + np.abs(G).max(initial=0.0))
    slopes = [(engine.step(model, z + e) - engine.step(model, z - e)) for e in _STEP * np.eye(z.shape[1])]
    numerical = np.stack(slopes, axis=2) / (2 * _STEP)
    _agree(J[clear], numerical[clear], "J of affine disagrees with differences of step")


def _parameters(model: Surrogate, z: Floats) -> None:
    codes, r = engine.codes(model, z), np.roll(z, 1, axis=0)

    def along(theta: Floats) -> Floats:
        J, b = model.with_theta(theta).affine(codes)
        return np.asarray(((np.einsum("sij,sj->si", J, z) + b) * r).sum(axis=1))

    slopes = [along(up) - along(down) for up, down in _neighbours(np.array(model.theta))]
    found = model.pullback(z, codes, r)
    own = model.theta.size - input_parameters(model)
    _shape("pullback", found, (len(z), own))
    numerical = _differences(slopes, len(z))
    _claim(not np.any(numerical[:, own:]), "affine must be of F alone, but depends on the entries of C")
    _agree(found, numerical[:, :own], "pullback disagrees with differences of the map in theta")


def _gates(model: Any, z: Floats) -> None:
    r = np.ones((len(z), model.gated)) * (1.0 + np.arange(model.gated))

    def along(theta: Floats) -> Floats:
        G, g = model.with_theta(theta).gate_map()
        return np.asarray(((z @ G.T + g) * r).sum(axis=1))

    slopes = [along(up) - along(down) for up, down in _neighbours(np.array(model.theta))]
    numerical = _differences(slopes, len(z))
    if not hasattr(model, "gate_pullback"):
        unmoved = not np.any(numerical)
        _claim(unmoved, "its gates depend on theta, so it needs gate_pullback(z, r)")
        return
    own = model.theta.size - input_parameters(model)
    found = model.gate_pullback(z, r)
    _shape("gate_pullback", found, (len(z), own))
    _claim(
        not np.any(numerical[:, own:]), "the last entries of theta are not those of C: gates depend on them"
    )
    _agree(found, numerical[:, :own], "gate_pullback disagrees with differences of gate_map in theta")


def _batches(model: Surrogate, z: Floats) -> None:
    codes, r = engine.codes(model, z), np.roll(z, 1, axis=0)
    J, b = model.affine(codes)
    pulled = model.pullback(z, codes, r)
    one_J, one_b = model.affine(codes[0])
    _agree(one_J, J[0], "affine of one code differs from that of many", 1e-12)
    _agree(one_b, b[0], "affine of one code differs from that of many", 1e-12)
    _agree(model.pullback(z[0], codes[0], r[0]), pulled[0], "pullback of one state differs", 1e-12)
    own = model.theta.size - input_parameters(model)
    deep = model.pullback(z[:, None], codes[:, None], r[:, None])
    _shape("pullback with two leading axes", deep, (len(z), 1, own))
    _agree(deep[:, 0], pulled, "pullback with two leading axes differs", 1e-12)
    rows = model.pullback(z[0], codes[0], np.eye(model.latent_dim))
    _shape("pullback of one state and M rows", rows, (model.latent_dim, own))
    _agree(r[0] @ rows, pulled[0], "pullback is not linear in r", 1e-9)


def _inputs(model: Any, z: Floats) -> None:
    size = input_parameters(model)
    if not size:
        return
    _claim(hasattr(model, "C"), f"input_dim is {model.input_dim}, so it needs C")
    _shape("C", model.C, (model.latent_dim, model.input_dim))
    theta = np.array(model.theta)
    last = theta.size >= size and np.array_equal(theta[theta.size - size :], np.ravel(model.C))
    _claim(last, "the last entries of theta must be those of C, row-major")
    theta[theta.size - size :] += 0.125
    moved = model.with_theta(theta)
    _agree(moved.C, model.C + 0.125, "with_theta must set C from the last entries", 1e-12)
    again = type(model).from_arrays({name: np.array(value) for name, value in moved.arrays().items()})
    _claim(again.input_dim == model.input_dim, "from_arrays(arrays()) loses its inputs")
    _claim(np.array_equal(again.C, moved.C), "from_arrays(arrays()) has another C")
    s = np.resize(z[:, ::-1], (len(z), model.input_dim))
    pushed = engine.advance(model, z, 1, (s @ model.C.T)[None])[0]
    _agree(offsets(model, s), s @ model.C.T, "the offsets of inputs are not C s", 1e-12)
    _agree(pushed, engine.step(model, z) + s @ model.C.T, "a step under inputs is not F(z) + C s", 1e-9)


def _neighbours(values: Floats) -> Iterator[tuple[Floats, Floats]]:
    for k in range(values.size):
        change = np.zeros(values.size)
        change[k] = _STEP
        yield values + change, values - change


def _differences(slopes: list[Floats], count: int) -> Floats:
    return np.stack(slopes, axis=1) / (2 * _STEP) if slopes else np.zeros((count, 0))
