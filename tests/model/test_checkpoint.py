"""Checkpoints come back bit for bit, or with an error that says why not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from oracles.networks import networks, random_network
from safetensors import safe_open
from safetensors.numpy import load as library_arrays
from safetensors.numpy import save as library_bytes

from palrnn.data import Standardizer
from palrnn.engine import files
from palrnn.model import (
    PALRNN,
    Checkpoint,
    CheckpointError,
    checkpoint_bytes,
    checkpoint_from_bytes,
    load_checkpoint,
    save_checkpoint,
)

EXTRAS = {
    "first_moment": np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32),
    "second_moment": np.random.default_rng(1).standard_normal(5),
    "update": np.array(1234567890123, dtype=np.int64),
    "nothing": np.zeros((0, 3)),
    "half": np.float16([1.5, -0.0]),
    "mask": np.array([True, False]),
    "odd": np.array([-0.0, np.nan, np.inf, 5e-324, 1e308]),
    "big endian": np.arange(4, dtype=">i4"),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "name/with.dots and ünïcode": np.uint8([1, 2, 3]),
}
TRAINING = {"config": {"tau": 16, "rate": 1 / 3, "name": "ä"}, "seed": 7, "done": None, "loss": [1e-300, 0.1]}


def _same_bits(a, b):
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes()


def _everything(kind="PALRNN"):
    drift = random_network(4, 2, 3, seed=5)
    model = PALRNN(drift, 0.1, [0.2, 1 / 3], 0.7, 0.5) if kind == "PALRNN" else drift
    return {
        "model": model,
        "standardizer": Standardizer([1 / 3, -2.0], [1e-5, 7.0]),
        "dt": 0.01,
        "training": TRAINING,
        "arrays": EXTRAS,
    }


@pytest.mark.parametrize("kind", ["ALRNN", "PALRNN"])
def test_everything_comes_back_bit_for_bit(tmp_path, kind):
    saved = _everything(kind)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, **saved)
    loaded = load_checkpoint(path)
    assert type(loaded.model) is type(saved["model"])
    drift = saved["model"].drift if kind == "PALRNN" else saved["model"]
    for name in ("A", "W", "h", "E"):
        _same_bits(getattr(loaded.drift, name), getattr(drift, name))
    assert loaded.drift.gated == 3
    _same_bits(loaded.standardizer.mean, saved["standardizer"].mean)
    _same_bits(loaded.standardizer.std, saved["standardizer"].std)
    assert loaded.dt == 0.01
    assert loaded.training == TRAINING
    assert loaded.arrays.keys() == EXTRAS.keys()
    for name, array in EXTRAS.items():
        _same_bits(loaded.arrays[name], np.asarray(array, dtype=array.dtype.newbyteorder("=")))
        assert loaded.arrays[name].flags.writeable or array.size == 0
    if kind == "PALRNN":
        for name in ("process_std", "gate_std", "initial_std"):
            assert getattr(loaded.model, name) == getattr(saved["model"], name)
            assert type(getattr(loaded.model, name)) is float
        _same_bits(loaded.model.observation_std, saved["model"].observation_std)


@given(
    networks(largest=4),
    st.dictionaries(
        st.text(max_size=8),
        arrays(
            st.sampled_from([np.float64, np.float32, np.int32, np.uint8, np.bool_]),
            array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        ),
        max_size=4,
    ),
)
def test_any_network_with_any_arrays_comes_back(model, extras):
    data = checkpoint_bytes(model, arrays=extras)
    loaded = checkpoint_from_bytes(data)
    _same_bits(loaded.drift.theta, model.theta)
    _same_bits(loaded.drift.E, model.E)
    assert loaded.arrays.keys() == extras.keys()
    for name, array in extras.items():
        _same_bits(loaded.arrays[name], array)
    assert checkpoint_bytes(loaded.model, arrays=loaded.arrays) == data


def test_the_least_checkpoint_is_a_model_alone(tmp_path):
    save_checkpoint(tmp_path / "a", random_network(1, 1, 0))
    loaded = load_checkpoint(tmp_path / "a")
    assert (loaded.standardizer, loaded.dt, loaded.training, loaded.arrays) == (None, None, {}, {})
    assert repr(loaded) == (
        "Checkpoint(ALRNN(latent_dim=1, observed_dim=1, gated=0), dt=None, training=[], arrays=[])"
    )


def test_the_same_content_is_the_same_bytes_in_whatever_order_it_comes():
    # the library's own writer fails this within a few calls
    shuffled = _everything()
    shuffled["arrays"] = dict(reversed(EXTRAS.items()))
    shuffled["training"] = dict(reversed(TRAINING.items()))
    assert {checkpoint_bytes(**_everything()) for _ in range(20)} == {checkpoint_bytes(**shuffled)}


def test_the_safetensors_library_reads_our_files_and_we_read_its(tmp_path):
    data = checkpoint_bytes(**_everything())
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    with safe_open(path, framework="numpy") as stream:
        held = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
        text = stream.metadata()
    _same_bits(held["extra.first_moment"], EXTRAS["first_moment"])
    _same_bits(held["extra.update"], EXTRAS["update"])
    again = checkpoint_from_bytes(library_bytes(held, metadata=text))
    assert checkpoint_bytes(
        again.model,
        standardizer=again.standardizer,
        dt=again.dt,
        training=again.training,
        arrays=again.arrays,
    ) == checkpoint_bytes(**_everything())


def test_arrays_begin_at_multiples_of_their_width():
    data = checkpoint_bytes(**_everything())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    widths = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "U8": 1, "BOOL": 1}
    for name, entry in header.items():
        assert name == "__metadata__" or entry["data_offsets"][0] % widths[entry["dtype"]] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "model"}, "model must be an ALRNN or a PALRNN, got str"),
        ({"standardizer": Standardizer([0.0], [1.0])}, "standardizer must have 2 coordinates, has 1"),
        ({"dt": 0.0}, "dt must be greater than 0"),
        ({"dt": np.nan}, "dt must be a finite number"),
        ({"training": {"loss": np.nan}}, "training must hold plain JSON values"),
        ({"training": {"loss": np.float32(1)}}, "training must hold plain JSON values: .*float32"),
        ({"training": {"where": object()}}, "training must hold plain JSON values: .*object"),
        ({"arrays": {"bad": np.array([object()])}}, "array 'extra.bad' must hold real numbers .* got object"),
        ({"arrays": {"bad": np.array(["text"])}}, "array 'extra.bad' must hold real numbers .* got <U4"),
        ({"arrays": {"bad": np.array([1j])}}, "array 'extra.bad' must hold real numbers .* got complex128"),
        ({"arrays": {"bad": np.zeros(1, np.longdouble)}}, "array 'extra.bad' must hold real numbers"),
    ],
)
def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path, change, message):
    path = tmp_path / "a.safetensors"
    with pytest.raises(ValueError, match=message):
        save_checkpoint(path, **(_everything() | change))
    assert os.listdir(tmp_path) == []


def test_a_failure_while_saving_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, random_network(3, 1, 1, seed=1))
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, random_network(3, 1, 1, seed=2))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.safetensors"]


def _refused(data):
    with pytest.raises(CheckpointError) as caught:
        checkpoint_from_bytes(data, source="a.safetensors")
    message = str(caught.value)
    assert message.startswith("a.safetensors: ")
    assert "\n" not in message
    return message.removeprefix("a.safetensors: ")


def test_every_truncation_is_refused(tmp_path):
    data = checkpoint_bytes(**_everything())
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
    data = checkpoint_bytes(**_everything())
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
        ({"text": {"version": "2"}}, "written by a newer palrnn (format 2, this one reads up to 1)"),
        (
            {"text": {"version": "9" * 50}},
            "written by a newer palrnn (format 999999999, this one reads up to 1)",
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
        ({"changes": {"gated": 9}}, "damaged checkpoint: gated must be from 0 to 4, got 9"),
        ({"changes": {"gated": True}}, "damaged checkpoint: gated must be a whole number, got True"),
        ({"changes": {"gated": 10**400}}, "damaged checkpoint: gated must be from 0 to 4, got 1000"),
        (
            {"changes": {"gate_std": "soft"}},
            "damaged checkpoint: gate_std must be a finite number, got 'soft'",
        ),
        ({"changes": {"gate_std": -1}}, "damaged checkpoint: gate_std must be >= 0, got -1"),
        ({"changes": {"dt": 10**400}}, "damaged checkpoint: dt must be a finite number"),
        ({"changes": {"dt": ...}}, "damaged checkpoint: it has no dt"),
        ({"changes": {"training": [1]}}, "damaged checkpoint: training is not a table"),
        ({"tensors": {"A": ...}}, "damaged checkpoint: it has no A"),
        ({"tensors": {"std": ...}}, "damaged checkpoint: it has no std"),
        ({"tensors": {"process_std": ...}}, "damaged checkpoint: it has no process_std"),
        ({"tensors": {"A": np.zeros((4, 1))}}, "damaged checkpoint: A must have shape (any,), got (4, 1)"),
        ({"tensors": {"W": np.full((4, 4), np.nan)}}, "damaged checkpoint: W must be finite, got nan"),
        ({"tensors": {"std": np.zeros(2)}}, "damaged checkpoint: std must be positive"),
        (
            {"tensors": {"mean": np.zeros(3), "std": np.ones(3)}},
            "damaged checkpoint: its standardizer does not fit the model",
        ),
        ({"tensors": {"B": np.zeros(3)}}, "damaged checkpoint: unknown array 'B'"),
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
    whole = np.frombuffer(checkpoint_bytes(**_everything(kind)), np.uint8)
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
