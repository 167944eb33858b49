"""The table of fixed points: where, whether they attract, and how far from the data."""

from __future__ import annotations

import dataclasses

import numpy as np
from example_runs import changed_run, example_run

from palrnn.report.sections.attractor import portrait
from palrnn.report.sections.fixed_points import distances, fixed_points


def test_the_nearest_to_the_data_comes_first_and_says_whether_it_attracts():
    run = example_run()
    (table,) = fixed_points([run])
    assert table.caption == "2 in all 8 regions, 1 of them attracting."
    away = distances(run.resting, run.reference)
    first = int(away.argmin())
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert table.rows[0][4] == ("attracts", "unstable in 1 direction")[first]
    assert {row[5] for row in table.rows} == {"0.9800", "1.0200"}


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
