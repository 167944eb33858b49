"""Shallow PLRNNs from Julia: the same dynamics after import, and nothing but numbers."""

from __future__ import annotations

import contextlib
import json
import struct

import numpy as np
import pytest
from command_line import call

from palrnn import ClippedShallowPLRNN, ShallowPLRNN, load_checkpoint
from palrnn.model import CheckpointError, import_julia
from palrnn.model.bson_file import MOST_DEPTH, MOST_ENTRIES, BSONError, read_bson
from torture.julia_file import FLOATS, array, checkpoint, datatype, document, structure


def network(units=3, hidden=5, observed=None, kind="f4", seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"A": (units,), "W1": (units, hidden), "W2": (hidden, units), "h1": (units,), "h2": (hidden,)}
    if observed is not None:
        shapes["L"] = (units - observed, observed)
    return {name: 0.4 * rng.standard_normal(shape).astype(kind) for name, shape in shapes.items()}


def refused(path):
    with pytest.raises(CheckpointError) as caught:
        import_julia(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "cls"), [("shallowPLRNN", ShallowPLRNN), ("clippedShallowPLRNN", ClippedShallowPLRNN)]
)
@pytest.mark.parametrize("observed", [None, 2])
def test_an_imported_network_does_what_the_published_one_does(tmp_path, name, cls, observed):
    parts = network(4, 6, observed)
    path = tmp_path / "model_5000.bson"
    path.write_bytes(document(checkpoint(parts, name=name, observed=observed)))
    model = import_julia(path)
    assert type(model) is cls
    assert (model.latent_dim, model.hidden, model.observed_dim) == (4, 6, observed or 4)
    A, W1, W2, h1, h2 = (parts[field].astype(float) for field in ("A", "W1", "W2", "h1", "h2"))
    x = np.array([0.3, -1.2, 0.7, 0.1])[: observed or 4]
    # the published code: [x; L x], then A z + W1 (relu(W2 z + h2) - relu(W2 z)) + h1
    z = x if observed is None else np.concatenate([x, parts["L"].astype(float) @ x])
    for state in model.rollout(x, 20).states:
        np.testing.assert_allclose(state, z, rtol=1e-9, atol=1e-12)
        plain = np.maximum(W2 @ z, 0.0) if cls is ClippedShallowPLRNN else 0.0
        z = A * z + W1 @ (np.maximum(W2 @ z + h2, 0.0) - plain) + h1


def test_external_inputs_come_along(tmp_path):
    parts, path = network(), tmp_path / "a.bson"
    rng = np.random.default_rng(1)
    C, s = rng.standard_normal((3, 2)).astype("f4"), rng.standard_normal((20, 2))
    path.write_bytes(document(checkpoint(parts, name="shallowPLRNN", C=array(C))))
    model = import_julia(path)
    A, W1, W2, h1, h2 = (parts[field].astype(float) for field in ("A", "W1", "W2", "h1", "h2"))
    z = x = np.array([0.3, -1.2, 0.7])
    # the published code drives the step into row t by s[t]; here s[t] drives the step out of it
    for t, state in enumerate(model.rollout(x, 19, inputs=s[1:]).states):
        np.testing.assert_allclose(state, z, rtol=1e-9, atol=1e-12)
        z = A * z + W1 @ np.maximum(W2 @ z + h2, 0.0) + h1 + C.astype(float) @ s[t + 1]


@pytest.mark.parametrize("kind", list(FLOATS))
def test_numbers_of_any_width_are_taken_as_they_are(tmp_path, kind):
    parts = network(kind=kind)
    (tmp_path / "a.bson").write_bytes(document(checkpoint(parts, fields=5)))
    model = import_julia(tmp_path / "a.bson")
    for field in ("A", "W1", "W2", "h1", "h2"):
        np.testing.assert_array_equal(getattr(model, field), parts[field].astype(float))


def test_what_occurs_twice_is_found_where_it_is_kept(tmp_path):
    parts = network()
    whole = checkpoint(parts)
    fields = whole["model"][0]["data"]
    whole["_backrefs"] = [{"tag": "backref", "ref": 2}, fields[0]]
    fields[0] = {"tag": "backref", "ref": 1}
    (tmp_path / "a.bson").write_bytes(document(whole))
    np.testing.assert_array_equal(import_julia(tmp_path / "a.bson").A, parts["A"].astype(float))


def changed(change):
    whole = checkpoint(network())
    change(whole, whole["model"][0]["data"], whole["model"][1])
    return document(whole)


