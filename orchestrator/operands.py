"""A user's word for one side of a comparison -> the measurements that it means.

    RUN             a run's id, the beginning of one, or `last`; also an imported run
    baseline:NAME   what a baseline means now: a run's measurements as they were promoted, or typed numbers
    published:NAME  a number that somebody published
    FILE            a file with a `/` or an ending: measurements.json, or an exported run
    A,B,C           several of these together
    JOB~N           the N newest valid runs of a kind: `bench~5`
    JOB@TAG         every valid run of a kind with that tag, or the N newest of them, `JOB@TAG~N`
    JOB@NAME..      every valid run of a kind since the run that the baseline NAME means, that run included (but where
                    that is what they are compared with);
                    `JOB@NAME~N..` the N newest of them

A run is valid where it came home whole and no load of it is invalid.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from orchestrator.compare.pooling import Operand
from orchestrator.compare.possible import asked_again
from orchestrator.compare.shared_results import shared_within
from orchestrator.errors import InvalidRunError, NotFoundError, StoreError, UsageError
from orchestrator.measured_files import file_set
from orchestrator.measurements import set_of_run
from orchestrator.published import published_set
from orchestrator.records import Baseline, BaselineNumber
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.store import RunSummary, Store

JOBS = ("bench", "standalone")
FILE_ENDINGS = (".json", ".jsonl", ".log", ".gz", ".txt", ".csv")
_SET = re.compile(rf"({'|'.join(JOBS)})(?:@([^~@]+?))?(?:~([1-9][0-9]{{0,5}}))?(\.\.)?")


def operand(store: Store, word: str) -> Operand:
    """What a word means; a run that is named twice, or a result that two runs hold, counts once, with a note.

    Raises NotFoundError with the closest names, UsageError, InvalidRunError also where two different runs have one id,
    StoreError.
    """
    parts = [part for part in word.split(",") if part]
    if not parts:
        raise UsageError("expected a run, a baseline, a file or a set of runs, found nothing")
    sets: dict[str, MeasurementSet] = {}
    named: dict[str, str] = {}
    notes: dict[str, None] = {}
    for part in parts:
        for found in _sets(store, part):
            first = named.setdefault(found.run_id, part)
            if sets.setdefault(found.run_id, found) == found:
                if first is not part:
                    both = f"{first} and {part} are the same run, {found.run_id}"
                    notes[f"{f'{part} is named twice' if first == part else both}: it counts once"] = None
                continue
            raise InvalidRunError(
                f"`{first}` and `{part}` hold different measurements of one id: {found.run_id}",
                hint="runs are told apart by their ids; compare the two with each other: diff A B",
            )
    label = word if len(parts) > 1 or len(sets) > 1 else next(iter(sets))
    return Operand(
        label=label, sets=tuple(sets.values()), word=word, notes=(*notes, *shared_within(tuple(sets.values())))
    )


def baseline_operand(store: Store, name: str) -> Operand:
    """What a baseline means now, by its name alone, `baseline:NAME` or `published:NAME`. Raises as `operand`."""
    if name.startswith(("baseline:", "published:")):
        return operand(store, name)
    return Operand(label=f"baseline {name}", sets=(baseline_set(store, name),))


def baselines_since(word: str) -> tuple[str, ...]:
    """The baselines that sets of runs since them name: `main` of `bench@main~5..,bench-9`; none in most words."""
    chosen = [_SET.fullmatch(part) for part in word.split(",")]
    return tuple(dict.fromkeys(one[2] for one in chosen if one is not None and one[2] is not None and one[4]))


def is_set(word: str) -> bool:
    """Whether a word means several runs: `bench~3`, `bench@nightly`, `bench-1,bench-2`."""
    chosen = _SET.fullmatch(word)
    return "," in word or (chosen is not None and any(chosen.groups()[1:]))


def apart(reference: Operand, candidates: Operand) -> Operand:
    """Of runs since a baseline those that the reference has none of: its own run on both sides would tie them.

    What was named otherwise stays as it was named. Raises NotFoundError where that leaves none.
    """
    if not baselines_since(candidates.word):
        return candidates
    ids = {one.run_id for one in reference.sets}
    others = tuple(one for one in candidates.sets if one.run_id not in ids)
    if not others:
        raise NotFoundError(f"no valid run is newer than the one to compare with: {', '.join(sorted(ids))}")
    left_out = sorted(ids & {one.run_id for one in candidates.sets})
    if not left_out:
        return candidates
    note = f"{', '.join(left_out)} is what is compared with: left out of the other side"
    return dataclasses.replace(candidates, sets=others, notes=(*candidates.notes, note))


def baseline_set(store: Store, name: str) -> MeasurementSet:
    """The measurements that a baseline means now. Raises as `operand`."""
    return _of_baseline(store, store.baseline(name))


def run_set(store: Store, reference: str) -> MeasurementSet:
    """The measurements of a run, own or imported. Raises as `operand`."""
    return set_of_run(store, store.resolve(reference))


def _sets(store: Store, word: str) -> Iterator[MeasurementSet]:
    kind, colon, name = word.partition(":")
    chosen = _SET.fullmatch(word)
    if colon and kind == "baseline":
        yield baseline_set(store, name)
    elif colon and kind == "published":
        yield published_set(name)
    elif "/" in word or word.endswith(FILE_ENDINGS):
        yield file_set(Path(word))
    elif chosen and any(chosen.groups()[1:]):
        yield from _chosen(store, word, *chosen.groups())
    elif re.match(rf"({'|'.join(JOBS)})[~@]", word):
        raise UsageError(f"expected a set of runs, JOB~N, JOB@TAG, JOB@NAME.. or JOB@NAME~N.., found: {word!r}")
    else:
        yield _run_or_hint(store, word)


def _run_or_hint(store: Store, word: str) -> MeasurementSet:
    """As `run_set`; a word that is a baseline's name is told how that is written."""
    try:
        return run_set(store, word)
    except (NotFoundError, UsageError) as error:
        if word not in store.names.names():
            raise
        raise NotFoundError(error.message, hint=f"did you mean the baseline: baseline:{word}") from None


