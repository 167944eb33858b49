"""`search`: many settings tried, the bad ones given up early, the best model handed out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from palrnn.data import Dataset, DataSettings, suggest_lags
from palrnn.data.embedding import usual_delay
from palrnn.data.packing import pack
from palrnn.data.source import IN_MEMORY
from palrnn.engine.checks import as_float, as_int
from palrnn.engine.folders import writable_folder
from palrnn.engine.progress import Progress, listening
from palrnn.engine.seeds import kernel_seed
from palrnn.engine.text import quoted
from palrnn.forcing import TrainConfig
from palrnn.model import Forcing, checkpoint_from_bytes
from palrnn.model.surrogate import family
from palrnn.runs import Reconstruction, RunRecord, SearchTable
from palrnn.runs.training import has_few_columns, input_noise, prepared, usual_config, usual_optimizer
from palrnn.searches.checks import check_candidates, most_past
from palrnn.searches.ending import Ending
from palrnn.searches.folder import SearchFolder, SearchSettings
from palrnn.searches.pace import affordable_updates
from palrnn.searches.parts import parts, raw_training, training_inputs
from palrnn.searches.plan import Rung, rungs, spent_on
from palrnn.searches.result import SearchResult, Standing, ranked, reasons
from palrnn.searches.space import DELAYS, LAGS, OWN, Candidate, Space
from palrnn.searches.work import candidate_task, data_task
from palrnn.sweeps import Engine, Store, Task, engine_for
from palrnn.sweeps import run as run_tasks

#: The budget where nobody gives one.
MINUTES = 5.0
_MOST_MINUTES = 100_000.0
# the setting whose None is a value
_CLIP = "gradient_clip"
#: Other ways to give forcing; settings of training that are known by these names, too.
_NUMBERS = ("tau", "alpha", "final_alpha", "alpha_schedule")


def search(
    x: Any = None,
    *,
    minutes: float | None = None,
    updates: int | None = None,
    candidates: int | None = None,
    families: Sequence[str] | None = None,
    lags: int | Sequence[int] | None = None,
    delay: int | Sequence[int] | None = None,
    seed: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    on_data: Callable[[Dataset], object] | None = None,
    announce: Callable[[str], object] | None = None,
    **settings: Any,
) -> SearchResult:
    """Try many settings of training on ``x`` and return the best model, what was tried, and why it won.

    ``x`` is anything that `reconstruct` takes. Candidates differ in size, forcing, learning rate, clipping,
    input noise, seed and, for a single column, in lags and delay. Their free runs start at rows that they
    did not learn from, a fifth of the part to train on, and are compared with all of it; a third of them
    goes on to be trained longer, again and again (successive halving). In the end the winner learns from all
    of that part, and so do the settings that `reconstruct` would take: the better of the two is kept. The
    held-out part is seen once, for the verdict.

    - ``minutes``: about how long it may take (5). It is turned into a number of ``updates`` by a short timing
      at the start, or give that number itself: with the same ``seed`` (0) it gives the same result, however
      many workers there are. ``candidates`` is how many to start with (None: chosen with the budget).
    - ``families``: kinds of surrogates to try ("alrnn"; for two to six columns "shallow", too).
    - ``lags``, ``delay``: one number or several to try; None is 1 for several columns or with inputs, and a
      choice of 2 to 5 for a single one, which is rarely enough by itself.
    - further ``settings`` are those of `Dataset.prepare` (``dt``, ``columns``, ``inputs``, ...) and of
      `TrainConfig`; one value of the latter holds for all candidates, a list or tuple is tried.
    - ``workers``: processes on this machine (None: one per core; then scripts need the usual
      ``if __name__ == "__main__":``; with 1 none is started), or a Dask cluster at ``scheduler``.
    - ``run``: a folder to keep the search in, from which the same call goes on after an interruption, as if
      there had been none; the winner is the run in ``run/best``. ``x`` may then be left out, unless it was in
      memory. None works in a temporary folder.
    - ``on_data`` is shown the `Dataset`; ``announce`` hears a sentence after each rung.
    """
    folder = None if run is None else SearchFolder(run)
    before = None if folder is None else folder.read_settings()
    data, choices = _sorted_settings(settings)
    known = {} if before is None else before.series.model_dump(exclude_none=True)
    dataset = prepared(x, data, known, "the search was of", lags=1)
    if on_data is not None:
        on_data(dataset)
    given: dict[str, Any] = {
        "minutes": None if minutes is None else as_float(minutes, "minutes", above=0.0, most=_MOST_MINUTES),
        "updates": None if updates is None else as_int(updates, "updates", least=1),
        "candidates": None if candidates is None else as_int(candidates, "candidates", least=2),
        "families": None if families is None else _families(families),
        "lags": None if lags is None else _whole_numbers(lags, "lags"),
        "delays": None if delay is None else _whole_numbers(delay, "delay"),
        "seed": None if seed is None else as_int(seed, "seed", most=None),
        "choices": choices or None,
    }
    if minutes is not None and updates is not None:
        raise ValueError("minutes and updates are two budgets: give one of them")
    if isinstance(x, Dataset) and (lags is not None or delay is not None):
        raise ValueError(
            f"{'delay' if lags is None else 'lags'} is a setting of Dataset.prepare, which made x"
        )
    trials, drives = raw_training(dataset), training_inputs(dataset)
    given = {name: value for name, value in given.items() if value is not None}
    with closing(engine_for(workers, scheduler)) as engine:
        if before is not None and folder is not None:
            chosen = before
            _refuse_changes(before, dataset, given, folder)
        else:
            chosen = _chosen(dataset, trials, given, engine.workers, fixed=isinstance(x, Dataset))
        space = _space(dataset, trials, chosen)
        plan = rungs(chosen.updates, chosen.candidates)
        drawn = [space.candidate(k) for k in range(plan[0].candidates)]
        check_candidates(drawn, trials, drives, dataset)
        with _place(folder, str(dataset.settings["series"])) as place, place.writing():
            place.write_settings(chosen)
            with listening(progress, "search") as report:
                work = (place.store, engine, data_task(chosen.data), plan, dataset.dt)
                order = _Halving(*work).order(
                    drawn, pack(trials, drives), report, announce or (lambda _: None)
                )
                kept, end = Ending(*work).best(order[0], _usual(dataset, chosen, drawn), report)
                why = f"{reasons(order, plan)} {end}"
            if kept.rung == len(plan):  # the rival has a row of its own
                order = [kept, *order]
            table = [standing.row(rank) for rank, standing in enumerate(order, start=1)]
            best = _best(kept, SearchTable(table, why), dataset, x, data.get("inputs"))
            if folder is not None:  # before anything else is asked of it
                best = best.save(folder.best)
            result = SearchResult(best, table, why, best.verdict(), chosen.updates)
            if folder is not None:
                folder.write_result(result)
    return result


class _Halving:
    """The loop over rungs."""

    def __init__(self, store: Store, engine: Engine, data: Task, plan: list[Rung], dt: float | None) -> None:
        self.store, self.engine, self.data, self.plan, self.dt = store, engine, data, plan, dt

    def order(
        self, drawn: list[Candidate], series: bytes, report: Progress, announce: Callable[[str], object]
    ) -> list[Standing]:
        """Return all candidates, the best first."""
        with writable_folder(self.store.folder, "sweep", "search"):
            if not self.store.has(self.data):
                self.store.put(self.data, series)
        alive, ended = drawn, list[Standing]()
        for number, rung in enumerate(self.plan):
            standings = ranked(self._standings(alive[: rung.candidates], number, report))
            going = self.plan[number + 1].candidates if number + 1 < len(self.plan) else 1
            announce(self._sentence(standings, number, going))
            alive = [each.candidate for each in standings[:going]]
            ended = standings[going if number + 1 < len(self.plan) else 0 :] + ended
        return ended

    def _standings(self, candidates: list[Candidate], number: int, report: Progress) -> list[Standing]:
        """Return the candidates as they stand after this rung, those that failed left out."""
        tasks = [candidate_task(each, self.plan, number, self.data, self.dt) for each in candidates]
        earlier = sum(rung.candidates * rung.updates for rung in self.plan[:number])
        total = spent_on(self.plan)

        def forward(done: int, todo: int, figures: Mapping[str, float]) -> None:
            there = (len(tasks) - todo + done) * self.plan[number].updates
            said = {"rung": number + 1, "of": len(self.plan)}
            report(earlier + there, total, said | {k: v for k, v in figures.items() if k == "failed"})

        tally = run_tasks(tasks, self.store, self.engine, retry_failed=True, close=False, progress=forward)
        found = [
            Standing(candidate, number, checkpoint_from_bytes(self.store.read(task), source=task.label), task)
            for candidate, task in zip(candidates, tasks, strict=True)
            if self.store.has(task)
        ]
        if not found:
            why = self.store.failure(tally.failed[0]) or ""
            raise RuntimeError(f"no candidate could be trained; the first: {why.strip().splitlines()[-1]}")
        return found

    def _sentence(self, standings: list[Standing], number: int, going: int) -> str:
        rung, best = self.plan[number], standings[0]
        said = best.judgement
        scores = f"D_stsp {said.dstsp:.2f} (floor {said.dstsp_floor:.2f}), D_H {said.spectrum_distance:.2f}"
        after = f"{min(going, len(standings))} of {len(standings)} candidates go on"
        if number + 1 == len(self.plan):
            after = f"{len(standings)} candidates were trained to the end"
        return (
            f"rung {number + 1} of {len(self.plan)}, {rung.total:,} updates each: {after}; the best so far "
            f"is candidate {best.candidate.number}, {said.grade}, {scores}"
        )


def _usual(dataset: Dataset, chosen: SearchSettings, drawn: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the settings that `reconstruct` would take, after all that were drawn.

    Of values to choose from it has the first, and a family among those of the search.
    """
    number, lags = len(drawn), drawn[0].lags
    given = {name: values[0] for name, values in (chosen.choices or {}).items()}
    first, *others = chosen.families
    config = usual_config(dataset, given if others else given | {"family": first}, lags=lags)
    if config.family not in chosen.families:
        config = usual_config(dataset, given | {"family": first}, lags=lags)
    training = config.model_dump(mode="json", exclude=set(OWN - {"family"}))
    seed = kernel_seed(chosen.seed, "candidates", number)
    return Candidate(number, training | {"seed": seed}, lags, drawn[0].delay)