def _circle(whole, fields, observation):
    whole["_backrefs"] = [{"tag": "backref", "ref": 1}]
    fields[0] = {"tag": "backref", "ref": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w, f, o: w.pop("model"), "no model = [network, observation model]"),
        (lambda w, f, o: w["model"].pop(), "no model = [network, observation model]"),
        (lambda w, f, o: w.update(model=[1.0, 2.0]), "the network is no struct"),
        (
            lambda w, f, o: w["model"][0].update(type=datatype("Main", "dendPLRNN")),
            "the network must be one of shallowPLRNN, clippedShallowPLRNN, is dendPLRNN",
        ),
        (lambda w, f, o: w["model"][0].update(type=3), "the type of the network has no name"),
        (lambda w, f, o: f.__setitem__(5, array(np.ones((4, 2)))), "C must "),
        (lambda w, f, o: f.append(None), "clippedShallowPLRNN must have 5 or 6 fields, has 7"),
        (lambda w, f, o: o.update(type=datatype("Main", "Affine")), "the observation model must be Identity"),
        (lambda w, f, o: o["data"].__setitem__(3, array(np.ones((1, 1)))), "L must be (M - N, N) with M = 3"),
        (lambda w, f, o: f[1].update(type=datatype("Core", "Int64")), "W1 must hold Float16, Float32, Floa"),
        (lambda w, f, o: f[1].update(size=[3, 6]), "W1 has other sizes than numbers"),
        (lambda w, f, o: f[1].update(size=[2**40, 2**40]), "W1 has other sizes than numbers"),
        (lambda w, f, o: f[1].update(size=[-1, -15]), "W1 has no sizes"),
        (lambda w, f, o: f[1].update(size=[5, 3]), "W1 must have shape (3, any), got (5, 3)"),
        (lambda w, f, o: f.__setitem__(0, array(np.full(3, np.nan))), "A must be finite"),
        (lambda w, f, o: f.__setitem__(0, 3.0), "A is no array"),
        (lambda w, f, o: f.__setitem__(0, {"tag": "backref", "ref": 1}), "a reference to what is not there"),
        (_circle, "references that lead in a circle"),
    ],
)
def test_what_is_not_such_a_network_is_told_so(tmp_path, change, words):
    path = tmp_path / "a.bson"
    path.write_bytes(changed(change))
    assert refused(path).startswith(words)


def test_code_in_a_file_is_nothing_but_names(tmp_path):
    # what makes Julia's own reader run a function: a type that is a reference to it
    code = {"tag": "ref", "path": ["Base", "run"]}
    run = {"tag": "struct", "type": code, "data": [structure(["Main"], [])]}
    path = tmp_path / "a.bson"
    path.write_bytes(document({"model": [run, run]}))
    assert refused(path) == "the type of the network has no name"


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_no_change_of_a_byte_and_no_cut_makes_anything_but_a_network_or_a_clear_error(tmp_path, every):
    whole, path = document(checkpoint(network(2, 2))), tmp_path / "a.bson"
    rng = np.random.default_rng(0)
    networks = 0
    for place in range(0, len(whole), every):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with contextlib.suppress(CheckpointError):
            networks += type(import_julia(path)) is ClippedShallowPLRNN
    # a change in a weight is another weight; most of those in a name or a length are errors
    assert 0 < networks < len(whole)
    for size in range(0, len(whole), 7 * every):
        path.write_bytes(whole[:size])
        assert refused(path).startswith("not a whole BSON file: ")
    path.write_bytes(whole + b"\0")
    assert refused(path) == "not a whole BSON file: 1 bytes after its end"


def test_few_bytes_cannot_become_much_memory():
    with pytest.raises(BSONError, match=f"more than {MOST_ENTRIES} entries"):
        read_bson(struct.pack("<i", 0) + b"\x0a\0" * (MOST_ENTRIES + 1) + b"\0")
    deep = {"a": 1}
    for _ in range(MOST_DEPTH + 1):
        deep = {"a": deep}
    with pytest.raises(BSONError, match=f"more than {MOST_DEPTH} deep"):
        read_bson(document(deep))
    # a length of 2 GB in a file of some bytes
    with pytest.raises(BSONError, match="ends within a value"):
        read_bson(struct.pack("<i", 20) + b"\x05a\0" + struct.pack("<i", 2**31 - 1) + b"\0\0")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "a.bson"
    with path.open("wb") as file:
        file.truncate(2**30)  # sparse
    assert refused(path) == f"larger than any such checkpoint, {2**30} bytes"
    assert refused(tmp_path / "nowhere.bson").endswith("no such file")


def test_the_command_writes_a_checkpoint(tmp_path, capsys):
    path, out = tmp_path / "a.bson", tmp_path / "a.safetensors"
    path.write_bytes(document(checkpoint(network())))
    code, said, err = call(capsys, "import-julia", path, "-o", out, "--json")
    assert code == 0, err
    assert json.loads(said) == {"output": str(out), "latent_dim": 3, "observed_dim": 3, "hidden": 5}
    assert load_checkpoint(out).model.theta.tobytes() == import_julia(path).theta.tobytes()
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = call(capsys, "import-julia", path, "-o", tmp_path / "mine.txt")
    assert code == 1
    assert "not from this command" in err
