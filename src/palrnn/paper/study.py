"""A study: its settings, tasks, tables, claims, findings and figures, registered by name.

A study is one file in ``studies/`` with one class, and a section of the same name in the presets::

    @study("toy", place=10)
    class ToyStudy(Study[ToySettings]):
        Settings = ToySettings
        def tasks(self): ...
        def tables(self, store): ...

`palrnn reproduce toy` then finds it, `palrnn status` counts its tasks, and summary, figures and the fidelity
page take up what it says. Only ``tasks`` and ``tables`` are needed. A study without ``Settings`` lives on the
shared sections.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from palrnn.engine.checks import one_of
from palrnn.engine.config import Config
from palrnn.sweeps import Store, Task, closure

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from palrnn.paper.claim import Claim, Finding, Listing, Rival
    from palrnn.paper.models import Regime
    from palrnn.paper.presets import Preset
    from palrnn.paper.tables import Rows, Tables

S = TypeVar("S", bound=Config | None)
C = TypeVar("C", bound="type[Study[Any]]")

#: The part of the fidelity page that holds our own findings.
FINDINGS = "What the paper's numbers do not show"

_STUDIES: dict[str, type[Study[Any]]] = {}
# words of the command, and what all studies share in a preset
_RESERVED = ("all", "paper", "report", "scale", "resamples", "data", "training", "invariants")


class Picture(NamedTuple):
    """A figure of the fidelity page: the part of the page that it goes with, its name, what it shows."""

    where: str
    figure: str
    words: str


class Study(Generic[S]):
    """One study at the settings of a preset."""

    name: ClassVar[str]
    place: ClassVar[int]
    Settings: ClassVar[type[Config] | None] = None
    #: Whether it answers what the paper leaves open; `palrnn reproduce paper` leaves it out then.
    ours: ClassVar[bool] = False
    #: The figures that the fidelity page shows.
    pictures: ClassVar[tuple[Picture, ...]] = ()
    #: The width of the study's panel in the figure of the main results; 0: it has none.
    panel_width: ClassVar[float] = 0.0

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self.settings: S = None if self.Settings is None else getattr(preset, self.name)  # type: ignore[assignment]

    @classmethod
    def of(cls, preset: Preset) -> Self:
        """Return the study at the settings of ``preset``, which must have its section."""
        if not cls.is_in(preset):
            raise ValueError(f"the settings have no section [{cls.name}], which is needed")
        return cls(preset)

    @classmethod
    def is_in(cls, preset: Preset) -> bool:
        """Whether ``preset`` has the settings of this study."""
        return cls.Settings is None or getattr(preset, cls.name, None) is not None

    def check(self) -> None:
        """Refuse a preset whose sections do not fit together; a section by itself is checked by its class."""

    def regimes(self) -> list[Regime]:
        """The trained models that the study needs."""
        return []

    def tasks(self) -> list[Task]:
        """The tasks, in the order in which to do them; what they need comes with them."""
        raise NotImplementedError

    def tables(self, store: Store) -> dict[str, Rows]:
        """Rows by file name, of what is finished; the first table has the name of the study."""
        raise NotImplementedError

    def derived_tables(self, tables: Tables) -> dict[str, Rows]:
        """Rows by file name that follow from the tables."""
        return {}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        """How many rows there are, and how many there will be; claims are compared when all are there."""
        return len(tables[self.name]), 0

    def claims(self, tables: Tables) -> list[Claim]:
        """The paper's claims beside our numbers; called when the study's table is there."""
        return []

    def findings(self, tables: Tables) -> list[Finding]:
        """What the paper does not show; called when the study's table is there."""
        return []

    def listings(self, tables: Tables) -> list[Listing]:
        """Tables for the fidelity page; called when the study's table is there."""
        return []

    def rival(self, tables: Tables) -> Rival | None:
        """Claims to take the place of another study's in a second count; called as `listings` is."""
        return None

    def panel(self, figure: SubFigure, tables: Tables) -> None:
        """Draw the study's panel in the figure of the main results."""

    def figures(self, tables: Tables) -> dict[str, Figure]:
        """Figures of its own, by name; called when the study's table is there."""
        return {}


def study(name: str, *, place: int = 1000) -> Callable[[C], C]:
    """Register a study under ``name``; ``place`` orders tasks, claims and figures."""

    def register(cls: C) -> C:
        if name in _RESERVED or not name.isidentifier():
            raise ValueError(f"name must be a word that is not {', '.join(_RESERVED)}, got {name!r}")
        there = _STUDIES.get(name)
        if there is not None and (there.__module__, there.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"name must be new, but {there.__module__} has a study {name!r}")
        cls.name, cls.place = name, place
        _STUDIES[name] = cls
        return cls

    return register


def all_studies() -> dict[str, type[Study[Any]]]:
    """Return all studies by name, in order: those in ``studies/``, and any that were registered elsewhere."""
    from palrnn.paper import studies

    for module in pkgutil.iter_modules(studies.__path__):
        importlib.import_module(f"{studies.__name__}.{module.name}")
    return dict(sorted(_STUDIES.items(), key=lambda item: item[1].place))


def studies_in(preset: Preset) -> list[Study[Any]]:
    """Return the studies whose settings are in ``preset``, in order."""
    return [cls(preset) for cls in all_studies().values() if cls.is_in(preset)]


def study_tasks(preset: Preset, names: Iterable[str] | None = None) -> list[Task]:
    """Return the tasks of these studies (default: all) with all they need, each once, in order."""
    there = {found.name: found for found in studies_in(preset)}
    chosen = there if names is None else [one_of(name, "study", there) for name in names]
    return closure(task for name in chosen for task in there[name].tasks())