def _best(winner: Standing, table: SearchTable, dataset: Dataset, x: Any, inputs: Any) -> Reconstruction:
    """Return the winner as a reconstruction."""
    if winner.candidate.lags > 1:
        past = {"lags": winner.candidate.lags, "delay": winner.candidate.delay}
        # candidates were trained on inputs in the units of the series without its past
        units = None if dataset.inputs is None else dataset.inputs.standardizer
        arrays = inputs if dataset.settings.get("inputs") == IN_MEMORY else None
        settings = dataset.settings | past
        dataset = Dataset.from_settings(settings, x, inputs=arrays, input_standardizer=units)
    there, scale = winner.checkpoint.standardizer, dataset.standardizer
    if there is None or not (np.array_equal(there.mean, scale.mean) and np.array_equal(there.std, scale.std)):
        raise ValueError("x has changed while it was searched")
    drive = dataset.inputs
    return Reconstruction(
        winner.checkpoint.model,
        scale,
        dataset.reference,
        system=dataset.true_system,
        forcing=winner.checkpoint.forcing or winner.config.forcing.final,
        dt=dataset.dt,
        record=RunRecord.of(dataset, winner.config),
        losses=[(int(update), float(loss)) for update, loss in winner.checkpoint.arrays["losses"]],
        search=table,
        inputs=None if drive is None else drive.reference,
        input_standardizer=None if drive is None else drive.standardizer,
    ).with_name(dataset.name)


