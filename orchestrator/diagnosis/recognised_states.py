"""Which known state each served one is, be it in other numbers, and what is said of those that are."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.diagnosis.changed_states import APART, CLOSE, Changed, Known, changed, scaled
from orchestrator.diagnosis.effective_capture import names
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from remote_payload.schema.capture import ServedState, StateMatch

SERVED = Subject(check="K12", title="states that the server feeds")
LEAST_TOKENS = 32


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """The known state that a served one is."""

    match: StateMatch
    changed: Changed | None = None
    """What was made of its numbers; None = nothing but rounding."""

    @property
    def residual(self) -> float:
        """What is unlike the known state, once the change is taken back."""
        return self.match.error if self.changed is None else self.changed.residual


def recognised(served: ServedState) -> Recognised | None:
    """The known state that a served one surely is, be it in other numbers; None = none."""
    same = {id(match): match for match in served.matches if match.token_offset == 0}
    known = {at: _known(match) for at, match in same.items()}
    match = identified(served)
    if match is not None:
        return Recognised(match=match, changed=None if match.token_offset else scaled(_known(match)))
    found = changed(tuple(known.values())) if served.tokens >= LEAST_TOKENS else None
    if found is None:
        return None
    best, change = found
    return Recognised(match=next(same[at] for at, one in known.items() if one is best), changed=change)


def _known(match: StateMatch) -> Known:
    name = (match.against, match.slot) if match.state is None else match.state
    return Known(name=name, error=match.error, change=match.change, r2=match.r2)


def identified(served: ServedState) -> StateMatch | None:
    """The known state that a served one surely is: near, and nothing else nearly as near. None = none is.

    A captured state and the target's own embedding may be the same thing under two names.
    """
    if served.tokens < LEAST_TOKENS or not served.matches:
        return None
    best, *others = served.matches
    if best.error > CLOSE:
        return None
    if best.state is None:  # the same state may have a name besides
        best = next((one for one in others if one.error <= best.error and one.state is not None), best)
    rivals = (one for one in others if is_other(best, one))
    return None if any(one.error < max(APART * best.error, 1e-6) for one in rivals) else best


def is_other(best: StateMatch, one: StateMatch) -> bool:
    """Whether two known ones are two states, not one under two headings."""
    if best.token_offset != one.token_offset:
        return True
    known = best.state is not None and one.state is not None
    return best.state != one.state if known else (best.against, best.slot) != (one.against, one.slot)


def told(matches: tuple[Recognised | None, ...]) -> str:
    """`[embed, layer 3 x 0.90, ?]`; an unlabelled state by its place in the training rows."""

    def one(found: Recognised | None) -> str:
        if found is None:
            return "?"
        match = found.match
        name = "the final state" if match.against == "final" else f"slot {match.slot}"
        name = name if match.state is None else names((match.state,))[1:-1]
        return name if found.changed is None else f"{name} {found.changed.words}"

    return f"[{', '.join(one(match) for match in matches)}]"


def left_words(found: Sequence[Changed]) -> str:
    """What the changes leave unexplained: `0.3 %`, or `0.3 to 2 %`."""
    least, most = min(one.residual for one in found), max(one.residual for one in found)
    return f"{100 * most:.2g} %" if least == most else f"{100 * least:.2g} to {100 * most:.2g} %"


def other_numbers(fed: str, left: str, *, large: bool, evidence: tuple[Evidence, ...]) -> CheckResult:
    """The finding that states are the captured ones in other numbers; `left`: what that does not explain, in words."""
    return SERVED.finding(
        f"SGLang feeds {fed}: captured states in other numbers, of which that leaves {left} unexplained",
        severity="serious" if large else "minor",
        cause="engine",
        evidence=evidence,
        remedy=(
            "find which of the two has the target's own numbers: `run standalone --capture-rows 4` holds the rows "
            "against a fresh forward",
            "if the rows have them, the server's model scales or norms its states: look at its config (norms, "
            "multipliers, quantization) and its patches; if not, capture rows from this server and train on them",
        ),
        refuted_by="served states equal to rows captured from this very target",
    )
