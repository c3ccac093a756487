"""Prompts from files, the bundled set and a seed."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.workload import Workload, as_text, load

IDS = list(range(10, 30))


def job(**settings: Any) -> BenchJob:
    return BenchJob(**{"model": "/models/target", **settings})


def read(folder: Path, rows: list[Any], spare: int = 0, **settings: Any) -> Workload:
    path = folder / "prompts.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return load(job(prompts=str(path), **settings), spare)


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"input_ids": IDS, "n_prompt_tokens": 6, "loss_mask": [0] * 20}, IDS[:6]),
        ({"input_ids": IDS, "loss_mask": [0] * 9 + [1] * 11}, IDS[:9]),
        ({"input_ids": IDS, "loss_mask": [0] * 20}, IDS),
        ({"input_ids": IDS}, IDS),
    ],
)
def test_a_training_row_is_asked_up_to_its_answer(tmp_path: Path, row: dict[str, Any], prompt: list[int]) -> None:
    workload = read(tmp_path, [row])
    assert workload.form == "token_ids"
    assert workload.prompts[0].input_ids == tuple(prompt)
    assert workload.facts(job()).prompt_tokens == len(prompt)


@pytest.mark.parametrize("key", ["text", "prompt"])
def test_text(tmp_path: Path, key: str) -> None:
    workload = read(tmp_path, [{key: "Once"}, "", {key: "upon"}])
    assert workload.form == "text"
    assert [(prompt.index, prompt.text) for prompt in workload.prompts] == [(0, "Once"), (1, "upon")]
    assert workload.facts(job()).prompt_tokens is None


@pytest.mark.parametrize("key", ["messages", "conversations"])
def test_messages_are_asked_without_the_answer_they_end_with(tmp_path: Path, key: str) -> None:
    turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    workload = read(tmp_path, [{key: turns}])
    assert workload.form == "messages"
    assert workload.prompts[0].messages == (turns[0],)
    assert as_text(workload).prompts[0].text == "Why?"


def test_sharegpts_words_are_known(tmp_path: Path) -> None:
    turns = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "Why?"},
        {"from": "gpt", "value": "So."},
    ]
    workload = read(tmp_path, [{"conversations": turns}])
    system, question = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}
    assert workload.prompts[0].messages == (system, question)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{not json", r"line 2 of .*: expected JSON, found"),
        ("[" * 100_000, r"line 2 of .*: expected JSON, found"),
        ("[1, 2]", "expected an object, found: list"),
        ({"question": "?"}, "expected `input_ids`, .* found: question"),
        ({"text": ""}, "found: text"),
        ({"input_ids": [1, "2"]}, "must be a list of token ids"),
        ({"input_ids": [1, -2]}, "must be a list of token ids"),
        ({"input_ids": []}, r"must be 1\.\.0 tokens long, found: 0"),
        ({"input_ids": IDS, "n_prompt_tokens": 21}, r"must be 1\.\.20 tokens long, found: 21"),
        ({"input_ids": IDS, "n_prompt_tokens": "6"}, "found: '6'"),
        ({"input_ids": IDS, "loss_mask": [1] * 20}, r"must be 1\.\.20 tokens long, found: 0"),
        ({"input_ids": IDS, "loss_mask": [0, 1]}, r"as long as `input_ids` \(20\), found: \[0, 1\]"),
        ({"messages": [{"role": "assistant", "content": "Hello."}]}, "a question last"),
        ({"messages": "Why?"}, "a question last: 'Why\\?'"),
        ({"conversations": [{"from": ["a"], "value": "x"}]}, "a question last"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "a question last"),
        ({"input_ids": [2**63]}, "must be a list of token ids"),
        ({"k" * 1_000_000: 1}, r"found: k{40}\.\.\.$"),
        ({f"key{number}": 1 for number in range(100_000)}, "key9 and 99990 more$"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(JobFailure) as caught:
        read(tmp_path, [{"text": "a good one"}, row])
    assert caught.value.failure.kind == "rows"
    assert re.search(words, caught.value.failure.message)
    assert "line 2" in caught.value.failure.message


def test_kinds_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(JobFailure, match=r"prompts of one kind are needed.*text, token_ids"):
        read(tmp_path, [{"text": "Once"}, {"input_ids": IDS}])


def test_no_prompts(tmp_path: Path) -> None:
    with pytest.raises(JobFailure, match="the file holds none"):
        read(tmp_path, ["", " "])


def test_prompts_that_are_no_file_are_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        (str(tmp_path / "missing.jsonl"), "cannot be read (No such file or directory)"),
        ("~nosuchuser/rows.jsonl", "cannot be read (No such file or directory): ~nosuchuser/rows.jsonl"),
        (str(tmp_path), "`prompts` is no file"),
        (str(tmp_path / "pipe"), "`prompts` is no file"),
    ):
        with pytest.raises(JobFailure) as caught:
            load(job(prompts=name), 0)
        assert caught.value.failure.kind == "job"  # captured rows were never asked for
        assert words in caught.value.failure.message
        assert "a JSONL file on the server" in (caught.value.failure.hint or "")


def test_max_prompts_draws_by_the_seed_and_keeps_the_order(tmp_path: Path) -> None:
    rows = [{"text": f"prompt {number:03}"} for number in range(100)]
    first, again, other = (read(tmp_path, rows, 4, max_prompts=10, seed=seed) for seed in (1, 1, 2))
    texts = [prompt.text or "" for prompt in first.prompts]
    assert texts == sorted(texts)
    assert first == again
    assert first.facts(job()).sha256 == again.facts(job()).sha256 != other.facts(job()).sha256
    assert len(first.spare) == 4
    assert not {prompt.text for prompt in first.spare} & set(texts)  # warm-ups are asked other prompts


def test_all_prompts_leave_none_for_the_warm_up(tmp_path: Path) -> None:
    workload = read(tmp_path, [{"text": "a"}, {"text": "b"}], spare=4)
    assert (len(workload.prompts), workload.spare) == (2, ())


def test_only_wanted_lines_are_read(tmp_path: Path) -> None:
    rows = [{"text": f"prompt {number}"} for number in range(5)]
    good = [prompt.text for prompt in read(tmp_path, rows, max_prompts=2).prompts]
    bad = [row if row["text"] in good else "{broken" for row in rows]
    assert [prompt.text for prompt in read(tmp_path, bad, max_prompts=2).prompts] == good


def test_the_hash_is_of_what_is_sent_and_its_order(tmp_path: Path) -> None:
    one = read(tmp_path, [{"input_ids": IDS, "n_prompt_tokens": 6}, {"input_ids": [1]}]).facts(job())
    same = read(tmp_path, [{"input_ids": IDS[:6], "source": "x"}, {"input_ids": [1]}]).facts(job())
    turned = read(tmp_path, [{"input_ids": [1]}, {"input_ids": IDS, "n_prompt_tokens": 6}]).facts(job())
    assert one.prompt_sha256 == same.prompt_sha256 == turned.prompt_sha256[::-1]
    assert len(set(one.prompt_sha256)) == 2
    assert one.sha256 == same.sha256 != turned.sha256


@pytest.mark.parametrize("key", ["conversation_id", "session_id"])
def test_turns_of_one_conversation_are_told(tmp_path: Path, key: str) -> None:
    rows = [{"text": "a", key: "secret name"}, {"text": "b"}, {"text": "c", key: "secret name"}, {"text": "d", key: 7}]
    first, alone, again, other = (facts := read(tmp_path, rows).facts(job())).conversations
    assert first == again
    assert len({first, alone, other}) == 3
    assert alone == facts.prompt_sha256[1]
    assert "secret" not in "".join(facts.conversations)
    assert read(tmp_path, [{"text": "a"}, {"text": "a"}]).facts(job()).conversations == ()
    with pytest.raises(JobFailure) as caught:
        read(tmp_path, [{"text": "a", key: ["x"]}])
    assert f"`{key}` must be a text or a whole number" in caught.value.failure.message


def test_the_bundled_prompts() -> None:
    workload = load(job(), 8)
    assert workload.form == "messages"
    assert (len(workload.prompts), len(workload.spare)) == (24, 8)
    texts = [str(prompt.messages) for prompt in (*workload.prompts, *workload.spare)]
    assert len(set(texts)) == 32
    assert [prompt.index for prompt in (*workload.prompts, *workload.spare)] == list(range(32))


def test_bundled_prompts_never_repeat_within_a_point() -> None:
    few = load(job(max_prompts=3, concurrency=(1, 4)), 8)  # 5 requests a user
    assert (few.once, len(few.prompts)) == (3, 20)
    texts = [str((prompt.messages or ())[0]["content"]) for prompt in few.prompts]
    assert len(set(texts)) == 20
    assert len({text[:20] for text in texts}) > 3  # a repeated passage begins otherwise: its prefix is not cached
    assert texts[3].startswith("Reading 2. Alice was beginning")
    assert len(load(job(requests=40), 8).prompts) == 40


def test_random_prompts_stay_in_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 50}')
    made = load(job(prompts="random", random_tokens_ok=True, model=str(tmp_path), max_prompts=20), 4)
    assert made.form == "random"
    assert made.facts(job()).form == "random"
    ids = {token for prompt in made.prompts for token in prompt.input_ids or ()}
    assert max(ids) == 49
    assert min(ids) == 3
    assert made == load(job(prompts="random", random_tokens_ok=True, model=str(tmp_path), max_prompts=20), 4)
    unknown = load(job(prompts="random", random_tokens_ok=True), 0)
    assert max(token for prompt in unknown.prompts for token in prompt.input_ids or ()) < 1000


def test_random_tokens_are_refused_unless_they_are_allowed() -> None:
    with pytest.raises(ValueError, match="random tokens say nothing about acceptance"):
        job(prompts="random")


def test_training_prompts_then_held_out_ones(tmp_path: Path) -> None:
    heldout = tmp_path / "heldout.jsonl"
    heldout.write_text("".join(json.dumps({"input_ids": [9, 9, n]}) + "\n" for n in range(4)), "utf-8")
    both = read(
        tmp_path, [{"input_ids": [n, 5]} for n in range(6)], spare=1, heldout_prompts=str(heldout), max_prompts=3
    )
    assert [len(prompt.input_ids or ()) for prompt in both.prompts] == [2, 2, 2, 3, 3, 3]
    assert [prompt.index for prompt in both.prompts] == list(range(6))
    assert [len(prompt.input_ids or ()) for prompt in both.spare] == [2, 3]
    facts = both.facts(job())
    assert facts.heldout_from == 3
    assert facts.files == (both.source.split(" and, ")[0], str(heldout))
    asked = [
        [json.loads(line)["input_ids"] for line in Path(file).read_text("utf-8").splitlines()] for file in facts.files
    ]
    told = [asked[place > 2][line - 1] for place, line in enumerate(facts.lines)]
    assert told == [list(prompt.input_ids or ()) for prompt in both.prompts]
    alone = read(tmp_path, [{"input_ids": IDS}]).facts(job())
    assert (alone.heldout_from, len(alone.files), alone.lines) == (None, 1, (1,))
    bundled = load(job(prompts="bundled"), 0).facts(job())
    assert (bundled.files, bundled.lines) == ((), ())


def test_two_splits_are_of_one_form_and_from_files(tmp_path: Path) -> None:
    heldout = tmp_path / "heldout.jsonl"
    heldout.write_text('{"text": "Once"}\n', "utf-8")
    with pytest.raises(JobFailure, match=r"one kind are needed, found: token_ids in .* text in"):
        read(tmp_path, [{"input_ids": IDS}], heldout_prompts=str(heldout))
    with pytest.raises(ValueError, match="`heldout_prompts` stand beside"):
        job(heldout_prompts="/held.jsonl")
