"""The tables of docs/field.md, from the files of jobs."""

from __future__ import annotations

import json
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
    own, true = (_number((found.get(name) or [None])[0]) for name in ("exponents", "true_exponents"))
    return f"{grade}, D_stsp {score:.2f} (floor {floor:.2f}), largest exponent {own:.3g} ({true:.3g})"


def table(part: str, folder: Path) -> str:
    """Return what there is of a part as Markdown, with its heading."""
    found = _read(folder)
    tables = {"lorenz": _lorenz, "column": _column, "contexts": _contexts, "flows": _flows, "real": _real}
    tables["trials"] = _trials
    return tables[part](found)


Results = dict[tuple[str, str], list[dict[str, Any]]]


def _read(folder: Path) -> Results:
    found: Results = {}
    for file in sorted(folder.glob("*.json")):
        name, method, _ = file.stem.rsplit("-", 2)
        found.setdefault((name, method), []).append(json.loads(file.read_text(encoding="utf-8")))
    return found


def _lorenz(found: Results) -> str:
    lines = [
        "| gates P | models | D_stsp, published | D_stsp, ours (range) | floor | D_H, published "
        "| D_H, ours (range) | floor | alive | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, _), each in sorted(found.items(), key=lambda item: int(item[0][0][1:])):
        published = each[0]["published"]
        lines.append(
            f"| {name[1:]} | {len(each)} | {published[0]} | {_spread(each, 'dstsp')} "
            f"| {_median(each, 'floor'):.2f} | {published[1]} | {_spread(each, 'spectrum_distance', 3)} "
            f"| {_median(each, 'spectrum_floor'):.3f} | {_alive(each)} | {_median(each, 'seconds'):.0f} |"
        )
    return "## Lorenz-63 at M = 20\n\n" + "\n".join(lines)


def _column(found: Results) -> str:
    lines = [
        "| series | lags, delay | models | good | D_stsp (range) | floor | D_H (range) | floor "
        "| largest exponent (range) | true | alive | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, _), each in found.items():
        own = [one | {"exponent": one["exponents"][0]} for one in each]
        lines.append(
            f"| {name} | {each[0]['lags']}, {each[0]['delay']} | {len(each)} "
            f"| {sum(one['good'] for one in each)} | {_spread(each, 'dstsp')} | {_median(each, 'floor'):.2f} "
            f"| {_spread(each, 'spectrum_distance', 3)} | {_median(each, 'spectrum_floor'):.3f} "
            f"| {_spread(own, 'exponent', 3)} | {each[0]['true_exponents'][0]:.3f} | {_alive(each)} "
            f"| {_median(each, 'seconds'):.0f} |"
        )
    return "## One column\n\n" + "\n".join(lines)


def _contexts(found: Results) -> str:
    lines = [
        "| context | rows | family | models | D_stsp, published | D_stsp, ours (range) | floor "
        "| D_H, published | D_H, ours (range) | floor | alive | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, _), each in found.items():
        published = each[0]["published"]
        lines.append(
            f"| {name} | {each[0]['rows']:,} | {each[0]['family']} | {len(each)} "
            f"| {published[0]} | {_spread(each, 'dstsp')} "
            f"| {_median(each, 'floor'):.2f} | {published[1]} | {_spread(each, 'spectrum_distance', 3)} "
            f"| {_median(each, 'spectrum_floor'):.3f} | {_alive(each)} | {_median(each, 'seconds'):.0f} |"
        )
    return "## Short contexts\n\n" + "\n".join(lines)


def _flows(found: Results) -> str:
    lines = [
        "| method | flows | models | good | alive | within 0.5 of the floor | exponent within 15 % "
        "| error of the largest exponent, median | of all exponents | of the Kaplan-Yorke dimension | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method, title in METHODS.items():
        each = [one for (_, how), listed in found.items() if how == method for one in listed]
        if not each:
            continue
        names = {name for name, how in found if how == method}
        near = [_number(one.get("dstsp")) <= _number(one.get("floor")) + 0.5 for one in each]
        right = [_number(one.get("exponent_error")) <= 0.15 for one in each]
        dims = [abs(_number(one.get("kaplan_yorke")) - _number(one.get("true_kaplan_yorke"))) for one in each]
        lines.append(
            f"| {title} | {len(names)} | {len(each)} | {np.mean([one['good'] for one in each]):.0%} "
            f"| {np.mean([one['alive'] for one in each]):.0%} | {np.mean(near):.0%} | {np.mean(right):.0%} "
            f"| {_median(each, 'exponent_error'):.1%} | {_median(each, 'all_exponents_error'):.1%} "
            f"| {np.nanmedian(dims):.3f} | {_median(each, 'seconds'):.0f} |"
        )
    ahead = _ahead(found)
    words = "" if ahead is None else f"\n\nThe search is ahead of the reservoir in D_stsp on {ahead}."
    rows = [
        "| flow | floor | true exponent | "
        + " | ".join(METHODS[m] for m in ("default", "search", "reservoir"))
        + " |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted({name for name, _ in found}):
        some = next(each[0] for (flow, _), each in found.items() if flow == name)
        cells = [_cell(found.get((name, method), [])) for method in ("default", "search", "reservoir")]
        true = _number((some.get("true_exponents") or [None])[0])
        rows.append(f"| {name} | {_number(some.get('floor')):.2f} | {true:.3g} | {' | '.join(cells)} |")
    return "## Twenty flows\n\n" + "\n".join(lines) + words + "\n\n" + "\n".join(rows)


def _ahead(found: Results) -> str | None:
    """Return on how many flows a search beats the reservoir: alive first, then D_stsp."""
    both = [name for name, how in found if how == "search" and (name, "reservoir") in found]
    if not both:
        return None

    def order(one: dict[str, Any]) -> tuple[bool, float]:
        return not one["alive"], _number(one.get("dstsp"), np.inf)

    wins = sum(order(found[name, "search"][0]) < order(found[name, "reservoir"][0]) for name in both)
    return f"{wins} of {len(both)}"


def _cell(each: list[dict[str, Any]]) -> str:
    """Return D_stsp and the exponent of the median model, and how many live."""
    if not each:
        return ""
    middle = sorted(each, key=lambda one: _number(one.get("dstsp"), np.inf))[(len(each) - 1) // 2]
    score, own = _number(middle.get("dstsp"), np.inf), _number((middle.get("exponents") or [None])[0])
    good = sum(one["good"] for one in each)
    ends = "" if all(one["alive"] for one in each) else f", {_alive(each)} alive"
    return f"{score:.2f}, {own:.3g}{ends}; {good} of {len(each)} good"


def _real(found: Results) -> str:
    lines = [
        "| series | method | models | verdict | D_stsp (range) | floor | with 8 bins | D_H (range) "
        "| alive | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, method), each in sorted(found.items()):
        grades = [one["verdict"].partition(":")[0] for one in each]
        said = ", ".join(f"{grades.count(grade)} {grade}" for grade in dict.fromkeys(grades))
        eight = _median(each, "dstsp_8_bins")
        lines.append(
            f"| {name} | {METHODS[method]} | {len(each)} | {said} | {_spread(each, 'dstsp')} "
            f"| {_median(each, 'floor'):.2f} | {'' if np.isnan(eight) else f'{eight:.2f}'} "
            f"| {_spread(each, 'spectrum_distance', 3)} | {_alive(each)} | {_median(each, 'seconds'):.0f} |"
        )
    return "## Recordings\n\n" + "\n".join(lines)


def _trials(found: Results) -> str:
    lines = [
        "| flow | rows | settings | D_stsp | floor | D_H | floor | largest exponent | true | alive |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    listed = [one for each in found.values() for one in each]
    for one in sorted(listed, key=lambda one: (one["rows"], one["flow"], one["settings"])):
        own, true = (_number((one.get(name) or [None])[0]) for name in ("exponents", "true_exponents"))
        lines.append(
            f"| {one['flow']} | {one['rows']:,} | {one['settings']} | {_number(one['dstsp'], np.inf):.2f} "
            f"| {one['floor']:.2f} | {one['spectrum_distance']:.3f} | {one['spectrum_floor']:.3f} "
            f"| {own:.3g} | {true:.3g} | {'yes' if one['alive'] else 'no'} |"
        )
    return "## Settings tried\n\n" + "\n".join(lines)


def _number(value: Any, missing: float = np.nan) -> float:
    return missing if value is None else float(value)


def _median(each: list[dict[str, Any]], name: str) -> float:
    values = [_number(one.get(name)) for one in each]
    return float("nan") if all(np.isnan(values)) else float(np.nanmedian(values))


def _spread(each: list[dict[str, Any]], name: str, digits: int = 2) -> str:
    values = np.array([_number(one.get(name), np.inf) for one in each])
    return f"{np.median(values):.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def _alive(each: list[dict[str, Any]]) -> str:
    return f"{sum(bool(one['alive']) for one in each)} of {len(each)}"