def _sorted_settings(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the settings of the data, and the choices for those of training, in plain values."""
    of_data = DataSettings.model_fields.keys() - {"series", "lags", "delay"}
    data = {name: value for name, value in given.items() if name in of_data and value is not None}
    choices: dict[str, list[Any]] = {}
    for name, value in given.items():
        if name in of_data or (value is None and name != _CLIP):
            continue
        if name in OWN or name not in {*TrainConfig.model_fields, *_NUMBERS}:
            what = "is decided by the search itself" if name in OWN else "is not a known setting"
            raise ValueError(f"{name} {what}")
        values = list(value) if isinstance(value, (list, tuple, set, frozenset, range)) else [value]
        if not values:
            raise ValueError(f"{name} must have a value to try, got {quoted(value)}")
        choices[name] = [_plain_choice(name, each) for each in values]
    return data, choices


def _plain_choice(name: str, value: Any) -> Any:
    if value is None and name != _CLIP:
        raise ValueError(f"{name} must have values to try, got None among them")
    # as `TrainConfig` writes no limit where there is no None
    return "none" if value is None else value.to_dict() if isinstance(value, Forcing) else value


def _families(names: Sequence[str]) -> tuple[str, ...]:
    listed = (
        (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else None
    )
    if not listed:
        raise ValueError(f"families must be names of families, got {quoted(names)}")
    for name in listed:
        try:
            family(name)
        except ValueError as error:
            raise ValueError(f"families: {error}") from None
    return listed


def _whole_numbers(value: int | Sequence[int], name: str) -> tuple[int, ...]:
    listed = list(value) if isinstance(value, (list, tuple, range)) else [value]
    if not listed:
        raise ValueError(f"{name} must be a number or several, got {quoted(value)}")
    return tuple(as_int(each, name, least=1) for each in listed)


def _chosen(
    dataset: Dataset, trials: list[Any], given: dict[str, Any], workers: int, *, fixed: bool
) -> SearchSettings:
    """Return the settings of a new search, with what nobody has given chosen from the data.

    The past of a ``fixed`` data set is what it was prepared with.
    """
    longest = max(map(len, trials))
    single, drives = trials[0].shape[1] == 1, training_inputs(dataset)
    suggested = min(usual_delay(trials), max(1, longest // 40))  # the first of each is that of `reconstruct`
    around = list(dict.fromkeys(max(1, round(part * suggested)) for part in DELAYS))
    usual: dict[str, Any] = {"delays": around}
    if has_few_columns(dataset):
        usual["families"] = ("alrnn", "shallow")
    if single and drives is None:
        enough = suggest_lags(trials, delay=suggested)
        tried = (enough, *(each for each in LAGS if each != enough))
        usual["lags"] = tuple(each for each in tried if each - 1 <= most_past(dataset, trials)) or (1,)
    if fixed:
        usual = {name: value for name, value in usual.items() if name == "families"}
    series = DataSettings(**dataset.settings)
    parts_given = {name: value for name, value in given.items() if name != "updates"}
    chosen = SearchSettings(
        series=series, data=dataset.fingerprint, updates=given.get("updates", 1), **(usual | parts_given)
    )
    if "updates" in given:
        return chosen
    minutes = given.get("minutes", MINUTES)
    first = _space(dataset, trials, chosen).candidate(0)
    check_candidates([first], trials, drives, dataset)
    there = parts(trials, first.lags, first.delay, drives)
    updates = affordable_updates(minutes, first, there, workers, chosen.candidates)
    return chosen.changed(minutes=minutes, updates=updates)


def _space(dataset: Dataset, trials: list[Any], chosen: SearchSettings) -> Space:
    return Space(
        columns=trials[0].shape[1],
        most_past=most_past(dataset, trials),
        tau=dataset.suggested_tau,
        input_noise=input_noise(dataset),
        optimizer=usual_optimizer(dataset),
        families=chosen.families,
        lags=chosen.lags,
        delays=chosen.delays,
        choices=chosen.choices,
        seed=chosen.seed,
    )


def _refuse_changes(
    before: SearchSettings, dataset: Dataset, given: Mapping[str, Any], folder: SearchFolder
) -> None:
    """Refuse to go on with other data, or with other settings than the search was started with."""
    for name, value in given.items():
        there = getattr(before, name)
        if there != value:
            asked = "delay" if name == "delays" else name
            raise ValueError(
                f"{folder.path}: was started with {asked} = {there!r}, asked for {value!r}; "
                "choose another folder"
            )
    if before.data != dataset.fingerprint:
        raise ValueError(f"{folder.path}: was started on other data; choose another folder")


@contextmanager
def _place(folder: SearchFolder | None, series: str) -> Iterator[SearchFolder]:
    """The folder to work in: the one given, or one that is gone afterwards."""
    if folder is not None:
        folder.check(series)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="palrnn-search-") as name:
        yield SearchFolder(name)
