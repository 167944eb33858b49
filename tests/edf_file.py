"""Writes `.edf` files by the published layout (Kemp et al., 1992), for the tests of their reader."""

from __future__ import annotations

import numpy as np


def edf_bytes(frame, *, record=None, duration=1.0, reserved="", records=None, **changes):
    """Return a file of the columns of ``frame``, each with 2^15 levels up to the next power of two.

    ``record`` are the samples in a record of ``duration`` seconds (None: all of them). ``changes`` replace
    the texts of fields for all channels.
    """
    x = frame.to_numpy(dtype=float)
    steps, count = x.shape
    record = record or steps
    top = 2.0 ** np.ceil(np.log2(np.abs(x).max(axis=0) + 1e-300)).clip(-6)
    fields = {
        "label": (16, [str(name) for name in frame.columns]),
        "transducer": (80, [""] * count),
        "unit": (8, ["uV"] * count),
        "physical_min": (8, [f"{-value:g}" for value in top]),
        "physical_max": (8, [f"{value:g}" for value in top]),
        "digital_min": (8, ["-16384"] * count),
        "digital_max": (8, ["16384"] * count),
        "filter": (80, [""] * count),
        "samples": (8, [str(record)] * count),
        "reserved": (32, [""] * count),
    }
    known = steps // record if records is None else records
    start = _text("0", 8) + _text("X X X X", 80) + _text("", 80) + _text("01.01.20", 8) + _text("00.00.00", 8)
    start += _text(str(256 * (count + 1)), 8) + _text(reserved, 44) + _text(str(known), 8)
    start += _text(f"{duration:g}", 8) + _text(str(count), 4)
    for name, (width, texts) in fields.items():
        start += b"".join(_text(changes.get(name, text), width) for text in texts)
    digital = np.rint(x / top * 16384).astype("<i2")
    parts = [digital[at : at + record].T.tobytes() for at in range(0, steps, record)]
    return start + b"".join(parts)


def _text(words, width):
    return words.encode()[:width].ljust(width)
