"""A study is one file and its section in a preset: this one, of coins, goes from tasks to the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from command_line import call, run

from palrnn.engine.config import Config, Count
from palrnn.engine.seeds import generator
from palrnn.paper import reproduce
from palrnn.paper import study as registry
from palrnn.paper.claim import Claim, Finding
from palrnn.paper.presets import load_preset, preset_file
from palrnn.paper.study import Picture, Study, all_studies, study
from palrnn.paper.tables import Rows, Tables
from palrnn.sweeps import Kind, Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COIN = Kind("coin", "test_new_study:throw_coins")


class CoinSettings(Config):
    throws: Count
    coins: Count


class Coins(Study[CoinSettings]):
    Settings = CoinSettings
    pictures = (Picture("Fig. coins", "coins", "Heads of each coin"),)

    def check(self) -> None:
        if self.settings.coins > self.preset.resamples:
            raise ValueError(f"coins.coins must be at most resamples, is {self.settings.coins}")

    def tasks(self) -> list[Task]:
        throws = self.settings.throws
        return [Task(COIN, {"throws": throws, "seed": seed}) for seed in range(self.settings.coins)]

    def tables(self, store: Store) -> dict[str, Rows]:
        done = [task for task in self.tasks() if store.has(task)]
        return {"coins.csv": [{"coin": k, **store.result(task)} for k, task in enumerate(done)]}

    def row_counts(self, tables: Tables) -> tuple[int, int]:
        return len(tables["coins"]), self.settings.coins

    def claims(self, tables: Tables) -> list[Claim]:
        share = tables["coins"]["heads"].mean() / self.settings.throws
        return [Claim.compare("Fig. coins", "coins are fair", "1/2", f"{share:.2f}", True, "by eye")]

    def findings(self, tables: Tables) -> list[Finding]:
        return [Finding("coins", f"{len(tables['coins'])} were thrown", {})]

    def figures(self, tables: Tables) -> dict[str, Figure]:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        figure.subplots().plot(tables["coins"]["heads"])
        return {"coins": figure}


def throw_coins(settings: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    return {"heads": int(generator(settings["seed"]).integers(0, 2, settings["throws"]).sum())}


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> None:
    all_studies()
    monkeypatch.setattr(registry, "_STUDIES", dict(registry._STUDIES))
    study("coins")(Coins)


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(preset_file("smoke").read_text() + "\n[coins]\nthrows = 40\ncoins = 3\n")
    return path


@pytest.mark.usefixtures("coins")
def test_it_is_run_counted_tabulated_drawn_and_told(tmp_path: Path, preset: Path, capsys) -> None:
    folder, page = tmp_path / "run", tmp_path / "page.md"
    words = ("reproduce", "coins", "-o", folder, "--scale", preset, "--workers", 1, "--page", page, "--json")
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert json.loads(out)["done"] == 3
    code, out, _ = call(capsys, "status", folder, "--json")
    assert json.loads(out)["kinds"]["coin"] == {"done": 3, "failed": 0, "total": 3}
    heads = [throw_coins({"throws": 40, "seed": seed}, {})["heads"] for seed in range(3)]
    assert pd.read_csv(folder / "coins.csv")["heads"].tolist() == heads
    summary = json.loads((folder / "summary.json").read_text())
    assert [claim["claim"] for claim in summary["claims"]] == ["coins are fair"]
    assert summary["claims"][0]["rule"] == "these are the settings of scale smoke"
    assert summary["findings"][0]["found"] == "3 were thrown"
    assert (folder / "figures" / "coins.svg").is_file()
    text = page.read_text()
    assert "## Fig. coins\n\n![Heads of each coin](run/figures/coins.png)\n\n| claim |" in text
    assert "- **Coins**: 3 were thrown.\n" in text


@pytest.mark.slow
@pytest.mark.usefixtures("coins")
def test_it_joins_a_folder_of_results_from_before_it_was_there(tmp_path: Path, preset: Path, capsys) -> None:
    folder = tmp_path / "run"
    assert run("reproduce", "toy", "-o", folder, "--scale", "smoke", "--workers", 1, "-q") == 0
    before = {path: path.read_bytes() for path in folder.glob("tasks/*/*")}
    code, _, err = call(capsys, "reproduce", "coins", "-o", folder)
    assert (code, "study must be one of toy, checkpoints" in err) == (1, True)
    assert run("reproduce", "coins", "-o", folder, "--scale", preset, "--workers", 1, "-q") == 0
    assert {path: path.read_bytes() for path in before} == before
    assert (folder / "settings.toml").read_bytes() == preset.read_bytes()
    assert run("reproduce", "all", "-o", folder, "--scale", "quick", "-q") == 1
    # the smaller preset is no longer the folder's
    assert run("reproduce", "toy", "-o", folder, "--scale", "smoke", "-q") == 1


@pytest.mark.usefixtures("coins")
def test_its_section_is_checked_like_the_others(preset: Path) -> None:
    assert load_preset(preset).coins.throws == 40
    text = preset.read_text()
    preset.write_text(text.replace("throws = 40", "throw = 40"))
    with pytest.raises(ValueError, match="throw is not a known setting"):
        load_preset(preset)
    preset.write_text(text.replace("coins = 3", "coins = 101"))
    with pytest.raises(ValueError, match=r"coins\.coins must be at most resamples, is 101"):
        load_preset(preset)


def test_without_the_file_its_section_is_unknown(preset: Path) -> None:
    assert "coins" not in all_studies()
    with pytest.raises(ValueError, match="coins is not a known setting"):
        load_preset(preset)


@pytest.mark.usefixtures("coins")
def test_a_name_is_a_word_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"palrnn\.paper\.studies\.toy has a study 'toy'"):
        study("toy")(Coins)
    for name in ("all", "paper", "report", "data", "my coins", ""):
        with pytest.raises(ValueError, match="name must be a word"):
            study(name)(Coins)


@pytest.mark.usefixtures("coins")
def test_one_of_ours_is_left_out_of_the_papers_own(tmp_path: Path, preset: Path, monkeypatch) -> None:
    asked: list[set[str]] = []

    def none_of_them(tasks: list[Any], *_: Any, **__: Any) -> Any:
        asked.append({task.kind.name for task in tasks})
        raise KeyboardInterrupt

    monkeypatch.setattr("palrnn.paper.reproduction.run", none_of_them)
    for name, ours in (("all", False), ("paper", False), ("paper", True)):
        monkeypatch.setattr(Coins, "ours", ours)
        with pytest.raises(KeyboardInterrupt):
            reproduce(name, tmp_path / "run", scale=preset, workers=1)
    whole, without_ours, without_coins = asked
    assert {"coin", "truth"} <= whole
    assert "coin" in without_ours
    assert "truth" not in without_ours
    assert without_coins == without_ours - {"coin"}
