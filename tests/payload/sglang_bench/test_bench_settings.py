"""A job that asks for what cannot be is refused when it is made, on the laptop as on the host, and in words."""

from typing import Any

import pytest

from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.command import server_argv
from remote_payload.sglang_bench.plan import starts

ATTACHED = "http://127.0.0.1:30000"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_prompts": -5}, "`max_prompts` must be at least 1, found: -5"),
        ({"max_prompts": 0}, "`max_prompts` must be at least 1, found: 0"),
        ({"requests": 0}, "`requests` must be at least 1, found: 0"),
        ({"requests": -1}, "`requests` must be at least 1, found: -1"),
        ({"requests": 10**9}, "`requests` must be at most 1000000, found: 1000000000"),
        ({"repeats": 10**9}, "`repeats` must be at most 1000"),
        ({"starts": 0}, "`starts` must be at least 1"),
        ({"starts": 2, "with_baseline": True, "draft": "/d"}, "`starts` are of a server of our own"),
        ({"port": 70000}, "`port` must be at most 65535, found: 70000"),
        ({"port": -1}, "`port` must be at least 1, found: -1"),
        ({"ready_timeout_s": -1.0}, "`ready_timeout_s` must be at least 0.01, found: -1.0"),
        ({"request_timeout_s": 1e30}, "`request_timeout_s` must be at most 604800"),
        ({"request_timeout_s": float("nan")}, "`request_timeout_s` must be finite"),
        ({"temperature": float("nan")}, "`temperature` must be finite"),
        ({"temperature": -5.0}, "`temperature` must be at least 0"),
        ({"top_p": 9.0}, "`top_p` must be above 0 and at most 1"),
        ({"top_k": 0}, "`top_k` must be at least 1, found: 0"),
        ({"seed": -1}, "`seed` must be at least 0, found: -1"),
        ({"concurrency": (0,)}, "`concurrency` must be 1 to 10000"),
        ({"concurrency": (10**9,)}, "`concurrency` must be 1 to 10000"),
        ({"concurrency": (1, 1, 1)}, "`concurrency` names a load twice: 1, 1, 1; `repeats` measures"),
        ({"request_rate": (1e-9,)}, "`request_rate` must be 0.001 to 100000 requests a second"),
        ({"request_rate": (float("nan"),)}, "`request_rate` must be 0.001"),
        ({"concurrency": ()}, "give `concurrency` or `request_rate`"),
        ({"server_environment": ("=x",)}, "`server_environment` must hold NAME=VALUE pairs"),
        ({"server_environment": ("A B=x",)}, "`server_environment` must hold NAME=VALUE pairs"),
        ({"server_args": ("a\0b",)}, "`server_args` must not hold a null character"),
        ({"prompts": ""}, "`prompts` must not be empty"),
        ({"model": "a\0b"}, "`model` must not be empty"),
        ({"with_baseline": True}, "`with_baseline` compares speculation with plain decoding: it needs a `draft`"),
        ({"num_steps": 3, "eagle_topk": 1}, "`num_steps, eagle_topk` without a `draft` would be left out"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its words are looked at
        BenchJob(**{"model": "/m", **settings})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "it must begin with http:// or https://"),
        ("127.0.0.1:30000", "it must begin with http:// or https://"),
        ("ftp://127.0.0.1/", "it must begin with http:// or https://"),
        ("http://", "it names no host"),
        ("http://127.0.0.1:99999", "its port must be a number from 1 to 65535"),
        ("http://127.0.0.1:0", "its port must be a number from 1 to 65535"),
        ("http://127.0.0.1:abc", "its port must be a number from 1 to 65535"),
        ("http://exa mple:80/", "plain letters, no spaces"),
        ("http://127.0.0.1\x01:80", "plain letters, no spaces"),
        ("http://127.0.0.1/ü", "plain letters, no spaces"),
        ("http://user:k-very-secret@127.0.0.1:80", "name the variable that holds the key as `api_key_env`"),
        ("http://k-very-secret@127.0.0.1:80", "name the variable that holds the key as `api_key_env`"),
        ("http://127.0.0.1:80/?api_key=k-very-secret", "name the variable that holds the key as `api_key_env`"),
    ],
)
def test_an_address_that_is_none_or_holds_a_key_is_refused_and_not_repeated(url: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its words are looked at
        BenchJob(attach_url=url)
    assert words in str(caught.value)
    assert "k-very-secret" not in str(caught.value)


@pytest.mark.parametrize("url", [ATTACHED, "https://gpu1.example/v1/", "http://[::1]:30000"])
def test_addresses(url: str) -> None:
    assert BenchJob(attach_url=url).attach_url == url


@pytest.mark.parametrize(("steps", "topk", "most"), [(1, 2, 3), (2, 2, 7), (5, 4, 69), (3, 8, 137)])
def test_a_tree_holds_what_its_steps_make(steps: int, topk: int, most: int) -> None:
    """SGLang chooses `num_draft_tokens - 1` nodes of topk + (steps - 1) * topk**2, and dies where there are fewer."""
    fits: dict[str, Any] = {"model": "/m", "draft": "/d", "num_steps": steps, "eagle_topk": topk}
    assert BenchJob(**fits, num_draft_tokens=most).num_draft_tokens == most
    with pytest.raises(ValueError, match=f"make {most - 1} drafts, so at most {most}"):
        BenchJob(**fits, num_draft_tokens=most + 1)
    assert BenchJob(attach_url=ATTACHED, num_steps=steps, eagle_topk=topk, num_draft_tokens=most + 1)  # it runs already


def test_a_chain_may_ask_for_too_many() -> None:
    """The server then takes num_steps + 1: that is what is to be found out."""
    assert BenchJob(model="/m", draft="/d", num_steps=1, eagle_topk=1, num_draft_tokens=16).num_draft_tokens == 16


WORDS = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "16", "--page-size", "1")


def test_speculation_in_verbatim_words_is_passed_on_without_a_draft() -> None:
    job = BenchJob(model="/m", server_args=WORDS, repeats=2)
    (start,) = starts(job)
    assert (start.side, start.repeats) == ("spec", (0, 1))
    assert server_argv(job, start.side, 1)[-6:] == WORDS


def test_the_plain_side_of_a_pair_has_none_of_it() -> None:
    job = BenchJob(model="/m", server_args=WORDS, with_baseline=True)
    assert [one.side for one in starts(job)] == ["spec", "plain"]
    assert server_argv(job, "plain", 1)[-2:] == ("--page-size", "1")
    assert not [word for word in server_argv(job, "plain", 1) if "speculative" in word or word in ("NGRAM", "16")]


def test_an_algorithm_that_takes_no_draft_is_passed_on() -> None:
    job = BenchJob(model="/m", algorithm="NGRAM", num_draft_tokens=8)
    assert [one.side for one in starts(job)] == ["spec"]
    argv = server_argv(job, "spec", 1)
    assert argv[-4:] == ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8")
    assert "--speculative-draft-model-path" not in argv
