"""Every public function and every setting, fed what it should refuse.

The table is in `public_calls`. A new public function, or a new argument, without a row is an error.

    python -m torture.bad_inputs --mixtures 20000      prints what it saw as JSON
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

import palrnn
from palrnn.engine.progress import quiet
from torture.calls import Row
from torture.public_calls import rows

#: What people do not construct: results, exceptions, and what families and policies are made from.
RESULTS = {
    "BandCalibration",
    "Bars",
    "Checkpoint",
    "Comparison",
    "Dataset",
    "Ensemble",
    "Evaluation",
    "Evidence",
    "Filtered",
    "Forcing",
    "GeometryComparison",
    "Gradient",
    "History",
    "LaplacePosterior",
    "LikelihoodPosterior",
    "LyapunovSpectrum",
    "Mismatch",
    "NoiseFit",
    "ObservedInformation",
    "ObservedPosterior",
    "PaperPathDerivatives",
    "PathInformation",
    "PathPosterior",
    "PiecewiseAffine",
    "Reconstruction",
    "Rollout",
    "SAEMResult",
    "SandwichPosterior",
    "SearchResult",
    "Smoothed",
    "StateSpaceDivergence",
    "Surrogate",
    "TrainResult",
    "TuningHistory",
    "Verdict",
    "Viability",
}
#: What people make such results with.
METHODS = ("Dataset.prepare",)
#: Errors of ours that say what happened to numbers; each is an ArithmeticError.
SPOKEN = (palrnn.TrainingDivergedError, palrnn.FilterDiedError)


class Attempt(NamedTuple):
    """One call: what was given and what was wrong with the outcome (empty: nothing)."""

    name: str
    argument: str
    value: str
    fault: str


def people_call(name: str) -> bool:
    """Whether a public name is something that people call with arguments of their own."""
    thing = getattr(palrnn, name)
    if name == "__version__" or name in RESULTS:
        return False
    return not (inspect.isclass(thing) and issubclass(thing, (Exception, Warning)))


def unlisted(table: dict[str, Row]) -> list[str]:
    """Return public functions, and arguments of them, that have no row or no kind."""
    names = [*filter(people_call, palrnn.__all__), *METHODS]
    missing = [name for name in names if name not in table]
    for name, row in table.items():
        parameters = inspect.signature(attrgetter(name)(palrnn)).parameters
        missing += [f"{name}({each})" for each in parameters if each not in row.kinds]
    return missing


def attempts(table: dict[str, Row], only: str | None = None) -> Iterator[Attempt]:
    """Try every value of every argument, one at a time."""
    for name, row in table.items():
        if only not in (None, name):
            continue
        for argument, kind in row.kinds.items():
            for value, given in () if kind is None else kind.wrong.items():
                yield Attempt(name, argument, value, wrong_fault(name, row, argument, given))
            for value, given in () if kind is None else kind.hard.items():
                yield Attempt(name, argument, value, hard_fault(name, row, {argument: given}))


def mixtures(table: dict[str, Row], count: int, seed: int) -> Iterator[Attempt]:
    """Try ``count`` calls in which two arguments at once are wrong or hard, drawn with ``seed``."""
    rng = np.random.default_rng(seed)
    names = list(table)
    for _ in range(count):
        name = names[rng.integers(len(names))]
        row = table[name]
        tried = [argument for argument, kind in row.kinds.items() if kind is not None]
        drawn = rng.choice(tried, size=min(2, len(tried)), replace=False)
        given, words = {}, []
        for argument in map(str, drawn):
            kind = row.kinds[argument]
            assert kind is not None
            pool = list((kind.wrong | kind.hard).items())
            value, given[argument] = pool[rng.integers(len(pool))]
            words.append(value)
        yield Attempt(name, "+".join(given), "+".join(words), hard_fault(name, row, given))


def wrong_fault(name: str, row: Row, argument: str, given: Any) -> str:
    """Return what is wrong with how a wrong value is refused."""
    try:
        _call(name, row, {argument: given})
    except ValueError as error:
        return "" if _names(str(error), argument, given) else f"does not name the argument: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "was accepted"


def hard_fault(name: str, row: Row, given: dict[str, Any]) -> str:
    """Return what is wrong with the outcome of a call that may work or not."""
    try:
        result = _call(name, row, given)
    except (ValueError, *SPOKEN):
        return ""
    except BaseException as error:
        # DivergenceError of invariants is not at the front door
        return "" if type(error).__name__ == "DivergenceError" else f"{type(error).__name__}: {error}"
    return "" if row.nan or not has_nan(result) else "NaN in the result"


def _call(name: str, row: Row, given: dict[str, Any]) -> Any:
    function: Callable[..., Any] = attrgetter(name)(palrnn)
    arguments = row.arguments | given
    if "progress" in inspect.signature(function).parameters:
        arguments["progress"] = quiet
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        return function(**arguments)


def _names(message: str, argument: str, given: Any) -> bool:
    parts = (argument, argument.replace("_", " "), argument.rstrip("s"))
    return any(part in message for part in parts) or (isinstance(given, str) and given in message)


def has_nan(result: Any) -> bool:
    """Whether NaN is anywhere in a result."""
    if isinstance(result, np.ndarray):
        return result.dtype.kind in "fc" and bool(np.isnan(result).any())
    if isinstance(result, float):
        return math.isnan(result)
    if isinstance(result, (list, tuple)):
        return any(map(has_nan, result))
    if isinstance(result, dict):
        return any(map(has_nan, result.values()))
    if dataclasses.is_dataclass(result):
        return any(has_nan(getattr(result, field.name)) for field in dataclasses.fields(result))
    return False


def tried(count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Try the whole table, then ``count`` mixtures, or as many as ``seconds`` allow."""
    table = rows()
    single = list(attempts(table))
    mixed, end = [], time.monotonic() + seconds
    for attempt in mixtures(table, count, seed):
        mixed.append(attempt)
        if time.monotonic() > end:
            break
    arguments = sum(kind is not None for row in table.values() for kind in row.kinds.values())
    faults = [f"no row for {name}" for name in unlisted(table)]
    faults += [" | ".join(attempt) for attempt in (*single, *mixed) if attempt.fault]
    return {
        "functions": len(table),
        "arguments": arguments,
        "untried": sum(kind is None for row in table.values() for kind in row.kinds.values()),
        "nan_allowed": sum(row.nan for row in table.values()),
        "inputs": len(single),
        "mixtures": len(mixed),
        "faults": faults,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mixtures", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    print(json.dumps(tried(given.mixtures, given.seed, given.seconds)))
