"""Grid, zip and points to combinations: every one is a point or skipped with its reason; nothing is lost or twice."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import JobFileError
from orchestrator.sweep.file import from_table, read
from orchestrator.sweep.plan import Circumstances, changed_paths, plan, starts_of
from orchestrator.sweep.points import Expanded, in_words
from orchestrator.sweeping import planning
from remote_payload.schema import BenchJob, PathIdentity

BENCH = {"job": "bench", "base": {"model": "/m", "draft": "/d"}}


def expanded(table: dict[str, Any]) -> Expanded:
    return planning.wanted(from_table(table, "s.toml"), {}, Config(), "gpu1").expanded


def words(found: Expanded) -> list[str]:
    return [in_words(point.changes) for point in found.points]


def test_the_bundled_sweep_skips_what_cannot_be_and_measures_nothing_twice() -> None:
    file = read(jobfile.bundled_folder() / "sweep.toml")
    found = planning.wanted(file, {"model": "/m", "draft": "/d"}, Config(), "gpu1").expanded
    assert (len(found.points), len(found.skipped)) == (33, 18)
    plain = [point for point in found.points if point.is_baseline]
    assert [point.changes["concurrency"] for point in plain] == [1, 4, 16]
    assert not any(isinstance(point.job, BenchJob) and point.job.speculates for point in plain)
    reasons = {one.reason for one in found.skipped}
    assert any("at most 5; the server would die of it" in reason for reason in reasons)
    assert "the same as num_steps 1, eagle_topk 1, num_draft_tokens 2" in reasons


def test_zip_goes_side_by_side_and_points_stand_alone() -> None:
    table = {
        **BENCH,
        "baseline": False,
        "zip": {"num_steps": [1, 2], "num_draft_tokens": [2, 3]},
        "grid": {"concurrency": [1, 8]},
        "points": [{"num_steps": 5, "request_rate": 0.5}],
    }
    assert words(expanded({**table, "base": {**BENCH["base"], "eagle_topk": 1}})) == [
        "num_steps 1, num_draft_tokens 2, concurrency 1",
        "num_steps 1, num_draft_tokens 2, concurrency 8",
        "num_steps 2, num_draft_tokens 3, concurrency 1",
        "num_steps 2, num_draft_tokens 3, concurrency 8",
        "num_steps 5, request_rate 0.5",
    ]


def test_a_constraint_skips_with_its_reason() -> None:
    limits = [{"require": "num_steps * concurrency <= 4", "because": "no memory for more"}]
    found = expanded({**BENCH, "grid": {"num_steps": [1, 4], "concurrency": [1, 4]}, "constraints": limits})
    assert [one.reason for one in found.skipped] == [
        "no memory for more (`num_steps * concurrency <= 4` does not hold)"
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"job": "bench"}, "a sweep needs [sweep.grid], [sweep.zip] or [[sweep.points]]"),
        ({**BENCH, "grid": {"num_stps": [1]}}, "unknown key `num_stps` (did you mean `num_steps`?)"),
        ({**BENCH, "grid": {"num_steps": ["two"]}}, "`num_steps`: expected int, found: 'two'"),
        ({**BENCH, "grid": {"num_steps": []}}, "`sweep.grid.num_steps` must be a list of values"),
        ({**BENCH, "gird": {}}, "unknown key `gird` (did you mean `grid`?)"),
        ({**BENCH, "zip": {"num_steps": [1], "tp": [1, 2]}}, "must be equally long, found: num_steps: 1, tp: 2"),
        ({**BENCH, "blocks": "abba", "grid": {"tp": [1]}}, "`sweep.blocks` must be one of abab, random"),
        ({**BENCH, "repeats": 0, "grid": {"tp": [1]}}, "`sweep.repeats` must be a whole number, 1 to 1000, found: 0"),
        ({**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "tp +"}]}, "not an expression"),
        ({**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "tpp == 1"}]}, "`tpp` in `tpp == 1` is no setting"),
        (
            {**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "port > 1"}]},
            "cannot be worked out with port = N",
        ),
        ({**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "open('x')"}]}, "expressions have numbers"),
        ({**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "model.x"}]}, "expressions have numbers"),
        ({"job": "bench", "base": {}, "grid": {"tp": [1]}}, "`--model` must name the target"),
        (
            {**BENCH, "grid": {"eagle_topk": [0]}},
            "every combination is skipped; the first because `eagle_topk` must be",
        ),
        ({"job": "selftest", "baseline": True, "grid": {"fail": [True]}}, "only bench has one"),
        (
            {"job": "bench", "base": {"attach_url": "http://h:1"}, "baseline": False, "grid": {"tp": [1, 2]}},
            "a server that is attached to stays as it was started: `tp` cannot be varied",
        ),
        (
            {"job": "bench", "base": {**BENCH["base"], "with_baseline": True}, "grid": {"tp": [1]}},
            "a sweep measures plain decoding as points of its own",
        ),
        (
            {**BENCH, "grid": {"num_steps": [1]}, "points": [{"attach_url": "http://h:1"}]},
            "a server that is attached to stays as it was started: `sweep.baseline` must be false",
        ),
        (
            {**BENCH, "baseline": False, "points": [{"attach_url": "http://h:1", "num_steps": 2}]},
            "a server that is attached to stays as it was started: `num_steps` cannot be varied",
        ),
        (
            {**BENCH, "grid": {"request_rate": [50.0]}, "derive": [{"set": "concurrency", "to": "4"}]},
            "a point has one load, request_rate 50.0, concurrency 4 has both",
        ),
        (
            {**BENCH, "grid": {"tp": [1]}, "constraints": [{"require": "-" * 399 + "1"}]},
            "an expression of at most 50 levels",
        ),
        (
            {**BENCH, "grid": {"server_args": [["--api-key", "abc"]]}},
            "would be written into the run's files",
        ),
    ],
)
def test_mistakes_are_named(table: dict[str, Any], expected: str) -> None:
    with pytest.raises(JobFileError) as caught:
        expanded(table)
    assert expected in caught.value.message


def test_a_chain_has_one_number_of_draft_tokens_whatever_is_asked() -> None:
    """A server at topk 1 drafts `num_steps + 1`: the same server is not measured under several names."""
    grid = {"num_steps": [1, 2], "eagle_topk": [1, 4], "num_draft_tokens": [2, 5, 6, 20, 21, 22, 64]}
    found = expanded({**BENCH, "baseline": False, "grid": grid})
    chains = [point.changes for point in found.points if point.changes["eagle_topk"] == 1]
    assert [(one["num_steps"], one["num_draft_tokens"]) for one in chains] == [(1, 2), (2, 3)]
    assert "the same as num_steps 2, eagle_topk 1, num_draft_tokens 3" in {one.reason for one in found.skipped}
    other = expanded({"job": "bench", "base": {**BENCH["base"], "algorithm": "NGRAM"}, "baseline": False, "grid": grid})
    assert len([point for point in other.points if point.changes["eagle_topk"] == 1]) == 14
    twice = expanded({**BENCH, "grid": {"num_steps": [1], "concurrency": [4, 4]}})
    assert [one.reason for one in twice.skipped] == ["the file has it more than once at concurrency 4"]


def test_a_slash_at_the_end_makes_no_other_model() -> None:
    found = expanded({**BENCH, "baseline": False, "grid": {"draft": ["~/d", "~/d/"], "num_steps": [1]}})
    assert words(found) == ["draft ~/d, num_steps 1, concurrency 1"]
    file = from_table({"job": "bench", "base": {"model": "~/m/", "draft": "/"}, "grid": {"num_steps": [1]}}, "s")
    base = planning.wanted(file, {}, Config(), "gpu1").base
    assert isinstance(base, BenchJob)
    assert (base.model, base.draft) == ("~/m", "/")


def test_the_number_of_combinations_is_known_before_they_are_made() -> None:
    hundred = list(range(1, 101))
    with pytest.raises(JobFileError, match="at most 100000 combinations, found: 1000000 or more"):
        expanded({**BENCH, "grid": {"num_steps": hundred, "num_draft_tokens": hundred, "max_prompts": hundred}})


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ({"derive": [{"set": "num_draft_tokens", "to": "num_steps / 2"}]}, "`//` a whole one"),
        ({"constraints": [{"require": "eagle_topk == 1 -> num_steps == 2"}]}, 'require = "eagle_topk != 1 or'),
    ],
)
def test_what_was_probably_meant_is_told(table: dict[str, Any], hint: str) -> None:
    with pytest.raises(JobFileError) as caught:
        expanded({**BENCH, "grid": {"num_steps": [2]}, **table})
    assert hint in (caught.value.hint or "")


def test_the_cheapest_start_drafts_least() -> None:
    file = from_table({**BENCH, "base": {**BENCH["base"], "eagle_topk": 1}, "grid": {"num_steps": [5, 1, 3]}}, "s.toml")
    points = planning.wanted(file, {}, Config(), "gpu1").expanded.points
    steps = [start.points[0].changes.get("num_steps") for start in starts_of(file, points)]
    assert steps == [None, 1, 3, 5]


def test_a_file_has_one_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('kind = "bench"\n', encoding="utf-8")
    with pytest.raises(JobFileError, match=r"expected one table, \[sweep\].*found: `kind`"):
        read(path)


SMALL = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(steps=SMALL, topk=SMALL, tokens=SMALL, users=SMALL, limit=st.integers(1, 12), derived=st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_combination_is_a_point_or_skipped_and_none_is_twice(
    steps: list[int], topk: list[int], tokens: list[int], users: list[int], limit: int, derived: bool
) -> None:
    grid = {"num_steps": steps, "eagle_topk": topk, "num_draft_tokens": tokens, "concurrency": users}
    table: dict[str, Any] = {**BENCH, "grid": grid, "constraints": [{"require": f"num_draft_tokens <= {limit}"}]}
    if derived:
        table["derive"] = [{"set": "num_draft_tokens", "to": "num_steps + 1", "when": "eagle_topk == 1"}]
    all_of_them = list(itertools.product(steps, topk, tokens, users))
    possible = set()  # by a plain reading of the same rules
    for s, k, n, u in all_of_them:
        settled = s + 1 if k == 1 else n
        if settled <= limit and (k == 1 or settled - 1 <= k + (s - 1) * k * k):
            possible.add((s, k, settled, u))
    if not possible:
        with pytest.raises(JobFileError, match="every combination is skipped"):
            expanded(table)
        return
    found = expanded(table)
    spec = [point.changes for point in found.points if not point.is_baseline]
    told = [(one["num_steps"], one["eagle_topk"], one["num_draft_tokens"], one["concurrency"]) for one in spec]
    assert len(told) == len(possible)
    assert set(told) == possible
    assert len(told) + len(found.skipped) == len(all_of_them)
    assert [point.changes["concurrency"] for point in found.points if point.is_baseline] == list(
        dict.fromkeys(one["concurrency"] for one in spec)
    )


def test_a_path_that_leads_elsewhere_now() -> None:
    then = [PathIdentity(path="/m", digest="a"), PathIdentity(path="/d", digest="b")]
    now = [
        PathIdentity(path="/m", digest="c"),
        PathIdentity(path="/d", digest="b"),
        PathIdentity(path="/x", digest="d"),
    ]
    assert changed_paths(then, now) == ("/m",)


def test_too_many_starts_are_a_mistake_of_the_file_and_said_before_they_are_made() -> None:
    table = {"job": "selftest", "repeats": 1000, "grid": {"result_bytes": list(range(1, 102))}}
    wanted = planning.wanted(from_table(table, "s.toml"), {}, Config(), "gpu1")
    with pytest.raises(JobFileError, match=r"at most 100000 starts, found: 101000, 101 configurations in 1000 blocks"):
        plan(wanted.file, wanted.base, wanted.expanded, Circumstances(payload_sha256=""))


def test_an_algorithm_by_another_name_is_the_same_server() -> None:
    served = {"eagle_topk": 1, "num_draft_tokens": 9, "concurrency": 1}
    names = ["EAGLE3", "eagle3", "NEXTN", "EAGLE", "nextn", "NGRAM"]
    found = expanded({**BENCH, "points": [{"num_steps": 3, "algorithm": name, **served} for name in names]})
    kept = [point.changes for point in found.points if not point.is_baseline]
    tokens = [(one["algorithm"], one["num_draft_tokens"]) for one in kept]
    assert tokens == [("EAGLE3", 4), ("EAGLE", 4), ("NGRAM", 9)]
    twins = [one.reason for one in found.skipped]
    assert twins == [
        f"the same as num_steps 3, algorithm {name}, eagle_topk 1, num_draft_tokens 4"
        for name in ("EAGLE3", "EAGLE", "EAGLE")
    ]
    base = {**BENCH["base"], "algorithm": "eagle3", **served, "concurrency": [1]}  # type: ignore[dict-item]
    both = expanded(
        {"job": "bench", "base": base, "points": [{"num_steps": 3}, {"num_steps": 3, "algorithm": "EAGLE3"}]}
    )
    assert [point.changes for point in both.points if not point.is_baseline] == [
        {"num_steps": 3, "num_draft_tokens": 4, "concurrency": 1}
    ]
