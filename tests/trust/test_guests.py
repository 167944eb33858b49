"""palrnn as a guest: in the processes of a pool, under joblib, in the kernel of a notebook."""

from __future__ import annotations

import asyncio
import hashlib
import io
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

import palrnn

CONFIG = palrnn.TrainConfig(
    latent_dim=4, gated=2, tau=3, updates=30, batch_size=2, sequence_length=8, learning_rate=1e-2
)


def trained(seed: int) -> str:
    """Train, filter and tune a little; return a digest of everything."""
    x = palrnn.lorenz63(120, seed=1)
    x = palrnn.Standardizer.fit(x).transform(x)
    drift = palrnn.train(x, CONFIG.changed(seed=seed)).model
    model = palrnn.PALRNN(drift, 0.3, 0.3, 0.5)
    filtered = palrnn.rbpf(model, x[:20], particles=16)
    settings = palrnn.SAEMConfig(length=8, iterations=1, windows=4, particles=16, paths=2)
    tuned = palrnn.saem(model, x, settings, threads=2).model
    parts = (drift.theta, filtered.increments, tuned.drift.theta)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def test_a_pool_of_fresh_processes_gives_what_one_process_gives():
    # as on Windows and macOS: nothing but what is pickled reaches the other side
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(trained, (1, 2))) == [trained(1), trained(2)]


@pytest.mark.slow
def test_joblib_gives_what_one_process_gives():
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(trained)(seed) for seed in (1, 2))
    threads = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(trained)(seed) for seed in (1, 2))
    assert found == threads == [trained(1), trained(2)]


def test_models_of_a_closure_reach_the_processes_of_joblib():
    joblib = pytest.importorskip("joblib")
    model = palrnn.PALRNN(palrnn.initial_alrnn(4, 3, 2, seed=1), 0.3, 0.3, 0.5)
    x = palrnn.lorenz63(30, seed=1) / 10
    found = joblib.Parallel(n_jobs=2)(
        joblib.delayed(lambda seed: palrnn.rbpf(model, x, particles=16, seed=seed).log_evidence)(seed)
        for seed in (1, 2)
    )
    assert found == [palrnn.rbpf(model, x, particles=16, seed=seed).log_evidence for seed in (1, 2)]


class Output(io.TextIOBase):
    """What stands for a stream in a notebook: no file behind it, no terminal."""

    encoding = "UTF-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


def test_streams_without_a_file_and_a_running_event_loop_do_no_harm(monkeypatch, tmp_path):
    out, err = Output(), Output()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)

    async def cell() -> palrnn.Reconstruction:
        settings = {"latent_dim": 4, "gated": 2, "updates": 30, "sequence_length": 8, "tau": 3}
        return palrnn.reconstruct("lorenz63", steps=300, seed=1, run=tmp_path / "run", **settings)

    result = asyncio.run(cell())
    assert repr(result)
    from palrnn.cli.main import main

    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(tmp_path / "run"), "--steps", "100"])
    assert left.value.code == 0, err.text
    assert "D_stsp" in out.text


CELLS = [
    "import palrnn, numpy as np",
    "r = palrnn.reconstruct('lorenz63', steps=300, seed=1, latent_dim=4, gated=2, updates=30, "
    "sequence_length=8, tau=3)\nr",
    "r.model",
    # a vector field typed into a cell has no file
    "from palrnn.data import vector_field\n"
    "@vector_field\n"
    "def decay(z, p, out):\n    out[0] = -p[0] * z[0]\n"
    "out = np.zeros(1)\ndecay(np.ones(1), np.full(1, 2.0), out)\nassert out[0] == -2.0",
    "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(2) as pool:\n"
    "    found = list(pool.map(lambda s: palrnn.lorenz63(50, seed=s).sum(), (1, 1)))\n"
    "assert found[0] == found[1]",
    "r.report('page.html')",
    "!{__import__('sys').executable} -m palrnn.cli.main --version",
]


@pytest.mark.slow
def test_a_notebook_runs_from_top_to_bottom(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=place).execute()
    said = [output for cell in book.cells for output in cell.outputs]
    assert not [output for output in said if output.output_type == "error"]
    assert (tmp_path / "page.html").is_file()
    assert "Reconstruction" in book.cells[1].outputs[-1].data["text/plain"]
