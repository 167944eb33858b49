"""The table of fixed points: where, whether they attract, and how far from the data."""

from __future__ import annotations

import dataclasses

import numpy as np
from example_runs import changed_run, example_run

from palrnn.invariants import Fate, Viability
from palrnn.report.sections.attractor import portrait
from palrnn.report.sections.fixed_points import distances, fixed_points, traps


def test_the_nearest_to_the_data_comes_first_and_says_whether_it_attracts():
    run = example_run()
    (table,) = fixed_points([run])
    assert table.caption == "2 in all 8 regions, 1 of them attracting."
    away = distances(run.resting, run.reference)
    first = int(away.argmin())
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert table.rows[0][4] == ("attracts", "unstable in 1 direction")[first]
    assert {row[5] for row in table.rows} == {"0.9800", "1.0200"}


def at_rest(run, places, stable):
    """Return the run with fixed points at raw ``places``, the first of which attracts if ``stable``."""
    card, found = run["invariants"], run["invariants"].fixed_points
    eigenvalues = np.full((len(places), 2), 1.1 + 0j)
    eigenvalues[0] = 0.9 if stable else 1.2
    points = dataclasses.replace(
        found,
        points=np.zeros((len(places), 2)),
        codes=np.zeros((len(places), 3), dtype=bool),
        eigenvalues=eigenvalues,
        admissible=np.ones(len(places), dtype=bool),
    )
    changed = changed_run(run, invariants=dataclasses.replace(card, fixed_points=points))
    return dataclasses.replace(changed, resting=places)


def test_one_that_attracts_within_the_data_is_said_in_a_line():
    run = example_run()
    middle, far = run.reference.mean(axis=0), run.reference.max(axis=0) + 1.0
    (note,) = traps(at_rest(run, np.stack([middle, middle]), stable=True))
    assert note.words.startswith("1 fixed point within the region of the data attracts, though the data")
    assert traps(at_rest(run, np.stack([middle, far]), stable=False)) == []
    assert traps(at_rest(run, np.stack([far, middle]), stable=True)) == []
    still = dataclasses.replace(
        at_rest(run, np.stack([middle, far]), stable=True),
        reference=np.concatenate([run.reference, np.tile(middle, (len(run.reference), 1))]),
    )
    assert traps(still) == []  # the data rest there themselves


def test_a_cycle_that_the_data_do_not_have_is_said_in_a_line():
    run = at_rest(example_run(), np.full((1, 3), 1e6), stable=True)
    fates = (Fate("cycle", 10, 7),) * 4 + (Fate("moves on"),) * 6
    card = dataclasses.replace(run["invariants"], viability=Viability(fates, 100_000))
    (note,) = traps(changed_run(run, invariants=card))
    assert note.words.startswith("4 of 10 long runs fall onto a cycle that the data do not have (period 7)")


def test_the_distance_is_in_deviations_of_each_column():
    data = np.array([[0.0, 0.0], [2.0, 20.0]])  # deviations 1 and 10
    found = distances(np.array([[2.0, 30.0], [0.0, 0.0]]), data)
    np.testing.assert_allclose(found, [np.sqrt(0.5), 0.0], atol=1e-15)
    gap = np.array([[0.0, np.nan], [2.0, 20.0]])
    assert np.isfinite(distances(np.array([[2.0, 30.0]]), gap)).all()


def test_none_and_not_looked_for_are_said():
    run = example_run()
    card = run["invariants"]
    none = dataclasses.replace(
        card.fixed_points,
        points=np.zeros((0, 2)),
        codes=np.zeros((0, 3), dtype=bool),
        eigenvalues=np.zeros((0, 2), dtype=np.complex128),
        admissible=np.zeros(0, dtype=bool),
    )
    (note,) = fixed_points([changed_run(run, invariants=dataclasses.replace(card, fixed_points=none))])
    assert note.words == "None in 8 regions."
    gone = dataclasses.replace(card, fixed_points=None)
    (note,) = fixed_points([changed_run(run, invariants=gone)])
    assert "Not looked for" in note.words


def test_they_are_marked_in_the_portrait():
    names = [trace["name"] for trace in portrait(example_run(), "key").traces]
    assert names[-2:] == ["fixed point, attracts", "fixed point, unstable"]
    far = dataclasses.replace(example_run(), resting=np.full((2, 3), 1e6))
    assert not [t for t in portrait(far, "key").traces if t["name"].startswith("fixed")]
