"""A trajectory is an array that knows whether it diverged, and its parts do not claim to."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from palrnn.engine.kernel import kernel
from palrnn.model import Trajectory


@pytest.fixture
def trajectory():
    return Trajectory(np.arange(12.0).reshape(6, 2), diverged_at=6)


@kernel
def _total(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i, 0]
    return total


def test_whole_copies_keep_the_step_also_in_another_process(trajectory):
    for each in (
        trajectory.copy(),
        copy.copy(trajectory),
        copy.deepcopy(trajectory),
        pickle.loads(pickle.dumps(trajectory)),
    ):
        assert isinstance(each, Trajectory)
        assert each.diverged_at == 6
        np.testing.assert_array_equal(each, trajectory)
    assert pickle.loads(pickle.dumps(Trajectory(np.zeros((2, 2))))).diverged_at is None


@pytest.mark.parametrize(
    "part",
    [
        lambda t: t[:3],
        lambda t: t[3:],
        lambda t: t[:, 0],
        lambda t: t[0],
        lambda t: t[[0, 2]],
        lambda t: t[t[:, 0] > 3],
        lambda t: np.split(np.asarray(t), 2)[0],
        lambda t: next(iter(t)),
    ],
)
def test_a_part_is_an_ordinary_array(trajectory, part):
    assert type(part(trajectory)) is np.ndarray
    assert not hasattr(part(trajectory), "diverged_at")


def test_what_is_computed_from_it_is_ordinary(trajectory):
    for result in (
        trajectory + 1,
        -trajectory,
        np.exp(trajectory),
        trajectory @ np.eye(2),
        trajectory.mean(axis=0),
    ):
        assert type(result) is np.ndarray
    assert isinstance(trajectory.sum(), float)
    assert isinstance(np.asarray(trajectory), np.ndarray)
    assert type(np.asarray(trajectory)) is np.ndarray


def test_it_can_be_written_to_like_an_array(trajectory):
    trajectory[0, 0] = 5.0
    assert trajectory[0, 0] == 5.0
    assert trajectory.diverged_at == 6


def test_kernels_take_it_for_the_array_it_is(trajectory):
    assert _total(trajectory) == _total(np.asarray(trajectory)) == 30.0
    assert len(_total.signatures) == 1  # nothing is compiled twice
