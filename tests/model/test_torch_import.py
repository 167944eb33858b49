"""Published torch checkpoints: the same dynamics after import, and nothing but weights."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from palrnn.cli.main import main
from palrnn.model import CheckpointError, import_torch, load_checkpoint, save_checkpoint
from palrnn.model.torch_state import OLDEST_TORCH

ROOT = Path(__file__).parents[2]


@pytest.fixture
def torch():
    import torch

    return torch


def _state(torch, latent_dim=5, observed_dim=2, seed=0):
    torch.manual_seed(seed)
    return {
        "A": torch.rand(latent_dim),
        "W": 0.1 * torch.randn(latent_dim, latent_dim),
        "h": torch.randn(latent_dim),
        "B": torch.randn(observed_dim, latent_dim),
    }


def _refused(path, gated=2):
    with pytest.raises(CheckpointError) as caught:
        import_torch(path, gated=gated)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.torch
def test_an_imported_network_does_what_the_published_one_does(torch, tmp_path):
    state, gated = _state(torch), 3
    torch.save(state, tmp_path / "a.pt")
    model = import_torch(tmp_path / "a.pt", gated=gated)
    assert (model.latent_dim, model.observed_dim, model.gated) == (5, 2, 3)
    A, W, h, B = (state[name].double() for name in ("A", "W", "h", "B"))
    x = torch.tensor([0.3, -1.2], dtype=torch.float64)
    # the published code: embed by x @ B, put the observation in, then A * z + phi(z) @ W.T + h
    z = x @ B
    z[:2] = x
    np.testing.assert_allclose(model.embed(x.numpy()), z.numpy(), rtol=1e-14)
    for state_of_model in model.rollout(x.numpy(), 20).states:
        np.testing.assert_allclose(state_of_model, z.numpy(), rtol=1e-9, atol=1e-12)
        z = A * z + torch.cat([z[:-gated], torch.relu(z[-gated:])]) @ W.T + h


@pytest.mark.torch
def test_parameters_of_any_width_and_a_full_diagonal_are_taken(torch, tmp_path):
    state = _state(torch)
    kinds = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for kind in kinds:
        torch.save({name: torch.nn.Parameter(t.to(kind)) for name, t in state.items()}, tmp_path / "a.pt")
        model = import_torch(tmp_path / "a.pt", gated=0)
        np.testing.assert_array_equal(model.W, state["W"].to(kind).double().numpy())
    torch.save(state | {"A": torch.diag(state["A"])}, tmp_path / "a.pt")
    np.testing.assert_array_equal(import_torch(tmp_path / "a.pt", gated=0).A, state["A"].double().numpy())


def _shallow_state(torch, units=3, hidden=5):
    torch.manual_seed(1)
    return {
        "A": torch.rand(units),
        "W1": 0.3 * torch.randn(units, hidden),
        "W2": torch.randn(hidden, units),
        "h1": torch.randn(units),
        "h2": torch.randn(hidden),
    }


@pytest.mark.torch
@pytest.mark.parametrize("family", ["shallow", "clipped-shallow"])
def test_an_imported_shallow_network_does_what_the_published_one_does(torch, tmp_path, family, capsys):
    state, path = _shallow_state(torch), tmp_path / "a.pt"
    torch.save(state, path)
    model = import_torch(path, family=family)
    assert (model.latent_dim, model.observed_dim, model.hidden) == (3, 3, 5)
    A, W1, W2, h1, h2 = (value.double() for value in state.values())
    z = torch.tensor([0.3, -1.2, 0.5], dtype=torch.float64)
    for found in model.rollout(z.numpy(), 20).states:
        np.testing.assert_allclose(found, z.numpy(), rtol=1e-9, atol=1e-12)
        plain = torch.relu(z @ W2.T) if family == "clipped-shallow" else 0.0
        z = A * z + (torch.relu(z @ W2.T + h2) - plain) @ W1.T + h1
    with pytest.raises(SystemExit) as left:
        main(["import-torch", str(path), "--family", family, "-o", str(tmp_path / "a.safetensors")])
    assert left.value.code == 0
    loaded = load_checkpoint(tmp_path / "a.safetensors").model
    assert type(loaded) is type(model)
    assert loaded.theta.tobytes() == model.theta.tobytes()
    torch.save(state | {"C": torch.ones(3, 2)}, path)
    with pytest.raises(CheckpointError, match="has C besides A, W1, W2, h1, h2, and cannot be imported"):
        import_torch(path, family=family)
    with pytest.raises(CheckpointError, match="no tensor W, there are A, W1"):
        import_torch(path, gated=2)


def test_the_gates_of_a_shallow_network_are_not_to_be_given():
    with pytest.raises(ValueError, match="gated is of an AL-RNN; the gates of family='shallow'"):
        import_torch("nowhere.pt", gated=2, family="shallow")
    with pytest.raises(ValueError, match="gated must be given for an AL-RNN"):
        import_torch("nowhere.pt")
    with pytest.raises(ValueError, match="family must be one of"):
        import_torch("nowhere.pt", family="dendritic")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, s: {"W": s["W"]}, "no tensor A, there are W"),
        (lambda t, s: s | {"B": 3}, "no tensor B, there are A, W, h, B"),
        (lambda t, s: [1, 2], "holds list, expected a state dict"),
        (lambda t, s: {}, "no tensor A, there are none"),
        (lambda t, s: s | {"h": t.zeros(4)}, r"h must have shape (5,), got (4,)"),
        (lambda t, s: s | {"B": t.zeros(6, 5)}, "E must be (M, N) with 1 <= N <= M = 5, got (5, 6)"),
        (lambda t, s: s | {"W": s["W"] * float("nan")}, "W must be finite, got nan"),
        (lambda t, s: s | {"A": t.ones(5, 5)}, "A must be a vector or a diagonal matrix"),
        (lambda t, s: s | {"A": t.ones(5, 4)}, "A must be a vector or a diagonal matrix"),
        (
            lambda t, s: s | {"W": s["W"].to(t.complex64)},
            "W must be a dense tensor of real numbers, got torch.complex64",
        ),
        (lambda t, s: s | {"W": s["W"].to_sparse()}, "W must be a dense tensor of real numbers"),
    ],
)
def test_what_is_not_such_a_network_is_told_so(torch, tmp_path, change, message):
    path = tmp_path / "a.pt"
    torch.save(change(torch, _state(torch)), path)
    assert _refused(path).startswith(f"{path}: {message}")


@pytest.mark.torch
def test_the_number_of_gates_must_fit(torch, tmp_path):
    torch.save(_state(torch), tmp_path / "a.pt")
    assert "gated must be from 0 to 5, got 6" in _refused(tmp_path / "a.pt", gated=6)


class Trap:
    """Unpickling this would leave a mark."""

    sprung = False

    def __reduce__(self):
        return (_spring, ())


def _spring():
    Trap.sprung = True


@pytest.mark.torch
def test_code_in_a_file_is_refused_and_not_run(torch, tmp_path):
    path = tmp_path / "a.pt"
    for legacy in (False, True):
        torch.save(_state(torch) | {"extra": Trap()}, path, _use_new_zipfile_serialization=not legacy)
        with pytest.raises(CheckpointError, match="not a torch file of weights only") as caught:
            import_torch(path, gated=2)
        # torch advises to load such a file with weights_only=False, which would spring the trap
        assert str(caught.value).endswith("damaged, of another kind, or holds more than tensors")
        assert caught.value.__suppress_context__
    assert not Trap.sprung


@pytest.mark.torch
def test_truncated_and_foreign_files_are_refused(torch, tmp_path):
    path = tmp_path / "a.pt"
    torch.save(_state(torch), path)
    whole = path.read_bytes()
    for size in (0, 1, 10, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:size])
        assert "not a torch file of weights only" in _refused(path)
    path.write_text("hello")
    assert "not a torch file of weights only" in _refused(path)


@pytest.mark.torch
def test_the_command_writes_a_checkpoint(torch, tmp_path, capsys):
    torch.save(_state(torch), tmp_path / "a.pt")
    words = ["import-torch", str(tmp_path / "a.pt"), "--gated", "3", "-o", str(tmp_path / "a.safetensors")]
    for extra in ([], ["--json"], ["-q"]):
        with pytest.raises(SystemExit) as left:
            main([*words, *extra])
        assert left.value.code == 0
        out = capsys.readouterr().out
        match extra:
            case ["--json"]:
                sizes = {"latent_dim": 5, "observed_dim": 2, "gated": 3}
                assert json.loads(out) == {"output": str(tmp_path / "a.safetensors"), **sizes}
            case ["-q"]:
                assert out == ""
            case _:
                assert "ALRNN(latent_dim=5, observed_dim=2, gated=3)" in out
    loaded = load_checkpoint(tmp_path / "a.safetensors").model
    expected = import_torch(tmp_path / "a.pt", gated=3)
    assert loaded.theta.tobytes() == expected.theta.tobytes()


@pytest.mark.torch
def test_a_tensor_that_claims_to_be_huge_is_refused(torch, tmp_path):
    path = tmp_path / "a.pt"
    # one number on disk, 10^12 in its shape
    torch.save(_state(torch) | {"W": torch.zeros(1).expand(10**6, 10**6)}, path)
    assert path.stat().st_size < 10_000
    assert _refused(path) == f"{path}: W claims (1000000, 1000000) numbers, more than the {2**26} allowed"


@pytest.mark.torch
def test_names_in_a_file_are_shown_as_text(torch, tmp_path):
    torch.save({"\x1b[2J": torch.zeros(1)}, tmp_path / "a.pt")
    assert _refused(tmp_path / "a.pt").endswith(r"no tensor A, there are \x1b[2J")


@pytest.mark.torch
def test_the_command_overwrites_only_what_it_wrote(torch, tmp_path, capsys):
    torch.save(_state(torch), tmp_path / "a.pt")
    whole = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "mine.txt").write_text("mine")
    save_checkpoint(tmp_path / "other.safetensors", import_torch(tmp_path / "a.pt", gated=1))
    other = (tmp_path / "other.safetensors").read_bytes()
    for name, words in (("a.pt", "is what the command reads"), ("mine.txt", "not from this command")):
        with pytest.raises(SystemExit) as left:
            main(["import-torch", str(tmp_path / "a.pt"), "--gated", "3", "-o", str(tmp_path / name)])
        assert left.value.code == 1
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(
            [
                "import-torch",
                str(tmp_path / "a.pt"),
                "--gated",
                "3",
                "-o",
                str(tmp_path / "other.safetensors"),
            ]
        )
    assert left.value.code == 1
    assert (tmp_path / "a.pt").read_bytes() == whole
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "other.safetensors").read_bytes() == other


@pytest.mark.parametrize("version", ["2.9.1", "2.4.0+cpu", "1.13", "2.10.0a0", "2.10.0", "3.0", "unknown"])
def test_a_torch_that_runs_code_from_weights_is_refused(tmp_path, monkeypatch, version):
    class Torch(ModuleType):
        __version__ = version

        @staticmethod
        def load(*_, **__):
            raise AssertionError("an old torch was asked to read a file")

    monkeypatch.setitem(sys.modules, "torch", Torch("torch"))
    path = tmp_path / "a.pt"
    path.write_bytes(b"")
    message = _refused(path)
    new = version in ("2.10.0a0", "2.10.0", "3.0")
    assert message.startswith(
        f"{path}: not a torch file" if new else "importing torch checkpoints needs PyTorch 2.10 "
    )
    assert new or f"found {version}" in message


def test_the_extras_ask_for_a_torch_that_is_not_refused():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = table["project"]["optional-dependencies"]
    asked = [words for name in ("torch", "bench") for words in extras[name] if words.startswith("torch")]
    assert asked == ["torch>={}.{},<3".format(*OLDEST_TORCH)] * 2
    (pinned,) = re.findall(r"^torch==(\d+)\.(\d+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert tuple(map(int, pinned)) >= OLDEST_TORCH


def test_a_missing_file_is_told_so_before_torch_is_needed(tmp_path):
    assert _refused(tmp_path / "nowhere.pt").endswith("nowhere.pt: no such file")


def test_without_torch_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "a.pt"
    path.write_bytes(b"")
    assert _refused(path) == "importing torch checkpoints needs PyTorch: pip install 'palrnn[torch]'"
