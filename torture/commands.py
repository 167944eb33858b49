"""Every command, fed what it should refuse: one line on standard error, exit code 1 or 2, no traceback.

python -m torture.commands FOLDER      prints what it saw as JSON
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

import palrnn
from palrnn.engine.files import write_bytes, write_text


class Attempt(NamedTuple):
    """The words of a command and what was wrong with its outcome (empty: nothing)."""

    words: str
    fault: str


def prepared(folder: Path) -> Path:
    """Write good and bad files of every kind into ``folder``."""
    x = palrnn.lorenz63(200, seed=2)
    scale = palrnn.Standardizer.fit(x)
    model = palrnn.initial_alrnn(4, 3, 2, seed=1)
    (folder / "run").mkdir(parents=True)
    for file in (folder / "good.safetensors", folder / "run" / "checkpoint.safetensors"):
        palrnn.save_checkpoint(file, model, standardizer=scale, dt=0.01)
    np.save(folder / "run" / "reference.npy", x)
    np.save(folder / "good.npy", x)
    np.save(folder / "nan.npy", np.where(x > 20, np.nan, x))
    np.save(folder / "huge.npy", x * 1e200)
    np.save(folder / "constant.npy", np.ones((200, 3)))
    np.save(folder / "narrow.npy", x[:, :1])
    np.save(folder / "short.npy", x[:1])
    np.save(folder / "empty.npy", x[:0])
    np.save(folder / "texts.npy", np.full((20, 3), "a"))
    np.save(folder / "complex.npy", x + 1j)
    np.save(folder / "objects.npy", np.full((20, 3), None), allow_pickle=True)
    write_bytes(folder / "noise.bin", bytes(range(256)) * 8)
    for suffix in ("npy", "npz", "csv", "parquet", "safetensors", "toml", "pt"):
        write_bytes(folder / f"noise.{suffix}", bytes(range(256)) * 8)
        write_bytes(folder / f"void.{suffix}", b"")
    write_text(folder / "words.csv", "a,b\nx,y\nz,w\n")
    write_text(folder / "malformed.toml", "[training\nupdates = = 3\n")
    write_text(
        folder / "unknown.toml", '[data]\nseries = "lorenz63"\n[training]\nupdate = 3\n[saem]\nparticle = 1\n'
    )
    write_text(folder / "unknown-table.toml", "[nonsense]\nx = 1\n")
    write_text(
        folder / "wrong.toml",
        '[data]\nseries = 3\n[training]\nupdates = "many"\n[saem]\nlength = -1\n[invariants]\nsteps = "x"\n',
    )
    write_text(folder / "tables.toml", 'data = 1\ntraining = [1]\nsaem = "x"\nsource = 2\ninvariants = 3\n')
    write_text(folder / "file", "a file where a folder should be")
    return folder


_SERIES = [
    "missing.npy",
    "nan.npy",
    "huge.npy",
    "constant.npy",
    "narrow.npy",
    "short.npy",
    "empty.npy",
    "texts.npy",
    "complex.npy",
    "objects.npy",
    "noise.bin",
    "noise.npy",
    "noise.npz",
    "noise.csv",
    "noise.parquet",
    "void.npy",
    "void.npz",
    "void.csv",
    "void.parquet",
    "words.csv",
    "run",
    "good.safetensors",
]
_MODELS = ("missing.safetensors", "noise.safetensors", "void.safetensors", "good.npy", "file", "", "noise.pt")
_CONFIGS = ("missing", "malformed", "unknown", "unknown-table", "wrong", "tables", "noise")
_SIZES = ("-1", "0", "1.5", "x", "nan", "", "9" * 15)
_NUMBERS = ("-1", "nan", "inf", "1e300", "x", "", "1e-300")
_HUGE = "9" * 32
#: Options that take a whole number from 1, by command; the rest of a line that works.
_SIZED = {
    "train DIR/good.npy": "--updates --latent-dim --tau --batch-size --sequence-length --lags --gated=-1",
    "search DIR/good.npy": "--updates --candidates --latent-dim --lags --delay --workers --seed=-1",
    "bootstrap DIR/good.npy --updates 2": "--models --block --member-updates --workers",
    "geometry DIR/run DIR/good.npy --draws 0": "--particles --paths --steps --tau",
    "filter DIR/run DIR/good.npy": "--particles --start=-1 --seed=-1",
    "tune DIR/run DIR/good.npy": "--length --windows --particles --paths --threads --seed=-1",
    "evaluate DIR/run --reference DIR/good.npy": "--pairs --steps --exponents --seed=-1",
    "reproduce toy --scale smoke": "--workers",
}
#: Options that take a positive number.
_POSITIVE = {
    "train DIR/good.npy --updates 2 --sequence-length 20": "--test-fraction --dt",
    "search DIR/good.npy --candidates 2 --workers 1": "--minutes --learning-rate",
    "geometry DIR/run DIR/good.npy --draws 0": "--process-std --observation-std",
    "filter DIR/run DIR/good.npy": "--process-std --observation-std",
    "tune DIR/run DIR/good.npy": "--process-std --observation-std",
    "report DIR/run": "--process-std --observation-std",
}
_LINES = """nonsense
--nonsense
train
train DIR/good.npy
geometry
filter
tune
report
evaluate
reproduce
status
zoo
import-torch
export-torch
export-onnx
export-torch DIR/run -o DIR/file
export-onnx DIR/run -o DIR/missing/step.onnx
import-julia
reproduce nonsense -o DIR/out
status DIR/missing
status DIR/file
zoo DIR/run
reproduce toy --scale nonsense -o DIR/out
reproduce toy --scale smoke --scheduler nonsense -o DIR/out
train DIR/good.npy --updates 2 -o DIR/file
train DIR/good.npy --updates 2 -o DIR/file/below
geometry DIR/run DIR/good.npy --draws 0 --particles 2 -o DIR/file
filter DIR/run DIR/good.npy --particles 2 -o DIR/file
tune DIR/run DIR/good.npy -o DIR/file
report DIR/run -o DIR/missing/page.html
reproduce toy --scale smoke -o DIR/file
demo --updates 2 -o DIR/file
demo --updates -2 -o DIR/out
import-torch DIR/missing.pt --gated x -o DIR/out.safetensors
import-torch DIR/missing.pt --family nonsense -o DIR/out.safetensors
import-torch DIR/missing.pt --family shallow --gated 3 -o DIR/out.safetensors
import-torch DIR/missing.pt -o DIR/out.safetensors
import-julia DIR/missing.bson -o DIR/out.safetensors
import-julia DIR/good.npy -o DIR/out.safetensors
geometry DIR/run DIR/good.npy --target nonsense -o DIR/out
filter DIR/run DIR/good.npy --target nonsense -o DIR/out
filter DIR/run DIR/good.npy --resampling nonsense -o DIR/out
tune DIR/run DIR/good.npy --configuration nonsense -o DIR/out
train DIR/good.npy --keep nonsense -o DIR/out
search
search DIR/good.npy
search DIR/good.npy --updates 9 -o DIR/run
search DIR/good.npy --updates 9 -o DIR/file
search DIR/good.npy --families nonsense -o DIR/out
search DIR/good.npy --updates 9 --scheduler nonsense -o DIR/out
search -o DIR/out
bootstrap
bootstrap DIR/good.npy
bootstrap DIR/good.npy --updates 2 -o DIR/run
bootstrap DIR/good.npy --updates 2 -o DIR/file
bootstrap DIR/good.npy --updates 2 --method nonsense -o DIR/out
bootstrap DIR/missing.npy -o DIR/out
evaluate DIR/run --bars nonsense
train DIR/good.npy --alpha 2 -o DIR/out
evaluate DIR/run --system nonsense
evaluate DIR/run --reference DIR/good.npy --protocol nonsense"""


def lines() -> Iterator[list[str]]:
    """Yield command lines; DIR stands for the folder of files."""
    out = ["-o", "DIR/out"]
    for series in _SERIES:
        if series != "narrow.npy":
            yield ["train", f"DIR/{series}", "--updates", "2", *out]
            yield ["search", f"DIR/{series}", "--updates", "8", "--workers", "1", *out]
        if series == "nan.npy":  # a value that is missing was not observed, which these commands can do with
            continue
        yield ["evaluate", "DIR/good.safetensors", "--reference", f"DIR/{series}", "--steps", "100"]
        yield ["geometry", "DIR/run", f"DIR/{series}", "--draws", "0", *out]
        yield ["filter", "DIR/run", f"DIR/{series}", *out]
        yield ["tune", "DIR/run", f"DIR/{series}", "--iterations", "1", *out]
        yield ["report", "DIR/run", "--reference", f"DIR/{series}", "-o", "DIR/page.html"]
    for model in _MODELS:
        yield ["evaluate", f"DIR/{model}", "--reference", "DIR/good.npy"]
        yield ["geometry", f"DIR/{model}", "DIR/good.npy", *out]
        yield ["filter", f"DIR/{model}", "DIR/good.npy", *out]
        yield ["tune", f"DIR/{model}", "DIR/good.npy", *out]
        yield ["report", f"DIR/{model}", "-o", "DIR/page.html"]
        yield ["zoo", f"DIR/{model}"]
        yield ["export-torch", f"DIR/{model}", "-o", "DIR/out.pt"]
        yield ["import-torch", f"DIR/{model}", "--gated", "2", "-o", "DIR/out.safetensors"]
        yield ["import-julia", f"DIR/{model}", "-o", "DIR/out.safetensors"]
    for config in _CONFIGS:
        yield ["train", "--config", f"DIR/{config}.toml", "--updates", "2", *out]
        yield ["tune", "DIR/run", "DIR/good.npy", "--config", f"DIR/{config}.toml", *out]
        yield ["report", "DIR/run", "--config", f"DIR/{config}.toml", "-o", "DIR/page.html"]
        yield ["demo", "--config", f"DIR/{config}.toml", *out]
        yield ["reproduce", "toy", "--scale", f"DIR/{config}.toml", *out]
    for table, values in ((_SIZED, _SIZES), (_POSITIVE, _NUMBERS)):
        for start, options in table.items():
            where = (
                [] if start.startswith("evaluate") else ["-o", "DIR/page.html"] if "report" in start else out
            )
            for option in options.split():
                name, _, least = option.partition("=")
                for value in values:
                    # where 0 is allowed, only what is below it is wrong; a seed may be as large as it likes
                    if not (least and value == "0") and not (name == "--seed" and len(value) > 9):
                        yield [*start.split(), name, value, *where]
    yield ["train", "DIR/good.npy", "--latent-dim", _HUGE, *out]
    yield ["train", "DIR/good.npy", "--sequence-length", _HUGE, *out]
    for line in _LINES.splitlines():
        yield line.split()


def attempts(folder: Path, every: int = 1) -> Iterator[Attempt]:
    """Run every command line (or every second, third, ... one), in this process."""
    for words in islice(lines(), 0, None, every):
        spoken = [word.replace("DIR", str(folder)) for word in words]
        yield Attempt("palrnn " + " ".join(words), fault(spoken))
        for made in ("out", "page.html", "out.safetensors"):
            _remove(folder / made)


def fault(words: list[str]) -> str:
    """Return what was wrong with how a command was refused."""
    from palrnn.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([*words, "-q"])
    except SystemExit as left:
        code = left.code
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    text = err.getvalue().strip()
    if code not in (1, 2):
        return f"left with {code}: {text[-200:]}"
    if "Traceback" in text or "--debug shows where" in text:
        return f"an unforeseen error: {text[-300:]}"
    if code == 1 and len(text.splitlines()) != 1:
        return f"not one line: {text[-300:]}"
    return "" if text else "left without a word"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


if __name__ == "__main__":
    seen = list(attempts(prepared(Path(sys.argv[1]))))
    print(json.dumps({"lines": len(seen), "faults": [" | ".join(each) for each in seen if each.fault]}))
