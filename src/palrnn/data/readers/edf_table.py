"""Reading `.edf` files (European Data Format, EDF and continuous EDF+): channels of 16-bit numbers.

A header of texts of fixed width, then records, each with so many samples of every channel (Kemp et al., 1992;
Kemp and Olivan, 2003). The format is simple enough to be read without a library: pyedflib, its usual reader,
is what the tests compare with. Numbers come out in physical units,

    x = physical_min + (digital - digital_min) (physical_max - physical_min) / (digital_max - digital_min).

Channels are columns by their labels. All that are used must be sampled at one rate, which gives the time per
step; EDF+ annotations are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from palrnn.data.readers.registry import reader
from palrnn.data.table import SeriesError, Table, Wanted, choose, labelled, refuse_size
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

# samples in memory at a time; by the rules a record has at most 61,440 bytes, a second or so of every channel
_PIECE = 2**20
_LONGEST_RECORD = 2**24
_ANNOTATIONS = "EDF Annotations"


class _Channel(NamedTuple):
    """A channel: its label, samples in a record and before its own, and what the digital numbers mean."""

    label: str
    samples: int
    before: int
    offset: float
    scale: float
    least: float


class _Header(NamedTuple):
    channels: list[_Channel]
    records: int
    duration: float
    width: int
    size: int


@reader(".edf")
def read_edf(file: Path, wanted: Wanted) -> Table:
    """Return the channels of ``file`` in physical units, with the time per step that their rate gives."""
    where = str(file)
    with file.open("rb") as stream:
        header = _header(where, stream, file.stat().st_size)
        signals = [channel for channel in header.channels if channel.label != _ANNOTATIONS]
        # a blank label is no saved index, which would tell the time
        headers = [printable(channel.label) or str(i + 1) for i, channel in enumerate(signals)]
        choice = choose(where, headers, wanted)
        names = choice.names
        used = [signals[i] for i in choice.observed]
        _refuse_mixed_rates(where, names, signals, choice.observed, header.duration)
        columns = [*used, *(signals[i] for i in (choice.time, choice.trial) if i is not None)]
        if len({channel.samples for channel in columns}) > 1:
            raise SeriesError(f"{where}: the columns of times and trials must have the rate of the others")
        refuse_size(where, (header.records * used[0].samples, len(columns)))
        values = _samples(where, stream, header, columns)
    # each is there if the file has such a column, in this order
    others = list(values[:, len(used) :].T)
    times = others.pop(0) if choice.time is not None else None
    labels = None
    if choice.trial is not None:
        labels = labelled([f"{value:g}" for value in others.pop(0)], names[choice.trial])
    return Table(
        where,
        tuple(names[i] for i in choice.observed),
        np.ascontiguousarray(values[:, : len(used)]),
        labels=labels,
        clock=None if choice.time is None else names[choice.time],
        times=times,
        sampled=float(f"{header.duration / used[0].samples:.9g}") if header.duration > 0 else None,
        left_out=choice.left_out,
    )


def _refuse_mixed_rates(
    where: str, names: list[str], signals: list[_Channel], observed: list[int], duration: float
) -> None:
    rates: dict[int, list[str]] = {}
    for i in observed:
        rates.setdefault(signals[i].samples, []).append(names[i])
    if len(rates) == 1:
        return
    told = "; ".join(
        (f"{count / duration:g} Hz" if duration > 0 else f"{count} a record") + f": {', '.join(held[:6])}"
        for count, held in list(rates.items())[:6]
    )
    raise SeriesError(f"{where}: channels are sampled at different rates ({told}): name columns of one rate")


def _header(where: str, stream: IO[bytes], size: int) -> _Header:
    start = stream.read(256)
    if len(start) < 256 or start[:8].strip() != b"0":
        raise SeriesError(f"{where}: is no .edf file")
    if start[192:197] == b"EDF+D":
        raise SeriesError(f"{where}: is interrupted (EDF+D): export it as continuous EDF+C, or in parts")
    count = _whole(where, start[252:256], "the number of channels", 1, 9999)
    length = _whole(where, start[184:192], "the length of the header", 256 * (count + 1), 256 * (count + 1))
    records = _whole(where, start[236:244], "the number of records", -1, 10**8)
    duration = _number(where, start[244:252], "the duration of a record")
    if duration < 0:
        raise SeriesError(f"{where}: the duration of a record must not be negative, is {duration:g}")
    texts = stream.read(256 * count)
    if len(texts) < 256 * count:
        raise SeriesError(f"{where}: ends too early")
    channels, width = [], 0
    for i in range(count):
        channel = _channel(where, _fields(texts, count, i), width)
        channels.append(channel)
        width += channel.samples
    if width > _LONGEST_RECORD:
        raise SeriesError(f"{where}: claims {width} samples in a record, more than {_LONGEST_RECORD}")
    there = (size - length) // (2 * width)
    if records < 0:  # not known when the recording began
        records = there
    if records > there or records == 0:
        raise SeriesError(f"{where}: claims {records} records of {2 * width} bytes, holds {there}")
    return _Header(channels, records, duration, width, length)


def _fields(texts: bytes, count: int, channel: int) -> Callable[[int, int], bytes]:
    """Return a function of the bytes before a field, of one channel, and its width."""
    return lambda before, width: texts[
        before * count + channel * width : before * count + (channel + 1) * width
    ]


def _channel(where: str, field: Callable[[int, int], bytes], before: int) -> _Channel:
    label = _text(field(0, 16))
    what = f"of channel {quoted(label, 40)}"
    physical = [_number(where, field(at, 8), f"the physical range {what}") for at in (104, 112)]
    digital = [_whole(where, field(at, 8), f"the digital range {what}", -(2**15), 2**15) for at in (120, 128)]
    samples = _whole(where, field(216, 8), f"the samples in a record {what}", 1, _LONGEST_RECORD)
    if label == _ANNOTATIONS:
        return _Channel(label, samples, before, 0.0, 1.0, 0.0)
    if digital[0] >= digital[1] or physical[0] == physical[1]:
        raise SeriesError(f"{where}: the ranges {what} are empty: {physical} of {digital}")
    scale = (physical[1] - physical[0]) / (digital[1] - digital[0])
    return _Channel(label, samples, before, physical[0], scale, float(digital[0]))


def _samples(where: str, stream: IO[bytes], header: _Header, columns: list[_Channel]) -> Floats:
    samples = columns[0].samples
    values = np.empty((header.records * samples, len(columns)))
    at_once = max(1, _PIECE // header.width)
    stream.seek(header.size)
    for start in range(0, header.records, at_once):
        count = min(at_once, header.records - start)
        data = stream.read(2 * count * header.width)
        if len(data) < 2 * count * header.width:
            raise SeriesError(f"{where}: ends too early")
        digital = np.frombuffer(data, "<i2").reshape(count, header.width).astype(np.float64)
        rows = slice(start * samples, (start + count) * samples)
        for i, (_, _, before, offset, scale, least) in enumerate(columns):
            values[rows, i] = offset + scale * (digital[:, before : before + samples].ravel() - least)
    return values


def _text(field: bytes) -> str:
    try:
        return field.decode("utf-8").strip(" \0")
    except UnicodeDecodeError:
        return field.decode("latin-1").strip(" \0")


def _number(where: str, field: bytes, what: str) -> float:
    text = _text(field)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SeriesError(f"{where}: {what} must be a number, is {quoted(text)}")
    return value


def _whole(where: str, field: bytes, what: str, least: int, most: int) -> int:
    value = _number(where, field, what)
    if value != int(value) or not least <= value <= most:
        wanted = str(least) if least == most else f"a whole number from {least} to {most}"
        raise SeriesError(f"{where}: {what} must be {wanted}, is {quoted(_text(field))}")
    return int(value)
