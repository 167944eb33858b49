"""A run as the report sees it: results computed, the few series that are drawn, and the facts in words."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.gaps import first_whole_row
from palrnn.geometry import IndefiniteInformationWarning
from palrnn.inference import FewPathsWarning, has_fast_filter
from palrnn.invariants.free_run import free_run
from palrnn.model import Noise
from palrnn.model.engine import codes
from palrnn.report.registry import analyses
from palrnn.report.view import Run
from palrnn.runs.advice import advice
from palrnn.runs.bars import RULES, has_flow
from palrnn.runs.fan import fan

if TYPE_CHECKING:
    from palrnn.runs.folder import RunFolder
    from palrnn.runs.reconstruction import Reconstruction
    from palrnn.runs.settings import ReportSettings

_VERSIONED = ("palrnn", "numpy", "scipy", "numba", "plotly")
_STEPS, _DISCARD = 6000, 1000
#: What takes minutes for a family without a compiled filter, and for a model of more units than so many.
LONG = ("diagnostics", "geometry", "tuning")
_MOST_UNITS = 40
#: Where the settings of an analysis are called otherwise.
_SETTINGS = {"diagnostics": "filter"}


def left_out(run: Reconstruction, whole: bool | None) -> tuple[str, ...]:
    """Return the analyses that a report leaves out: what is `LONG`, unless ``whole``.

    If that is None, they are left out where they would take minutes.
    """
    if whole is None:
        whole = run.drift.latent_dim <= _MOST_UNITS and has_fast_filter(run.probabilistic)
    return () if whole else LONG


def view(run: Reconstruction, results: Mapping[str, Any]) -> Run:
    """Return ``run`` with ``results`` for the sections of a report."""
    first = first_whole_row(run.x, "reference")
    drive = None if run.s is None else np.roll(run.s, -first, axis=0)
    made = free_run(run.drift, run.x[first], _STEPS, _DISCARD, inputs=drive)
    if made.diverged:  # how it leaves the data is what there is to see
        made = free_run(run.drift, run.x[first], _STEPS, inputs=drive)
    card = results.get("invariants")
    return Run(
        name=run.name,
        facts=facts(run),
        columns=run.columns,
        dt=run.dt,
        reference=run.held[:_STEPS],
        generated=run.standardizer.inverse(made.observed),
        codes=codes(run.drift, made.states),
        losses=run.losses,
        measured=run.measured,
        results=results,
        advice=()
        if card is None
        else advice(card.verdict, run.record.training, run.drift, searched=run.search is not None),
        search=run.search,
        fan=fan(run, card),
        resting=_resting(run, card),
        bars=_kept_bars(run),
    )


def _resting(run: Reconstruction, card: Any) -> Floats | None:
    """Return where the fixed points are in raw coordinates, ``(K, N)``."""
    if card is None or card.fixed_points is None:
        return None
    seen = run.probabilistic.observation_map(card.fixed_points.points)
    return run.standardizer.inverse(seen)


def _kept_bars(run: Reconstruction) -> dict[str, Any] | None:
    """Return the error bars in the folder of the run, if they are of this very model."""
    if run.folder is None:
        return None
    try:
        kept = json.loads((run.folder.findings / "bars.json").read_text(encoding="utf-8"))
        found: dict[str, Any] = kept["found"]
        whole = all({"value", "low", "high"} <= figure.keys() for figure in found["figures"].values())
        same = kept["key"]["model"] == run.fingerprint()
        # bars of before the rules have the exponents of the map, which are still right where there is no flow
        current = kept["key"].get("rules") == RULES or not has_flow(run)
        return found if whole and same and current else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # none were computed, or the file is damaged
        return None


def analyses_with(settings: ReportSettings) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name of each analysis of a report, and its settings where it has any."""
    for name in analyses():
        asked = getattr(settings, _SETTINGS.get(name, name), None)
        yield name, [] if asked is None else [asked]


@contextmanager
def undisturbed(folder: RunFolder | None) -> Iterator[None]:
    """Hold the ``folder``, if it can be written; what the page says itself, with numbers, is no warning."""
    held = folder.writing("report") if folder is not None and folder.is_writable else nullcontext()
    with held, warnings.catch_warnings():
        for kind in (IndefiniteInformationWarning, FewPathsWarning):
            warnings.simplefilter("ignore", kind)
        yield


def facts(run: Reconstruction) -> dict[str, dict[str, Any]]:
    """Return what was done, in groups of named values: data, training, model, tuning, versions."""
    record, drift, model = run.record, run.drift, run.probabilistic
    data, notes = record.data, record.run
    lags, delay = (1, 1) if data is None else data.past
    of_data = {
        "series": None if data is None else data.series,
        "coordinates": list(run.columns),
        "external inputs": _input_names(run),
        "left out": [f"{name} ({reason})" for name, reason in notes.left_out.items()] or None,
        "time step": run.dt if run.dt is not None else "not given: rates are per step",
        "training steps": notes.training_steps,
        "held-out steps": len(run.held),
        "held-out values that are missing": int(np.isnan(run.held).sum()) or None,
        "trials": notes.trials if notes.trials > 1 else None,
        "delay embedding": f"{lags} lags of {delay} steps" if lags > 1 else None,
    }
    sizes = {
        "family": type(drift).__name__,
        "latent units M": drift.latent_dim,
        "gated units P": drift.gated,
        "observed coordinates N": drift.observed_dim,
        "external inputs K": drift.input_dim or None,
        "drift parameters": len(drift.theta),
        "forcing": repr(run.forcing),
        "process noise": _words(model.process),
        "observation noise": _words(model.observation),
        "initial noise": None if model.initial is None else _words(model.initial),
        "gate deviation": model.gate_std,
    }
    versions = {name: importlib.metadata.version(name) for name in _VERSIONED}
    groups = {
        "Data": of_data,
        "Training settings": _settings(record.training),
        "Model": sizes,
        "Tuning settings": {} if record.tuning is None else _settings(record.tuning.saem),
        "Versions": versions | {"Python": platform.python_version()},
    }
    return {
        group: {key: value for key, value in values.items() if value is not None}
        for group, values in groups.items()
        if values
    }


def _input_names(run: Reconstruction) -> list[str] | None:
    """Return what the inputs are called; None of an autonomous model."""
    data, count = run.record.data, run.drift.input_dim
    if data is not None and isinstance(data.inputs, tuple):
        return list(data.inputs)
    return [f"s{k + 1}" for k in range(count)] or None


def _settings(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    shown = config.model_dump(mode="json", exclude_none=True) | {"forcing": repr(config.forcing)}
    return {name.replace("_", " "): value for name, value in shown.items()}


def _words(noise: Noise) -> str:
    return f"{noise.typical_std:.4g} ({noise.kind})"
