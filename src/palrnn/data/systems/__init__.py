"""Chaotic systems to learn from, one file each; every file in this folder is found by itself."""

import importlib
import pkgutil

from palrnn.data.systems.base import System, known_systems, make_system, system
from palrnn.data.systems.lorenz_63 import lorenz63, lorenz63_system
from palrnn.data.systems.lorenz_96 import lorenz96, lorenz96_system
from palrnn.data.systems.roessler import rossler, rossler_system

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
