"""SOAP against its formulas in plain NumPy, the bases it works in, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from families.setar import limit_cycle
from oracles.shallow_family import random_shallow

from palrnn.data import Standardizer, make_system
from palrnn.forcing import TrainConfig, itf_loss, train
from palrnn.forcing.batches import BLOCK
from palrnn.forcing.kernels.soap import soap_step
from palrnn.forcing.soap import LONGEST, blocks_in, curvature_of, turn_bases, weight_places
from palrnn.model import ALRNN, ShallowPLRNN, initial_alrnn
from palrnn.model.surrogate import training_vector

MODELS = {
    "alrnn": initial_alrnn(5, 3, 2, seed=0),
    "alrnn, inputs": ALRNN(
        np.full(4, 0.5), np.zeros((4, 4)), np.zeros(4), np.zeros((4, 2)), 3, C=np.ones((4, 2))
    ),
    "shallow": random_shallow(3, 2, 7),
}
every_model = pytest.mark.parametrize("name", MODELS)


def recorded_gradients(model, steps, seed=0):
    # as those of weights are: errors times activities that move together, of scales far apart
    rng = np.random.default_rng(seed)
    size = training_vector(model).size
    common = rng.standard_normal((size, 3))
    scale = 10.0 ** rng.uniform(-3, 0, size)
    return scale * (rng.standard_normal((steps, 3)) @ common.T + 0.1 * rng.standard_normal((steps, size)))


def ours(model, gradients, rates):
    theta = training_vector(model)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    blocks = blocks_in(model, curvature_of(model))
    path = []
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True)):
        if t and t % BLOCK == 0:
            turn_bases(blocks, first, second)
        soap_step(theta, first, second, tuple(map(tuple, blocks)), gradient, t + 1, rate, 0.0)
        path.append(theta.copy())
    return np.array(path)


class PlainMatrix:
    """Vyas et al. (2024), algorithm 3, with eigenvectors for a power step, and moments carried over."""

    def __init__(self, shape):
        self.L, self.R = np.zeros((shape[0],) * 2), np.zeros((shape[1],) * 2)
        self.QL, self.QR = np.eye(shape[0]), np.eye(shape[1])
        self.m, self.v = np.zeros(shape), np.zeros(shape)

    def turn(self):
        QL, QR = (np.linalg.eigh(S)[1][:, ::-1] for S in (self.L, self.R))
        self.m = QL.T @ (self.QL @ self.m @ self.QR.T) @ QR
        self.v = (QL.T @ self.QL) ** 2 @ self.v @ ((self.QR.T @ QR) ** 2)
        self.QL, self.QR = QL, QR

    def step(self, G, t):
        self.L, self.R = 0.95 * self.L + 0.05 * G @ G.T, 0.95 * self.R + 0.05 * G.T @ G
        turned = self.QL.T @ G @ self.QR
        self.m, self.v = 0.9 * self.m + 0.1 * turned, 0.95 * self.v + 0.05 * turned**2
        scaled = self.m / (1 - 0.9**t) / (np.sqrt(self.v / (1 - 0.95**t)) + 1e-8)
        return self.QL @ scaled @ self.QR.T


def parts_of(model, vector):
    """Split a training vector by hand: matrices with their biases and inputs, and the rest."""
    if isinstance(model, ShallowPLRNN):
        M, H = model.latent_dim, model.hidden
        A, W1, W2, h1, h2, C, rest = np.split(vector, np.cumsum([M, M * H, M * H, M, H, M * model.input_dim]))
        matrices = [
            np.c_[W1.reshape(M, H), h1, C.reshape(M, -1)] if C.size else np.c_[W1.reshape(M, H), h1],
            np.c_[W2.reshape(H, M), h2],
        ]
        return matrices, np.concatenate([A, rest])
    M = model.latent_dim
    A, W, h, C, rest = np.split(vector, np.cumsum([M, M * M, M, M * model.input_dim]))
    matrix = np.c_[W.reshape(M, M), h, C.reshape(M, -1)] if C.size else np.c_[W.reshape(M, M), h]
    return [matrix], np.concatenate([A, rest])


@every_model
def test_soap_follows_the_published_algorithm(name):
    model, steps = MODELS[name], 3 * BLOCK
    gradients, rates = recorded_gradients(model, steps), 3e-3 * 0.1 ** (np.arange(steps) / steps)
    path = ours(model, gradients, rates)
    matrices, alone = parts_of(model, training_vector(model))
    plain, m, v = [PlainMatrix(each.shape) for each in matrices], 0.0, 0.0
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        of_matrices, of_rest = parts_of(model, gradient)
        for k, (state, G) in enumerate(zip(plain, of_matrices, strict=True)):
            if t > 1 and (t - 1) % BLOCK == 0:
                state.turn()
            matrices[k] = matrices[k] - rate * state.step(G, t)
        m, v = 0.9 * m + 0.1 * of_rest, 0.95 * v + 0.05 * of_rest**2
        alone = alone - rate * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8)
    found, rest = parts_of(model, path[-1])
    # before the second turn to rounding; afterwards eigenvectors of near-equal eigenvalues carry rounding on
    for one, other in zip(found, matrices, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    np.testing.assert_allclose(rest, alone, rtol=0, atol=1e-12)


@every_model
def test_every_parameter_is_in_one_block(name):
    model = MODELS[name]
    places = [block.places.ravel() for block in blocks_in(model, curvature_of(model))]
    assert sorted(np.concatenate(places)) == list(range(training_vector(model).size))


def test_weights_of_a_unit_and_its_bias_are_one_row():
    model = MODELS["alrnn, inputs"]
    (places,) = weight_places(model)
    vector = np.zeros(training_vector(model).size)
    vector[places[1]] = [1, 2, 3, 4, 5, 6, 7]
    changed = model.with_theta(vector[: model.theta.size])
    np.testing.assert_array_equal(changed.W[1], [1, 2, 3, 4])
    assert changed.h[1] == 5
    np.testing.assert_array_equal(changed.C[1], [6, 7])


def test_turning_leaves_the_first_moment_where_it_was():
    model = MODELS["alrnn"]
    rng = np.random.default_rng(0)
    curvature = curvature_of(model)
    blocks = blocks_in(model, curvature)
    size = training_vector(model).size
    first, second = rng.standard_normal(size), rng.random(size)
    matrix = blocks[-1]
    for moments in (matrix.L, matrix.R):
        root = rng.standard_normal(moments.shape)
        moments[:] = root @ root.T
    before, sum_before = first[matrix.places].copy(), second[matrix.places].sum()
    turn_bases(blocks, first, second)
    back = matrix.QL @ first[matrix.places] @ matrix.QR.T
    np.testing.assert_allclose(back, before, rtol=0, atol=1e-12)
    assert second[matrix.places].sum() == pytest.approx(sum_before)  # a rotation keeps the sum of squares
    turned = matrix.QL.T @ matrix.L @ matrix.QL
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), rtol=0, atol=1e-10)
    assert (np.diff(np.diag(turned)) <= 1e-12).all()  # the largest first


def test_a_side_that_is_too_long_is_not_turned():
    model = random_shallow(3, 3, LONGEST + 1)
    _, wide, tall = blocks_in(model, curvature_of(model))
    assert (wide.QL.shape, wide.QR.shape) == ((3, 3), (0, 0))
    assert (tall.QL.shape, tall.QR.shape) == ((0, 0), (4, 4))


def test_a_family_without_known_matrices_is_trained_by_radam():
    x = np.random.default_rng(0).standard_normal((200, 1))
    start = limit_cycle()
    assert weight_places(start) == ()
    soap, radam = (
        train(x, TrainConfig(updates=20, sequence_length=20, optimizer=name), model=start).model.theta
        for name in ("soap", "radam")
    )
    np.testing.assert_array_equal(soap, radam)
    assert (soap != start.theta).any()


@pytest.mark.parametrize("settings", [{}, {"family": "shallow", "hidden": 30, "alpha": 0.1, "tau": 1}])
def test_soap_gets_further_than_radam_in_the_same_updates(settings):
    system = make_system("lorenz63")
    x = system.simulate(8000, dt=0.01, discard=1000, seed=0)
    x = Standardizer.fit(x).transform(x)
    config = TrainConfig(**{"tau": 16, "updates": 1500, "latent_dim": 20, "gated": 12} | settings)
    if "family" in settings:
        config = TrainConfig(**{"updates": 1500} | settings)
    losses = {
        name: itf_loss(train(x, config.changed(optimizer=name)).model, x, config.forcing)
        for name in ("soap", "radam")
    }
    assert losses["soap"] < 0.5 * losses["radam"], losses
