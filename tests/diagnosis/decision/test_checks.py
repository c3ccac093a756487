"""K14 to K19 on served benchmarks: which of them is told, and that too little is no finding."""

import random
from dataclasses import replace

import pytest

from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.economics import economics
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.served_formats import formats
from orchestrator.diagnosis.decision.serving_checks import metric
from orchestrator.diagnosis.served_template import template
from remote_payload.schema.bench import ArgumentFact, LogLine
from tests.diagnosis.decision.scenes import offline, served, served_of, sound, story
from tests.support.made_bench import SHAPE, chain_histogram, made_bench, made_point, made_request, made_server

FP8 = ArgumentFact(name="kv_cache_dtype", requested=None, effective='"fp8_e4m3"')
RUNS = dict(zip(SHAPE, (3, 1, 4), strict=True)) | {"dtype": "bfloat16"}


def asked(prompt, accept, *, point=0, tokens=30, **more):
    histogram = chain_histogram(random.Random(f"{prompt} {point}"), 30, accept)
    return made_request(point, prompt, histogram=histogram, prompt_tokens=tokens, index=prompt, **more)


def served_with(runs=None, **workload):
    some = tuple(asked(n, (0.8, 0.7, 0.6)) for n in range(24))
    result = made_bench([made_server(asked=RUNS, runs=RUNS | (runs or {}))], [made_point(0, some)])
    return served_of(replace(result, workload=replace(result.workload, **workload)), some)


def test_both_lengths_are_named_and_told_apart():
    assert metric(served()).outcome == "passed"
    short = tuple(made_request(0, n, tokens=12, histogram=(2, 2, 1, 0)) for n in range(8))  # 2.40 a step, 1.80 drafts
    found = metric(served_of(made_bench([made_server()], [made_point(0, short)]), short))
    assert (found.outcome, found.severity, found.check) == ("finding", "note", "K14")
    assert "accept length 1.80, tokens per verify 2.40" in found.summary
    old = tuple(replace(item, correct_drafts=None, histogram=None) for item in short)
    assert metric(served_of(made_bench([made_server()], [made_point(0, old)]), old)).outcome == "cannot_tell"
    none = tuple(made_request(0, n) for n in range(8))
    assert metric(served_of(made_bench([made_server()], [made_point(0, none)]), none)).outcome == "cannot_tell"


@pytest.mark.parametrize("form", ["token_ids", "messages", "text", "random"])
def test_a_template_is_in_doubt_until_messages_are_held_against_ids(form):
    found = template(replace(served().result.workload, form=form))
    assert (found.check, found.outcome) == ("K16", "cannot_tell")
    assert found.needs


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ({"kv_cache_dtype": "fp8_e4m3"}, "the KV cache is served in fp8_e4m3"),
        ({"quantization": "awq"}, "the target is served in awq"),
        ({"speculative_draft_model_quantization": "fp8"}, "the drafter is served in fp8"),
    ],
)
def test_coarse_formats_are_named_with_all_the_others(runs, words):
    (found,) = formats(Known(served=served_with(runs), offline=offline()))
    assert found.severity == "minor"
    assert words in found.summary
    names = {item.name for item in found.evidence}
    assert {"dtype as served", "captured states", "drafter's tensors"} <= names
    assert decide(Known(served=served_with(runs))).causes == ()  # a format alone proves nothing


@pytest.mark.parametrize("name", ["quantization", "speculative_draft_model_quantization"])
@pytest.mark.parametrize(
    "word",
    [
        "compressed-tensors",
        "bitsandbytes",
        "gguf",
        "modelopt",
        "qoq",
        "moe_wna16",
        "auto-round",
        "quark",
        "marlin",
        "new",
    ],
)
def test_any_quantization_but_none_is_told_whatever_it_is_called(name, word):
    (found,) = formats(Known(served=served_with({name: word})))
    assert (found.outcome, found.severity) == ("finding", "minor")
    assert f"is served in {word}: its name does not tell how coarse" in found.summary


@pytest.mark.parametrize("word", ["unquant", "None", None])
def test_no_quantization_is_no_format(word):
    (found,) = formats(Known(served=served_with({"quantization": word, "kv_cache_dtype": "torch.bfloat16"})))
    assert found.outcome == "passed"


