"""How the site is built: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import palrnn

project = "palrnn"
author = "The palrnn developers"
release = palrnn.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "notebooks",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
math_renderer_name = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Floats": "Floats"}
html_theme = "furo"
html_title = "palrnn"
html_static_path: list[str] = []
html_show_sourcelink = False
html_show_copyright = False  # without a year it would be an empty line
