"""K18: acceptance by server age. A server's age changes no greedy answer, so what falls there is the engine's.

Told by the same prompts asked again of one start; where each start was asked once, by what was foretold of each
request: later answers then fall short of their own prediction by more than earlier ones.
"""

from collections.abc import Sequence

from orchestrator.compare.served import LoadFigures
from orchestrator.compare.stats import MIN_ROWS, paired_difference, unpaired_difference
from orchestrator.diagnosis.decision.falls import judged
from orchestrator.diagnosis.decision.foretold import Compared, compare
from orchestrator.diagnosis.decision.inputs import Known, ServedSplit
from orchestrator.diagnosis.finding import CheckResult, Severity, Subject, count
from orchestrator.diagnosis.samples import Sums, columns, has_drafts, sums_by_sample
from remote_payload.schema.bench import RequestSample

AGE = Subject(check="K18", title="acceptance by server age")
AGED = 0.1
"""Accept length by which a part must surely fall before it is a finding."""
_SERIOUS: Severity = "serious"
_REMEDY = "restart the server: if that restores it, its caches spoil the drafter; report it with its version"
_HOW = (_SERIOUS, AGED, _REMEDY)
_NEEDS = (
    "greedy repeats of the same prompts on one start of the server (`run bench --repeats 3` without --with-baseline), "
    "or answers that were foretold (rows of what is served)"
)


def by_age(load: LoadFigures, *, greedy: bool, contents: Sequence[str] = (), known: Known | None = None) -> CheckResult:
    """The last against the first repeat on one start, else later against earlier requests beside their prediction."""
    if not greedy:
        return AGE.cannot_tell("sampled answers differ from repeat to repeat", needs=_NEEDS)
    starts: dict[int, list[int]] = {}
    for point in load.points:
        starts.setdefault(point.start, []).append(point.point)
    points = next((found for found in starts.values() if len(found) > 1), None)
    if points is None:
        foretold = None if known is None else _by_foretold(known)
        return foretold or AGE.cannot_tell("no prompt was asked twice of one server at different ages", needs=_NEEDS)
    first, last = (_of_point(load.requests, point, contents) for point in (points[0], points[-1]))
    both = sorted(first.keys() & last.keys())
    if not both:
        return AGE.cannot_tell("the repeats asked different prompts", needs="repeats of the same prompts")
    difference = paired_difference(columns(last, both), columns(first, both))
    return judged(AGE, difference, "the last repeat minus the first, prompt by prompt", _HOW)


def _of_point(requests: Sequence[RequestSample], point: int, contents: Sequence[str]) -> Sums:
    return sums_by_sample((item for item in requests if item.point == point and has_drafts(item)), contents)


def _by_foretold(known: Known) -> CheckResult | None:
    """By the split of which most prompts were foretold; None where too few were."""
    pairs = [found for one in (known.served.splits if known.served else ()) if (found := _halves(known, one))]
    if not pairs:
        return None
    early, late = max(pairs, key=lambda pair: pair[0].prompts + pair[1].prompts)
    difference = unpaired_difference(late.difference, early.difference)
    what = "later requests of each start minus earlier ones, each beside what was foretold of it"
    return judged(AGE, difference, what, _HOW, (count("prompts in both halves", early.prompts + late.prompts),))


def _halves(known: Known, one: ServedSplit) -> tuple[Compared, Compared] | None:
    """The earlier and the later half of each point's requests beside their predictions."""
    predicted, served = known.foretold(one.split, "as served"), known.served
    if predicted is None or served is None:
        return None
    points: dict[int, list[RequestSample]] = {}
    for item in sorted(one.requests, key=lambda item: (item.point, item.index)):
        points.setdefault(item.point, []).append(item)
    early = [item for some in points.values() for item in some[: len(some) // 2]]
    late = [item for some in points.values() for item in some[len(some) // 2 :]]
    steps = served.figures.draft.num_steps
    found = (compare(predicted, early, steps, exact=False), compare(predicted, late, steps, exact=False))
    return found if min(half.prompts for half in found) >= MIN_ROWS else None
