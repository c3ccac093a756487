import dataclasses

import pytest

from orchestrator.compare.extract_bench import bench_measurements
from orchestrator.compare.fingerprint import circumstances
from orchestrator.compare.metrics import METRICS
from orchestrator.compare.served import served_figures
from orchestrator.compare.statistics import compare_series
from orchestrator.diagnosis.validity import judge_loads
from orchestrator.records.measurement import Measurement
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.folder import FolderFacts
from tests.support.made_bench import made_paired, made_server


def measured(made: tuple[BenchResult, tuple[RequestSample, ...]]) -> dict[str, Measurement]:
    """Its loads by side."""
    result, requests = made
    figures = served_figures(result, requests)
    found = bench_measurements("run", result, figures, judge_loads(result, requests, figures), more_soft={})
    return {item.case[0].value or "": item for item in found}


def test_a_load_whose_every_request_failed_is_there_as_no_measurement() -> None:
    result, requests = made_paired()
    spec = {point.point for point in result.points if point.side == "spec"}
    gone = tuple(dataclasses.replace(item, error="HTTP 500") if item.point in spec else item for item in requests)
    points = tuple(dataclasses.replace(one, failed=8) if one.point in spec else one for one in result.points)
    found = measured((dataclasses.replace(result, points=points), gone))
    assert set(found) == {"spec", "plain"}
    assert found["spec"].series == ()
    assert "24 of 24 requests failed" in found["spec"].invalid[0]
    assert found["plain"].invalid == ()
    unanswered = measured((result, tuple(item for item in requests if item.point not in spec)))
    assert unanswered["spec"].invalid == ("no request was answered",)


def test_prompts_of_the_same_content_are_one_sample() -> None:
    result, requests = made_paired()
    hashes = ("a", "b", "c", "d", "e", "f", "g", "g")
    told = dataclasses.replace(result, workload=dataclasses.replace(result.workload, prompt_sha256=hashes))
    length = next(item for item in measured((told, requests))["spec"].series if item.metric == "accept_length_pooled")
    assert (len(length.keys), length.clusters) == (8, hashes)
    found = compare_series(METRICS["accept_length_pooled"], length, dataclasses.replace(length, clusters=()))
    assert (found.pairs, found.method) == (
        7,
        "paired by distinct prompt or conversation, log ratio of sums, Student's t",
    )
    (spec, _), (each, _) = (served_figures(one, requests).loads for one in (told, result))
    assert spec.acceptance is not None
    assert each.acceptance is not None
    assert (spec.acceptance.accept_length.rows, each.acceptance.accept_length.rows) == (7, 8)
    turns = dataclasses.replace(result.workload, prompt_sha256=tuple("abcdefgh"), conversations=tuple("xxyyzzvw"))
    talked = dataclasses.replace(result, workload=turns)
    length = next(item for item in measured((talked, requests))["spec"].series if item.metric == "accept_length_pooled")
    assert compare_series(METRICS["accept_length_pooled"], length, length).pairs == 5
    of_talks = served_figures(talked, requests).loads[0].acceptance
    assert of_talks is not None
    assert of_talks.accept_length.rows == 5
    distinct = dataclasses.replace(result.workload, prompt_sha256=tuple("abcdefgh"))
    for workload in (distinct, result.workload):  # all distinct; an older record
        each = measured((dataclasses.replace(result, workload=workload), requests))["spec"]
        assert not any(item.clusters for item in each.series if item.level == "prompt")


def test_the_weights_at_a_path_are_what_must_be_alike() -> None:
    def run(draft: str, weights: str, config: str = "c") -> Measurement:
        result, requests = made_paired(
            servers=(made_server("spec", runs={"speculative_draft_model_path": draft}), made_server("plain"))
        )
        folder = FolderFacts(path=draft, weights_sha256=weights * 64, config_sha256=config * 64)
        return measured((dataclasses.replace(result, draft=folder), requests))["spec"]

    base = run("/srv/draft", "a")
    retrained = circumstances(run("/srv/draft", "b"), base)
    assert [(item.name, item.ours, item.theirs) for item in retrained.hard] == [("draft_weights", "b" * 12, "a" * 12)]
    assert circumstances(run("/srv/draft", "b"), base, ("draft",)).hard == ()
    copied = circumstances(run("/srv/copy", "a", "d"), base)
    assert (copied.hard, {item.name for item in copied.soft}) == ((), {"draft", "draft_config"})
    assert "target_weights" in copied.unknown


def test_a_depth_that_nothing_reached_is_told_as_nothing() -> None:
    made = measured(made_paired())["spec"]  # drafts of three, of which but the first is ever accepted: two counts come
    shares = {item.metric: sum(item.y) / sum(item.x) for item in made.series if item.metric.startswith("step")}
    assert shares == {"step1_acceptance": pytest.approx(0.9, abs=0.05), "step2_acceptance": 0.0}
