"""`palrnn filter`: which gates were open, and how likely is the series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palrnn.cli.app import JsonFlag, QuietFlag, Voice, app
from palrnn.cli.settings import ConfigFile, write_settings

if TYPE_CHECKING:
    from palrnn.engine.checks import Floats
    from palrnn.inference import Filtered
    from palrnn.model import PALRNN, Checkpoint

_SEGMENT, _NOISE, _FILTER = "The segment", "The PAL-RNN (in standardised units, per step)", "The filter"
# where the paper's fine-tuning starts
_START_NOISE = {"process": 0.1, "observation": 0.1, "gate_std": 0.7}


def _option(words: str, panel: str) -> Any:
    return typer.Option(help=words, rich_help_panel=panel)


@app.command(
    "filter", epilog="Example: palrnn filter run/ held-out.csv --length 1000 --particles 256 -o filter/"
)
def filter_command(
    context: typer.Context,
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint, or a run folder that holds one.")],
    series: Annotated[Path, typer.Argument(help="A series in raw units; empty cells were not observed.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder to write to; made if missing.")
    ] = Path("filter"),
    start: Annotated[int, _option("The first row; it starts the filter and is not scored.", _SEGMENT)] = 0,
    length: Annotated[int | None, _option("Rows after the first (all).", _SEGMENT)] = None,
    process_std: Annotated[float | None, _option("Process noise (the model's, or 0.1).", _NOISE)] = None,
    observation_std: Annotated[
        float | None, _option("Observation noise (the model's, or 0.1).", _NOISE)
    ] = None,
    gate_std: Annotated[float | None, _option("Gate noise (the model's, or 0.7).", _NOISE)] = None,
    particles: Annotated[int, _option("Particles.", _FILTER)] = 256,
    target: Annotated[str, _option("What the filter targets: paper or exact.", _FILTER)] = "paper",
    resampling: Annotated[
        str, _option("multinomial, systematic, stratified or residual.", _FILTER)
    ] = "multinomial",
    ess_threshold: Annotated[float, _option("Resample when ESS / particles is below.", _FILTER)] = 0.5,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    config: ConfigFile = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Infer the gates of a model on a series, with a Rao-Blackwellised particle filter.

    The folder receives filter.csv, one line for each row that was scored, diagnostics.png and
    the settings, filter.toml.
    """
    from palrnn.data import load_series
    from palrnn.engine.files import write_text
    from palrnn.engine.progress import listening
    from palrnn.engine.style import save_figure
    from palrnn.inference import rbpf
    from palrnn.model import load_checkpoint
    from palrnn.report.filter_figures import diagnostics_figure

    voice = Voice(json, quiet)
    voice.compiling()
    loaded = load_checkpoint(checkpoint / "checkpoint.safetensors" if checkpoint.is_dir() else checkpoint)
    noise = {"process": process_std, "observation": observation_std, "gate_std": gate_std}
    model = _probabilistic(loaded, noise)
    x = _segment(loaded, load_series(series, allow_nan=True), start, length)
    with listening(voice.progress("filter"), "filter") as report:
        filtered = rbpf(
            model,
            x,
            particles=particles,
            seed=seed,
            target=target,
            resampling=resampling,
            ess_threshold=ess_threshold,
            progress=report,
        )
    output.mkdir(parents=True, exist_ok=True)
    write_text(output / "filter.csv", _table(filtered, start))
    save_figure(diagnostics_figure(filtered, start=start), output / "diagnostics.png")
    write_settings(context, output / "filter.toml")
    summary = _summary(filtered, model)
    voice.result({"output": str(output), **summary}, _words(filtered, summary, output))


def _probabilistic(loaded: Checkpoint, asked: dict[str, float | None]) -> PALRNN:
    """Return the PAL-RNN to filter with: the noise asked for, else the model's own, else the usual start."""
    from palrnn.model import PALRNN

    noise: dict[str, Any] = {**_START_NOISE, "initial": None}
    if isinstance(loaded.model, PALRNN):
        noise = {name: getattr(loaded.model, name) for name in noise}
    return PALRNN(
        loaded.drift, **(noise | {name: value for name, value in asked.items() if value is not None})
    )


def _segment(loaded: Checkpoint, raw: Floats, start: int, length: int | None) -> Floats:
    rows = len(raw) - 1 - start if length is None else length
    if start < 0 or rows < 1 or start + rows >= len(raw):
        raise ValueError(f"--start {start} and --length {rows} do not fit a series of {len(raw)} rows")
    x = raw[start : start + rows + 1]
    return x if loaded.standardizer is None else loaded.standardizer.transform(x)


def _table(filtered: Filtered, start: int) -> str:
    import pandas as pd

    columns: dict[str, Any] = {
        "row": start + 1 + pd.RangeIndex(len(filtered.increments)),
        "log_evidence": filtered.increments,
        "ess": filtered.ess,
        "resampled": filtered.resampled.astype(int),
        "survivors": filtered.survivors,
        "code_entropy_bits": filtered.code_entropy,
        "bit_entropy_bits": filtered.bit_entropy,
    }
    for j, chance in enumerate(filtered.gate_probability.T, start=1):
        columns[f"gate_{j}"] = chance
    table: str = pd.DataFrame(columns).to_csv(index=False)
    return table


def _summary(filtered: Filtered, model: PALRNN) -> dict[str, Any]:
    steps, seen = len(filtered.increments), model.drift.observed_dim
    return {
        "steps": steps,
        "log_evidence": filtered.log_evidence,
        "log_evidence_per_step_and_dimension": filtered.log_evidence / (steps * seen),
        "mean_ess": float(filtered.ess.mean()),
        "resampled": int(filtered.resampled.sum()),
        "code_entropy_bits": float(filtered.code_entropy.mean()),
        "bit_entropy_bits": float(filtered.bit_entropy.mean()),
        "entropy_bound_bits": filtered.entropy_bound,
        "particles": filtered.particles,
        "target": filtered.target,
        "resampling": filtered.config.resampling,
        "process_std": model.process.std,
        "observation_std": model.observation.std,
        "gate_std": model.gate_std,
    }


def _words(filtered: Filtered, summary: dict[str, Any], output: Path) -> str:
    particles, scheme = filtered.particles, filtered.config.resampling
    per_step = f"{summary['log_evidence_per_step_and_dimension']:.4f} per step and dimension"
    rows = [
        ("log evidence", f"{summary['log_evidence']:.3f}", per_step),
        ("effective sample size", f"{summary['mean_ess']:.1f}", f"mean, of {particles} particles"),
        ("resampled", f"{summary['resampled']} times", f"in {summary['steps']} steps, {scheme}"),
        (
            "code entropy",
            f"{summary['code_entropy_bits']:.3f} bits",
            f"mean; {particles} particles can show at most {filtered.entropy_bound:.2f}",
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
    return "\n".join([*lines, f"wrote {output}/"])
