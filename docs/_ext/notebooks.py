"""Notebooks as pages, with the outputs that are kept in them: nothing is run while the site is built.

A notebook becomes Markdown for MyST, cell by cell. Of an output the richest form that a page can show is
taken: HTML, a picture, or text. It is all that our notebooks need, without a kernel and what that depends on.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


class NotebookParser(MystParser):
    """Parses ``.ipynb`` files of format 4."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse a notebook as the Markdown that it amounts to."""
        super().parse(markdown(json.loads(inputstring)), document)


def markdown(book: dict[str, Any]) -> str:
    """Return the cells of a notebook, and their outputs, as Markdown."""
    parts = []
    for cell in book["cells"]:
        source = _text(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(_fenced("python", source))
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("text", _text(output["text"]).rstrip())
    if output["output_type"] == "error":
        raise ValueError(f"a notebook must not show an error, got {output['ename']}: {output['evalue']}")
    data = output["data"]
    if "text/html" in data:
        return _fenced("{raw} html", _text(data["text/html"]))
    if "image/png" in data:
        picture = "".join(_text(data["image/png"]).split())
        words = "What the cell above draws"
        return _fenced("{raw} html", f'<img src="data:image/png;base64,{picture}" alt="{words}">')
    return _fenced("text", _text(data["text/plain"]).rstrip())


def _fenced(kind: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{kind}\n{text}\n{fence}"


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the kind of file; Sphinx calls this."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
