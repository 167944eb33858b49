"""Models for other programs: torch and ONNX runtimes go the same way from the same state."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import palrnn
from palrnn.cli.main import main
from palrnn.model import export_onnx, export_torch, import_torch, save_checkpoint


def _alrnn(gated=3):
    rng = np.random.default_rng(0)
    return palrnn.ALRNN(
        rng.uniform(0.3, 0.9, 6), 0.3 * rng.standard_normal((6, 6)), rng.standard_normal(6),
        rng.standard_normal((6, 2)), gated,
    )  # fmt: skip


def _shallow(cls):
    rng = np.random.default_rng(1)
    W1, W2 = 0.3 * rng.standard_normal((4, 7)), 0.3 * rng.standard_normal((7, 4))
    h1, h2 = rng.standard_normal(4), rng.standard_normal(7)
    return cls(rng.uniform(0.3, 0.9, 4), W1, W2, h1, h2, np.eye(4))


@pytest.mark.torch
def test_the_published_network_loads_an_export_and_goes_the_same_way(tmp_path):
    import torch

    model, gated = _alrnn(), 3
    export_torch(palrnn.PALRNN(model, 0.1, 0.1, 0.5), tmp_path / "a.pt")

    class Published(torch.nn.Module):
        """The parameters, names and widths of the published code; its step, written again."""

        def __init__(self):
            super().__init__()
            shapes = {"A": (6,), "W": (6, 6), "h": (6,), "B": (2, 6)}
            for name, shape in shapes.items():
                setattr(self, name, torch.nn.Parameter(torch.zeros(shape)))

        def forward(self, z):
            active = torch.cat([z[:, :-gated], torch.relu(z[:, -gated:])], dim=1)
            return self.A * z + active @ self.W.t() + self.h

    network = Published()
    network.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=True), strict=True)
    assert network.W.dtype == torch.float32
    x = np.array([0.3, -0.7])
    with torch.no_grad():
        z = torch.tensor(x, dtype=torch.float32)[None] @ network.B
        z[:, :2] = torch.tensor(x)
        for state in model.rollout(x, 15).states:
            # float32, over 15 steps
            np.testing.assert_allclose(z[0].numpy(), state, rtol=1e-4, atol=1e-4)
            z = network(z)


@pytest.mark.torch
def test_what_is_exported_is_imported_bit_for_bit(tmp_path):
    model = _alrnn()
    export_torch(model, tmp_path / "a.pt")
    back = import_torch(tmp_path / "a.pt", gated=3)
    assert back.theta.tobytes() == model.theta.tobytes()
    assert back.E.tobytes() == model.E.tobytes()


@pytest.mark.torch
def test_the_commands_write_what_the_functions_write_and_overwrite_nothing(tmp_path, capsys):
    pytest.importorskip("onnx")
    save_checkpoint(tmp_path / "a.safetensors", _alrnn())
    for command, name, export in (("torch", "a.pt", export_torch), ("onnx", "a.onnx", export_onnx)):
        words = [f"export-{command}", str(tmp_path / "a.safetensors"), "-o", str(tmp_path / name), "--json"]
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        told = {"output": str(tmp_path / name), "latent_dim": 6, "observed_dim": 2, "gated": 3}
        assert json.loads(capsys.readouterr().out) == told
        written = (tmp_path / name).read_bytes()
        export(_alrnn(), tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == written
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 1
        assert "exists and is not from this command" in capsys.readouterr().err
        assert (tmp_path / name).read_bytes() == written


@pytest.mark.torch
@pytest.mark.parametrize(
    "model",
    [_alrnn(), _alrnn(0), _alrnn(6), _shallow(palrnn.ShallowPLRNN), _shallow(palrnn.ClippedShallowPLRNN)],
    ids=["alrnn", "linear", "all gated", "shallow", "clipped"],
)
def test_a_runtime_iterates_the_graph_to_the_same_states(tmp_path, model):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    export_onnx(model, tmp_path / "a.onnx")
    session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    properties = session.get_modelmeta().custom_metadata_map
    assert properties["latent_dim"] == str(model.latent_dim)
    x = np.random.default_rng(2).standard_normal((3, model.observed_dim))
    z, steps = model.embed(x), 100
    expected = [model.rollout(row, steps + 1).states for row in x]
    for t in range(steps + 1):
        for one, states in zip(z, expected, strict=True):
            if t < len(states):
                # float64 in both; products are summed in another order
                np.testing.assert_allclose(one, states[t], rtol=1e-6, atol=1e-6)
        (z,) = session.run(["next"], {"z": z})


@pytest.mark.parametrize("export", [export_torch, export_onnx])
def test_what_cannot_be_exported_is_told_so(tmp_path, export):
    with pytest.raises(ValueError, match="model must be"):
        export(3, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_the_published_code_would_gate_every_unit_of_a_linear_network(tmp_path):
    with pytest.raises(ValueError, match="gates every unit where P = 0"):
        export_torch(_alrnn(0), tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"model must be an AL-RNN, .* got ShallowPLRNN"):
        export_torch(_shallow(palrnn.ShallowPLRNN), tmp_path / "a.pt")


def test_without_the_library_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r"pip install 'palrnn\[torch\]'"):
        export_torch(_alrnn(), tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"pip install 'palrnn\[onnx\]'"):
        export_onnx(_alrnn(), tmp_path / "a.onnx")
