"""K3, by the head: whether lm_head's rows are those of the tokens that d2t leads to.

Tokens are alike or unlike in any head of the same language, so the head itself says which map it was stored with: one
that is off by a constant, that of t2d, another order of rows, or none of these (`HeadRelation`).
"""

from typing import Literal

from orchestrator.diagnosis.finding import Evidence, share
from remote_payload.schema import HeadRelation, VocabularyFacts

HeadSays = Literal["right", "shifted", "t2d_right", "rolled", "permuted", "unrelated", "nothing"]

RIGHT = 0.9
"""Share of the rows looked at that are related to their tokens, from which on the map is right."""
UNRELATED = 0.2
"""The same below which head and map have nothing to do with each other."""
PERMUTED = 0.05
"""Share of rows that are found at another draft id's token, from which on rows and map are in different order."""


def says(vocabulary: VocabularyFacts) -> HeadSays:
    """What the head says about the map: `right`, a fault, or `nothing`, which is no evidence."""
    head = vocabulary.head
    if head is None or not head.sampled:
        return "nothing"
    if head.shifts:
        return "shifted"
    if head.elsewhere >= PERMUTED * head.sampled:
        return "permuted"
    if head.related >= RIGHT * head.sampled:
        return "right"
    if head.t2d_related is not None and head.t2d_related >= RIGHT * head.sampled:
        return "t2d_right"
    if head.row_shift is not None:
        return "rolled"
    return "unrelated" if head.related < UNRELATED * head.sampled else "nothing"


def is_map_wrong(vocabulary: VocabularyFacts) -> bool:
    """Whether the head or t2d say that d2t leads elsewhere: no row can then be judged by its token."""
    fault = says(vocabulary)
    offset = next((item for item in vocabulary.readings if item.reading == "offset"), None)
    doubted = fault in ("nothing", "unrelated") and offset is not None and offset.agrees_with_t2d is False
    return doubted or fault in ("shifted", "t2d_right", "rolled", "permuted")


def summary(head: HeadRelation, fault: HeadSays) -> str:
    """The fault in a sentence."""
    if fault == "shifted":
        runs = ", ".join(f"{-run.shift:+d} from draft id {run.first} to {run.last}" for run in head.shifts)
        return f"d2t is off by a constant: lm_head's rows belong to other tokens than it leads to ({runs})"
    if fault == "t2d_right":
        return "d2t is of another vocabulary: lm_head's rows belong to the tokens that t2d marks, not to d2t's"
    if fault == "rolled":
        return f"lm_head and d2t are rolled against each other: row i{head.row_shift:+d} belongs to draft id i's token"
    if fault == "permuted":
        return (
            "lm_head's rows and d2t are in different order: "
            f"{100 * head.elsewhere / head.sampled:.0f} % of the rows at least belong to other draft ids"
        )
    return "lm_head and d2t do not belong together: its rows are no more alike than those of any other tokens"


def remedy(head: HeadRelation, fault: HeadSays) -> tuple[str, ...]:
    """What to do, a line each."""
    again = "lm_head itself is whole: export d2t and t2d again, from the very run that trained this head"
    if fault == "shifted":
        runs = "; ".join(f"d2t[{run.first}:{run.last + 1}] += {run.shift}" for run in head.shifts)
        return (again, f"or correct it: `{runs}`, its ends to be looked up, and run again")
    if fault == "t2d_right":
        return (again, "or make d2t from t2d: `d2t = t2d.nonzero()[:, 0] - torch.arange(int(t2d.sum()))`")
    return (
        "export lm_head, d2t and t2d together from one training state; nothing may re-order one of them alone",
        "a map that is cached for another data set is picked up silently by trainers: compare d2t with the one that "
        "this head was trained with",
    )


def evidence(head: HeadRelation | None) -> tuple[Evidence, ...]:
    """How far the head's rows go with the map's tokens, in numbers."""
    if head is None or not head.sampled:
        return ()
    lines = [share("rows of lm_head that are related to the token d2t gives them", head.related, head.sampled)]
    if head.t2d_related is not None:
        lines.append(share("rows that are related to the token t2d gives them", head.t2d_related, head.sampled))
    if head.elsewhere:
        lines.append(share("rows that belong to another draft id's token", head.elsewhere, head.sampled))
    return tuple(lines)
