"""What was expected of a run, and whether it holds: read from its settings or a job file, judged on its measurements.

Expectations travel with a run as settings called `expect.METRIC`, so that whoever brings the result home judges them.
"""

import json
from collections.abc import Sequence

from orchestrator.compare.condition import Condition, parse_condition
from orchestrator.compare.expect import Judgment, cannot_tell, judge
from orchestrator.errors import Eagle3Error
from orchestrator.jobfile import EXPECT
from orchestrator.operands import operand
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


def judged(store: Store, reference: str, conditions: Sequence[Condition]) -> tuple[Judgment, ...]:
    """Every expectation on every load it means; `reference` is all that `diff` takes.

    Raises as `operand` where the run cannot be read; a baseline that cannot be read is what cannot be told.
    """
    measured = operand(store, reference)
    found: list[Judgment] = []
    for condition in conditions:
        try:
            baseline = None if condition.baseline is None else operand(store, condition.baseline)
        except Eagle3Error as error:
            found.append(cannot_tell(condition, error.message))
            continue
        found += judge(condition, measured, baseline)
    return tuple(found)


def unmeasured(conditions: Sequence[Condition], reason: str) -> tuple[Judgment, ...]:
    """The judgments on a run that has nothing to judge."""
    return tuple(cannot_tell(condition, reason) for condition in conditions)
