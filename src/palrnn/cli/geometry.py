"""`palrnn geometry`: the curvature of teacher forcing and of the marginal likelihood, side by side."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.settings import ConfigFile, write_settings

if TYPE_CHECKING:
    from palrnn.engine.checks import Floats
    from palrnn.geometry import GeometryComparison, InvariantErrorBars
    from palrnn.model import PALRNN, Checkpoint

_SEGMENT, _NOISE = "The segment and the forcing", "The PAL-RNN (in standardised units, per step)"
_BUDGET, _USE = "Filter and smoother (the defaults are the paper's)", "Error bars on the dynamics"
_EXAMPLE = "Example: palrnn geometry run/ held-out.csv --states-per-path 32 -o geometry/"


def _option(words: str, panel: str) -> Any:
    return typer.Option(help=words, rich_help_panel=panel)


@app.command("geometry", epilog=_EXAMPLE)
def geometry_command(
    context: typer.Context,
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint, or a run folder that holds one.")],
    series: Annotated[Path, typer.Argument(help="A series in raw units (.csv .npy .npz .parquet).")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder to write to; made if missing.")
    ] = Path("geometry"),
    start: Annotated[int, _option("The first row of the segment.", _SEGMENT)] = 0,
    steps: Annotated[int, _option("Its length T.", _SEGMENT)] = 200,
    tau: Annotated[int | None, _option("Steps between forcings (as trained, or 16).", _SEGMENT)] = None,
    alpha: Annotated[float | None, _option("Forcing strength (as trained, or 1).", _SEGMENT)] = None,
    process_std: Annotated[
        float | None, _option("Process noise (the model's, or its training data's, or 0.1).", _NOISE)
    ] = None,
    observation_std: Annotated[
        float | None, _option("Observation noise (the model's, or its training data's, or 0.1).", _NOISE)
    ] = None,
    gate_std: Annotated[float | None, _option("Gate noise (the model's, or 0.1).", _NOISE)] = None,
    particles: Annotated[int, _option("Particles of the filter.", _BUDGET)] = 64,
    paths: Annotated[int, _option("Gate paths drawn from it.", _BUDGET)] = 8,
    states_per_path: Annotated[
        int, _option("States drawn for each path; from 2 on, what is missing is split by cause.", _BUDGET)
    ] = 1,
    target: Annotated[str, _option("What the filter targets: paper or exact.", _BUDGET)] = "paper",
    draws: Annotated[int, _option("Models drawn from each Laplace posterior; 0 for none.", _USE)] = 32,
    prior_std: Annotated[float, _option("Deviation of the Gaussian prior around the model.", _USE)] = 0.01,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Compare the curvature of teacher forcing with that of the marginal likelihood, at the same model.

    The folder receives matrices.safetensors, summary.json, geometry.png, error_bars.png and the
    settings, geometry.toml.
    """
    from palrnn.data import load_series
    from palrnn.engine.files import write_json
    from palrnn.geometry import IndefiniteInformationWarning, compare_geometries
    from palrnn.model import Forcing, load_checkpoint
    from palrnn.model.forcing_policy import forcing_from_numbers

    voice = Voice(json, quiet)
    voice.compiling()
    file = checkpoint / "checkpoint.safetensors" if checkpoint.is_dir() else checkpoint
    loaded = load_checkpoint(file)
    raw = load_series(series)
    x = _segment(loaded, raw, start, steps)
    asked = {"process": process_std, "observation": observation_std, "gate_std": gate_std}
    model = _probabilistic(loaded, _training_data(loaded, file), asked)
    trained = loaded.forcing or Forcing.identity(16)
    forcing = forcing_from_numbers(
        trained.interval if tau is None else tau, trained.strength if alpha is None else alpha
    )
    budget: dict[str, Any] = {"particles": particles, "paths": paths, "states_per_path": states_per_path}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IndefiniteInformationWarning)
        found = compare_geometries(model, x, forcing, **budget, target=target, seed=seed)
    notes = [str(w.message) for w in caught if issubclass(w.category, IndefiniteInformationWarning)]
    if found.itf is None:
        notes.append(
            f"p = {found.operator.shape[0]} is too many for matrices: traces and leading subspaces only"
        )
    bars = _error_bars(found, loaded, raw, draws, prior_std, seed, voice) if draws else {}
    values = {
        "checkpoint": str(file),
        "series": str(series),
        "start": start,
        "tau": forcing.interval,
        "alpha": forcing.strength,
        "process_std": _plain(model.process.std),
        "observation_std": _plain(model.observation.std),
        "gate_std": model.gate_std,
        **found.as_dict(),
        "warnings": notes,
        "prior_std": prior_std,
        "error_bars": _bars_dict(bars),
    }
    output.mkdir(parents=True, exist_ok=True)
    _write(found, bars, output)
    write_json(output / "summary.json", values)
    write_settings(context, output / "geometry.toml")
    voice.result({"output": str(output), **values}, _words(found, bars, prior_std, notes, output))


