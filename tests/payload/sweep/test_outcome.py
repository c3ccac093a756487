"""What an adopted start measured of a unit's points, by the order that the ledger of its own sweep has them in."""

import json

from remote_payload.rundir import RunDir
from remote_payload.schema import BenchJob, PointOutcome, RunState, SweepAttempt, SweepUnit, to_json
from remote_payload.sweep.outcome import ends_of_adopted
from tests.payload.rig import Rig


def adopted(rig: Rig) -> RunDir:
    """`s1.u0.0` was for three loads: it finished the first, and failed under the second."""
    sweep, run = rig.run("s1"), rig.run("s1.u0.0")
    for one in (sweep, run):
        one.result.mkdir(parents=True)
    began = SweepAttempt(
        unit_id="u0",
        attempt=0,
        run_id="s1.u0.0",
        block=0,
        phase="starting",
        points=tuple(PointOutcome(point_id=name, end="not_reached") for name in ("one", "two", "four")),
        started_unix_s=1.0,
    )
    (sweep.result / "units.jsonl").write_text(to_json(began) + "\n")
    job = BenchJob(model="/m", draft="/d", concurrency=(1, 2, 4))
    run.spec.write_text(to_json(rig.spec("s1.u0.0", job_kind="bench", job_json=to_json(job))))
    event = {"time_unix_s": 1.0, "kind": "phase", "name": "warm-up", "message": "1 request"}
    run.events.write_text(f"{json.dumps(event)}\n" * 2)
    (run.result / "bench.json").write_text('{"points": [{}], "harness": []}')
    return run


def ends(*points: str, run: RunDir, phase: str) -> list[str]:
    unit = SweepUnit(unit_id="u0", block=0, changes_json="{}", points=points, adopt="s1.u0.0")
    state = RunState(run_id="s1.u0.0", sequence=3, phase=phase)  # type: ignore[arg-type]
    found: tuple[PointOutcome, ...] = ends_of_adopted(unit, state, run)
    assert tuple(one.point_id for one in found) == points
    return [one.end for one in found]


def test_the_loads_that_an_adopted_start_measured_count(rig: Rig) -> None:
    run = adopted(rig)
    assert ends("one", "two", "four", run=run, phase="failed") == ["measured", "failed", "not_reached"]
    assert ends("one", "two", "four", run=run, phase="lost") == ["measured", "failed", "not_reached"]
    assert ends("two", "eight", run=run, phase="succeeded") == ["measured", "not_reached"]  # it was for no `eight`
    assert ends("one", "two", run=run, phase="cancelled") == ["measured", "cancelled"]


def test_of_an_adopted_start_without_its_spec_nothing_is_said_to_be_measured(rig: Rig) -> None:
    run = adopted(rig)
    run.spec.unlink()
    assert ends("one", "two", run=run, phase="failed") == ["not_reached", "not_reached"]
