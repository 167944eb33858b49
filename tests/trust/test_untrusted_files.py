"""Files from outside are data: damaged or hostile, they give the error of their format and nothing else."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import palrnn
from torture.run import ROOT


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    words = [
        sys.executable,
        "-m",
        "torture.mutations",
        str(tmp_path_factory.mktemp("files")),
        "--count",
        "120",
    ]
    done = subprocess.run([*words, "--seed", "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    # a crash of the interpreter would be a negative code here
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_mutated_files_are_read_or_refused_in_one_line(seen):
    assert seen["faults"] == []
    assert {name: count["tried"] for name, count in seen["files"].items()} == dict.fromkeys(
        seen["files"], 120
    )


def test_some_mutations_are_harmless_so_that_the_fuzzer_reaches_behind_the_first_check(seen):
    assert all(count["read"] > 0 for count in seen["files"].values())


@pytest.mark.slow
def test_files_that_claim_terabytes_are_refused_by_every_reader_in_little_memory(tmp_path):
    words = [sys.executable, "-m", "torture.claims", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == []
    series = {"npy", "npz", "csv", "txt", "tsv", "mat", "edf", "parquet"}
    assert found["readers"].keys() == series | {"safetensors", "zoo", "toml"}
    # an array of 10^12 numbers would be 8 TB
    assert max(row["megabytes"] for row in found["readers"].values()) < 100


class Hostile:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code was executed')",))


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "csv", "parquet", "mat", "edf", "txt"])
def test_pickles_are_never_executed(tmp_path, suffix):
    file = tmp_path / f"hostile.{suffix}"
    if suffix == "npy":
        np.save(file, np.array([Hostile()], dtype=object), allow_pickle=True)
    elif suffix == "npz":
        np.savez(file, x=np.array([Hostile()], dtype=object), allow_pickle=True)
    else:
        file.write_bytes(pickle.dumps(Hostile()))
    read = palrnn.load_checkpoint if suffix == "safetensors" else palrnn.load_series
    with pytest.raises(ValueError, match=r"hostile\."):
        read(file)
