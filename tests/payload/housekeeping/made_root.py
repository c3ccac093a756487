"""A root with runs as they lie on a host's disk, written by hand: of any age, kind and state."""

import json
import os
from pathlib import Path
from typing import Any

from remote_payload.rundir import RunDir
from remote_payload.schema import RunSpec, RunState, SelftestJob, to_json
from remote_payload.schema.housekeeping import GcItem, GcRequest, GcRules, GcTotals, HomeGroup, HomeRun
from tests.payload.rig import NONCE, Rig, of_kind

DAY_S = 86400.0


class MadeRoot:
    def __init__(self, rig: Rig, now_s: float) -> None:
        self.rig, self.now_s = rig, now_s
        self.home: list[HomeRun] = []
        self.groups: tuple[HomeGroup, ...] = ()

    def run(
        self,
        run_id: str,
        *,
        age_days: float = 100.0,
        phase: str = "succeeded",
        job: dict[str, Any] | None = None,
        at_home: bool = True,
        size_bytes: int = 0,
        **spec: Any,
    ) -> RunDir:
        """One that ended so long ago, and that the laptop has."""
        run = RunDir(self.rig.root.resolve() / "runs" / run_id)
        run.result.mkdir(parents=True)
        job_json = to_json(SelftestJob()) if job is None else json.dumps(job)
        kind = "selftest" if job is None else job["kind"]
        asked: RunSpec = self.rig.spec(run_id, job_kind=kind, job_json=job_json, **spec)
        run.spec.write_text(to_json(asked))
        ended_s = None if phase in ("running", "queued") else self.now_s - age_days * DAY_S
        run.state.write_text(to_json(RunState(run_id=run_id, sequence=3, phase=phase, finished_unix_s=ended_s)))  # type: ignore[arg-type]
        run.claim.touch()
        run.manifest.write_text("{}")
        (run.result / "data").write_bytes(os.urandom(size_bytes))
        if at_home:
            self.home.append(HomeRun(run_id=run_id, created_unix_s=asked.created_unix_s, whole=True))
        return run

    def sweep(self, sweep_id: str, units: int, **changes: Any) -> None:
        """A sweep with its units."""
        job = {
            "kind": "sweep",
            "base_json": to_json(SelftestJob()),
            "units": [],
            "points": [],
            **changes.pop("job", {}),
        }
        self.run(sweep_id, job=job, **changes)
        for number in range(units):
            self.run(f"{sweep_id}.u{number:04d}.0", **changes)

    def request(self, *, apply: bool = False, **rules: Any) -> GcRequest:
        """What a laptop asks that has what `home` names."""
        root, home = str(self.rig.root), tuple(self.home)
        return GcRequest(nonce=NONCE, root=root, rules=GcRules(**rules), home=home, groups=self.groups, apply=apply)

    def gc(self, *, apply: bool = False, **asked: Any) -> tuple[dict[str, GcItem], GcTotals]:
        """By a process of its own; what it said of each, by name."""
        process = {name: asked.pop(name) for name in ("user", "extra_groups") if name in asked}
        frames = of_kind(self.rig.call("gc", self.request(apply=apply, **asked), **process), "gc")
        return {item.name: item for frame in frames for item in frame.items}, frames[-1].totals

    def names(self) -> set[str]:
        """What stands in `runs`."""
        return {path.name for path in (self.rig.root / "runs").iterdir()}


def going(items: dict[str, GcItem]) -> set[str]:
    return {name for name, item in items.items() if item.goes}


def allocated(path: Path) -> int:
    """As du(1) counts it."""
    found = [path, *path.rglob("*")]
    return sum(blocks for _, blocks in {(one.lstat().st_ino, one.lstat().st_blocks * 512) for one in found})
