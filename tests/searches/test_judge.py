"""The judge of candidates, on models whose fate is known, and what it sees of the data."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import ALRNN, Dataset, TrainConfig, dstsp_floor, lyapunov_spectrum, train
from palrnn.data import lorenz63
from palrnn.data.packing import pack, unpack
from palrnn.invariants.viability import spread_rows
from palrnn.searches.judge import Judgement, failed, judge_model
from palrnn.searches.parts import blocks_for, parts, raw_training


def turning(growth: float = 1.0, angle: float = 0.3) -> ALRNN:
    """A network without gates that turns the plane, and shrinks it by ``growth`` at each step."""
    turn = growth * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return ALRNN(np.zeros(2), turn, np.zeros(2), np.eye(2), 0)


def circle(noise: float = 0.0) -> np.ndarray:
    phase = 0.3 * np.arange(6000)[:, None]
    # deviation one in both coordinates, so that the standardised plane turns as the raw one does
    exact = np.sqrt(2.0) * np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    return exact + noise * np.random.default_rng(0).standard_normal(exact.shape)


def test_the_true_map_is_good_and_one_that_comes_to_rest_is_not():
    data = parts([circle()])
    true, dying = (judge_model(turning(growth), data, long_steps=20_000) for growth in (1.0, 0.999))
    assert true.grade == "good"
    assert true.loss == pytest.approx(0.0, abs=0.1)
    assert (dying.grade, dying.alive) == ("not usable", 0)
    assert "comes to rest" in dying.verdict
    assert true.key < dying.key < failed(7, 20_000).key


def test_another_speed_is_seen_in_the_spectrum():
    data = parts([circle()])
    slow, true = (judge_model(turning(angle=angle), data, long_steps=20_000) for angle in (0.25, 0.3))
    # it goes through the same places, so that only D_H can tell
    assert slow.dstsp == pytest.approx(slow.dstsp_floor, abs=0.1)
    assert slow.spectrum_distance > 10 * slow.spectrum_floor > true.spectrum_distance
    assert true.key < slow.key
    assert "it moves at another pace" in slow.verdict


def test_a_run_without_chaos_is_not_good_for_a_flow_that_has_it():
    turns = np.zeros((3, 3))
    turns[:2, :2] = turning(angle=2 * np.pi / 400.3).W
    torus = ALRNN(np.zeros(3), turns, np.zeros(3), np.eye(3), 0)
    data = parts([lorenz63(6000)])

    def told(start, steps, flow):
        return 1e-6 if steps > 10_000 else 1e-5

    found = judge_model(torus, data, long_steps=1000, exponent=told)
    assert found.rough == 0.0
    assert "no exponent is positive" in found.verdict
    assert "no exponent" not in judge_model(torus, data, long_steps=1000, exponent=lambda *_: 0.01).verdict


def test_noise_in_the_data_is_held_less_against_the_true_map(monkeypatch):
    exact, noisy = (judge_model(turning(), parts([circle(noise)]), long_steps=20_000) for noise in (0.0, 0.1))
    assert (exact.noisy, noisy.noisy) == (False, True)
    monkeypatch.setattr("palrnn.searches.judge.noise_level", lambda x: np.zeros(x.shape[1]))
    blind = judge_model(turning(), parts([circle(0.1)]), long_steps=20_000)
    # a line through bins that noise of about a bin's width fills, or a line as wide as these
    assert noisy.dstsp < blind.dstsp - 1.0


def test_living_comes_before_scoring():
    def found(grade: str, ended: int, dstsp: float) -> Judgement:
        return Judgement(grade, (), 10 - ended, ended, 10, 1000, dstsp, 0.2, 0.1, 0.05, 0.1, False)

    order = [
        found("good", 0, 0.9),
        found("fair", 0, 2.0),
        found("fair", 1, 0.3),
        found("not usable", 1, 3.0),
        # where none is of use, an end is no more than its share of the loss
        found("not usable", 0, 9.0),
        found("not usable", 10, 4.0),
    ]
    assert sorted(order[2:] + order[:2], key=lambda each: each.key) == order


def test_a_judgement_survives_its_plain_form():
    found = failed(12, 1000)
    assert Judgement.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("lags", [1, 3])
def test_the_scale_is_that_of_the_dataset_and_the_held_out_part_is_not_there(lags):
    x = lorenz63(1000, seed=1)[:, :1]
    base, whole = (Dataset.prepare(x, lags=each, delay=4) for each in (1, lags))
    found = parts(raw_training(base), lags, 4)
    np.testing.assert_array_equal(found.standardizer.mean, whole.standardizer.mean)
    np.testing.assert_array_equal(found.standardizer.std, whole.standardizer.std)
    # 800 rows to train on, of which 160 judge
    assert len(found.validation) == len(found.reference) == 160
    assert len(found.fit[0]) == 640 - (lags - 1) * 4
    np.testing.assert_array_equal(np.concatenate([*found.fit, found.validation]), whole.training[0])
    np.testing.assert_array_equal(found.reference, x[640:800])


@pytest.mark.parametrize(("lags", "delay"), [(1, 1), (3, 7)])
def test_the_ends_of_four_blocks_judge_a_long_series_and_nothing_of_them_is_learned(lags, delay):
    # the first column of a row is its number
    x = np.column_stack([np.arange(10_000.0), np.random.default_rng(0).standard_normal(10_000)])
    found, past = parts([x], lags, delay), (lags - 1) * delay
    fit = [found.standardizer.inverse(trial)[:, ::2].round() for trial in found.fit]
    assert [len(trial) for trial in fit] == [2000 - past] * 4
    judging = found.reference[~np.isnan(found.reference[:, 0]), 0]
    # whatever past stands beside them
    ends = (2500, 5000, 7500, 10_000)
    np.testing.assert_array_equal(judging, np.concatenate([np.arange(end - 500, end) for end in ends]))
    # past values among their columns, too
    assert not np.isin(np.concatenate(fit), judging).any()
    seen = found.standardizer.inverse(found.validation)[:, 0]
    np.testing.assert_array_equal(seen[~np.isnan(seen)].round(), judging)
    # no forecast ten steps ahead leads from one stretch into the next
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(seen))[:21], [*range(500, 520), 1020])
    assert len(found.whole) == 1


def test_a_slow_series_and_a_long_past_have_fewer_blocks():
    slow = np.sin(np.arange(5000) / 100)[:, None]
    assert len(parts([slow]).fit) == 1
    assert blocks_for(5000, 1000, past=0, slow=1) == 4
    assert blocks_for(5000, 1000, past=900, slow=1) == 2
    assert blocks_for(5000, 1000, past=0, slow=40) == 2
    assert blocks_for(900, 180, past=0, slow=1) == 1
    # a driven one has inputs that follow each other
    x = np.random.default_rng(0).standard_normal((5000, 2))
    assert len(parts([x], inputs=[x[:, :1]]).fit) == 1


def test_the_floor_is_of_stretches_with_the_gaps_of_the_rows_that_judge(monkeypatch):
    asked = []

    def floor(source, **how):
        asked.append((source, how["length"]))
        return dstsp_floor(source, **how)

    monkeypatch.setattr("palrnn.searches.judge.dstsp_floor", floor)
    data = parts([circle()])
    judge_model(turning(), data, long_steps=1000)
    (source, length), pattern = asked[0], np.isnan(data.reference[:, 0])
    assert pattern.sum() == 60
    np.testing.assert_array_equal(np.isnan(source[:length, 0]), pattern)
    np.testing.assert_array_equal(np.isnan(source[length : 2 * length, 0]), pattern)


def test_one_column_in_short_trials_is_judged_in_a_delay_space_that_fits():
    rng = np.random.default_rng(0)
    trials = [np.sin(np.arange(60) / 12 + rng.uniform(0, 6))[:, None] for _ in range(3)]
    one = ALRNN(np.array([0.9]), np.zeros((1, 1)), np.zeros(1), np.eye(1), 0)
    assert judge_model(one, parts(trials), long_steps=1000).grade == "not usable"


def test_a_gap_as_long_as_a_block_leaves_the_others():
    x = lorenz63(6000)
    x[3000:4600] = np.nan
    data = parts([x])
    found = judge_model(_two_rates(1.0), data, long_steps=1000)
    assert np.isfinite([found.dstsp, found.error, found.spectrum_distance]).all()


def test_a_series_that_changes_late_is_judged_and_learned_with_the_change():
    x = np.random.default_rng(0).standard_normal((8000, 2))
    x[7200:] += 20.0
    found = parts([x])
    late = found.standardizer.transform(np.full((1, 2), 10.0))[0, 0]
    assert (found.fit[-1][:, 0] > late).any()
    assert (found.validation[:, 0] > late).any()


def test_of_short_trials_a_whole_one_judges():
    trials = [np.random.default_rng(k).standard_normal((90 + k, 2)) for k in range(3)]
    found = parts(trials, 2, 3)
    assert [len(trial) for trial in found.fit] == [87, 88]
    assert len(found.validation) == len(found.reference) == 89


def test_too_short_a_series_is_refused():
    with pytest.raises(ValueError, match="x must leave 200 rows"):
        parts([np.random.default_rng(0).standard_normal((150, 2))])


def test_trials_travel_as_bytes():
    trials = [np.random.default_rng(k).standard_normal((20 + k, 2)) for k in range(12)]
    trials[3][4, 1] = np.nan
    for there, back in zip(trials, unpack(pack(trials)), strict=True):
        np.testing.assert_array_equal(there, back)


def test_a_model_is_rough_by_what_its_map_and_the_flow_it_samples_differ():
    data = parts([lorenz63(6000)])

    def told(start, steps, flow):
        return 0.006 if flow else 0.008

    assert judge_model(_two_rates(0.999), data, long_steps=1000, exponent=told).rough == pytest.approx(0.25)
    # along a growing turn both are the same, for its map is linear
    turn = 1.001 * np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    spiral = ALRNN(np.zeros(2), turn, np.zeros(2), np.zeros((2, 2)), 0)
    assert judge_model(spiral, parts([lorenz63(6000)[:, :2]]), long_steps=1000).rough == pytest.approx(
        0.0, abs=0.02
    )


def test_a_trained_map_of_a_flow_has_slopes_that_jump_and_is_rough_by_that():
    x = lorenz63(12_000, seed=1)
    data = parts([x])
    config = TrainConfig(latent_dim=20, gated=10, updates=1500, sequence_length=100)
    model = train(data.fit, config).model
    how = {"steps": 10_000, "discard": 1000, "dt": 1.0, "k": 1}
    by_start = []
    for start in data.validation[spread_rows(data.validation, 10)][[0, 4, 8]]:
        of_map, of_flow = (
            lyapunov_spectrum(model, start, **how, flow=each).largest for each in (False, True)
        )
        by_start.append(abs(of_map - of_flow) / max(of_map, of_flow))
    found = judge_model(model, data, long_steps=1000)
    assert found.rough == pytest.approx(np.median(by_start), rel=1e-9)
    assert found.rough > 0.0
    smooth = judge_model(model, data, long_steps=1000, exponent=lambda *_: 0.01)
    assert smooth.rough == 0.0
    assert found.loss - smooth.loss == pytest.approx(4.0 * found.rough, abs=1e-9)


def test_one_start_that_ends_elsewhere_does_not_decide_how_rough_a_model_is():
    data = parts([lorenz63(6000)])
    first = data.validation[spread_rows(data.validation, 10)][0]

    def told(start, steps, flow):
        if (start == first).all():
            return 0.0
        return 0.006 if flow else 0.008

    assert judge_model(_two_rates(0.999), data, long_steps=1000, exponent=told).rough == pytest.approx(0.25)


@pytest.mark.parametrize(("largest", "part"), [(4.9e-4, 0.0), (5.5e-4, 0.1), (7.5e-4, 0.5), (2e-3, 1.0)])
def test_how_rough_a_model_is_comes_to_count_where_chaos_begins(largest, part):
    data = parts([lorenz63(6000)])

    def told(start, steps, flow):
        return 0.5 * largest if flow else largest

    rough = judge_model(_two_rates(0.999), data, long_steps=1000, exponent=told).rough
    assert rough == pytest.approx(0.5 * part, abs=1e-9)


def test_models_of_maps_are_not_asked_for_the_exponents_of_a_flow():
    noise = np.random.default_rng(0).standard_normal((6000, 3))

    def never(*_):
        raise AssertionError

    assert judge_model(_two_rates(0.999), parts([noise]), long_steps=1000, exponent=never).rough == 0.0


def test_nothing_is_worse_than_a_training_that_failed():
    wild = ALRNN(np.zeros(3), 1.5 * np.eye(3), np.ones(3), np.eye(3), 0)
    assert judge_model(wild, parts([lorenz63(6000)]), long_steps=1000).key <= failed(7, 1000).key


def test_without_chaos_no_exponent_is_missed():
    assert judge_model(turning(), parts([circle()]), long_steps=1000).rough == 0.0


def _two_rates(second: float) -> ALRNN:
    """A linear map of exponents log 1.0015, log ``second`` and log 0.5, at rest."""
    return ALRNN(np.zeros(3), np.diag([1.0015, second, 0.5]), np.zeros(3), np.zeros((3, 3)), 0)
