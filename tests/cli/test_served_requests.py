"""`runs show --max-new-tokens 64 --json` against what a real SGLang counted, request by request."""

import gzip
import json
from pathlib import Path

import pytest

from orchestrator.store import Store
from remote_payload.schema import ReadingFacts, ReadingHits, RowFacts
from remote_payload.schema.record import from_value
from tests.cli.conftest import Eagle
from tests.support.made_results import made_declared, made_result
from tests.support.made_runs import made_run, put_standalone

GOLDEN = Path(__file__).parents[1] / "golden" / "walk"


@pytest.mark.parametrize("label", ["embed_right_heldout", "embed_story_wrong_train"])
def test_every_request_is_the_servers(store: Store, eagle: Eagle, label: str) -> None:
    golden = json.loads(gzip.decompress((GOLDEN / f"{label}.json.gz").read_bytes()))
    rows = tuple(from_value(RowFacts, case["row"]) for case in golden["cases"])
    hits = tuple(from_value(ReadingHits, case["hits"]) for case in golden["cases"])
    put_run(store, rows, hits)
    (reading,) = eagle("runs", "show", "run-a1", "--max-new-tokens", "64", "--json").json["readings"]
    assert reading["max_new_tokens"] == 64
    assert [item["row"] for item in reading["requests"]] == [row.name for row in rows]
    for found, case in zip(reading["requests"], golden["cases"], strict=True):
        served = case["served"]
        histogram = served["spec_correct_drafts_histogram"]  # without trailing zeros
        assert found["histogram"] == histogram + [0] * (golden["depth"] + 1 - len(histogram))
        assert found["verify_steps"] == served["spec_verify_ct"]
        assert found["accepted"] == served["spec_num_correct_drafts"]
        assert found["tokens"] == served["completion_tokens"]
        assert found["exact"]
    pooled = [sum(counts) for counts in zip(*(item["histogram"] for item in reading["requests"]), strict=True)]
    assert reading["walk"]["histogram"] == pooled
    text = eagle("runs", "show", "run-a1", "--max-new-tokens", "64").out
    assert "each request until 64 tokens are out" in text
    whole = eagle("runs", "show", "run-a1", "--json").json["readings"][0]
    assert whole["max_new_tokens"] is None
    assert whole["walk"]["tokens"] > reading["walk"]["tokens"]


def put_run(store: Store, rows: tuple[RowFacts, ...], hits: tuple[ReadingHits, ...]) -> None:
    """A run whose only reading has these hits."""
    facts = ReadingFacts(
        name=hits[0].reading,
        slots=(0, 1, 2),
        states=None,
        token_offset=1,
        stage="full",
        rows=len(rows),
        positions=1,
        first_step_hits=1,
        seconds=0.1,
    )
    result = made_result([facts], made_declared((0, 2, 4), (0, 1, 2)), rows=len(rows), steps=hits[0].steps)
    put_standalone(store, made_run("run-a1"), result, rows, hits)


@pytest.mark.parametrize("limit", ["0", "-1", "x"])
def test_a_limit_of_no_token_is_a_usage_error(eagle: Eagle, limit: str) -> None:
    assert eagle("runs", "show", "last", "--max-new-tokens", limit).code == 2
