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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from palrnn.report.blocks import Block, Card, Section
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
        """Return the section for ``runs``, or None if there is nothing to show."""
        blocks = tuple(self.draw(having)) if (having := _having(runs, self.needs)) else ()
        return Section(self.key, self.title, self.lead, blocks) if blocks else None


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
    """Register a function as a headline number: a card at the top of the page and the end of the demo."""

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
    made = (make(run) for _, needs, make in sorted(_headlines, key=lambda h: h[0]) if _having([run], needs))
    return tuple(card for card in made if card is not None)


def analyses() -> list[str]:
    """Return the names of all results that some section draws, in the order of the page."""
    return list(dict.fromkeys(entry.needs for entry in sections() if entry.needs is not None))


def _having(runs: Sequence[Run], needs: str | None) -> list[Run]:
    return [run for run in runs if needs is None or run.results.get(needs) is not None]


def _load() -> None:
    """Import every file of `palrnn.report.sections`, which registers what it holds."""
    from palrnn.report import sections as package

    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
