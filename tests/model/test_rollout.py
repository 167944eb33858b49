"""A rollout is its states and the step at which it diverged."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from palrnn.model import Rollout


def test_it_knows_its_length_and_whether_it_diverged():
    whole, cut = Rollout(np.zeros((6, 2))), Rollout(np.zeros((6, 2)), 6)
    assert (len(whole), whole.diverged, whole.diverged_at) == (6, False, None)
    assert (len(cut), cut.diverged, cut.diverged_at) == (6, True, 6)
    assert repr(whole) == "Rollout(6 states of 2 units)"
    assert repr(cut) == "Rollout(6 states of 2 units, diverged after 6 steps)"


def test_copies_keep_the_step_also_in_another_process():
    rollout = Rollout(np.arange(12.0).reshape(6, 2), 6)
    for each in (copy.copy(rollout), copy.deepcopy(rollout), pickle.loads(pickle.dumps(rollout))):
        assert each.diverged_at == 6
        np.testing.assert_array_equal(each.states, rollout.states)
