"""Tables of a sweep over several hosts: every figure beside its own host's plain decoding, classes apart."""

import dataclasses
import json
import re

import pytest

from orchestrator.config import Config
from orchestrator.records.measurement import MeasurementSet
from orchestrator.report.sweep_group import group_json, group_text, report_json, report_text
from orchestrator.sweep.class_tables import ClassTable, class_tables
from orchestrator.sweep.file import from_table
from orchestrator.sweep.group import Part
from orchestrator.sweep.plan import Circumstances, plan
from orchestrator.sweep.points import Expanded
from orchestrator.sweep.shares import split
from orchestrator.sweep.standing import progress_of
from orchestrator.sweeping import planning
from remote_payload.schema import BenchJob, PathIdentity, job_of_unit
from remote_payload.schema.sweep import PathContent
from tests.sweep.test_table import FILE, SPEED, attempt, measurement

HOSTS = {"a": ("2 x H200", 1.0), "b": ("2 x H200", 0.5), "c": ("1 x A100", 0.25)}
"""By name: the class, and how fast it is beside the first."""


def night() -> tuple[list[Part], dict[str, MeasurementSet]]:
    """Three hosts that measured all they were given; on b one start failed."""
    file = from_table(FILE, "s.toml")
    wanted = planning.wanted(file, {}, Config(), "a")
    parts, sets = [], {}
    shares = split(file, wanted.expanded.points, len(HOSTS))
    for number, ((host, (kind, pace)), points) in enumerate(zip(HOSTS.items(), shares, strict=True), start=1):
        around = Circumstances(payload_sha256=host)
        job = plan(file, wanted.base, Expanded(points=points, skipped=()), around)
        attempts = []
        for at, unit in enumerate(job.units):
            run_id = f"night.h{number}.{unit.unit_id}.0"
            asked = job_of_unit(job, unit)
            assert isinstance(asked, BenchJob)
            end = "failed" if (host, at) == ("b", 1) else "measured"
            attempts.append(attempt(unit, run_id, end))
            luck = pace * (1 + 0.001 * ((at * 7) % 5 - 2))
            found = tuple(measurement(asked, users, run_id, luck) for users in asked.concurrency)
            if end == "measured":
                sets[run_id] = MeasurementSet(
                    run_id=run_id, origin="own", tool="t", job_kind="bench", measurements=found
                )
        part = Part(
            share_id=f"night.h{number}",
            number=number,
            host=host,
            host_class=kind,
            job=job,
            progress=progress_of(job, attempts, "succeeded"),
        )
        parts.append(part)
    return parts, sets


def gains(classes: tuple[ClassTable, ...]) -> dict[tuple[str, int, int], float]:
    """The change against plain decoding by host, steps and users."""
    found = {}
    for table in (table for one in classes for table in one.tables):
        for row in table.rows:
            changes = json.loads(row.point.changes_json)
            if row.against_plain is not None and row.against_plain.change.value is not None:
                found[table.host, changes["num_steps"], changes["concurrency"]] = row.against_plain.change.value
    return found


def test_a_speed_up_is_that_of_its_own_host() -> None:
    parts, sets = night()
    classes = class_tables("night", parts, sets)
    assert [(one.host_class, [table.host for table in one.tables]) for one in classes] == [
        ("2 x H200", ["a", "b"]),
        ("1 x A100", ["c"]),
    ]
    found = gains(classes)
    assert len(found) == 10  # five numbers of steps at two loads, each on one host
    for (_, steps, _), change in found.items():  # however slow the host is
        assert change == pytest.approx(SPEED[steps] / SPEED[None] - 1, abs=0.01)


def test_verdicts_are_corrected_within_a_class() -> None:
    parts, sets = night()
    alone = class_tables("night", parts[:1], sets)[0].tables[0]
    first = class_tables("night", parts, sets)[0]
    corrected = [row.against_plain for table in first.tables for row in table.rows if row.against_plain is not None]
    assert {one.correction for one in corrected if one.p_adjusted is not None} == {"Benjamini-Hochberg"}
    # Of more comparisons the same p is adjusted otherwise than of one host's alone.
    mine = {row.point.point_id: row.against_plain.p_adjusted for row in alone.rows if row.against_plain is not None}
    beside = {
        row.point.point_id: row.against_plain.p_adjusted
        for row in first.tables[0].rows
        if row.against_plain is not None
    }
    assert mine.keys() == beside.keys()
    assert mine != beside


def test_the_report_has_a_table_a_class_with_its_hosts() -> None:
    parts, sets = night()
    classes = class_tables("night", parts, sets)
    text = report_text("night", parts, classes, (), 140)
    assert text.splitlines()[0] == "night over 3 hosts: over"
    heads = [line for line in text.splitlines() if line.startswith(("2 x H200", "1 x A100"))]
    assert heads == ["2 x H200: a, b", "1 x A100: c"]
    assert re.search(r"plain decoding, concurrency 1 +a +3 of 3 ", text)
    assert re.search(r"plain decoding, concurrency 1 +b +3 of 3 ", text)
    assert "Not measured on b:" in text
    assert "figures of two classes, models or versions say nothing about each other" in " ".join(text.split())
    values = report_json("night", parts, classes, ())
    assert [[table["host"] for table in one["tables"]] for one in values["classes"]] == [["a", "b"], ["c"]]
    assert (values["counts"]["measured"], values["counts"]["failed"]) == (values["planned"] - 2, 2)
    json.dumps(values)


