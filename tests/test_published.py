"""Published numbers: all of them, with a source each, never as if they were ours."""

import pytest

from orchestrator.errors import NotFoundError
from orchestrator.published import published_points, published_set


def test_every_point_has_a_source_a_name_of_its_own_and_possible_figures() -> None:
    points = published_points()
    bundle = [point for point in points if point.name.startswith("specbundle/")]
    assert len(bundle) == 440
    assert len({point.name for point in points}) == len(points) > 500
    for point in points:
        assert point.source
        assert point.tool
        assert point.counted in ("pooled", "per_verify", "unknown")
        assert point.accept_length is not None or point.output_tok_s is not None
        if point.accept_length is not None and point.num_steps is not None:
            assert 1 <= point.accept_length <= int(point.num_steps) + 1, point.name


def test_the_plain_sides_that_cannot_be_right_are_marked() -> None:
    suspicious = [point for point in published_points() if point.name.startswith("specbundle/") and point.is_suspicious]
    assert len(suspicious) == 25
    assert {point.target for point in suspicious} == {"Llama-4-Scout-17B-16E-Instruct"}
    (spec, plain) = published_set(suspicious[0].name).measurements
    assert "the published plain side is suspicious" in spec.warnings[0]
    assert plain.warnings == spec.warnings


def test_a_point_is_a_case_of_each_side_at_summary_level() -> None:
    found = published_set("specbundle/kimi-k2-instruct/3-1-4/math500")
    assert (found.origin, found.run_id) == ("published", "published:specbundle/kimi-k2-instruct/3-1-4/math500")
    spec, plain = found.measurements
    assert [(fact.name, fact.value) for fact in spec.case] == [("side", "spec"), ("concurrency", "8")]
    assert {item.metric: item.y for item in spec.series} == {
        "accept_length_per_verify": (3.468,),
        "output_throughput_tok_s": (877.2,),
        "speedup": (877.2 / 492.1,),
    }
    assert {item.level for item in spec.series} == {"summary"}
    assert [item.y for item in plain.series] == [(492.1,)]
    assert {fact.name: fact.value for fact in spec.hard}["gpu"] is None
    assert any("GPU" in words for words in found.unknown)


def test_the_beginning_of_a_name_means_all_below_it_told_apart_by_what_varies() -> None:
    found = published_set("specbundle/kimi-k2-instruct")
    spec = [one for one in found.measurements if one.case[0].value == "spec"]
    assert len(spec) == 35
    assert [fact.name for fact in spec[0].case] == [
        "side", "concurrency", "dataset", "num_steps", "eagle_topk", "num_draft_tokens",
    ]  # fmt: skip
    assert len(found.measurements) == 35 + 7  # a plain side a dataset
    assert len(published_set("specbundle").measurements) > 440


def test_points_of_model_cards_tell_how_they_were_counted_or_that_nobody_does() -> None:
    card = published_set("cards/kimi-k2.5-eagle3/phase-2/3-1-4/mtbench").measurements[0].series
    assert [(item.metric, item.y, item.n) for item in card] == [("accept_length_per_verify", (2.687,), 80)]
    other = published_set("cards/kimi-k2.5-eagle3-mla/3-1-4/mtbench").measurements[0].series
    assert "does not tell" in other[0].definition
    curve = published_set("inferencex/kimi-k2.5-eagle3-mla/thinking")
    assert [one.series[0].y[0] for one in curve.measurements] == [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77]


@pytest.mark.parametrize("name", ["", "/", "specbundle/kimi-k2", "specbundle/", "../x", "SPECBUNDLE"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(NotFoundError, match="no published number of that name") as failure:
        published_set(name)
    assert failure.value.hint
