"""A section, or a headline, is added from outside by a decorator alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from example_runs import changed_run, example_run

from palrnn.report import registry
from palrnn.report.blocks import Card, Text
from palrnn.report.document import report_page
from palrnn.report.registry import analyses, headline, headlines, section, sections
from palrnn.report.view import Run


@pytest.fixture
def added() -> Iterator[None]:
    sections()  # those that come with the package are registered when first asked for
    kept, cards = dict(registry._sections), list(registry._headlines)

    @section("fate", "Where it ends", order=55, needs="invariants", lead="All things pass.")
    def fate(runs: Sequence[Run]) -> list[Text]:
        return [Text(f"{run.name} ends at {run['invariants'].hard.generated[-1, 0]:.1f}") for run in runs]

    @headline(order=15, needs="invariants")
    def steps(run: Run) -> Card:
        return Card("Steps", str(len(run["invariants"].reference)), "As long as it was followed.")

    yield
    registry._sections.clear(), registry._sections.update(kept)
    registry._headlines[:] = cards


def test_a_section_stands_where_its_order_says(added: None) -> None:
    page = report_page([example_run()])
    keys = [part.key for part in page.sections]
    assert keys.index("invariants") < keys.index("fate") < keys.index("symbols")
    found = next(part for part in page.sections if part.key == "fate")
    assert (found.title, found.lead) == ("Where it ends", "All things pass.")
    assert found.blocks[0].words.startswith("lorenz ends at")


def test_a_headline_stands_among_the_others(added: None) -> None:
    labels = [card.label for card in headlines(example_run())]
    assert labels.index("Steps") == 2


def test_a_section_sees_only_runs_that_have_what_it_needs(added: None) -> None:
    bare = changed_run(example_run("bare"), invariants=None)
    page = report_page([bare, example_run("whole")])
    found = next(part for part in page.sections if part.key == "fate")
    assert len(found.blocks) == 1
    assert "fate" not in [part.key for part in report_page([bare]).sections]


def test_what_sections_need_is_what_a_reconstruction_can_be_asked() -> None:
    from palrnn.runs import Reconstruction

    assert len(analyses()) >= 5
    assert all(callable(getattr(Reconstruction, name)) for name in analyses())
    assert len({entry.key for entry in sections()}) == len(sections())


def test_two_sections_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="the section 'geometry' is there already"):

        @section("geometry", "Mine", order=1)
        def mine(runs: Sequence[Run]) -> list[Text]:
            return []