def _segment(checkpoint: Checkpoint, raw: Floats, start: int, steps: int) -> Floats:
    if start < 0 or steps < 2 or start + steps > len(raw):
        raise ValueError(f"--start {start} and --steps {steps} do not fit a series of {len(raw)} rows")
    x = raw[start : start + steps]
    return x if checkpoint.standardizer is None else checkpoint.standardizer.transform(x)


def _probabilistic(loaded: Checkpoint, told: dict[str, Any], asked: dict[str, float | None]) -> PALRNN:
    """Return the PAL-RNN to filter with: as asked, or the model's own, or as noisy as its training data."""
    from palrnn.model import PALRNN

    usual: dict[str, Any] = {name: told.get(f"{name}_std") or 0.1 for name in ("process", "observation")}
    usual |= {"gate_std": 0.1, "initial": None}
    if isinstance(loaded.model, PALRNN):
        usual = {name: getattr(loaded.model, name) for name in usual}
    given = {name: value for name, value in asked.items() if value is not None}
    return PALRNN(loaded.drift, **(usual | given))


def _training_data(checkpoint: Checkpoint, file: Path) -> dict[str, Any]:
    """Return what is known of the training data: from the checkpoint, or the config.toml beside it."""
    from palrnn.engine.config import read_toml

    beside = file.parent / "config.toml"
    places = [checkpoint.training.get("data"), read_toml(beside).get("data") if beside.is_file() else None]
    return next((place for place in places if isinstance(place, dict)), checkpoint.training)


def _error_bars(
    found: GeometryComparison,
    checkpoint: Checkpoint,
    raw: Floats,
    draws: int,
    prior_std: float,
    seed: int,
    voice: Voice,
) -> dict[str, InvariantErrorBars]:
    from palrnn.geometry import invariant_error_bars, laplace

    steps, drift = found.observed.steps, checkpoint.drift
    if found.itf is not None:
        pair: tuple[Any, Any] = steps * found.itf, found.observed.observed
    else:
        values, vectors = found.operator.leading(found.k)
        pair = (steps * values, vectors), found.observed.leading(found.k)
    voice.say(f"error bars: {draws} models under each geometry, prior deviation {prior_std:g}")
    return {
        name: invariant_error_bars(
            laplace(drift, information, prior_std=prior_std),
            raw,
            draws=draws,
            standardizer=checkpoint.standardizer,
            steps=min(10_000, max(1000, len(raw))),
            dt=checkpoint.dt or 1.0,
            seed=seed,
            progress=voice.progress(name),
        )
        for name, information in zip(("teacher forcing", "observed information"), pair, strict=True)
    }


def _write(found: GeometryComparison, bars: dict[str, InvariantErrorBars], folder: Path) -> None:
    from palrnn.engine.style import save_figure
    from palrnn.report.geometry_figures import error_bars_figure, geometry_figure

    save_figure(geometry_figure(found), folder / "geometry.png")
    if bars:
        save_figure(error_bars_figure(bars), folder / "error_bars.png")
    if found.itf is not None:
        found.save(folder / "matrices.safetensors")


