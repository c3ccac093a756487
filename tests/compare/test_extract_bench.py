import dataclasses

from orchestrator.compare.extract_bench import bench_measurements
from orchestrator.compare.served import served_figures
from orchestrator.diagnosis.validity import judge_loads
from orchestrator.records.measurement import Measurement
from remote_payload.schema.bench import BenchResult, RequestSample
from tests.support.made_bench import made_paired


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
