"""Whether rows, drafter and labels belong together."""

from pathlib import Path

from remote_payload.failure import JobFailure, rows_failure
from remote_payload.schema.standalone import SkippedRow

PRE_NORM = ("speculators", "speculators_old_v1")
"""Dialects that always store the final state before the target's final norm."""
TOLD_ROWS = 5
"""Rows that a failure names at most."""


def no_usable_row(folder: Path, skipped: tuple[SkippedRow, ...]) -> JobFailure:
    """The failure of a folder in which no row can be used."""
    lines = tuple(f"{row.name}: {row.reason}" for row in skipped[:TOLD_ROWS])
    more = (f"and {len(skipped) - TOLD_ROWS} more",) if len(skipped) > TOLD_ROWS else ()
    return rows_failure(
        f"none of the {len(skipped)} rows can be used; the first, {lines[0]}",
        hint=f"look at the rows in: {folder}",
        details=lines + more,
    )


def check_norm(dialect: str | None, target: Path, *, known: bool) -> None:
    """Raise JobFailure(rows) where the final states need the target's final norm and it is not `known`."""
    if dialect in PRE_NORM and not known:
        raise rows_failure(
            f"{dialect} stores final states before the target's final norm, which was not found in: {target}",
            hint="give the whole folder of the target: what it would answer is computed through its norm",
        )


def check_fit(captured: int, slots: int, states: tuple[int, ...] | None, layers: int | None) -> None:
    """Raise JobFailure(rows) where the rows' captured states do not suit the drafter's fc or the job's labels."""
    if captured < slots:
        raise rows_failure(
            f"the drafter's fc joins {slots} states, the rows hold only: {captured}",
            hint="capture more states, or test the drafter these rows were captured for",
        )
    if states is None:
        return
    if len(states) != captured:
        raise rows_failure(
            f"`states` labels {len(states)} captured states ({', '.join(map(str, states))}), the rows hold: {captured}",
            hint="give one HF hidden_states index a captured state, in stored order; 0 = embedding output",
        )
    if layers is not None and max(states) > layers:
        raise rows_failure(
            f"`states` must be HF hidden_states indices 0..{layers} (the target's layers), found: {max(states)}"
        )
