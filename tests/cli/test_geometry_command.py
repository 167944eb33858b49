import json
import math

import numpy as np
import pytest
from safetensors.numpy import load_file

from palrnn.cli.main import main
from palrnn.data import Standardizer
from palrnn.geometry import compare_geometries, itf_fisher
from palrnn.model import ALRNN, PALRNN, Forcing, save_checkpoint

# few paths, to be quick; the command says so on standard error
pytestmark = pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning")
PNG = b"\x89PNG"


@pytest.fixture
def drift():
    rng = np.random.default_rng(3)
    weights = 0.3 * rng.standard_normal((4, 4))
    return ALRNN(
        rng.uniform(0.2, 0.7, 4), weights, 0.2 * rng.standard_normal(4), rng.standard_normal((4, 2)), 2
    )


@pytest.fixture
def folder(tmp_path, drift):
    """A run of 0.1 with a checkpoint and its config.toml, and a raw series beside it."""
    rng = np.random.default_rng(0)
    model = PALRNN(drift, 0.2, 0.2, 0.2)
    x = model.sample(rng.standard_normal(2), 300, seed=1).observations
    standardizer = Standardizer([5.0, -3.0], [2.0, 4.0])
    np.save(tmp_path / "series.npy", standardizer.inverse(x))
    training = {"config": {"tau": 7, "alpha": 0.5}, "data": "a digest"}
    save_checkpoint(
        tmp_path / "checkpoint.safetensors", drift, standardizer=standardizer, dt=0.1, training=training
    )
    (tmp_path / "config.toml").write_text('[data]\nseries = "lorenz63"\nprocess_std = 0.2\n')
    return tmp_path


def run(capsys, *words):
    with pytest.raises(SystemExit) as leaving:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    return leaving.value.code, captured.out, captured.err


def test_the_command_writes_matrices_summary_and_figures(capsys, folder, drift):
    out = folder / "out"
    budget = ("--steps", 40, "--paths", 8, "--draws", 3, "--observation-std", 0.3)
    code, printed, _ = run(capsys, "geometry", folder, folder / "series.npy", *budget, "-o", out, "--json")
    assert code == 0
    values = json.loads(printed)
    assert values | {"output": None} == json.loads((out / "summary.json").read_text()) | {"output": None}
    # as trained, with the usual noise but for what was given
    assert values["forcing"] == {"policy": "generalised", "alpha": 0.5, "interval": 7}
    matrices = load_file(out / "matrices.safetensors")
    names = {"itf", "observed", "complete", "missing", "missing_state", "missing_switching"}
    assert set(matrices) == names
    x = Standardizer([5.0, -3.0], [2.0, 4.0]).transform(np.load(folder / "series.npy"))[:40]
    np.testing.assert_allclose(
        matrices["itf"], itf_fisher(drift, x, Forcing.generalised(0.5, 7), 0.3), rtol=1e-9, atol=1e-9
    )
    gap = math.log10(40 * np.trace(matrices["itf"]) / np.trace(matrices["observed"]))
    assert values["gap"] == pytest.approx(gap, abs=1e-9)
    assert values["null"] == 2
    assert len(values["error_bars"]["teacher forcing"]["dstsp"]) == 3
    for name in ("geometry.png", "error_bars.png"):
        assert (out / name).read_bytes().startswith(PNG)


@pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning")
def test_the_command_prints_a_table_of_the_papers_estimate(capsys, folder):
    words = ("geometry", folder, folder / "series.npy", "--steps", 40, "--preset", "paper", "--draws", 0)
    code, printed, errors = run(capsys, *words, "-o", folder / "out")
    assert code == 0, errors
    for word in ("Curvature gap", "Missing-information ratio", "code entropy", "negative γ"):
        assert word in printed
    assert not (folder / "out" / "error_bars.png").exists()


def test_a_palrnn_brings_its_own_noise_and_options_win(capsys, folder, drift):
    model = PALRNN(drift, np.full(4, 0.15), 0.25, 0.35)
    save_checkpoint(folder / "noisy.safetensors", model)
    words = ("geometry", folder / "noisy.safetensors", folder / "series.npy", "--steps", 30, "--paths", 8)
    code, printed, _ = run(capsys, *words, "--gate-std", 0.5, "--draws", 0, "-o", folder / "out", "--json")
    assert code == 0
    values = json.loads(printed)
    assert values["process_std"] == [0.15] * 4
    assert (values["observation_std"], values["gate_std"]) == (0.25, 0.5)
    assert values["forcing"] == {"policy": "identity", "interval": 16}


def test_a_segment_outside_the_series_is_an_error_in_one_line(capsys, folder):
    words = ("geometry", folder, folder / "series.npy", "--start", 290, "--steps", 40)
    code, _, errors = run(capsys, *words)
    assert code == 1
    assert "start 290 and steps 40 do not fit a series of 300 rows" in errors


@pytest.mark.slow
def test_a_model_too_large_for_matrices_is_compared_without_them(drift):
    model = PALRNN(drift, 0.2, 0.2, 0.2)
    x = model.sample([0.1, 0.2], 60, seed=1).observations
    settings = {"particles": 64, "passes": 2, "paths": 8, "k": 5}
    dense = compare_geometries(model, x, 5, **settings)
    light = compare_geometries(model, x, 5, **settings, most_dense=10, lanczos=True)
    lighter = compare_geometries(model, x, 5, **settings, most_dense=10)
    assert light.itf is None
    assert light.mismatch is None
    assert light.trace_itf == pytest.approx(dense.trace_itf, rel=1e-10)
    assert light.gap == pytest.approx(dense.gap, rel=1e-10)
    # the ridge moves eigenvalues only, and Lanczos converges to rounding
    assert light.overlap == pytest.approx(dense.overlap, abs=1e-6)
    assert lighter.to_dict() | {"overlap": light.overlap, "lanczos": True} == light.to_dict()
    assert set(light.to_dict()) < set(dense.to_dict())
    with pytest.raises(ValueError, match="no matrices to save"):
        light.save_matrices("nowhere.safetensors")
