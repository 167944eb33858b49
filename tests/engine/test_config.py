"""Settings are checked, frozen, and say what is wrong in one line."""

from __future__ import annotations

import copy
import pickle
from typing import Literal

import pytest
from pydantic import Field, model_validator

from palrnn.engine.config import Config, Count, read_toml


class Inner(Config):
    tau: int = Field(3, ge=1)


class Settings(Config):
    steps: int
    rate: float = Field(1e-3, gt=0)
    target: Literal["paper", "exact"] = "paper"
    name: str | None = None
    careful: bool = False
    inner: Inner = Inner()
    lengths: tuple[int, ...] = (16, 32)

    @model_validator(mode="after")
    def _even(self) -> Settings:
        if self.steps % 2:
            raise ValueError("steps must be even")
        return self


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "steps is required"),
        (
            {"steps": "many"},
            "steps: input should be a valid integer, unable to parse string as an integer, got 'many'",
        ),
        (
            {"steps": 2.5},
            "steps: input should be a valid integer, got a number with a fractional part, got 2.5",
        ),
        ({"steps": True}, "steps: input should be a number, got True"),
        ({"steps": 2, "rate": False}, "rate: input should be a number, got False"),
        ({"steps": 2, "rate": 0}, "rate: input should be greater than 0, got 0"),
        ({"steps": 2, "rate": float("nan")}, "rate: input should be a finite number, got nan"),
        ({"steps": 2, "target": "best"}, "target: input should be 'paper' or 'exact', got 'best'"),
        ({"steps": 2, "stpes": 3}, "stpes is not a known setting"),
        ({"steps": 2, "inner": {"tau": 0}}, "inner: tau: input should be greater than or equal to 1, got 0"),
        ({"steps": 2, "inner": {"t": 0}}, "inner: t is not a known setting"),
        (
            {"steps": 2, "lengths": [1, "x"]},
            "lengths.1: input should be a valid integer, unable to parse string as an integer, got 'x'",
        ),
        ({"steps": 3}, "steps must be even"),
        (
            {"steps": 2, "rate": 0, "tau": 1},
            "rate: input should be greater than 0, got 0; tau is not a known setting",
        ),
    ],
)
def test_every_mistake_is_one_line_that_names_the_setting(values, message):
    with pytest.raises(ValueError) as caught:
        Settings(**values)
    assert str(caught.value) == message


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        Settings(steps=2).steps = 4


def test_a_changed_copy_is_checked_again():
    settings = Settings(steps=2, name="a", inner=Inner(tau=7))
    assert settings.changed(steps=4) == Settings(steps=4, name="a", inner=Inner(tau=7))
    assert settings.changed(inner=Inner(tau=9)).inner.tau == 9
    assert settings.steps == 2
    with pytest.raises(ValueError, match=r"^steps must be even$"):
        settings.changed(steps=5)


def test_settings_survive_toml_pickle_and_copy(tmp_path):
    settings = Settings(steps=4, rate=1 / 3, target="exact", inner=Inner(tau=2), lengths=(1, 2, 3))
    settings.to_toml(tmp_path / "a.toml")
    assert Settings.from_toml(tmp_path / "a.toml") == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert copy.deepcopy(settings) == settings


def test_the_same_settings_give_the_same_bytes(tmp_path):
    Settings(steps=4).to_toml(tmp_path / "a.toml")
    Settings.from_toml(tmp_path / "a.toml").to_toml(tmp_path / "b.toml")
    assert (tmp_path / "a.toml").read_bytes() == (tmp_path / "b.toml").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"steps = 3", "a.toml: steps must be even"),
        (b"steps = 2\nwhat = 1", "a.toml: what is not a known setting"),
        (b"steps = ", "a.toml: not valid TOML: "),
        (b"\xff\xfe", "a.toml: not valid TOML: "),
        (b"a = " + b"[" * 100_000, "a.toml: not valid TOML: "),
        (b"", "a.toml: steps is required"),
    ],
)
def test_a_bad_file_is_named_once(tmp_path, content, message):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        Settings.from_toml(path)
    assert str(caught.value).startswith(str(tmp_path / message))
    assert str(caught.value).count("a.toml") == 1
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.toml: no such file$"):
        read_toml(tmp_path / "nowhere.toml")


def test_a_byte_order_mark_before_settings_is_passed_over(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfsteps = 4\n")
    assert read_toml(tmp_path / "a.toml") == {"steps": 4}


def test_integers_of_thousands_of_digits_are_refused_in_one_line(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("steps = " + "9" * 5000)
    with pytest.raises(ValueError, match=r"a.toml: not valid TOML: Exceeds the limit") as caught:
        Settings.from_toml(file)
    assert "\n" not in str(caught.value)

    class Counted(Config):
        steps: Count

    with pytest.raises(ValueError, match=r"steps: .*, got a number of about 5001 digits"):
        Counted(steps=9 * 10**5000)


def test_a_file_with_a_name_that_a_terminal_would_obey_is_shown_as_text(tmp_path):
    with pytest.raises(ValueError, match="no such file") as caught:
        read_toml(tmp_path / "\x1b[2J.toml")
    assert str(caught.value).isprintable()
