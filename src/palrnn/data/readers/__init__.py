"""Readers of series files, one file each; every file in this folder is found by itself."""

import importlib
import pkgutil

from palrnn.data.readers.registry import known_suffixes, named_array, read_table, reader, reader_of

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
