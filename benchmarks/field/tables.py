"""The tables of docs/field.md, from the files of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

METHODS = {
    "default": "palrnn, defaults",
    "published size": "palrnn",
    "search": "palrnn, search",
    "reservoir": "reservoir",
}


def sentence(found: dict[str, Any]) -> str:
    """Return a result in a few words."""
    grade = "good" if found.get("good") else "alive" if found.get("alive") else f"{found.get('fates')}"
    score, floor = _number(found.get("dstsp")), _number(found.get("floor"))
    own, true = (_first(found, name) for name in ("exponents", "true_exponents"))
    return f"{grade}, D_stsp {score:.2f} (floor {floor:.2f}), largest exponent {own:.3g} ({true:.3g})"


def table(part: str, folder: Path) -> str:
    """Return what there is of a part as Markdown, with its heading."""
    found = _read(folder)
    tables = {"lorenz": _lorenz, "column": _column, "contexts": _contexts, "flows": _flows, "real": _real}
    tables["trials"] = _trials
    return tables[part](found)


Models = list[dict[str, Any]]
Results = dict[tuple[str, str], Models]


def _read(folder: Path) -> Results:
    found: Results = {}
    for file in sorted(folder.glob("*.json")):
        name, method, _ = file.stem.rsplit("-", 2)
        found.setdefault((name, method), []).append(json.loads(file.read_text(encoding="utf-8")))
    return found


def _table(columns: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown; ``columns`` are separated by bars."""
    names = columns.split(" | ")
    assert len(set(names)) == len(names), "columns are found by their names"
    lines = [f"| {' | '.join(line)} |" for line in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


def _scores(each: Models, published: bool = False) -> list[str]:
    """Return D_stsp and D_H, each with its floor and before it what was published, if anything."""
    cells = []
    for k, (name, floor, digits) in enumerate(
        (("dstsp", "floor", 2), ("spectrum_distance", "spectrum_floor", 3))
    ):
        cells += [str(each[0]["published"][k])] if published else []
        cells += [_spread(each, name, digits), f"{_median(each, floor):.{digits}f}"]
    return cells


def _end(each: Models) -> list[str]:
    """Return how many live, and the seconds that one took."""
    return [_alive(each), f"{_median(each, 'seconds'):.0f}"]


_BESIDE = (
    "models | D_stsp, published | D_stsp, ours (range) | floor "
    "| D_H, published | D_H, ours (range) | its floor | alive | s"
)


def _lorenz(found: Results) -> str:
    ordered = sorted(found.items(), key=lambda item: int(item[0][0][1:]))
    rows = [[name[1:], str(len(each)), *_scores(each, True), *_end(each)] for (name, _), each in ordered]
    return "## Lorenz-63 at M = 20\n\n" + _table(f"gates P | {_BESIDE}", rows)


def _column(found: Results) -> str:
    columns = "series | lags, delay | models | good | D_stsp (range) | floor | D_H (range) | its floor "
    rows = []
    for (name, _), each in found.items():
        own = [one | {"exponent": one["exponents"][0]} for one in each]
        first = [name, f"{each[0]['lags']}, {each[0]['delay']}", str(len(each)), _good(each)]
        exponents = [_spread(own, "exponent", 3), f"{each[0]['true_exponents'][0]:.3f}"]
        rows.append([*first, *_scores(each), *exponents, *_end(each)])
    return "## One column\n\n" + _table(f"{columns}| largest exponent (range) | true | alive | s", rows)


def _contexts(found: Results) -> str:
    rows = []
    for (name, _), each in found.items():
        first = [name, f"{each[0]['rows']:,}", each[0]["family"], str(len(each))]
        rows.append([*first, *_scores(each, True), *_end(each)])
    return "## Short contexts\n\n" + _table(f"context | rows | family | {_BESIDE}", rows)


def _flows(found: Results) -> str:
    columns = (
        "method | flows | models | good | alive | within 0.5 of the floor | exponent within 15 % "
        "| error of the largest exponent, median | of all exponents | of the Kaplan-Yorke dimension "
        "| s of processor"
    )
    # models from before a score card had exponents of the flow were judged by those of the map alone
    by_card = any("card_good" in one for each in found.values() for one in each)
    columns += (
        " | with exponents of the card | good by these | within 15 % by these | their error, median"
        if by_card
        else ""
    )
    rows = []
    for method, title in METHODS.items():
        each = [one for (_, how), listed in found.items() if how == method for one in listed]
        if not each:
            continue
        names = {name for name, how in found if how == method}
        near = [_number(one.get("dstsp")) <= _number(one.get("floor")) + 0.5 for one in each]
        right = [one.get("exponent_right", _number(one.get("exponent_error")) <= 0.15) for one in each]
        dims = [abs(_number(one.get("kaplan_yorke")) - _number(one.get("true_kaplan_yorke"))) for one in each]
        shares = [[one["good"] for one in each], [one["alive"] for one in each], near, right]
        errors = [f"{_median(each, name):.1%}" for name in ("exponent_error", "all_exponents_error")]
        counts = [title, str(len(names)), str(len(each)), *(f"{np.mean(share):.0%}" for share in shares)]
        spent = f"{_median(each, 'processor_seconds'):.0f}"
        rows.append(
            [*counts, *errors, f"{np.nanmedian(dims):.3f}", spent, *(_as_flows(each) if by_card else [])]
        )
    compared = [
        (who, _ahead(found, how)) for who, how in (("A search", "search"), ("One default model", "default"))
    ]
    said = [f"{who} is ahead of a flow's better reservoir on {ahead}." for who, ahead in compared if ahead]
    words = f"\n\nAlive first, then in D_stsp: {' '.join(said)}" if said else ""
    methods, flows = ("default", "search", "reservoir"), []
    for name in sorted({name for name, _ in found}):
        some = next(each[0] for (flow, _), each in found.items() if flow == name)
        cells = [_cell(found.get((name, method), [])) for method in methods]
        flows.append(
            [name, f"{_number(some.get('floor')):.2f}", f"{_first(some, 'true_exponents'):.3g}", *cells]
        )
    by_flow = _table(" | ".join(["flow", "floor", "true exponent", *(METHODS[m] for m in methods)]), flows)
    return "## Twenty flows\n\n" + _table(columns, rows) + words + "\n\n" + by_flow


def _as_flows(each: Models) -> list[str]:
    """Return how many models were judged by a score card's exponents as well, and what came of it."""
    judged = [one for one in each if "card_good" in one]
    if not judged:
        return ["0", "", "", ""]
    shares = [np.mean([one[name] for one in judged]) for name in ("card_good", "card_exponent_right")]
    error = _median(judged, "card_exponent_error")
    return [str(len(judged)), *(f"{share:.0%}" for share in shares), f"{error:.1%}"]


def _ahead(found: Results, method: str) -> str | None:
    """Return on how many flows ``method`` beats the best reservoir, by seed: alive first, then by D_stsp."""

    def order(one: dict[str, Any]) -> tuple[bool, float]:
        return not one["alive"], _number(one.get("dstsp"), np.inf)

    pairs = [
        (each, min(map(order, found[name, "reservoir"])))
        for (name, how), each in found.items()
        if how == method and (name, "reservoir") in found
    ]
    counts = []
    for seed in range(max((len(each) for each, _ in pairs), default=0)):
        there = [(each[seed], best) for each, best in pairs if len(each) > seed]
        counts.append(f"{sum(order(one) < best for one, best in there)} of {len(there)}")
    return " and ".join(counts) or None


def _cell(each: Models) -> str:
    """Return D_stsp and the exponent of the median model, of two in the middle the worse; how many live."""
    if not each:
        return ""
    middle = sorted(each, key=lambda one: _number(one.get("dstsp"), np.inf))[len(each) // 2]
    score, own = _number(middle.get("dstsp"), np.inf), _first(middle, "exponents")
    flow = f" (card: {_first(middle, 'card_exponents'):.3g})" if "card_good" in middle else ""
    ends = "" if all(one["alive"] for one in each) else f", {_alive(each)} alive"
    return f"{score:.2f}, {own:.3g}{flow}{ends}; {_good(each)} of {len(each)} good"


def _real(found: Results) -> str:
    columns = (
        "series | method | models | verdict | D_stsp (range) | floor | D_H (range) "
        "| whole series: D_stsp, 8 bins | halves | D_H "
    )
    rows = []
    for (name, method), each in sorted(found.items()):
        grades = [one["verdict"].partition(":")[0] for one in each]
        said = ", ".join(f"{grades.count(grade)} {grade}" for grade in dict.fromkeys(grades))
        score, floor, spectrum, _ = _scores(each)
        whole = [_median(each, f"whole_{of}") for of in ("dstsp", "floor", "spectrum_distance")]
        first = [name, METHODS[method], str(len(each)), said, score, floor, spectrum]
        rows.append([*first, *("" if np.isnan(value) else f"{value:.3g}" for value in whole), *_end(each)])
    return "## Recordings\n\n" + _table(f"{columns}| alive | s", rows)


def _trials(found: Results) -> str:
    columns = "flow | rows | settings | D_stsp | floor | D_H | its floor | largest exponent | true | alive"
    listed = [one for each in found.values() for one in each]
    rows = [
        [
            one["flow"],
            f"{one['rows']:,}",
            one["settings"],
            f"{_number(one['dstsp'], np.inf):.2f}",
            f"{one['floor']:.2f}",
            f"{one['spectrum_distance']:.3f}",
            f"{one['spectrum_floor']:.3f}",
            f"{_first(one, 'exponents'):.3g}",
            f"{_first(one, 'true_exponents'):.3g}",
            "yes" if one["alive"] else "no",
        ]
        for one in sorted(listed, key=lambda one: (one["rows"], one["flow"], one["settings"]))
    ]
    return "## Settings tried\n\n" + _table(columns, rows)


def _first(one: dict[str, Any], name: str) -> float:
    """Return the first of a result's ``name``; NaN if there is none."""
    return _number((one.get(name) or [None])[0])


def _good(each: Models) -> str:
    return str(sum(one["good"] for one in each))


def _number(value: Any, missing: float = np.nan) -> float:
    return missing if value is None else float(value)


def _median(each: Models, name: str) -> float:
    values = [_number(one.get(name)) for one in each]
    return float("nan") if all(np.isnan(values)) else float(np.nanmedian(values))


def _spread(each: Models, name: str, digits: int = 2) -> str:
    values = np.array([_number(one.get(name), np.inf) for one in each])
    return f"{np.median(values):.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def _alive(each: Models) -> str:
    return f"{sum(bool(one['alive']) for one in each)} of {len(each)}"
