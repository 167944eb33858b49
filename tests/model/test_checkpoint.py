"""Checkpoints come back bit for bit, or with an error that says why not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from oracles.full_checkpoint import EXTRAS, TRAINING, full_checkpoint, version_1
from oracles.networks import networks, random_network
from safetensors import safe_open
from safetensors.numpy import save as library_bytes

from palrnn.data import Standardizer
from palrnn.engine import files
from palrnn.model import (
    PALRNN,
    CheckpointError,
    Forcing,
    Noise,
    ObservationMap,
    checkpoint_bytes,
    checkpoint_from_bytes,
    load_checkpoint,
    save_checkpoint,
)


def _same_bits(a, b):
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", ["ALRNN", "PALRNN"])
def test_everything_comes_back_bit_for_bit(tmp_path, kind):
    saved = full_checkpoint(kind)
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
        for name in ("process", "gate_std", "initial"):
            assert getattr(loaded.model, name) == getattr(saved["model"], name)
            assert type(getattr(loaded.model, name)) is type(getattr(saved["model"], name))
        _same_bits(loaded.model.observation.std, saved["model"].observation.std)


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
    shuffled = full_checkpoint()
    shuffled["arrays"] = dict(reversed(EXTRAS.items()))
    shuffled["training"] = dict(reversed(TRAINING.items()))
    assert {checkpoint_bytes(**full_checkpoint()) for _ in range(20)} == {checkpoint_bytes(**shuffled)}


def test_the_safetensors_library_reads_our_files_and_we_read_its(tmp_path):
    data = checkpoint_bytes(**full_checkpoint())
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
        forcing=again.forcing,
    ) == checkpoint_bytes(**full_checkpoint())


def test_arrays_begin_at_multiples_of_their_width():
    data = checkpoint_bytes(**full_checkpoint())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    widths = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "U8": 1, "BOOL": 1}
    for name, entry in header.items():
        assert name == "__metadata__" or entry["data_offsets"][0] % widths[entry["dtype"]] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "model"}, "model must be an ALRNN, another Surrogate or a PALRNN, got str"),
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
        save_checkpoint(path, **(full_checkpoint() | change))
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


@pytest.mark.parametrize("kind", ["ALRNN", "PALRNN"])
def test_files_of_format_1_are_read_without_losing_a_digit(kind):
    saved = full_checkpoint(kind)
    held, text = version_1(checkpoint_bytes(**saved))
    assert "W" in held
    loaded = checkpoint_from_bytes(library_bytes(held, metadata=text))
    # the forcing was not in the header then, but in the settings of training
    assert loaded.forcing == Forcing.identity(16)
    again = checkpoint_bytes(
        loaded.model,
        standardizer=loaded.standardizer,
        dt=loaded.dt,
        training=loaded.training,
        arrays=loaded.arrays,
        forcing=saved["forcing"],
    )
    assert again == checkpoint_bytes(**saved)


@pytest.mark.parametrize(
    ("gated", "message"), [(9, "from 0 to 4"), (True, "whole"), (10**400, "from 0 to 4")]
)
def test_a_damaged_file_of_format_1_is_told_so(gated, message):
    held, text = version_1(checkpoint_bytes(**full_checkpoint()))
    header = json.loads(text["header"]) | {"gated": gated}
    with pytest.raises(CheckpointError, match=f"damaged checkpoint: gated must be .*{message}"):
        checkpoint_from_bytes(library_bytes(held, metadata=text | {"header": json.dumps(header)}))


@pytest.mark.parametrize(
    ("training", "forcing"),
    [
        ({"config": {"tau": 5, "alpha": 0.5, "final_alpha": None}}, Forcing.generalised(0.5, 5)),
        ({"config": {"tau": 1, "alpha": 1.0, "final_alpha": 0.1}}, Forcing.generalised(0.1, 1)),
        ({"training": {"tau": 8, "updates": 10}}, Forcing.identity(8)),
        ({"config": {"forcing": Forcing.annealed(0.5, 0.2).to_dict()}}, Forcing.generalised(0.2)),
        ({"config": {"updates": 3}}, None),
        ({}, None),
    ],
)
def test_the_forcing_of_a_model_without_one_in_its_header_is_that_of_its_training(training, forcing):
    assert (
        checkpoint_from_bytes(checkpoint_bytes(random_network(2, 1, 1), training=training)).forcing == forcing
    )


def test_full_noise_and_an_observation_map_come_back_bit_for_bit():
    drift, root = random_network(4, 2, 3, seed=5), np.random.default_rng(0).standard_normal((4, 4))
    B, d = np.random.default_rng(1).standard_normal((2, 4)), np.array([1 / 3, -2.0])
    model = PALRNN(drift, root @ root.T, Noise.diagonal([0.1, 0.7]), 0.3, None, ObservationMap(B, d))
    loaded = checkpoint_from_bytes(checkpoint_bytes(model)).model
    assert (loaded.process, loaded.observation, loaded.initial) == (model.process, model.observation, None)
    assert loaded.observation_map == model.observation_map
    assert not loaded.is_standard
