"""Sections and headlines of the report, by decorator: adding one is one file in `palrnn.report.sections`.

    @section("geometry", "Two geometries", order=70, needs="geometry", lead="Teacher forcing follows ...")
    def geometry(runs: Sequence[Run]) -> Iterable[Block]: ...

    @headline(order=30, needs="geometry")
    def gap(run: Run) -> Card | None: ...

``needs`` names the result that the section draws, which is also the name of the method of `Reconstruction`
that computes it; a run without it is left out, and so is a section that no run has anything for.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from palrnn.report.blocks import Block, Card, Cards, Section
from palrnn.report.view import Run

Draw = Callable[[Sequence[Run]], Iterable[Block]]
Sum = Callable[[Run], Card | None]
D = TypeVar("D", bound=Callable[..., object])


@dataclass(frozen=True)
class Entry:
    """A section that has been registered: where it stands, what it needs, and what draws it."""

    key: str
    title: str
    order: int
    needs: str | None
    lead: str
    draw: Draw

    def section(self, runs: Sequence[Run]) -> Section | None:
        """Return the section for ``runs``, or None if there is nothing to show.

        Headlines that sum up what it draws stand on top, unless they belong to the picture of the attractor.
        """
        having = _having(runs, self.needs)
        blocks = tuple(self.draw(having)) if having else ()
        if not blocks:
            return None
        if self.needs not in FIRST:
            named = [(run.name if len(having) > 1 else "", _cards(run, {self.needs})) for run in having]
            blocks = (*(Cards(cards, name) for name, cards in named if cards), *blocks)
        return Section(self.key, self.title, self.lead, blocks)


#: Headlines that need one of these stand beside the picture of the attractor, others on top of their section.
FIRST = (None, "invariants")

_sections: dict[str, Entry] = {}
_headlines: list[tuple[int, str | None, Sum]] = []


def section(
    key: str, title: str, *, order: int, needs: str | None = None, lead: str = ""
) -> Callable[[Draw], Draw]:
    """Register a function as the section ``key``; the page shows sections by ``order``, then by key."""

    def register(draw: Draw) -> Draw:
        if key in _sections and _sections[key].draw.__module__ != draw.__module__:
            raise ValueError(f"the section {key!r} is there already, from {_sections[key].draw.__module__}")
        _sections[key] = Entry(key, title, order, needs, lead, draw)
        return draw

    return register


def headline(*, order: int, needs: str | None = None) -> Callable[[Sum], Sum]:
    """Register a function as a headline number: a card beside the picture or on top of what it sums up."""

    def register(make: Sum) -> Sum:
        _headlines.append((order, needs, make))
        return make

    return register


def sections() -> list[Entry]:
    """Return all sections in the order of the page."""
    _load()
    return sorted(_sections.values(), key=lambda entry: (entry.order, entry.key))


def headlines(run: Run) -> tuple[Card, ...]:
    """Return the numbers that sum ``run`` up, each with a sentence on what it means."""
    _load()
    return _cards(run, {needs for _, needs, _ in _headlines})


def first_headlines(run: Run) -> tuple[Card, ...]:
    """Return those that stand beside the picture of the attractor; the verdict has a banner of its own."""
    _load()
    return tuple(card for card in _cards(run, FIRST) if card.label != "Verdict")


def analyses() -> list[str]:
    """Return the names of all results that some section draws, in the order of the page."""
    return list(dict.fromkeys(entry.needs for entry in sections() if entry.needs is not None))


def _cards(run: Run, about: Collection[str | None]) -> tuple[Card, ...]:
    wanted = sorted((each for each in _headlines if each[1] in about), key=lambda each: each[0])
    made = (make(run) for _, needs, make in wanted if _having([run], needs))
    return tuple(card for card in made if card is not None)


def _having(runs: Sequence[Run], needs: str | None) -> list[Run]:
    return [run for run in runs if needs is None or run.results.get(needs) is not None]


def _load() -> None:
    """Import every file of `palrnn.report.sections`, which registers what it holds."""
    from palrnn.report import sections as package

    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
