"""Which states a target has: HF `hidden_states` indices, 0 = embed, i = output of layer i-1.

Laptop and host refuse alike what no target of so many layers, and no fc of that width, can mean.
"""

from collections.abc import Sequence

HINT = (
    "states are HF hidden_states indices: `embed` (0), or i for the output of layer i-1; an engine's ids are often "
    "one less"
)


def beyond_layers(flag: str, states: Sequence[int], layers: int | None) -> str | None:
    """What is wrong where a state is named that a target of so many layers does not have; None = nothing."""
    beyond = [state for state in states if layers is not None and state > layers]
    if not beyond:
        return None
    named = ", ".join(map(str, beyond))
    return f"{flag}: expected states of a target of {layers} layers, 0 (embed) to {layers}, found: {named}"


def other_width(flag: str, states: Sequence[int], takes: int | None) -> str | None:
    """What is wrong where more or fewer states are named than the drafter's fc takes; None = nothing."""
    if takes is None or len(states) == takes:
        return None
    return (
        f"{flag}: expected as many states as the drafter's fc.weight takes, {takes}, one a block of its columns, found "
        f"{len(states)}: {','.join('embed' if state == 0 else str(state) for state in states)}"
    )
