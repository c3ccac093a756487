"""The standard of truth: the walk over offline hits against what a real SGLang counted, request by request."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compare.chains import unpack_hits, unpack_row
from orchestrator.compare.walk import serving_walks
from remote_payload.schema import ReadingHits, RowFacts
from remote_payload.schema.record import from_value

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "walk").glob("*.json.gz"))


def test_all_configurations_are_here() -> None:
    labels = {path.name.removesuffix("_train.json.gz").removesuffix("_heldout.json.gz") for path in GOLDEN}
    assert labels == {"std_right", "embed_right", "embed_story_wrong", "embed_override_1_16"}
    assert len(GOLDEN) == 8


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_the_walk_gives_the_servers_histogram_for_every_request(path: Path) -> None:
    golden = json.loads(gzip.decompress(path.read_bytes()))
    assert len(golden["cases"]) == 12
    for case in golden["cases"]:
        (walk,) = _walks(case, golden["depth"])
        served = case["served"]
        # the server drops trailing zeros of its histogram
        histogram = served["spec_correct_drafts_histogram"]
        assert list(walk.histogram) == histogram + [0] * (golden["depth"] + 1 - len(histogram))
        assert walk.verifies == served["spec_verify_ct"]
        assert walk.accepted == served["spec_num_correct_drafts"]
        assert walk.tokens == served["completion_tokens"]
        assert walk.greedy


def _walks(case: dict[str, Any], depth: int) -> tuple[Any, ...]:
    row = unpack_row(from_value(RowFacts, case["row"]))
    chains = unpack_hits(from_value(ReadingHits, case["hits"]), row)
    return serving_walks(chains, depth=depth, max_new_tokens=64)
