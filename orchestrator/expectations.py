"""What was expected of a run, and whether it holds: read from its settings or a job file, judged on its measurements.

Expectations travel with a run as settings called `expect.METRIC`, so that whoever brings the result home judges them.
"""

import dataclasses
import json
from collections.abc import Sequence

from orchestrator.compare.condition import Condition, parse_condition
from orchestrator.compare.expect import Judgment, cannot_tell, judge
from orchestrator.compare.pooling import Operand
from orchestrator.errors import Eagle3Error, NotFoundError, UsageError
from orchestrator.jobfile import EXPECT
from orchestrator.operands import apart, operand
from orchestrator.store import Store
from remote_payload.schema import Setting


def conditions_of(settings: Sequence[Setting]) -> tuple[Condition, ...]:
    """The expectations among settings. Raises JobFileError naming source, metric and what was expected."""
    return tuple(
        parse_condition(setting.key.removeprefix(EXPECT), text, setting.source)
        for setting in settings
        if setting.key.startswith(EXPECT)
        for text in json.loads(setting.value)
    )


def expected_of(store: Store, reference: str) -> tuple[str, tuple[Setting, ...]]:
    """The kind of job that a word's runs are of, and with what a single run of this laptop was launched.

    Raises as `operand`, UsageError where the runs are of several kinds.
    """
    try:
        run_id = store.resolve(reference)
    except (NotFoundError, UsageError):  # no run by that word: what else may it mean?
        kinds = sorted({one.job_kind for one in operand(store, reference).sets})
        if len(kinds) > 1:
            raise UsageError(f"expected runs of one kind, found: {', '.join(kinds)}") from None
        return kinds[0], ()
    if store.is_imported(run_id):
        return store.imported(run_id).job_kind, ()
    record = store.load_exact(run_id)
    return record.job_kind, record.settings


def judged(store: Store, reference: str, conditions: Sequence[Condition]) -> tuple[Judgment, ...]:
    """Every expectation on every load it means; `reference` is all that `diff` takes.

    Raises as `operand` where the run cannot be read; a baseline that cannot be read is what cannot be told.
    """
    return judged_on(store, operand(store, reference), conditions)


def judged_on(store: Store, measured: Operand, conditions: Sequence[Condition]) -> tuple[Judgment, ...]:
    """As `judged`, on measurements that were read before, so that whoever tells of them names the very runs."""
    found: list[Judgment] = []
    for condition in conditions:
        try:
            baseline = None if condition.baseline is None else operand(store, condition.baseline)
            others = measured if baseline is None else apart(baseline, measured)
        except Eagle3Error as error:
            found.append(cannot_tell(condition, error.message))
            continue
        kept = {one.run_id for one in others.sets}
        left_out = tuple(one.run_id for one in measured.sets if one.run_id not in kept)
        found += (dataclasses.replace(item, left_out=left_out) for item in judge(condition, others, baseline))
    return tuple(found)


def unmeasured(conditions: Sequence[Condition], reason: str) -> tuple[Judgment, ...]:
    """The judgments on a run that has nothing to judge."""
    return tuple(cannot_tell(condition, reason) for condition in conditions)
