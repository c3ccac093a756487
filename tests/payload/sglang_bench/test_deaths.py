"""Why a server failed, as its log says it: deaths that a real SGLang 0.5.23 was made to die, and what its source says.

`recorded/deaths.json` holds the decisive lines of each death and how it was made. Those below were never seen, because
they take a GPU, a network or another version: their lines are put together from the sources.
"""

import json
from typing import Any

import pytest

from remote_payload.sglang_bench.failures import SIGNATURES, explain, find
from tests.payload.sglang_bench.conftest import RECORDED

SEEN: list[dict[str, Any]] = json.loads((RECORDED / "deaths.json").read_text())
FROM_SOURCE = (
    ("port_taken", "OSError: port 30000 is not available in 30 seconds"),
    ("no_hook", "ValueError: Model X does not implement set_eagle3_layers_to_capture, which EAGLE3 requires."),
    ("aux_states", "RuntimeError: captured 2 of 3 aux hidden states"),
    ("draft_shape", "RuntimeError: size mismatch for fc.weight: copying a param with shape torch.Size([1])"),
    ("draft_vocabulary", "IndexError: index out of range in self"),
    ("draft_vocabulary", "RuntimeError: CUDA error: device-side assert triggered"),
    (
        "hub_lookup",
        "OSError: /nowhere is not a local folder and is not a valid model identifier listed on 'https://hf'",
    ),
    ("context", "ValueError: User-specified context_length (8192) is greater than the derived context_length (2048)."),
    ("graphs_out_of_memory", "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1 GiB."),
    (
        "cache_memory",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.3",
    ),
    ("out_of_memory", "torch.OutOfMemoryError: CUDA out of memory."),
    ("out_of_memory", "RuntimeError: Decode out of memory. Try to lower your batch size."),
    ("killed_child", "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9)."),
    ("host_limits", "RuntimeError: can't start new thread"),
    ("attention_backend", "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding."),
    ("tokenizer", "ValueError: Tokenizer class KimiTokenizer does not exist or is not currently imported."),
    ("watchdog", "[2025-09-01 12:00:00 TP0] Watchdog timeout (self.watchdog_timeout=300)"),
)
AFTER = "[2025-09-01 12:00:01] Received sigquit from a child process. It usually means the child failed."


@pytest.mark.parametrize("death", SEEN, ids=[f"{death['signature']}, seen: {death['made_by']}" for death in SEEN])
def test_a_death_that_was_seen_is_named(death: dict[str, Any]) -> None:
    failure = explain(tuple(death["lines"]), "it was ended by signal 9").failure
    assert f"({death['signature']})" in failure.message
    assert failure.hint
    assert "File " not in failure.message  # the error itself, and not where in the source
    assert set(failure.details) <= {line[:403] for line in death["lines"]} | {
        f"{line[:400]}..." for line in death["lines"]
    }


@pytest.mark.parametrize(("name", "line"), FROM_SOURCE, ids=[f"{name}, from source" for name, _ in FROM_SOURCE])
def test_a_death_that_the_source_tells_of_is_named(name: str, line: str) -> None:
    failure = explain(("[a] before", line, AFTER), "it ended").failure
    assert f"({name})" in failure.message
    assert failure.details[0] == line
    assert failure.hint


def test_a_python_without_sglang() -> None:
    line = "/usr/bin/python3: Error while finding module specification for 'sglang.launch_server' "
    line += "(ModuleNotFoundError: No module named 'sglang')"
    assert "(no_sglang)" in explain((line,), "it ended with exit code 1").failure.message


def test_no_signature_is_without_a_line() -> None:
    shown = {death["signature"] for death in SEEN} | {name for name, _ in FROM_SOURCE} | {"no_sglang"}
    assert shown == {signature.name for signature in SIGNATURES}


def test_a_cause_comes_before_what_it_brings_about() -> None:
    killed = "[2026-11-30 02:03:13] Subprocess scheduler_0 (pid=1205) crashed with exit code -9. Triggering"
    found = find((killed, "torch.OutOfMemoryError: CUDA out of memory.", "Watchdog timeout"))
    assert found is not None
    assert found[0].name == "out_of_memory"


def test_an_unknown_death_shows_its_last_error_and_not_what_came_of_it() -> None:
    lines = ("line", "ZeroDivisionError: division by zero", AFTER, "bye")
    assert explain(lines, "it ended with exit code 1").failure.message == (
        "the server failed: it ended with exit code 1; its log says: ZeroDivisionError: division by zero"
    )
    bare = explain(("line", "AssertionError", AFTER), "it ended with exit code 1").failure
    assert bare.message.endswith("its log says: AssertionError")
    assert explain((), "it ended with exit code 7").failure.details == ()


def test_a_server_that_was_killed_from_outside_is_told_from_one_that_ended_itself() -> None:
    """The kernel leaves no word in the log; SGLang does when it ends all of itself because one of it died."""
    killed = explain(("[a] Using default HuggingFace chat template",), "it was ended by signal 9").failure
    assert "not by itself (killed)" in killed.message
    assert "memory" in (killed.hint or "")
    lines = ("[a] kill_process_tree called: parent_pid=1, include_parent=True, pid=1",)
    itself = explain(("ValueError: odd", AFTER, *lines), "it was ended by signal 9").failure
    assert itself.message == "the server failed: it ended itself; its log says: ValueError: odd"
