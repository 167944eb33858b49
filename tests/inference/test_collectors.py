"""Diagnostics are functions of finished transitions, the filter's own and anybody's."""

import numpy as np
import pytest
from oracles.shallow_family import shallow_model
from oracles.small_models import drawn_series, gated_model

from palrnn import rbpf
from palrnn.inference import collectors, fast_filter, reference
from palrnn.inference.collectors import Steps


@pytest.fixture(scope="module", params=["fast", "plain"])
def example(request):
    model = gated_model(3, observed=2, latent=6, seed=4) if request.param == "fast" else shallow_model(seed=1)
    return model, drawn_series(model, 40)


def everything(seen):
    """A collector that keeps what it is shown."""

    def collector(steps):
        seen.append(Steps(*(np.copy(part) for part in steps)))
        return np.arange(steps.first, steps.first + len(steps.weights))

    return collector


def test_a_collector_sees_every_transition_once_and_in_order(example):
    model, x = example
    seen = []
    filtered = rbpf(model, x, particles=30, collect={"step": everything(seen)})
    np.testing.assert_array_equal(filtered.collected["step"], np.arange(39))
    weights, words, ancestors = (
        np.concatenate([getattr(steps, name) for steps in seen])
        for name in ("weights", "code_words", "ancestors")
    )
    np.testing.assert_array_equal(words, filtered.code_words)
    np.testing.assert_array_equal(ancestors, filtered.ancestors)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(1.0 / (weights**2).sum(axis=1), filtered.ess, rtol=1e-12)
    np.testing.assert_allclose(weights[-1], np.exp(filtered.log_weights), atol=1e-14)


def test_pieces_do_not_show_in_what_is_collected(monkeypatch):
    model = gated_model(3, observed=2, latent=6, seed=4)
    x = drawn_series(model, 40)
    wanted = {"top": lambda steps: steps.weights.max(axis=1), "open": lambda steps: steps.codes.sum(axis=1)}
    whole = rbpf(model, x, particles=30, collect=wanted)
    monkeypatch.setattr(fast_filter, "_PIECE", 100)
    pieces = rbpf(model, x, particles=30, collect=wanted)
    for name, value in whole.collected.items():
        np.testing.assert_array_equal(value, pieces.collected[name])
    for name in ("code_entropy", "bit_entropy", "gate_probability", "survivors"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
    assert whole.collected["open"].shape == (39, 3)


def test_collecting_changes_nothing_else(example):
    model, x = example
    alone, watched = (rbpf(model, x, particles=30, collect=c) for c in (None, {"step": everything([])}))
    assert alone.collected == {}
    np.testing.assert_array_equal(alone.increments, watched.increments)
    np.testing.assert_array_equal(alone.ancestors, watched.ancestors)


@pytest.mark.parametrize("gated", [1, 3, 70])
def test_compiled_diagnostics_equal_the_plain_ones(gated):
    model = gated_model(gated, observed=2, latent=gated + 2, seed=4)
    seen = []
    rbpf(model, drawn_series(model, 12), particles=50, collect={"step": everything(seen)})
    for steps in seen:
        for name, compiled in fast_filter.DIAGNOSTICS.items():
            # sums of at most fifty weights, or of two hundred entropies
            np.testing.assert_allclose(
                compiled(steps), reference.DIAGNOSTICS[name](steps), atol=1e-12, err_msg=name
            )


def test_survivors_are_the_distinct_ancestors(example):
    model, x = example
    filtered = rbpf(model, x, particles=30, ess_threshold=0.9)
    distinct = [len(np.unique(row)) for row in filtered.ancestors[1:]]
    np.testing.assert_array_equal(collectors.survivor_counts(filtered.ancestors), [*distinct, 30])
    assert min(distinct) < 30


def test_a_collector_must_return_a_row_per_transition(example):
    model, x = example
    with pytest.raises(ValueError, match=r"collect\['all'\] must return .* rows, one per transition, got"):
        rbpf(model, x, particles=30, collect={"all": lambda steps: steps.weights.sum()})


def test_what_is_no_collector_is_refused(example):
    model, x = example
    with pytest.raises(ValueError, match="collect must be a mapping"):
        rbpf(model, x, particles=30, collect=[np.max])
    with pytest.raises(ValueError, match=r"collect\['top'\] must be a function"):
        rbpf(model, x, particles=30, collect={"top": 3})
