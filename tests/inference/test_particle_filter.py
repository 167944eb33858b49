"""What the filter reports about itself, what it does with gaps, and how it fails."""

import numpy as np
import pytest
from oracles.small_models import drawn_series, gated_model

from palrnn import FilterConfig, FilterDiedError, rbpf, smooth, windowed_evidence


@pytest.fixture(scope="module")
def example():
    model = gated_model(3, observed=2, latent=6, seed=4)
    return model, drawn_series(model, 40)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(example):
    model, x = example
    first, again, other = (rbpf(model, x, seed=seed) for seed in (3, 3, 4))
    for name in ("increments", "ess", "code_entropy", "code_words", "ancestors", "log_weights"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert first.log_evidence != other.log_evidence


def test_the_diagnostics_are_what_they_say(example):
    model, x = example
    filtered = rbpf(model, x, particles=64)
    steps = len(x) - 1
    assert filtered.log_evidence == pytest.approx(filtered.increments.sum())
    assert (filtered.ess >= 1).all()
    assert (filtered.ess <= 64 * (1 + 1e-12)).all()
    np.testing.assert_array_equal(filtered.resampled[:-1], filtered.ess[:-1] < 32)
    assert not filtered.resampled[-1]
    for t in range(1, steps):
        parents = filtered.ancestors[t]
        assert filtered.survivors[t - 1] == len(np.unique(parents))
        if not filtered.resampled[t - 1]:
            np.testing.assert_array_equal(parents, np.arange(64))
    assert filtered.entropy_bound == 6.0
    assert (filtered.code_entropy <= 3).all()
    # single gates cannot be less uncertain in sum than together
    assert (filtered.bit_entropy >= filtered.code_entropy - 1e-12).all()
    assert "64 particles" in repr(filtered)
    assert "multinomial" in repr(filtered)


def test_the_last_entropy_and_gate_probabilities_follow_from_weights_and_codes(example):
    model, x = example
    filtered = rbpf(model, x, particles=50)
    weights, codes = np.exp(filtered.log_weights), filtered.code_words[-1, :, 0]
    masses = np.array([weights[codes == code].sum() for code in np.unique(codes)])
    assert filtered.code_entropy[-1] == pytest.approx(-np.sum(masses * np.log2(masses)), abs=1e-12)
    bits = (codes[:, None] >> np.arange(3, dtype=np.uint64)) & np.uint64(1)
    np.testing.assert_allclose(filtered.gate_probability[-1], weights @ bits.astype(float), atol=1e-12)
    assert filtered.ess[-1] == pytest.approx(1 / np.sum(weights**2))


def test_a_schedule_forces_resampling(example):
    model, x = example
    plan = np.arange(len(x) - 1) % 2 == 0
    filtered = rbpf(model, x, particles=16, schedule=plan, resampling="systematic")
    np.testing.assert_array_equal(filtered.resampled[:-1], plan[:-1])
    assert filtered.config.resampling == "systematic"


def test_an_unobserved_row_is_a_prediction_and_costs_no_evidence(example):
    model, x = example
    x = x.copy()
    x[10:20] = np.nan
    filtered = rbpf(model, x, particles=16)
    np.testing.assert_array_equal(filtered.increments[9:19], 0.0)
    assert np.isfinite(filtered.increments).all()
    assert np.isfinite(smooth(filtered).states).all()


def test_what_is_observed_of_a_row_still_counts(example):
    # observing a coordinate with almost infinite noise is not observing it
    model, x = example
    gaps = x.copy()
    gaps[5:30, 1] = np.nan
    blurred = type(model)(model.drift, model.process, np.array([0.4, 1e6]), model.gate_std, model.initial)
    alone = rbpf(
        blurred, np.where(np.arange(40)[:, None] == 0, x, np.column_stack([x[:, 0], x[:, 0] * np.nan]))
    )
    both = rbpf(blurred, x)
    # the second coordinate adds its own log density N(0, 1e12) and, to 1e-9, nothing else
    density = -0.5 * np.log(2 * np.pi * 1e12)
    np.testing.assert_allclose(both.increments - density, alone.increments, atol=1e-9)
    seen = rbpf(model, gaps).increments
    assert np.isfinite(seen).all()
    assert not np.allclose(seen, rbpf(model, x).increments)


def test_impossible_data_is_an_error_that_says_where_and_what_to_do(example):
    model, x = example
    sure = type(model)(model.drift, 1e-5, 1e-5, 0.5)
    x = x.copy()
    # the squared distance in deviations is beyond the largest number there is
    x[7] = 1e150
    with pytest.raises(
        FilterDiedError, match=r"all 8 particles died at step 7 of 39.*larger observation or process noise"
    ):
        rbpf(sure, x, particles=8)


def test_a_state_that_overflows_is_a_dead_particle_not_a_good_one():
    # unobserved for long, an unstable state leaves the numbers; NaN must not pass for "not observed"
    model = gated_model(1, observed=1, latent=2)
    drift = type(model.drift)(np.array([50.0, 50.0]), model.drift.W, model.drift.h, model.drift.E, 1)
    x = np.full((400, 1), np.nan)
    x[0] = x[-1] = 1.0
    with pytest.raises(FilterDiedError, match="died at step 399 of 399"):
        rbpf(model.with_drift(drift), x, particles=8)


def test_very_unlikely_data_is_not_the_end(example):
    model, x = example
    x = x.copy()
    x[7] = 1e6
    assert np.isfinite(rbpf(model, x, particles=8).log_evidence)


def test_settings_are_keywords_or_a_config_or_a_config_with_keywords_on_top(example):
    model, x = example
    config = FilterConfig(particles=20, target="exact", resampling="systematic", seed=3)
    runs = [
        rbpf(model, x, config),
        rbpf(model, x, particles=20, target="exact", resampling="systematic", seed=3),
        rbpf(model, x, config.changed(particles=9, seed=1), particles=20, seed=3),
    ]
    for run in runs:
        assert run.config == config
        np.testing.assert_array_equal(run.increments, runs[0].increments)
    windows = [
        windowed_evidence(model, x, 10, config),
        windowed_evidence(model, x, 10, particles=20, target="exact", resampling="systematic", seed=3),
    ]
    np.testing.assert_array_equal(windows[0].per_window, windows[1].per_window)
    # the paper's, but for the number of particles
    assert rbpf(model, x).config == FilterConfig()


def test_bad_arguments_are_named(example):
    model, x = example
    late = x.copy()
    late[0, 1] = np.nan
    cases = {
        r"x\[0\] must be fully observed.*column 1": ((model, late), {}),
        "model must be a PALRNN, got ALRNN": ((model.drift, x), {}),
        "x must have 2 columns": ((model, x[:, :1]), {}),
        "target: input should be 'paper' or 'exact', got 'both'": ((model, x), {"target": "both"}),
        "resampling: should be one of multinomial, .*got 'none'": ((model, x), {"resampling": "none"}),
        "particles: input should be greater than or equal to 1, got 0": ((model, x), {"particles": 0}),
        "ess_threshold: input should be greater than or equal to 0": ((model, x), {"ess_threshold": -1.0}),
        "partikel is not a known setting": ((model, x), {"partikel": 3}),
        "config must be a FilterConfig, got dict": ((model, x, {"particles": 3}), {}),
        r"schedule must have shape \(39,\)": ((model, x), {"schedule": [True]}),
        "seed: input should be greater than or equal to 0": ((model, x), {"seed": -1}),
    }
    for message, (arguments, options) in cases.items():
        with pytest.raises(ValueError, match=message):
            rbpf(*arguments, **options)


def test_progress_is_reported_and_pieces_do_not_change_the_result(example):
    model, x = example
    heard = []
    loud = rbpf(model, x, particles=20_000, progress=lambda done, total, figures: heard.append((done, total)))
    assert heard[-1] == (39, 39)
    assert len(heard) > 5
    assert loud.log_evidence == pytest.approx(rbpf(model, x, particles=20_000).log_evidence)


def test_memory_stays_small():
    # codes and ancestors are kept for every particle and step, covariances for none: 12 bytes, not 8 KB
    model = gated_model(10, observed=3, latent=30, seed=1)
    filtered = rbpf(model, drawn_series(model, 11), particles=512)
    kept = sum(value.nbytes for value in vars(filtered).values() if isinstance(value, np.ndarray))
    assert kept < 20 * 512 * 10