def test_a_silent_a_dead_and_a_never_launched_host_are_told_apart() -> None:
    parts, _ = night()
    begun = progress_of(parts[0].job, (), "running")
    silent = dataclasses.replace(parts[0], progress=begun, problem="no answer within 4 s", told_unix_s=0.0)
    dead = dataclasses.replace(parts[1], problem="no route", is_dead=True)
    never = dataclasses.replace(parts[2], progress=progress_of(parts[2].job, (), "never launched"), launched=False)
    text = group_text("night", [silent, dead, never], ("share 4 of 4, launched on `d`: none has it",), 140)
    assert text.startswith("night over 3 hosts: going on\n")
    assert "  a does not answer, night.h1 as it was told last, 1970-01-01 00:00:00 UTC: no answer within 4 s\n" in text
    assert "  b is said to be dead, night.h2 as it was launched, never told since: no route\n" in text
    assert "  night.h3 was never launched on c\n" in text
    assert "  share 4 of 4, launched on `d`: none has it\n" in text
    recalled = dataclasses.replace(silent, problem=None, is_recalled=True)
    told = "night.h1 on a as it was told last, 1970-01-01 00:00:00 UTC; `eagle3-remote sweep status night` asks anew"
    assert told in " ".join(group_text("night", [recalled], (), 140).split())
    over = dataclasses.replace(recalled, progress=parts[0].progress)
    assert "told last" not in group_text("night", [over], (), 140)  # nothing more comes of it
    values = group_json("night", [silent, dead, never], ())
    assert [one["told_unix_s"] for one in values["shares"]] == [0.0, None, None]
    assert [(one["problem"], one["dead"], one["launched"]) for one in values["shares"]] == [
        ("no answer within 4 s", False, True),
        ("no route", True, True),
        (None, False, False),
    ]
    assert values["counts"]["not run"] == len(never.progress.standings)


def test_hosts_of_a_class_with_other_models_get_a_table_each() -> None:
    def holding(part: Part, weights: str | None) -> Part:
        content = None if weights is None else PathContent(digest=weights)
        one = PathIdentity(path="~/drafter", digest=part.host, content=content)
        return dataclasses.replace(part, job=dataclasses.replace(part.job, identity=(one,)))

    parts, sets = night()
    mixed = [holding(part, weights) for part, weights in zip(parts, ("v1", "v2", "v2"), strict=True)]
    classes = class_tables("night", mixed, sets)
    assert [[table.host for table in one.tables] for one in classes] == [["a"], ["b"], ["c"]]
    text = report_text("night", mixed, classes, (), 120)
    assert text.count("OTHER MODELS") == 1  # c is another class and says so already
    assert "2 x H200: b\n  OTHER MODELS: ~/drafter on b is another than on a\n" in text
    told = report_json("night", mixed, classes, ())["classes"]
    assert [one["other_models"] for one in told] == [[], ["~/drafter on b is another than on a"], []]
    silent = class_tables("night", [holding(part, None) for part in parts], sets)
    assert [[table.host for table in one.tables] for one in silent] == [["a", "b"], ["c"]]
    unknown = "nobody can tell whether ~/drafter is the same on these hosts: its content is unknown on a, b"
    assert report_json("night", parts, silent, ())["classes"][0]["unknown_models"] == [unknown]


def test_hosts_of_a_class_with_other_versions_get_a_table_each() -> None:
    def with_versions(*versions: dict[str, str]) -> list[Part]:
        return [
            dataclasses.replace(part, job=dataclasses.replace(part.job, installed=told))
            for part, told in zip(parts, versions, strict=True)
        ]

    parts, sets = night()
    older, newer = {"sglang": "0.5.9", "python": "3.11.2"}, {"sglang": "0.5.10", "torch": "2.9", "python": "3.11.2"}
    mixed = with_versions(older, newer, newer)
    classes = class_tables("night", mixed, sets)
    assert [[table.host for table in one.tables] for one in classes] == [["a"], ["b"], ["c"]]
    told = ["sglang is 0.5.10 on b, and 0.5.9 on a", "torch is 2.9 on b, and not installed on a"]
    assert [one["other_software"] for one in report_json("night", mixed, classes, ())["classes"]] == [[], told, []]
    text = report_text("night", mixed, classes, (), 120)
    assert f"2 x H200: b\n  OTHER SOFTWARE: {told[0]}\n  OTHER SOFTWARE: {told[1]}\n" in text
    for versions in ((older, {}, {}), ({}, older, {}), (older, {**older, "python": "3.11.9"}, {})):
        alike = class_tables("night", with_versions(*versions), sets)
        assert [[table.host for table in one.tables] for one in alike] == [["a", "b"], ["c"]]
