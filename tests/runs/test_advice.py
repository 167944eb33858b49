"""What to try next follows from what is wrong and how the model was trained."""

from __future__ import annotations

import pytest

from palrnn import TrainConfig, initial_alrnn
from palrnn.invariants import Verdict
from palrnn.runs.advice import advice

DRIFT = initial_alrnn(12, 3, 4)


def test_a_good_model_needs_no_advice():
    assert advice(Verdict("good"), TrainConfig(), DRIFT) == ()


@pytest.mark.parametrize(
    ("cause", "config", "expected"),
    [
        ("rests", TrainConfig.paper(), "input_noise = 0.05 (now 0)"),
        ("rests", TrainConfig(), "input_noise = 0.1 (now 0.05)"),
        ("rests", TrainConfig(updates=1000), 'keep = "best" with evaluate_every = 50'),
        ("rests", TrainConfig(), "polish = 16 (now 0)"),
        ("diverges", TrainConfig(gradient_clip=None), "gradient_clip = 5 (now none)"),
        ("diverges", TrainConfig(learning_rate=3e-3), "learning_rate = 0.001 (now 0.003)"),
        ("score", TrainConfig.paper(), "latent_dim = 60, gated = 40 (now 30, 10)"),
        ("score", TrainConfig(), "updates = 60,000 (now 30,000)"),
        ("exponent", TrainConfig(tau=16), "tau = 8 (now 16)"),
        ("spectrum", TrainConfig.paper(), "latent_dim = 60, gated = 40 (now 30, 10)"),
        ("spectrum", TrainConfig(), "the same rate of sampling"),
        ("not chaotic", TrainConfig.paper(), "input_noise = 0.05 (now 0)"),
        ("not chaotic", TrainConfig(), "updates = 60,000 (now 30,000)"),
    ],
)
def test_each_cause_has_its_numbers(cause, config, expected):
    found = advice(Verdict("fair", ("why",), (cause,)), config, DRIFT)
    assert any(expected in each for each in found)
    assert found[-2] == "another seed (now 0)"
    assert found[-1] == "or let palrnn search (palrnn.search in Python) try such settings by itself"


def test_what_is_so_already_is_not_advised():
    config = TrainConfig(input_noise=0.1, keep="best", evaluate_every=100, polish=16, updates=200_000)
    found = advice(Verdict("not usable", ("why",), ("rests",)), config, DRIFT)
    assert found[0] == "another seed (now 0)"
    assert len(found) == 2


def test_a_training_that_was_cut_short_is_told_so_first():
    words = advice(Verdict("fair", ("why",), ("score",)), TrainConfig(updates=300), DRIFT)
    assert words[0] == "updates = 30,000, the default (now 300)"
    assert sum("updates" in each for each in words) == 1


def test_after_a_search_a_longer_one_is_advised():
    found = advice(Verdict("fair", ("why",), ("rests",)), TrainConfig(), DRIFT, searched=True)
    assert found == ("a longer search: twice the minutes, or more rows",)


def test_one_column_is_told_to_take_lags():
    found = advice(Verdict("fair", ("why",), ("score",)), None, initial_alrnn(5, 1, 2))
    assert found[0] == "one column is rarely enough: lags = 3 adds past values"
