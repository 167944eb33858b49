"""Runs in this very process: the same results as with workers, and Ctrl-C is the caller's."""

from __future__ import annotations

import pytest
from oracles.rehearsal import FAIL, chain

from palrnn.engine.progress import quiet
from palrnn.sweeps import Job, LocalEngine, SerialEngine, Store, Task, execute, run


def test_the_results_are_those_of_workers_and_the_engine_can_be_used_again(tmp_path) -> None:
    tasks, engine = chain(3), SerialEngine()
    stores = Store(tmp_path / "serial"), Store(tmp_path / "local")
    assert run(tasks[:-1], stores[0], engine, close=False, progress=quiet).complete
    assert run(tasks, stores[0], engine, close=False, progress=quiet).done == 1
    assert run(tasks, stores[1], LocalEngine(1), progress=quiet).complete
    assert [stores[0].read(task) for task in tasks] == [stores[1].read(task) for task in tasks]


def test_an_engine_that_is_kept_keeps_its_workers(tmp_path) -> None:
    tasks, engine = chain(2), LocalEngine(1)
    run(tasks[:1], Store(tmp_path), engine, close=False, progress=quiet)
    process = engine._workers[0].process
    run(tasks, Store(tmp_path), engine, close=False, progress=quiet)
    assert engine._workers[0].process is process is not None
    engine.close()


def test_a_failure_is_on_record_and_an_interruption_is_not(tmp_path, monkeypatch) -> None:
    store, bad = Store(tmp_path), Task(FAIL, {"cure": str(tmp_path / "cure")})
    assert run([bad], store, SerialEngine(), progress=quiet).failed == (bad,)

    def interrupted(settings: object, inputs: object) -> None:
        raise KeyboardInterrupt

    module, _, name = bad.kind.function.partition(":")
    monkeypatch.setattr(f"{module}.{name}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([bad], store, SerialEngine(), retry_failed=True, progress=quiet)
    assert store.failure(bad) is None
    job = Job(bad.hash, bad.kind.function, bad.kind.suffix, bad.identity, {})
    assert "KeyboardInterrupt" in (execute(job).error or "")
