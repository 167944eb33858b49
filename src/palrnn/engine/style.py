"""One look for all figures: colours that colour-blind readers can tell apart, quiet axes, safe files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure

from palrnn.engine.files import write_bytes

#: Okabe and Ito's palette, in the order in which series take their colours.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = PALETTE
#: For ordered values (noise levels): monotone in lightness, so it also survives greyscale printing.
SEQUENTIAL = "viridis"

_RULES: dict[Any, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE),
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "palrnn",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this context, on `Figure` objects made with ``Figure(layout="constrained")``."""
    with matplotlib.rc_context(_RULES):
        yield


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write ``figure`` as its suffix says (.png, .svg, .pdf), atomically, the same bytes every time."""
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"path must end in .png, .svg or .pdf, got {path}")
    stamp = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, metadata=stamp)
    write_bytes(path, buffer.getvalue())
