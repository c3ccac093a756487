"""What `gc` says: what goes a line each, what stays a line a reason."""

import json
from typing import Any

from orchestrator.report.housekeeping_text import gc_json, gc_text
from remote_payload.schema.housekeeping import GcItem, GcTotals

MIB = 1 << 20
HOME = "not brought home by this laptop; --uncollected takes it all the same"


def item(name: str, **changes: Any) -> GcItem:
    values = {"kind": "run", "runs": 1, "size_bytes": MIB, "frees_bytes": MIB, "goes": False, "reason": "is not over"}
    return GcItem(**{"name": name, **values, **changes})


ITEMS = (
    item("night", kind="sweep", runs=41, ended_unix_s=1_790_000_000.0, goes=True, reason="ended too long ago"),
    item("r1", ended_unix_s=1_790_000_100.0, goes=True, reason="ended too long ago", size_bytes=2 * MIB),
    item("r2", detail="running"),
    *(item(f"other-{number}", size_bytes=5 * MIB, reason=HOME) for number in range(5)),
    item("ab" * 32, kind="payload", runs=0, reason="is needed", detail="run r2", size_bytes=300_000),
)
TOTALS = GcTotals(root="/home/me/.eagle3-remote", before_bytes=40 * MIB, removed_bytes=0, disk_free_bytes=1 << 40)


def test_a_dry_run() -> None:
    assert gc_text("gpu1", ITEMS, TOTALS, applied=False, width=110) == (
        "gpu1: /home/me/.eagle3-remote takes 40.0 MiB on its disk: 7 runs, 1 sweep, 1 payload; free there: 1.0 TiB\n"
        "would go, 2.0 MiB (--apply takes it away):\n"
        "  what               name   ended (UTC)          frees    why\n"
        "  sweep of 40 units  night  2026-09-21 14:13:20  1.0 MiB  ended too long ago\n"
        "  run                r1     2026-09-21 14:15:00  1.0 MiB  ended too long ago\n"
        "stays:\n"
        f"  5 runs, 25.0 MiB: {HOME}: other-0, other-1,\n"
        "  other-2 and 2 more\n"
        "  1 run, 1.0 MiB: is not over: r2 (running)\n"
        "  1 payload, 293.0 KiB: is needed: abababababab... (run r2)"
    )


def test_what_went_and_what_could_not() -> None:
    stuck = item("r9", goes=True, reason="ended too long ago", detail="Operation not permitted: file, in /r/r9")
    gone = item("r1", goes=True, removed=True, reason="ended too long ago")
    assert gc_text("gpu1", (gone, stuck), TOTALS, applied=True, width=110).splitlines()[1:] == [
        "gone, 1.0 MiB:",
        "  what  name  ended (UTC)  frees    why",
        "  run   r1    -            1.0 MiB  ended too long ago",
        "could not be taken away whole; the next `gc` tries again:",
        "  run r9: Operation not permitted: file, in /r/r9",
    ]


def test_nothing_to_take() -> None:
    assert gc_text("gpu1", (), TOTALS, applied=False, width=110).splitlines()[1:] == ["nothing would go"]


def test_as_values() -> None:
    told = json.loads(json.dumps(gc_json("gpu1", ITEMS, TOTALS, applied=False)))
    assert (told["host"], told["applied"], told["before_bytes"], len(told["items"])) == ("gpu1", False, 40 * MIB, 9)
    assert told["items"][0]["runs"] == 41
