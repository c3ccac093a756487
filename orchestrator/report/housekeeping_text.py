"""What `gc` would take away, or did, and why the rest stays. Pure."""

from collections.abc import Sequence
from typing import Any

from orchestrator.report.lines import wrapped
from orchestrator.report.moments import moment
from orchestrator.report.table import listed
from orchestrator.report.words import size, some_of
from remote_payload.schema.housekeeping import GcItem, GcTotals

SHOWN = 3
"""Names of one reason to stay; `--json` has all."""
PLURALS = {"run": "runs", "sweep": "sweeps", "group": "groups", "payload": "payloads", "leftover": "leftovers"}


def gc_text(host: str, items: Sequence[GcItem], totals: GcTotals, *, applied: bool, width: int) -> str:
    """The root, what goes a line each, what stays a line a reason."""
    going = [item for item in items if item.goes]
    free = f"; free {'now' if applied else 'there'}: {size(totals.disk_free_bytes)}"
    takes = f"{host}: {totals.root} takes {size(totals.before_bytes)} on its disk: {_counts(items)}"
    lines = wrapped(takes if totals.disk_free_bytes is None else takes + free, width)
    done = [item for item in going if item.removed or not applied]
    if not going:
        lines.append("nothing would go" if not applied else "nothing went")
    if done:
        freed = size(sum(item.frees_bytes for item in done))
        lines += [f"gone, {freed}:" if applied else f"would go, {freed} (--apply takes it away):", *_rows(done, width)]
    left = [item for item in going if item not in done]
    if left:
        lines.append("could not be taken away whole; the next `gc` tries again:")
        lines += [line for item in left for line in wrapped(f"{item.kind} {item.name}: {item.detail}", width, "  ")]
    staying = [item for item in items if not item.goes]
    if staying:
        lines += ["stays:", *_reasons(staying, width)]
    return "\n".join(lines)


def gc_json(host: str, items: Sequence[GcItem], totals: GcTotals, *, applied: bool) -> dict[str, Any]:
    """The same as values."""
    rows = [dict(item.__dict__) for item in items]
    return {"host": host, "applied": applied, **totals.__dict__, "items": rows}


def _rows(items: Sequence[GcItem], width: int) -> list[str]:
    head = ["what", "name", "ended (UTC)", "frees", "why"]
    cells = [
        [_kind(item), item.name, moment(item.ended_unix_s, zone="", unknown="-"), size(item.frees_bytes), item.reason]
        for item in items
    ]
    return listed([head, *cells], width)


def _kind(item: GcItem) -> str:
    if item.kind == "run" and item.runs > 1:
        return f"diagnosis of {item.runs} runs"
    return f"sweep of {item.runs - 1} units" if item.kind == "sweep" else item.kind


def _reasons(items: Sequence[GcItem], width: int) -> list[str]:
    """Everybody of one reason together, the largest first."""
    groups: dict[str, list[GcItem]] = {}
    for item in items:
        groups.setdefault(item.reason, []).append(item)
    lines = []
    for reason, group in sorted(groups.items(), key=lambda pair: -sum(item.size_bytes for item in pair[1])):
        names = some_of([_named(item) for item in group], SHOWN)
        taken = size(sum(item.size_bytes for item in group))
        lines += wrapped(f"{_counts(group)}, {taken}: {reason}: {names}", width, "  ")
    return lines


def _named(item: GcItem) -> str:
    name = f"{item.name[:12]}..." if item.kind == "payload" else item.name
    return f"{name} ({item.detail})" if item.detail else name


def _counts(items: Sequence[GcItem]) -> str:
    counts = {kind: sum(item.kind == kind for item in items) for kind in PLURALS}
    words = [f"{count} {kind if count == 1 else PLURALS[kind]}" for kind, count in counts.items() if count]
    return ", ".join(words) or "nothing"
