"""Truncated, foreign, newer and mutated files: a checkpoint error that says so, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from oracles.full_checkpoint import full_checkpoint
from oracles.networks import random_network
from safetensors.numpy import load as library_arrays
from safetensors.numpy import save as library_bytes

from palrnn.model import (
    Checkpoint,
    CheckpointError,
    checkpoint_bytes,
    checkpoint_from_bytes,
    load_checkpoint,
    save_checkpoint,
)


def _refused(data):
    with pytest.raises(CheckpointError) as caught:
        checkpoint_from_bytes(data, source="a.safetensors")
    message = str(caught.value)
    assert message.startswith("a.safetensors: ")
    assert "\n" not in message
    return message.removeprefix("a.safetensors: ")


def test_every_truncation_is_refused(tmp_path):
    data = checkpoint_bytes(**full_checkpoint())
    for size in range(len(data)):
        _refused(data[:size])
    _refused(data + b"\0")
    path = tmp_path / "a.safetensors"
    for size in (0, 4, 8, 100, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError, match=r"a\.safetensors: "):
            load_checkpoint(path)


def _with(changes=None, text=None, tensors=None):
    """A checkpoint file with some of its header, its text or its arrays changed."""
    data = checkpoint_bytes(**full_checkpoint())
    size = int.from_bytes(data[:8], "little")
    words = json.loads(data[8 : 8 + size])["__metadata__"]
    header = json.loads(words["header"]) | (changes or {})
    header = {key: value for key, value in header.items() if value is not Ellipsis}
    words = words | {"header": json.dumps(header)} | (text or {})
    words = {key: value for key, value in words.items() if value is not Ellipsis}
    held = library_arrays(data) | (tensors or {})
    held = {name: array for name, array in held.items() if array is not Ellipsis}
    return library_bytes(held, metadata=words)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"text": {"format": "pytorch"}}, "a safetensors file, but not a palrnn checkpoint"),
        ({"text": {"format": ...}}, "a safetensors file, but not a palrnn checkpoint"),
        ({"text": {"version": "3"}}, "written by a newer palrnn (format 3, this one reads up to 2)"),
        (
            {"text": {"version": "9" * 50}},
            "written by a newer palrnn (format 999999999, this one reads up to 2)",
        ),
        ({"text": {"version": "1.0"}}, "damaged checkpoint: its version is '1.0'"),
        ({"text": {"version": "²"}}, "damaged checkpoint: its version is '²'"),
        ({"text": {"version": ...}}, "damaged checkpoint: its version is ''"),
        ({"text": {"header": "{"}}, "damaged checkpoint: its header is not JSON"),
        ({"text": {"header": "[" * 100_000}}, "damaged checkpoint: its header is not JSON"),
        ({"text": {"header": '{"dt": NaN}'}}, "damaged checkpoint: its header is not JSON (NaN is not JSON)"),
        ({"text": {"header": "[]"}}, "damaged checkpoint: its header is not a table"),
        ({"text": {"header": ...}}, "damaged checkpoint: its header is not JSON"),
        ({"changes": {"kind": ...}}, "damaged checkpoint: it has no kind"),
        ({"changes": {"kind": "GRU"}}, "damaged checkpoint: unknown kind 'GRU'"),
        ({"changes": {"kind": ["GRU"]}}, "damaged checkpoint: unknown kind"),
        ({"changes": {"family": "gru"}}, "damaged checkpoint: family must be one of alrnn"),
        ({"changes": {"family": ["gru"]}}, "damaged checkpoint: family must be one of alrnn"),
        ({"changes": {"forcing": {"policy": "none", "tau": 1}}}, "damaged checkpoint: forcing has settings"),
        (
            {"changes": {"forcing": {"policy": "gru"}}},
            "damaged checkpoint: the policy of forcing must be one of",
        ),
        ({"changes": {"forcing": [1]}}, "damaged checkpoint: forcing must be a Mapping, got list"),
        ({"tensors": {"model.gated": np.array(9)}}, "damaged checkpoint: gated must be from 0 to 4, got 9"),
        ({"tensors": {"model.gated": np.array(True)}}, "damaged checkpoint: gated must be a whole number"),
        ({"tensors": {"model.gated": np.array([1, 2])}}, "damaged checkpoint: "),
        (
            {"changes": {"gate_std": "soft"}},
            "damaged checkpoint: gate_std must be a finite number, got 'soft'",
        ),
        ({"changes": {"gate_std": -1}}, "damaged checkpoint: gate_std must be >= 0, got -1"),
        ({"changes": {"dt": 10**400}}, "damaged checkpoint: dt must be a finite number"),
        ({"changes": {"dt": ...}}, "damaged checkpoint: it has no dt"),
        ({"changes": {"training": [1]}}, "damaged checkpoint: training is not a table"),
        ({"tensors": {"model.A": ...}}, "damaged checkpoint: it has no A"),
        ({"tensors": {"scale.std": ...}}, "damaged checkpoint: it has no std"),
        ({"tensors": {"noise.process": ...}}, "damaged checkpoint: it has no process"),
        (
            {"tensors": {"model.A": np.zeros((4, 1))}},
            "damaged checkpoint: A must have shape (any,), got (4, 1)",
        ),
        ({"tensors": {"model.W": np.full((4, 4), np.nan)}}, "damaged checkpoint: W must be finite, got nan"),
        ({"tensors": {"scale.std": np.zeros(2)}}, "damaged checkpoint: std must be positive"),
        (
            {"tensors": {"scale.mean": np.zeros(3), "scale.std": np.ones(3)}},
            "damaged checkpoint: its standardizer does not fit the model",
        ),
        ({"tensors": {"B": np.zeros(3)}}, "damaged checkpoint: unknown array 'B'"),
        ({"tensors": {"scale": np.zeros(3)}}, "damaged checkpoint: unknown array 'scale'"),
        ({"tensors": {"map.B": np.zeros((2, 4))}}, "damaged checkpoint: it has no d"),
    ],
)
def test_a_foreign_newer_or_damaged_file_is_told_so(how, message):
    assert _refused(_with(**how)).startswith(message)


def test_the_helper_above_changes_nothing_by_itself():
    assert isinstance(checkpoint_from_bytes(_with()), Checkpoint)


def _raw(header, data=b""):
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(words).to_bytes(8, "little") + words + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a checkpoint at all, but text",
        (2**63).to_bytes(8, "little") + b"{}",
        (10**8 + 1).to_bytes(8, "little") + b"{}",
        _raw(b""),
        _raw(b"[]"),
        _raw(b"{"),
        _raw(b"\xff\xfe"),
        _raw(b"[" * 10_000),
        _raw({"__metadata__": []}),
        _raw({"__metadata__": {"format": 1}}),
    ],
)
def test_what_does_not_begin_like_a_checkpoint_is_refused(data):
    assert _refused(data).startswith("not a palrnn checkpoint, or damaged: ")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]},
        {"dtype": "F64", "shape": [2**62, 2**62], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 32]},
        {"dtype": "F64", "shape": [-4], "data_offsets": [0, 32]},
        {"dtype": "F64", "shape": [4], "data_offsets": [32, 0]},
        {"dtype": "F9", "shape": [4], "data_offsets": [0, 32]},
        {"dtype": "BF16", "shape": [16], "data_offsets": [0, 32]},
        {"shape": [4]},
    ],
)
def test_a_header_that_lies_about_its_arrays_is_refused(entry):
    text = {"format": "palrnn-checkpoint", "version": "1", "header": "{}"}
    message = _refused(_raw({"__metadata__": text, "A": entry}, bytes(32)))
    assert message.startswith("damaged checkpoint: its arrays are damaged or cut off")


@pytest.mark.parametrize("kind", ["ALRNN", "PALRNN"])
def test_mutated_bytes_give_a_checkpoint_or_a_checkpoint_error_and_nothing_else(kind):
    whole = np.frombuffer(checkpoint_bytes(**full_checkpoint(kind)), np.uint8)
    size = int.from_bytes(whole[:8].tobytes(), "little")
    rng = np.random.default_rng(7)
    refused = 0
    for trial in range(10_000):
        mutated = whole.copy()
        # three in four in the header, where damage can do something
        reach = 8 + size if trial % 4 else len(whole)
        places = rng.integers(0, reach, rng.integers(1, 5))
        mutated[places] = (
            rng.integers(32, 127, len(places)) if trial % 2 else rng.integers(0, 256, len(places))
        )
        try:
            loaded = checkpoint_from_bytes(mutated.tobytes(), source="a")
        except CheckpointError as error:
            assert str(error).startswith("a: ")  # noqa: PT017
            refused += 1
        else:
            assert np.isfinite(loaded.drift.theta).all()
            loaded.drift.step(np.zeros(loaded.drift.latent_dim))
    assert refused > 6000


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere\.safetensors: no such file"):
        load_checkpoint(tmp_path / "nowhere.safetensors")
    with pytest.raises(CheckpointError, match="is not a file"):
        load_checkpoint(tmp_path)


def test_a_huge_foreign_file_is_refused_after_a_look_at_its_header(tmp_path):
    path = tmp_path / "a.safetensors"
    with path.open("wb") as stream:
        stream.write(_raw({"__metadata__": {"format": "pt"}}))
        stream.truncate(2**40)  # a sparse terabyte, which no read would survive
    with pytest.raises(CheckpointError, match="a safetensors file, but not a palrnn checkpoint"):
        load_checkpoint(path)


def test_a_file_that_cannot_be_read_is_a_checkpoint_error(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, random_network(3, 1, 1))

    def fails(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pathlib.Path.open", fails)
    with pytest.raises(CheckpointError, match=r"a\.safetensors: cannot be read: .*Input/output error"):
        load_checkpoint(path)
