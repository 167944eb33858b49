"""BSON, the binary form of JSON in which Julia's BSON.jl keeps values, as data only.

A document is its length in bytes (int32, little-endian), entries, and a zero byte; an entry is a byte for its
kind, a name that ends with a zero byte, and a value (bsonspec.org). An array is a document whose names count.
Julia's own reader builds any type that a file names, and can be made to run code; this one returns numbers,
text, bytes, lists and dictionaries, whatever the file says. Names come back as they are in the file.
"""

from __future__ import annotations

import struct
from typing import Any

#: A document within a document within ...; the public checkpoints have about ten.
MOST_DEPTH = 64
#: Two bytes can be an entry; a checkpoint has some hundreds.
MOST_ENTRIES = 100_000

_DOUBLE, _TEXT, _DOCUMENT, _LIST, _BYTES, _FLAG, _NOTHING, _INT32, _INT64 = 1, 2, 3, 4, 5, 8, 10, 16, 18
_NUMBERS = {_DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}


class BSONError(ValueError):
    """Bytes that are not a BSON document, or not a whole one."""


def read_bson(data: bytes) -> dict[str, Any]:
    """Return the document in ``data``; `BSONError` where there is anything else, more or less."""
    reader = _Reader(data)
    found = reader.document(0)
    if reader.place != len(data):
        raise BSONError(f"{len(data) - reader.place} bytes after its end")
    return found


class _Reader:
    """Where one is in the bytes, and how many entries there were."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place, self.entries = data, 0, 0

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.place:
            raise BSONError(f"it ends within a value, at byte {len(self.data)}")
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def name(self) -> str:
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise BSONError("a name has no end")
        return self._text(self.take(end + 1 - self.place)[:-1])

    @staticmethod
    def _text(raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise BSONError("text is not UTF-8") from None

    def document(self, depth: int) -> dict[str, Any]:
        return dict(self._pairs(depth))

    def _pairs(self, depth: int) -> list[tuple[str, Any]]:
        if depth > MOST_DEPTH:
            raise BSONError(f"documents within each other, more than {MOST_DEPTH} deep")
        begin = self.place
        size = self.number("<i")
        found = []
        while (kind := self.take(1)[0]) != 0:
            self.entries += 1
            if self.entries > MOST_ENTRIES:
                raise BSONError(f"more than {MOST_ENTRIES} entries")
            found.append((self.name(), self._value(kind, depth)))
        if self.place - begin != size:
            raise BSONError(f"a document says that it has {size} bytes, and has {self.place - begin}")
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _DOCUMENT:
            return self.document(depth + 1)
        if kind == _LIST:
            return [value for _, value in self._pairs(depth + 1)]
        if kind == _BYTES:
            size = self.number("<i")
            self.take(1)  # what the bytes are for
            return self.take(size)
        if kind == _TEXT:
            raw = self.take(self.number("<i"))
            if raw[-1:] != b"\0":
                raise BSONError("text has no end")
            return self._text(raw[:-1])
        if kind == _FLAG:
            return self.take(1) != b"\0"
        if kind == _NOTHING:
            return None
        raise BSONError(f"a value of kind {kind}, which such files do not have")