def allocated(*dtypes, **runs):
    """A server whose log says in which format it allocated the target's and the drafter's KV cache."""
    lines = tuple(
        LogLine(rule="kv_cache", line=f"[2026-11-30 01:58:28] KV Cache is allocated. dtype: torch.{dtype}, #tokens: 8")
        for dtype in dtypes
    )
    server = made_server(runs=RUNS | {"kv_cache_dtype": "auto"} | runs, lines=lines)
    return Known(served=served_of(made_bench([server], []), ()))


def test_what_auto_became_is_read_from_the_log():
    (coarse,) = formats(allocated("float8_e4m3fn", "float8_e4m3fn"))
    assert "the KV cache is served in float8_e4m3fn" in coarse.summary
    assert "checkpoint's own quantization config" in coarse.remedy[0]
    (own,) = formats(allocated("bfloat16", "float8_e4m3fn"))
    assert own.summary.startswith("the drafter's KV cache is served in float8_e4m3fn")
    (mixed,) = formats(allocated("bfloat16", "float16"))
    assert mixed.summary.startswith("the drafter is served in float16: the target in bfloat16")
    assert '"torch_dtype": "bfloat16"' in mixed.remedy[0]
    (fine,) = formats(allocated("bfloat16", "bfloat16"))
    assert fine.outcome == "passed"
    assert ("drafter's KV cache as allocated", "bfloat16") in [(item.name, item.value) for item in fine.evidence]


def test_what_a_format_costs_is_told_where_requests_were_foretold():
    def coarse(known):
        item = known.served
        servers = tuple(replace(one, arguments=(*one.arguments, FP8)) for one in item.result.servers)
        return replace(known, served=replace(item, result=replace(item.result, servers=servers)))

    (cheap,) = formats(coarse(sound()))
    assert (cheap.severity, cheap.evidence[0].value, cheap.evidence[0].n) == ("note", 0.0, 12)
    assert "costs less than 0.1 of accept length" in cheap.summary
    worse = sound(served=served("embed_story_wrong"))
    (dear,) = formats(coarse(worse))
    assert dear.severity == "minor"
    assert (dear.evidence[0].high or 0) < -0.5


def test_sixteen_bits_pass_and_a_server_that_tells_nothing_cannot_be_judged():
    (fine,) = formats(Known(served=served_with()))
    assert fine.outcome == "passed"
    (silent,) = formats(Known(served=served_of(made_bench([made_server()], []), ())))
    assert silent.outcome == "passed"  # it tells quantization
    bare = replace(made_server(), arguments=())
    (untold,) = formats(Known(served=served_of(made_bench([bare], []), ())))
    assert untold.outcome == "cannot_tell"


def test_the_break_even_is_r_of_the_lowest_load():
    found = economics(story())
    assert found is not None
    assert found.answer == "cannot"
    assert found.load.pairing.step_cost == pytest.approx(1.369 / (51.5 / 90), abs=0.01)
    assert found.mending.length is not None
    assert found.mending.length.value == pytest.approx(1.776, abs=0.01)
    assert found.mending.where == "on held-out prompts"
    healthy = economics(sound())
    assert healthy is not None
    assert (healthy.mending.faults, healthy.mending.length) == ((), None)  # what is served is what reads best
    assert economics(Known(served=served(plain=()))) is None


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (StepCost(base=1.0, per_step=0.1, source="measured"), "by r = 1 + 0.1 k (measured) it pays: at best 2.1"),
        (StepCost(base=3.0, per_step=0.5), "by r = 3 + 0.5 k (given) no number of steps pays: at best 0.6"),
        (StepCost(base=2.0, per_step=0.25), "by r = 2 + 0.25 k (given) whether any number of steps pays is open"),
    ],
)
def test_a_known_cost_says_whether_any_depth_pays(cost, words):
    (item,) = [one for one in decide(story(cost=cost)).named if one.check == "K15"]
    assert item.remedy[0].startswith(words)
    found = economics(story(cost=cost))
    assert found is not None
    assert found.foretold is not None
    assert len(found.foretold.depths) == 3
    assert economics(story(cost=cost, offline=None)).foretold is None  # type: ignore[union-attr]
