"""A row's states over HTTP: fewer states than tokens are refused, never shifted."""

import json
from typing import Any

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench import ServerFacts
from remote_payload.served_capture.fetch import NotReturnedError, RowRefusedError, answer_of, fetch
from remote_payload.sglang_bench.server import Running
from tests.support.answering_server import AnsweringServer, Reply

TOKENS = (5, 6, 7)
STATES = [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]
TOP = [None, [[-0.1, 8, None]], [[-0.2, 9, None]]]
"""Entry i: what the target made of the tokens before token i; as SGLang 0.5.23 answered."""


def said(meta: dict[str, Any], output_ids: object = (11,), status: int = 200) -> Reply:
    body = json.dumps({"output_ids": output_ids, "meta_info": meta}).encode()
    head = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    return Reply(raw=[(0.0, head + body)])


def asked(reply: Reply) -> Any:
    with AnsweringServer() as server:
        server.replies = [reply]
        running = Running(ServerFacts(side="spec", start=0, attached=True, url=server.url), None)
        return fetch(running, TOKENS, 5.0)


def test_a_row() -> None:
    found = asked(said({"hidden_states": [STATES], "input_top_logprobs": TOP}))
    assert found.states == STATES
    assert found.answers == (8, 9, 11)  # after tokens 5, 6 and 7


def test_states_of_generated_tokens_are_not_the_prompts() -> None:
    found = asked(said({"hidden_states": [STATES, [9.0, 9.0]], "input_top_logprobs": TOP}))
    assert found.states == STATES


def test_pieces_of_the_prompt_are_joined() -> None:
    assert asked(said({"hidden_states": [STATES[:2], STATES[2:]]})).states == STATES


def test_choices_that_are_not_told_are_unknown() -> None:
    assert asked(said({"hidden_states": [STATES]}, output_ids=[])).answers == (-1, -1, -1)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"hidden_states": [STATES[1:]]}, "2 states came for 3 tokens"),  # a cached prefix; the last chunk alone
        ({"hidden_states": [[[1.0], [1.0, 2.0], [1.0]]]}, "differ in width"),
        ({"hidden_states": [[[], [], []]]}, "a form that is not known"),
        ({"hidden_states": [[1.0, 2.0]]}, "0 states came for 3 tokens"),
    ],
)
def test_a_row_that_is_not_whole_is_refused(meta: dict[str, Any], words: str) -> None:
    with pytest.raises(RowRefusedError, match=words):
        asked(said(meta))


@pytest.mark.parametrize("meta", [{}, {"hidden_states": None}, {"hidden_states": []}])
def test_a_server_that_returns_none(meta: dict[str, Any]) -> None:
    with pytest.raises(NotReturnedError):
        asked(said(meta))


@pytest.mark.parametrize(
    "words",
    [
        "The server is not configured to return hidden states. Please set `--enable-return-hidden-states`.",  # 0.5.23
        "The server is not configured to return the hidden states. Please set it.",  # 0.5.3
    ],
)
def test_a_server_started_without_the_flag_says_so(words: str) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    with pytest.raises(NotReturnedError, match="not configured to return"):
        asked(Reply(status=400, body=body))


def test_another_refusal_is_the_rows() -> None:
    with pytest.raises(RowRefusedError, match="HTTP 400: too long"):
        asked(Reply(status=400, body=json.dumps({"error": {"message": "too long"}}).encode()))


def test_another_key_ends_the_job() -> None:
    with pytest.raises(JobFailure, match="another API key"):
        asked(Reply(status=401, body=b"{}"))


def test_an_answer_without_ids_is_refused() -> None:
    with AnsweringServer() as server:
        server.replies = [said({}, output_ids=["a"])]
        running = Running(ServerFacts(side="spec", start=0, attached=True, url=server.url), None)
        with pytest.raises(RowRefusedError, match="output_ids"):
            answer_of(running, TOKENS, 4, 5.0)
