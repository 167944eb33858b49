"""Who is trained for how long: the budget is kept, a third goes on, and candidates are reproducible."""

from __future__ import annotations

import pytest

from palrnn.model import Forcing
from palrnn.searches.plan import rungs, spent_on
from palrnn.searches.space import Space


def test_a_third_goes_on_and_has_three_times_the_updates():
    plan = rungs(208_000, 60)
    assert [rung.candidates for rung in plan] == [60, 20, 6, 2]
    # 60 + 20 * 2 + 6 * 6 + 2 * 18, and 18 for the ends of the winner and its rival, are 208 units
    assert [rung.updates for rung in plan] == [1000, 2000, 6000, 18_000]
    assert [rung.total for rung in plan] == [1000, 3000, 9000, 27_000]


@pytest.mark.parametrize("updates", [60, 999, 12_345, 600_000, 10**9])
def test_the_budget_is_used_and_kept(updates):
    spent = spent_on(rungs(updates))
    assert 0.8 * updates < spent <= updates


def test_a_budget_that_trains_nobody_is_refused():
    with pytest.raises(ValueError, match="updates must be at least 208 for 60 candidates, got 207"):
        rungs(207, 60)


def test_the_first_candidates_are_the_usual_settings_with_both_ways_of_forcing_and_a_large_model():
    space = Space(columns=3, most_past=2500, tau=16, input_noise=0.02)
    first, second, third = (space.candidate(k).config(10) for k in range(3))
    assert (first.latent_dim, first.gated, first.learning_rate) == (60, 40, 3e-3)
    assert first.forcing == Forcing.identity(16)
    assert second.forcing == Forcing.generalised(0.1)
    assert (second.latent_dim, second.gated) == (60, 40)
    assert (third.latent_dim, third.gated, third.input_noise) == (96, 80, 0.02)
    assert third.forcing == Forcing.identity(16)
    drawn = {space.candidate(k).config(10).input_noise for k in range(3, 60)}
    assert drawn == {0.0, 0.01, 0.02, 0.04}


def test_of_given_sizes_no_large_model_is_tried():
    space = Space(columns=3, most_past=2500, tau=16, choices={"latent_dim": [12], "gated": [6]})
    assert space.candidate(2).training["learning_rate"] != space.candidate(0).training["learning_rate"]


def test_short_series_are_searched_with_the_optimiser_that_suits_them():
    for optimizer in ("radam", "soap"):
        space = Space(columns=3, most_past=2500, tau=16, optimizer=optimizer)
        assert {space.candidate(k).config(10).optimizer for k in range(8)} == {optimizer}
    asked = Space(columns=3, most_past=2500, tau=16, optimizer="radam", choices={"optimizer": ["soap"]})
    assert asked.candidate(5).config(10).optimizer == "soap"


def test_candidates_differ_and_are_always_the_same():
    drawn = [Space(columns=3, most_past=2500, tau=16, seed=4).candidate(k) for k in range(30)]
    again = [Space(columns=3, most_past=2500, tau=16, seed=4).candidate(k) for k in range(30)]
    assert drawn == again
    assert len({str(each.training) for each in drawn}) == 30
    policies = [each.training["forcing"]["policy"] for each in drawn]
    # three in five are generalised: of 28 draws, 17 and three deviations of 2.6 to each side
    assert 9 <= policies.count("generalised") <= 25
    other = Space(columns=3, most_past=2500, tau=16, seed=5).candidate(7)
    assert other.training != drawn[7].training


def test_what_is_given_holds_for_all_and_leaves_the_other_draws():
    free, bound = (
        Space(columns=3, most_past=2500, tau=16, choices=choices)
        for choices in (None, {"learning_rate": [2e-3], "gradient_clip": ["none"]})
    )
    for k in range(10):
        ours, theirs = bound.candidate(k).training, free.candidate(k).training
        assert (ours["learning_rate"], ours["gradient_clip"]) == (2e-3, "none")
        own = ("learning_rate", "gradient_clip")
        assert {n: v for n, v in ours.items() if n not in own} == {
            n: v for n, v in theirs.items() if n not in own
        }
        assert bound.candidate(k).config(5).gradient_clip is None


def test_several_values_are_all_tried():
    space = Space(columns=3, most_past=2500, tau=16, choices={"tau": [4, 9]})
    assert {space.candidate(k).config(1).forcing for k in range(20)} == {
        Forcing.identity(4),
        Forcing.identity(9),
    }


def test_many_columns_have_units_enough():
    for k in range(20):
        config = Space(columns=64, most_past=2500, tau=5).candidate(k).config(1)
        assert config.latent_dim >= 64 + config.gated
        tight = Space(columns=3, most_past=2500, tau=5, choices={"latent_dim": [4]}).candidate(k).config(1)
        assert (tight.latent_dim, tight.gated) == (4, 1)


def test_the_past_never_takes_more_than_a_quarter_of_the_rows():
    space = Space(columns=1, most_past=25, tau=40, lags=(2, 3, 4, 5), delays=(20, 40, 60))
    drawn = [space.candidate(k) for k in range(40)]
    assert {each.lags for each in drawn} == {2, 3, 4, 5}
    assert all((each.lags - 1) * each.delay <= 25 for each in drawn)


def test_shallow_candidates_have_hidden_units():
    space = Space(columns=3, most_past=250, tau=5, families=("shallow",))
    assert {space.candidate(k).config(1).gated for k in range(30)} == {50, 100, 200}


def test_rungs_see_other_batches():
    candidate = Space(columns=3, most_past=250, tau=5).candidate(3)
    assert len({candidate.config(10, rung).seed for rung in range(4)}) == 4
