"""K3, by the head: whether lm_head's rows are those of the tokens that d2t leads to.

A head that was copied from the target's, trained on or not, keeps rows that are nearest to their own token's. So the
rows say which map they were stored with: off by a constant, in another order, or of another set of tokens. A head that
was trained from nothing says nothing.
"""

from typing import Literal

from orchestrator.diagnosis.finding import Evidence, share
from remote_payload.schema import HeadNearest, VocabularyFacts

HeadSays = Literal["right", "shifted", "rolled", "permuted", "foreign", "nothing"]

LEAST_NEAR = 20
"""Rows with a nearest target row that are needed to speak about the map."""
LEAST_SHARE = 0.2
"""The same as a share of the rows looked at."""
RIGHT = 0.95
"""Share of such rows at the map's own token, from which on the map is right: similar tokens cost a few."""
SAME_TOKENS = 0.9
"""Share at tokens of the map, whosever, from which on the set of tokens is right and their order is not."""


def says(vocabulary: VocabularyFacts) -> HeadSays:
    """What the head says about the map: `shifted`, `rolled` and so on are faults, `nothing` is no evidence."""
    nearest = vocabulary.nearest
    if nearest is None or nearest.near < max(LEAST_NEAR, LEAST_SHARE * nearest.sampled):
        return "nothing"
    if nearest.as_mapped >= RIGHT * nearest.near:
        return "right"
    if nearest.row_shift is not None:
        return "rolled"
    if _ids(nearest) >= (1 - RIGHT) * nearest.near:
        return "shifted"
    return "permuted" if nearest.as_mapped + nearest.elsewhere_mapped >= SAME_TOKENS * nearest.near else "foreign"


def is_map_wrong(vocabulary: VocabularyFacts) -> bool:
    """Whether the head's rows, or t2d, say that d2t leads elsewhere: no row can then be judged by its token."""
    fault = says(vocabulary)
    offset = next((item for item in vocabulary.readings if item.reading == "offset"), None)
    doubted = fault == "nothing" and offset is not None and offset.agrees_with_t2d is False
    return doubted or fault not in ("right", "nothing")


def summary(nearest: HeadNearest, fault: HeadSays) -> str:
    """The fault in a sentence."""
    wrong = 100 * (1 - nearest.as_mapped / max(1, nearest.near))
    if fault == "shifted":
        runs = ", ".join(f"{-run.shift:+d} from draft id {run.first} to {run.last}" for run in nearest.shifts)
        return f"d2t is off by a constant against lm_head's rows: {runs}"
    if fault == "rolled":
        return f"lm_head's rows stand {nearest.row_shift:+d} beside the draft ids that d2t gives them"
    if fault == "permuted":
        return (
            f"{wrong:.0f} % of lm_head's rows belong to other draft ids than d2t says: the two are in different order"
        )
    return f"{wrong:.0f} % of lm_head's rows are of other tokens than d2t leads to: the map is of another vocabulary"


def remedy(nearest: HeadNearest, fault: HeadSays) -> tuple[str, ...]:
    """What to do, a line each."""
    again = "lm_head itself is whole: export d2t and t2d again, from the very run that trained this head"
    if fault == "shifted":
        runs = "; ".join(f"d2t[{run.first}:{run.last + 1}] += {run.shift}" for run in nearest.shifts)
        sampled = " (ends as far as rows were sampled)" if nearest.as_mapped else ""
        return (again, f"or correct it: `{runs}`{sampled}, and run again")
    if fault == "foreign":
        return (again, "a vocabulary map that is cached for another data set is picked up silently by trainers")
    return ("export lm_head, d2t and t2d together from one training state; nothing may re-order one of them alone",)


def evidence(nearest: HeadNearest | None) -> tuple[Evidence, ...]:
    """What the head's rows are nearest to, in numbers."""
    if nearest is None or not nearest.near:
        return ()
    return (
        share(
            "lm_head's rows that are nearest to the target's row of the token d2t gives",
            nearest.as_mapped,
            nearest.near,
        ),
        share("rows that are nearest to a token d2t gives to another draft id", nearest.elsewhere_mapped, nearest.near),
    )


def _ids(nearest: HeadNearest) -> int:
    return sum(run.ids for run in nearest.shifts)
