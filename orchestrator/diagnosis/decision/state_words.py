"""States in words."""

from collections.abc import Sequence

from orchestrator.diagnosis.changed_states import Changed


def layers(states: Sequence[int | None], changed: Sequence[Changed | None] = ()) -> str:
    """e.g. `[embed, layer 3, layer 31 x 0.90]`, by HF `hidden_states` index; `?` is like none of the captured ones."""
    names = ["?" if state is None else "embed" if state == 0 else f"layer {state}" for state in states]
    for place, change in enumerate(changed):
        names[place] += "" if change is None else f" {change.words}"
    return f"[{', '.join(names)}]"
