"""Gaps that leave nothing to start from, or nothing to learn, get an error that names the argument."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

import palrnn
from palrnn.engine.progress import quiet

X = np.random.default_rng(0).standard_normal((200, 3))
BAD = {
    "a column never seen": np.where(np.arange(3) == 1, np.nan, X),
    "a gap in every row": np.where(np.arange(200)[:, None] % 3 == np.arange(3), np.nan, X),
    "nothing at all": np.full_like(X, np.nan),
    "nothing after the first row": np.where(np.arange(200)[:, None] > 0, np.nan, X),
}
QUICK = {"updates": 2, "sequence_length": 20}
SAEM = palrnn.SAEMConfig(iterations=1, length=8, windows=2, particles=8, paths=2)
DRIFTS = {"AL-RNN": random_network(5, 3, 2, seed=0), "shallow": random_shallow(3, 3, 4, seed=0)}
CALLS = {
    "train": lambda x, drift: palrnn.train(x, palrnn.TrainConfig(**QUICK), progress=quiet),
    "train shallow": lambda x, drift: palrnn.train(
        x, palrnn.TrainConfig(family="shallow", hidden=4, **QUICK), progress=quiet
    ),
    "reconstruct": lambda x, drift: palrnn.reconstruct(x, progress=quiet, **QUICK),
    "itf_loss": lambda x, drift: palrnn.itf_loss(drift, x, 8),
    "itf_gradient": lambda x, drift: palrnn.itf_gradient(drift, x, 8),
    "itf_fisher": lambda x, drift: palrnn.itf_fisher(drift, x, 8, 0.1),
    "rbpf": lambda x, drift: palrnn.rbpf(palrnn.PALRNN(drift, 0.1, 0.1, 0.5), x, particles=8),
    "windowed_evidence": lambda x, drift: palrnn.windowed_evidence(
        palrnn.PALRNN(drift, 0.1, 0.1, 0.5), x, 10, windows=3, particles=8, progress=quiet
    ),
    "saem": lambda x, drift: palrnn.saem(palrnn.PALRNN(drift, 0.1, 0.1, 0.5), x, SAEM, progress=quiet),
}


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bad", BAD)
def test_the_argument_is_named(bad, call, drift):
    if bad == "nothing after the first row" and call == "rbpf":
        # a filter may forecast: nothing is learned from it, and its evidence is 1
        filtered = palrnn.rbpf(palrnn.PALRNN(DRIFTS[drift], 0.1, 0.1, 0.5), BAD[bad], particles=8)
        assert filtered.log_evidence == 0.0
        return
    name = "sequences" if call in ("windowed_evidence", "saem") else "x"
    with pytest.raises(ValueError, match=rf"^{name}(\[0\])?(:| must )"):
        CALLS[call](BAD[bad], DRIFTS[drift])


def test_the_column_and_what_to_do_are_named():
    with pytest.raises(ValueError, match="x must hold values in every column, column 1 is all NaN"):
        CALLS["train"](BAD["a column never seen"], None)
    with pytest.raises(ValueError, match="x: column 2 holds no values"):
        CALLS["reconstruct"](BAD["a column never seen"], None)
    with pytest.raises(ValueError, match="give shorter sequences or fewer columns"):
        CALLS["reconstruct"](BAD["a gap in every row"], None)