def _words(
    found: GeometryComparison,
    bars: dict[str, InvariantErrorBars],
    prior_std: float,
    notes: list[str],
    folder: Path,
) -> str:
    rows = [*_trace_rows(found), *_filter_rows(found), *_direction_rows(found)]
    for name, bar in bars.items():
        for which in ("lyapunov", "dstsp"):
            low, high = bar.interval(which)
            beside = f"{name}, prior {prior_std:g}, {bar.diverged} of {len(bar.dstsp)} diverged"
            rows.append((f"{which} (90%)", f"{low:.3g} to {high:.3g}", beside))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
    return "\n".join([*lines, *(f"note: {note}" for note in notes), f"wrote {folder}/"])


def _trace_rows(found: GeometryComparison) -> list[tuple[str, str, str]]:
    observed, error = found.observed, found.observed.standard_errors

    def row(label: str, value: float, name: str, beside: str) -> tuple[str, str, str]:
        return label, f"{value:.4g} ± {error[name]:.2g}", beside

    gap = f"{found.gap:.3f} ± {found.gap_error:.2g} decades"
    if math.isnan(found.gap):
        gap = "none, tr(observed) < 0"
    rows = [
        ("curvature gap", gap, "log10 of T tr(ITF) / tr(observed)"),
        ("tr(ITF), per step", f"{found.trace_itf:.4g}", f"p = {found.operator.shape[0]}"),
        row("tr(observed)", observed.trace_observed, "observed", f"T = {observed.steps}"),
        row("tr(complete)", observed.trace_complete, "complete", ""),
        row("tr(missing)", observed.trace_missing, "missing", f"MIR {observed.mir:.3f}"),
    ]
    state, switching = observed.trace_missing_state, observed.trace_missing_switching
    if state is not None and switching is not None:
        share = f"{switching / observed.trace_missing:.1%} of what is missing"
        rows.append(row("  by the state", state, "missing_state", "given the gates"))
        rows.append(row("  by the gates", switching, "missing_switching", share))
    return rows


def _filter_rows(found: GeometryComparison) -> list[tuple[str, str, str]]:
    observed, filtered = found.observed, found.observed.filtered
    bound = f"at most {filtered.entropy_bound:.2f} with {filtered.particles} particles"
    return [
        ("code entropy", f"{observed.code_entropy:.3f} bits", bound),
        ("effective sample size", f"{observed.ess:.1f}", f"of {filtered.particles}"),
        ("distinct gate paths", f"{observed.distinct[0]} to {observed.distinct[-1]}", "first to last step"),
    ]


def _direction_rows(found: GeometryComparison) -> list[tuple[str, str, str]]:
    rows = [(f"overlap of the leading {found.k}", f"{found.overlap:.3f}", "mean squared cosine")]
    if found.mismatch is not None and found.identifiable is not None:
        whole, inside = found.mismatch, found.identifiable
        rows += [
            ("log-det gap", f"{whole.logdet_gap:.1f} decades", f"identifiable: {inside.logdet_gap:.1f}"),
            ("0.9 quantile of log10 ratio", f"{whole.q90:.3f}", f"identifiable: {inside.q90:.3f}"),
            ("negative directions", f"{whole.negative}", "of the observed information"),
            ("null directions", f"{whole.null}", "A_ii against W_ii"),
        ]
    return rows


def _bars_dict(bars: dict[str, InvariantErrorBars]) -> dict[str, Any]:
    return {
        name: {
            "lyapunov": [_finite(v) for v in bar.lyapunov],
            "dstsp": [_finite(v) for v in bar.dstsp],
            "diverged": bar.diverged,
        }
        for name, bar in bars.items()
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(value: float | Floats) -> Any:
    return value if isinstance(value, float) else value.tolist()