def _chosen(
    store: Store, word: str, job: str, name: str | None, number: str | None, since: str | None
) -> Iterator[MeasurementSet]:
    if since is not None and name is None:
        raise UsageError(f"`{word}`: `..` asks for runs since a baseline: {job}@NAME..")
    begins, includes = _beginning(store, name) if since is not None and name is not None else (None, None)
    most = int(number) if number is not None else None
    found = 0
    for run in store.list():
        if most is not None and found >= most:
            return
        if not _fits(run, job, None if since else name, begins, includes):
            continue
        try:
            measured = run_set(store, run.run_id)
        except (InvalidRunError, StoreError):
            continue  # nothing came home of it
        if not any(item.invalid for item in asked_again(measured).measurements):
            found += 1
            yield measured
    if not found:
        raise NotFoundError(
            f"no valid run on this laptop is meant by: {word}", hint=_there_are(store, job, name, since)
        )


def _fits(run: RunSummary, job: str, tag: str | None, begins: float | None, includes: str | None) -> bool:
    if run.problem is not None or run.job_kind != job:
        return False
    if tag is not None and tag not in run.tags:
        return False
    return begins is None or run.run_id == includes or (run.created_unix_s or 0.0) > begins


def _beginning(store: Store, name: str) -> tuple[float, str | None]:
    """When the baseline's run was launched, and which it is. Raises InvalidRunError where it means numbers."""
    measured = baseline_set(store, name)
    if measured.origin not in ("own", "imported") or measured.created_unix_s is None:
        raise InvalidRunError(f"expected a baseline that means a run with its time, `{name}` means none")
    return measured.created_unix_s, measured.run_id


def _there_are(store: Store, job: str, name: str | None, since: str | None) -> str:
    if name is None or since is not None:
        return "`eagle3-remote runs list` shows what there is; a run with failed requests is not valid"
    tags = sorted({tag for run in store.list() if run.job_kind == job for tag in run.tags})
    return f"tags of {job} runs: {', '.join(tags[:8]) or 'none'}; `{job}@{name}..` would mean a baseline"


def _of_baseline(store: Store, baseline: Baseline) -> MeasurementSet:
    entry = baseline.current
    kept = store.names.measured(entry)
    if kept is not None:
        return kept
    if entry.run_id is None:
        return _typed(baseline)
    try:
        return run_set(store, store.load_exact(entry.run_id).run_id)
    except NotFoundError:
        raise NotFoundError(
            f"the baseline `{baseline.name}` means a run that is not on this laptop: {entry.run_id}",
            hint=f"`eagle3-remote baseline set {baseline.name} RUN` lets it mean another one",
        ) from None


def _typed(baseline: Baseline) -> MeasurementSet:
    """Numbers that somebody typed: no circumstances but the load, where that was said, and no samples."""
    entry = baseline.current
    return MeasurementSet(
        run_id=f"baseline:{baseline.name}",
        origin="typed",
        tool="typed",
        job_kind="typed",
        label=entry.note,
        created_unix_s=entry.set_at_unix_s,
        source=entry.source,
        measurements=(Measurement(case=entry.load, series=tuple(_number(item) for item in entry.numbers)),),
    )


def _number(number: BaselineNumber) -> Series:
    from orchestrator.compare.metrics import metric_of  # noqa: PLC0415 - as few modules as the command needs

    known = metric_of(number.metric)
    unit = number.unit or ("" if known is None else known.unit)
    return Series(metric=number.metric, unit=unit, definition="", level="summary", y=(number.value,))
