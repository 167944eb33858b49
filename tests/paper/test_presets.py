"""The presets say what the paper says, and wrong ones are refused with the name of the setting."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from palrnn.paper.presets import SCALES, keep_preset, load_preset, plain_settings, preset_file, preset_in
from palrnn.paper.studies.checkpoints import all_regimes
from palrnn.paper.studies.evidence import EvidenceStudy
from palrnn.paper.studies.gap import GapStudy
from palrnn.paper.studies.readings import ReadingsStudy
from palrnn.paper.study import study_tasks

# Tables rbpf_hparams and saem_hparams, "Toy model settings" and "Dynamical QoI metrics", typed from the paper
PAPER = {
    "data.train_steps": 80_000,
    "data.test_steps": 20_000,
    "data.dt": 0.01,
    "training.latent_dim": 30,
    "training.gated": 10,
    "training.batch_size": 16,
    "training.sequence_length": 200,
    "training.updates": 2000 * 50,
    "training.learning_rate": 1e-3,
    "training.final_learning_rate": 1e-5,
    "gap.process_std": (0.1, 0.3, 0.5),
    "gap.observation_std": (0.1, 0.3, 0.5),
    "gap.tau": (4, 8, 16, 32, 64),
    "gap.length": 200,
    "gap.gate_std": 0.1,
    "gap.ess_threshold": 0.5,
    "gap.ridge": 1e-6,
    "gap.overlap": 50,
    "gap.variants.0.particles": 64,
    "gap.variants.0.paths": 8,
    "gap.variants.0.states_per_path": 1,
    "gap.variants.0.target": "paper",
    "evidence.process_std": (0.1, 0.3, 0.5),
    "evidence.observation_std": (0.0, 0.1, 0.3, 0.5),
    "evidence.tau": 16,
    "evidence.lengths": (16, 32, 64, 128, 200),
    "evidence.data.sequences": 4,
    "evidence.data.steps": 5000,
    "evidence.data.discard": 1000,
    "evidence.data.observation_std": 0.085,
    "evidence.gate_std": 0.7,
    "evidence.heldout_windows": 120,
    "evidence.saem.iterations": 8,
    "evidence.saem.windows": 80,
    "evidence.saem.particles": 256,
    "evidence.saem.paths": 8,
    "evidence.saem.ess_threshold": 0.5,
    "evidence.saem.ridge": 1e-2,
    "evidence.saem.blend": 0.25,
    "evidence.saem.floor": 1e-4,
    "toy.a0": 0.9,
    "toy.a1": 0.6,
    "toy.sigma": 0.15,
    "toy.steps": 600,
    "toy.seeds": 20,
    "toy.gate_stds": 25,
    "toy.gate_std_from": 0.03,
    "toy.gate_std_to": 0.9,
    "invariants.steps": 10_000,
    "invariants.discard": 1000,
    "invariants.bins": 30,
    "invariants.smoothing": 1e-5,
    "invariants.lyapunov_reference": 0.9056,
    "attractor.steps": 50_000,
    "diagnostics.length": 32,
    "resamples": 2000,
}


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_preset_says_what_the_paper_says(name: str) -> None:
    value: object = load_preset("paper")
    for part in name.split("."):
        value = value[int(part)] if part.isdecimal() else getattr(value, part)  # type: ignore[index]
    assert value == PAPER[name]


def test_the_paper_scale_has_183_models_of_which_9_are_shared_and_144_for_other_readings() -> None:
    preset = load_preset("paper")
    gap, evidence = set(GapStudy.of(preset).regimes()), set(EvidenceStudy.of(preset).regimes())
    assert (len(gap), len(evidence), len(gap & evidence)) == (180, 12, 9)
    ordered = all_regimes(preset)
    assert len(ordered) == len(set(ordered)) == 183 + 144
    readings = ReadingsStudy.of(preset)
    assert len(set(readings.regimes()) - gap) == 144
    assert all(len(readings.reading_regimes(reading)) == 180 for reading in readings.settings.readings)
    assert set(ordered[:12]) == evidence
    assert {regime.tau for regime in ordered[: 12 + 27 + 144]} == {16}


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_valid_and_a_file_of_ones_own_works_too(scale: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_bytes(preset_file(scale).read_bytes())
    assert plain_settings(load_preset(own)) == plain_settings(load_preset(scale))
    assert load_preset(scale).scale == scale


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("heldout_windows = 6", "heldout_windows = 7", "must hold 7 windows of 16, holds 6"),
        ("gate_stds = 5", "gate_stdz = 5", "gate_stdz is not a known setting"),
        ("updates = 600", "updates = 'many'", "updates"),
        ("length = 16\nsteps", "length = 17\nsteps", "attractor.length must be one of evidence.lengths"),
        ("discard = 200\nbins", "discard = 2000\nbins", "discard must be less than steps = 2000"),
        ("[toy]", "[toy", "not valid TOML"),
    ],
)
def test_a_wrong_preset_is_refused_by_name(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = preset_file("smoke").read_text()
    assert text.count(old) == 1
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        load_preset(path)
    assert str(caught.value).startswith(str(path))


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale must be one of smoke, quick, paper or a \.toml file"):
        load_preset("huge")


def test_a_folder_keeps_its_preset_and_refuses_another(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results of `palrnn reproduce` here"):
        preset_in(tmp_path)
    assert plain_settings(preset_in(tmp_path, "smoke")) == plain_settings(load_preset("smoke"))
    assert list(tmp_path.iterdir()) == []  # to ask writes nothing
    preset = keep_preset(tmp_path, "smoke")
    assert (
        plain_settings(preset_in(tmp_path)) == plain_settings(preset) == plain_settings(load_preset("smoke"))
    )
    assert preset_in(tmp_path, "smoke").scale == "smoke"
    with pytest.raises(ValueError, match=r"holds results of other settings \(smoke\)"):
        preset_in(tmp_path, "quick")


def test_the_papers_own_studies_are_a_part_of_all_without_models_of_ours():
    preset = load_preset("paper")
    everything, own = study_tasks(preset), study_tasks(preset.of_paper)
    assert {task.hash for task in own} < {task.hash for task in everything}
    count = Counter(task.kind.name for task in own)
    # 3 x 3 noise levels, five intervals, four seeds; and three without observation noise
    assert count["checkpoint"] == 3 * 3 * 5 * 4 + 3
    assert count["geometry"] == 180 * len(preset.gap.variants)
    # twelve models at five lengths by two ways, and untouched ones
    assert count["tuning"] == 12 * 5 * 2 + 12
    assert not count.keys() & {"truth", "further", "survival", "forced", "spectra", "fit", "counterparts"}
