"""`palrnn evaluate`: is it the same dynamical system? Each number beside its floor or reference value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.settings import ConfigFile, write_settings

if TYPE_CHECKING:
    from palrnn.data.systems import System
    from palrnn.invariants import Floor, Quantities, Scorecard
    from palrnn.model import Checkpoint

_SYSTEMS = ("lorenz63", "rossler", "lorenz96")


@app.command("evaluate", epilog="Example: palrnn evaluate model.safetensors --reference held-out.csv --json")
def evaluate_command(
    context: typer.Context,
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint, or a run folder that holds one.")],
    reference: Annotated[
        Path | None, typer.Option(help="A true series in raw units (.csv .npy .npz .parquet).")
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help=f"Or a simulated system: {', '.join(_SYSTEMS)}. Default: the one it was trained on."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Length of the free run and of the reference.")] = 9000,
    discard: Annotated[int, typer.Option(help="Steps of the free run to leave out at its start.")] = 1000,
    dt: Annotated[float | None, typer.Option(help="Time per step. Default: the checkpoint's, or 1.")] = None,
    process_std: Annotated[float, typer.Option(help="Process noise of the simulated reference.")] = 0.0,
    lyapunov: Annotated[
        float | None, typer.Option(help="The largest true exponent, where no system tells it.")
    ] = None,
    exponents: Annotated[int, typer.Option(help="How many Lyapunov exponents.")] = 3,
    pairs: Annotated[int, typer.Option(help="Pairs of true stretches behind each floor.")] = 20,
    protocol: Annotated[
        str, typer.Option(help="How D_stsp is counted: paper, alrnn-python or gtf.")
    ] = "paper",
    figures: Annotated[Path | None, typer.Option(help="A folder to draw the figures into.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure the invariants of a trained model against the true system."""
    from palrnn.invariants import scorecard
    from palrnn.model import load_checkpoint

    voice = Voice(json, quiet)
    voice.compiling()
    file = checkpoint / "checkpoint.safetensors" if checkpoint.is_dir() else checkpoint
    loaded = load_checkpoint(file)
    truth, name = _truth(loaded, file, reference, system)
    time_step = dt if dt is not None else loaded.dt or 1.0
    if dt is None and loaded.dt is None:
        voice.say("the checkpoint does not tell its time step: exponents are per step (or give --dt)")
    card = scorecard(
        loaded.model,
        truth,
        standardizer=loaded.standardizer,
        dt=time_step,
        steps=steps,
        discard=discard,
        process_std=process_std,
        lyapunov=lyapunov,
        pairs=pairs,
        k=exponents,
        protocol=protocol,
        seed=seed,
    )
    if figures is not None:
        from palrnn.report.invariants_figures import save_invariant_figures

        for drawn in save_invariant_figures(card, figures, dt=time_step):
            voice.say(f"wrote {drawn}")
        write_settings(context, figures / "evaluate.toml")
    values = {
        "checkpoint": str(file),
        "reference": name,
        "dt": time_step,
        "protocol": protocol,
    } | card.as_dict()
    voice.result(values, _table(card, name))


def _truth(checkpoint: Checkpoint, file: Path, reference: Path | None, system: str | None) -> tuple[Any, str]:
    """Return the system or series to compare with, asked for or trained on, and its name."""
    from palrnn.data import load_series, train_test_split

    if reference is not None and system is not None:
        raise ValueError("give --reference or --system, not both")
    if reference is not None:
        return load_series(reference), str(reference)
    if system is not None:
        return _system(system, {}, checkpoint, "--system"), system
    told = _told(checkpoint, file)
    name = told.get("system") or told.get("series")
    if not isinstance(name, str):
        raise ValueError(
            f"{file} does not say what it was trained on: give --reference SERIES or --system NAME"
        )
    if name in _SYSTEMS:
        return _system(name, told.get("parameters") or {}, checkpoint, str(file)), name
    kept = file.parent / "reference.npy"
    if kept.is_file():  # by `palrnn train`, with the columns, delays and trials that it chose
        held_out = load_series(kept)
    else:
        held_out = train_test_split(load_series(name), float(told.get("test_fraction", 0.2)))[1]
    return held_out, f"the held-out part of {name}"


def _told(checkpoint: Checkpoint, file: Path) -> dict[str, Any]:
    """Return what is known of the training data: from the checkpoint, or the config.toml beside it."""
    from palrnn.engine.config import read_toml

    inside = checkpoint.training.get("data")
    if isinstance(inside, dict):
        return inside
    beside = file.parent / "config.toml"
    told = read_toml(beside).get("data") if beside.is_file() else None
    return told if isinstance(told, dict) else checkpoint.training


