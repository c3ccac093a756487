"""Jobs that start the real server: what it counts is what was recorded, and what it changes is named."""

from collections.abc import Callable
from typing import Any

import pytest

from remote_payload.schema.bench_job import BenchJob
from tests.sglang.conftest import Bench, Models

Asked = Callable[..., BenchJob]


def test_a_chain_against_plain_decoding(
    asked: Asked, bench: Bench, chain: dict[str, Any], truth: dict[str, Any]
) -> None:
    found = bench(asked(**chain, with_baseline=True))
    assert found.histograms() == truth["histograms"]["std_right"]
    assert found.outputs("plain") == found.outputs() == truth["output_ids"]
    (pair,) = found.report.figures.pairs
    assert pair.pairing.identical.value == 1
    assert pair.pairing.accept_length == pytest.approx(2.7920433996383363)
    assert pair.spec.acceptance is not None
    assert pair.spec.acceptance.tokens_per_verify.value == pytest.approx(24 * 64 / pair.spec.acceptance.verify_steps)
    assert found.report.figures.draft.ceiling == 4
    assert found.report.figures.valid
    assert all(not item.broken_identities for item in found.report.requests)
    # the prompts share beginnings, so some of their tokens are cached even after a flush
    allowed = {"speculation path", "client", "text", "prefix cache", "warm-up"}
    assert {item.title for item in found.report.diagnosis.findings} <= allowed
    spec, plain = found.report.result.servers
    assert (spec.draft_class, spec.stopped, spec.survivors) == ("LlamaForCausalLMEagle3", "term", ())
    assert (plain.draft_class, plain.stopped, plain.survivors) == (None, "term", ())
    assert found.report.result.sglang.version == "0.5.23"
    assert found.report.result.sglang.forces_draft_tokens is True


@pytest.mark.slow
def test_the_storys_override_is_reproduced_and_named(
    asked: Asked, bench: Bench, models: Models, truth: dict[str, Any]
) -> None:
    """Asked for 1 step and 16 draft tokens; and its aux ids stand where SGLang does not look."""
    job = asked(draft=str(models.mis_wired), num_steps=1, eagle_topk=1, num_draft_tokens=16)
    found = bench(job)
    assert found.histograms() == truth["histograms"]["embed_override_1_16"]
    assert found.finding("asked for 16 draft tokens, the server runs with 2") == "serious"
    assert found.report.figures.draft.ceiling == 2
    assert "of 2" in found.report.diagnosis.headline


@pytest.mark.slow
def test_aux_ids_in_the_wrong_place_cost_half_the_acceptance(
    asked: Asked, bench: Bench, models: Models, truth: dict[str, Any], chain: dict[str, Any]
) -> None:
    found = bench(asked(**{**chain, "draft": str(models.mis_wired)}))
    assert found.histograms() == truth["histograms"]["embed_story_wrong"]
    assert found.report.diagnosis.verdict == "measured"


def test_a_tree(asked: Asked, bench: Bench, truth: dict[str, Any], models: Models) -> None:
    found = bench(asked(draft=str(models.std), num_steps=3, eagle_topk=4, num_draft_tokens=8))
    assert found.outputs() == truth["output_ids"]
    draft = found.report.figures.draft
    assert (draft.ceiling, draft.nodes) == (4, 8)
    (load,) = found.report.figures.loads
    assert load.acceptance is not None
    assert 2.79 < (load.acceptance.accept_length.value or 0) < 4  # more candidates than the chain, no fewer hits
    assert all(not item.broken_identities for item in found.report.requests)


@pytest.mark.slow
def test_a_drafter_whose_tensors_are_skipped(
    asked: Asked, bench: Bench, models: Models, chain: dict[str, Any], truth: dict[str, Any]
) -> None:
    found = bench(asked(**{**chain, "draft": str(models.unloaded)}, max_prompts=6))
    assert found.report.diagnosis.verdict == "not_working"
    assert found.finding("the drafter is not working") == "fatal"
    known = [tuple(ids) for ids in truth["output_ids"]]
    assert {item.output_ids for item in found.report.requests} <= set(known)  # lossless all the same


@pytest.mark.slow
def test_steps_that_sglang_chooses(asked: Asked, bench: Bench, models: Models) -> None:
    found = bench(asked(draft=str(models.std), max_prompts=2, requests=2))
    assert found.finding("SGLang chose 5 steps, topk 4, 8 draft tokens by itself for LlamaForCausalLM") == "note"
