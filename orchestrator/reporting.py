"""What a report is made of, gathered from the store: the runs asked for, what they are held against, baseline moves."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.asked import Asked
from orchestrator.compare.comparison import SetComparison
from orchestrator.compare.diff import compare_many
from orchestrator.compare.pooling import Operand
from orchestrator.compare.possible import asked_again
from orchestrator.errors import Eagle3Error, InvalidRunError, NotFoundError, StoreError
from orchestrator.measurements import is_here, is_same_run, measurements_of
from orchestrator.operands import apart, baseline_operand, operand
from orchestrator.records import Baseline, BaselineEntry, RunRecord
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.document.subject import BaselineMove, Reported, Subject
from orchestrator.report.question import Question
from orchestrator.review import review
from orchestrator.store import Store

JUDGED = 6
"""Runs up to which each is judged anew from its raw result; of more only their measurements are read."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a report was asked for."""

    words: tuple[str, ...] = ()
    """Each as `orchestrator/operands.py` reads it."""
    baseline: str | None = None
    """Also `published:NAME`."""
    sweep: str | None = None
    """A tag: every run that has it."""
    asked: Asked = field(default_factory=Asked)
    question: Question = field(default_factory=Question)

    @property
    def own_baseline(self) -> str | None:
        """The baseline's name where it is one of the store's, with a history."""
        name = self.baseline
        return None if name is None or name.startswith("published:") else name.removeprefix("baseline:")


def gather(store: Store, wanted: Wanted) -> Reported:
    """Everything the report is made of.

    With a baseline every word is compared with it, else with the first word. A baseline alone means every run that it
    ever meant, compared with what it meant before. Raises NotFoundError, UsageError, InvalidRunError, StoreError.
    """
    left_out: list[str] = []
    sides = [found for word in wanted.words if (found := _side(store, word)) is not None]
    reference = None if wanted.baseline is None else baseline_operand(store, wanted.baseline)
    tagged = () if wanted.sweep is None else tuple(_tagged(store, wanted.sweep, left_out))
    history: tuple[MeasurementSet, ...] = ()
    name = wanted.own_baseline
    if name is not None and not sides and not tagged:
        history = tuple(_history(store, store.baseline(name), left_out))
    if reference is not None:
        sides += [Operand(label=one.run_id, sets=(one,)) for one in tagged]
    compared = _comparisons(sides, reference, history, wanted.asked)
    sets = [one for side in sides for one in side.sets] + [*tagged, *history]
    if reference is not None:
        sets += [one for one in reference.sets if one.origin in ("own", "imported") or not sets]
    broken = [record for word in wanted.words if (record := _without_figures(store, word)) is not None]
    subjects = tuple(_subjects(store, sets, broken, wanted.question))
    return Reported(
        subjects=subjects,
        comparisons=compared,
        moves=tuple(_moves(store, name, subjects, left_out)),
        asked=wanted.asked,
        left_out=tuple(left_out),
    )


def _side(store: Store, word: str) -> Operand | None:
    return None if _without_figures(store, word) is not None else operand(store, word)


def _without_figures(store: Store, word: str) -> RunRecord | None:
    """The record of an own run that has nothing to compare; None for every other word."""
    try:
        run_id = store.resolve(word)
        record = None if store.is_imported(run_id) else store.load_exact(run_id)
    except Eagle3Error:
        return None  # no run by that word: `operand` knows what else it may mean, or says why it means nothing
    return None if record is None or store.has_figures(record) else record


def _tagged(store: Store, tag: str, left_out: list[str]) -> Iterator[MeasurementSet]:
    runs = [run for run in store.list() if tag in run.tags]
    if not runs:
        tags = sorted({known for run in store.list() for known in run.tags})
        raise NotFoundError(f"no run on this laptop has the tag: {tag}", hint=f"tags: {', '.join(tags[:8]) or 'none'}")
    found = 0
    for run in runs:
        try:
            if store.is_imported(run.run_id):
                yield store.imported(run.run_id)
            else:
                yield measurements_of(store, store.load_exact(run.run_id))
            found += 1
        except (InvalidRunError, StoreError) as error:
            left_out.append(error.message)
    if not found:
        raise InvalidRunError(f"no run with the tag `{tag}` has figures: {left_out[0]}")


