"""Whatever a public function or a command is given, it answers with a result or with a sentence."""

from __future__ import annotations

import pytest

import palrnn
from torture import commands
from torture.bad_inputs import METHODS, RESULTS, attempts, mixtures, people_call, unlisted
from torture.public_calls import rows

NAMES = [*filter(people_call, palrnn.__all__), *METHODS]


@pytest.fixture(scope="module")
def table():
    return rows()


def test_every_public_function_and_argument_has_a_row(table):
    assert unlisted(table) == []
    assert table.keys() == set(NAMES)


def test_what_has_no_row_is_a_result_of_ours():
    assert {name for name in palrnn.__all__ if name in RESULTS} == RESULTS


@pytest.mark.parametrize("name", NAMES)
def test_wrong_values_are_refused_by_name_and_hard_ones_survived(table, name):
    assert [attempt for attempt in attempts(table, name) if attempt.fault] == []


def test_two_bad_arguments_at_once_are_survived(table):
    assert [attempt for attempt in mixtures(table, 400, seed=0) if attempt.fault] == []


def test_commands_refuse_in_one_line(tmp_path):
    folder = commands.prepared(tmp_path / "files")
    # every sixth line; the long run in torture/ takes them all
    found = [attempt for attempt in commands.attempts(folder, every=6) if attempt.fault]
    assert found == []


def test_every_command_is_among_them():
    from palrnn.cli import main  # noqa: F401  # registers them
    from palrnn.cli.app import app

    tried = {words[0] for words in commands.lines() if words}
    assert {command.name for command in app.registered_commands} <= tried