def _system(name: str, parameters: dict[str, Any], checkpoint: Checkpoint, source: str) -> System:
    from palrnn.data import systems

    if name not in _SYSTEMS:
        raise ValueError(f"{source} must be one of {', '.join(_SYSTEMS)}, got {name!r}")
    make: Callable[..., System] = getattr(systems, f"{name}_system")
    if name == "lorenz96":
        parameters = {"dim": checkpoint.drift.observed_dim} | parameters
    try:
        return make(**parameters)
    except TypeError:
        raise ValueError(f"{source}: {name} has no such parameters: {', '.join(parameters)}") from None


def _table(card: Scorecard, reference: str) -> str:
    """Return the score card as a table of aligned columns."""
    rows = [("", "model", *(["sampled"] if card.sampled else []), "floor or reference")]
    runs = [card.hard] + ([card.sampled] if card.sampled else [])

    def row(name: str, cells: list[str], against: str) -> None:
        rows.append((name, *cells, *([""] * (len(runs) - len(cells))), against))

    row("D_stsp (nats)", [_dstsp(run) for run in runs], _spread(card.dstsp_floor))
    row("points outside", [_percent(run) for run in runs], "0%")
    row("D_H", [_shown(run.spectrum_distance, run) for run in runs], _spread(card.spectrum_floor))
    for i in range(max((len(run.lyapunov.exponents) for run in runs if run.lyapunov), default=1)):
        row(f"Lyapunov exponent {i + 1}", [_exponent(run, i) for run in runs], _known(card, i))
    truth = card.reference_exponents.kaplan_yorke if card.reference_exponents else None
    row(
        "Kaplan-Yorke dimension",
        [_shown(run.lyapunov.kaplan_yorke if run.lyapunov else None, run) for run in runs],
        "" if truth is None else f"{truth:.4g}",
    )
    ahead, error = len(card.prediction.mse), card.prediction
    row("error 1 step ahead", [f"{error.mse[0]:.3g}"], "mean square, standardised units")
    row(f"error {ahead} steps ahead", [f"{error.mse[-1]:.3g}"], "")
    times = "" if error.valid_time is None else f" ({error.valid_time:.3g} Lyapunov times)"
    more = f", {error.censored:.0%} beyond the horizon" if error.censored else ""
    row(
        "valid prediction",
        [f"{error.valid_steps.mean():.4g} steps"],
        f"{times.strip(' ()')}{more}".lstrip(", "),
    )
    if card.symbols is not None:
        row("codes visited", [str(len(card.symbols.codes))], f"of {2**card.gated} regions")
        row(
            "entropy rate of codes",
            [f"{card.symbols.entropy_rate():.3g}"],
            "bits per step, next code given this one",
        )
    if card.fixed_points is not None:
        row("fixed points", [str(len(card.fixed_points))], f"{int(card.fixed_points.stable.sum())} stable")
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in rows
    ]
    length = f"{len(card.reference)} steps against {reference}"
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], "", length])


def _dstsp(run: Quantities) -> str:
    if run.dstsp is None:
        return f"diverged after {run.diverged_at} steps"
    error = f" ± {run.dstsp.stderr:.2g}" if run.dstsp.method == "mixture" else ""
    return f"{run.dstsp.value:.3f}{error}"


def _percent(run: Quantities) -> str:
    return "" if run.dstsp is None else f"{run.dstsp.outside:.1%}"


def _shown(value: float | None, run: Quantities) -> str:
    return (
        f"{value:.4g}" if value is not None else "" if run.diverged_at is not None else "needs more exponents"
    )


def _exponent(run: Quantities, i: int) -> str:
    if run.lyapunov is None or i >= len(run.lyapunov.exponents):
        return ""
    return f"{run.lyapunov.exponents[i]:.4g} ± {run.lyapunov.stderr[i]:.2g}"


def _known(card: Scorecard, i: int) -> str:
    truth = card.reference_exponents
    if truth is not None and i < len(truth.exponents):
        return f"{truth.exponents[i]:.4g} ± {truth.stderr[i]:.2g}"
    return f"{card.lyapunov:.4g}" if i == 0 and card.lyapunov is not None else ""


def _spread(floor: Floor) -> str:
    return f"floor {floor.median:.3f} ({floor.low:.3f} to {floor.high:.3f}, {len(floor.values)} pairs)"