def _history(store: Store, baseline: Baseline, left_out: list[str]) -> Iterator[MeasurementSet]:
    """The run of every move, the newest last; what is no longer there is said."""
    latest: dict[str, BaselineEntry] = {}
    for entry in reversed(baseline.history):
        if entry.run_id is not None:
            latest.setdefault(entry.run_id, entry)
    for run_id, entry in reversed(latest.items()):  # a run that the name came back to stands where it did so
        try:
            yield store.names.measured(entry) or measurements_of(store, store.load_exact(run_id))
        except (InvalidRunError, NotFoundError, StoreError) as error:
            left_out.append(error.message)


def _comparisons(
    sides: Sequence[Operand], reference: Operand | None, history: Sequence[MeasurementSet], asked: Asked
) -> tuple[SetComparison, ...]:
    if history:
        operands = [Operand(label=one.run_id, sets=(one,)) for one in history[-2:]]
    elif reference is not None:
        held = {one.run_id for one in reference.sets}
        others = [side for side in sides if {one.run_id for one in side.sets} != held]
        operands = [reference, *(apart(reference, side) for side in others)]
    else:
        operands = [*sides[:1], *(apart(sides[0], side) for side in sides[1:])]
    return compare_many(operands, asked) if len(operands) > 1 else ()


def _subjects(
    store: Store, sets: Iterable[MeasurementSet], broken: Sequence[RunRecord], question: Question
) -> Iterator[Subject]:
    unique = _each_once(sets)
    judge = len(unique) <= JUDGED
    for measured in unique:
        is_known = judge and is_here(store, measured)  # a file's, or a baseline's record that came without its run
        record = store.load_exact(measured.run_id) if is_known and not store.is_imported(measured.run_id) else None
        labels = store.labels(measured.run_id) if is_known else None
        yield Subject(
            measured=asked_again(measured),
            told=None if record is None or not store.has_figures(record) else review(store, record, question),
            note="" if labels is None else labels.note,
            tags=() if labels is None else labels.tags,
        )
    for record in broken:
        measured = MeasurementSet(
            run_id=record.run_id,
            origin="own",
            tool="eagle3-remote",
            job_kind=record.job_kind,
            host=record.host.name,
            created_unix_s=record.created_unix_s,
            measurements=(),
        )
        yield Subject(measured=measured, told=review(store, record))


def _each_once(sets: Iterable[MeasurementSet]) -> tuple[MeasurementSet, ...]:
    """Every run once, as it was named first. Raises InvalidRunError where an id stands for two different runs."""
    found: dict[str, MeasurementSet] = {}
    for one in sets:
        known = found.setdefault(one.run_id, one)
        if not is_same_run(known, one):
            raise InvalidRunError(
                f"expected one run of each id, found two different ones: {one.run_id} ({known.source}; {one.source})",
                hint="a report tells runs apart by their ids; import or export one of them under another",
            )
    return tuple(found.values())


def _moves(store: Store, name: str | None, subjects: Sequence[Subject], left_out: list[str]) -> Iterator[BaselineMove]:
    """Those of the baseline asked for, else of every one that ever meant one of these runs."""
    if name is None and len(subjects) < 2:
        return
    runs = {subject.run_id for subject in subjects}
    found = [store.baseline(name)] if name is not None else list(store.baselines())
    known = {subject.run_id: subject.measured for subject in subjects}
    moves: list[tuple[float, BaselineMove]] = []
    for baseline in found:
        if name is not None or any(entry.run_id in runs for entry in baseline.history):
            moves += _moves_of(store, baseline, known, left_out)
    yield from (move for _, move in sorted(moves, key=lambda pair: pair[0]))


def _moves_of(
    store: Store, baseline: Baseline, known: Mapping[str, MeasurementSet], left_out: list[str]
) -> Iterator[tuple[float, BaselineMove]]:
    """A baseline's moves as its history has them, each with a time to order it by: a clock may have been set back."""
    latest = -math.inf
    for entry in baseline.history:
        latest = max(latest, entry.set_at_unix_s)
        try:
            kept = store.names.measured(entry)
        except StoreError as error:
            left_out.append(error.message)
            kept = None
        yield (
            latest,
            BaselineMove(
                name=baseline.name,
                since_unix_s=entry.set_at_unix_s,
                run_id=entry.run_id,
                numbers=tuple((number.metric, number.value) for number in entry.numbers),
                load=entry.load,
                note=entry.note,
                measured=kept or known.get(entry.run_id or ""),
            ),
        )
