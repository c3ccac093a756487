"""Why a server did not start, or died: known signatures in its log become words and a hint; the lines are kept."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from remote_payload.failure import JobFailure, server_failure

LINES_SHOWN = 20
SHOWN_CHARACTERS = 400


@dataclass(frozen=True)
class Signature:
    """One way to fail: its name, the pattern of its decisive line, what to say and what to try."""

    name: str
    pattern: str
    message: str
    hint: str


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "port_taken",
        r"error while attempting to bind on address|address already in use|port .* is not available in \d+ seconds",
        "another process has the server's port",
        "leave `port` out to have a free one chosen, or end the process that holds it",
    ),
    Signature(
        "bad_flag",
        r"error: (?:unrecognized arguments|ambiguous option|argument |the following arguments are required)",
        "the installed SGLang does not take one of the arguments",
        "compare `server_args` and the job's settings with the flags of the version that is installed",
    ),
    Signature(
        "no_sglang",
        r"No module named '?sglang\b",
        "SGLang is not installed for the Python that was to run it",
        "name an interpreter that has it as `server_python`, or enter its container with the host's `exec_prefix`",
    ),
    Signature(
        "steps_missing",
        r"'>' not supported between instances of 'NoneType' and 'int'",
        "`num_steps` is given without `eagle_topk`",
        "give all three of `num_steps`, `eagle_topk` and `num_draft_tokens`, or none of them",
    ),
    Signature(
        "no_draft",
        r"object has no attribute 'hot_token_id'",
        "the target itself was loaded as the draft model",
        "name the drafter's folder as `draft`",
    ),
    Signature(
        "no_hook",
        r"does not implement set_eagle3_layers_to_capture|no attribute 'set_eagle3_layers_to_capture'|"
        r"no attribute '[gs]et_embed_and_head'",
        "the target's class in this SGLang cannot hand its hidden states or embeddings to an EAGLE-3 drafter",
        "take a newer SGLang, or a target class that implements set_eagle3_layers_to_capture and get_embed_and_head",
    ),
    Signature(
        "aux_states",
        r"captured \d+ of \d+ aux hidden states|mat1 and mat2 shapes cannot be multiplied",
        "the hidden states that the target hands over do not fit the drafter's `fc`: another number, or another width",
        "check that the drafter was trained for this target (`hidden_size`), and that the layers in "
        "`eagle_config.eagle_aux_hidden_state_layer_ids` ascend, are distinct, and none of them is the last one",
    ),
    Signature(
        "draft_shape",
        r"Attempted to load weight \(?torch\.Size|size mismatch for|AssertionError: .*torch\.Size",
        "a tensor of the checkpoint has another shape than its config.json says",
        "run the standalone test on this drafter: it names the tensor",
    ),
    Signature(
        "draft_vocabulary",
        r"index out of range in self|device-side assert triggered",
        "a token id lies outside of the vocabulary: `d2t` may hold absolute ids instead of differences",
        "run the standalone test on this drafter: it reads the vocabulary map",
    ),
    Signature(
        "hub_lookup",
        r"Repo id must be in the form|is not a local folder and is not a valid model identifier|"
        r"We couldn't connect to 'https://huggingface\.co'|Repository Not Found for url|is not the path to a directory",
        "a model's folder does not exist on the server, so it was looked up on the hub",
        "give folders on the server as `model` and `draft` (inside the container, where there is an `exec_prefix`)",
    ),
    Signature(
        "no_weights",
        r"Cannot find any model weights with|Error while deserializing header|SafetensorError",
        "a model's folder holds no weights that can be read",
        "check that the folder's safetensors files are there and whole",
    ),
    Signature(
        "context",
        r"User-specified context_length \(\d+\) is greater than the derived",
        "`context_length` is longer than a model's own limit; the drafter's counts as well",
        "lower `context_length`, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in `server_environment`",
    ),
    Signature(
        "graphs_out_of_memory",
        r"Capture [\w -]*graphs? failed: .*out of memory",
        "no GPU memory was left for CUDA graphs",
        "lower `mem_fraction`: the key-value cache leaves too little for the graphs of target and drafter",
    ),
    Signature(
        "cache_memory",
        r"Not enough memory\. Please try to (?:increase|decrease)|leave no GPU memory for the KV cache",
        "the key-value cache does not fit beside the weights",
        "raise `mem_fraction`, free the GPU, use more GPUs (`tp`), or a shorter `context_length`",
    ),
    Signature(
        "out_of_memory",
        r"OutOfMemoryError|CUDA out of memory|(?:Decode|Prefill) out of memory",
        "the GPU's memory is too small",
        "free the GPU, use more GPUs (`tp`), lower `mem_fraction` or the concurrency",
    ),
    Signature(
        "killed_child",
        r"scheduler died|exit code: -9|exit code -9|exitcode=-9",
        "one of the server's processes was killed: often by the kernel for lack of memory",
        "look at the host's memory and `dmesg`",
    ),
    Signature(
        "host_limits",
        r"Error: (?:Resource temporarily unavailable|can't start new thread|std::bad_alloc)|Cannot allocate memory|"
        r"^MemoryError\b|can't allocate memory: you tried to allocate",
        "the host refuses the server memory or threads",
        "look at the host's free memory, and at `ulimit -a` and the cgroup where the server runs (-v, -u, pids.max)",
    ),
    Signature(
        "unknown_algorithm",
        r"Unknown speculative algorithm name",
        "the installed SGLang does not know this `algorithm`",
        "EAGLE3 is the one for EAGLE-3 drafters",
    ),
    Signature(
        "attention_backend",
        r"is not supported in decode attention backend|only supports topk = 1|"
        r"page_size > 1 is (?:only supported|unstable)",
        "the attention backend does not do this kind of speculation",
        "choose another backend in `server_args`, or `eagle_topk = 1`",
    ),
    Signature(
        "tokenizer",
        r"Can't load tokenizer for|Tokenizer class .* does not exist|Couldn't instantiate the backend tokenizer",
        "the target's tokenizer cannot be loaded",
        "check the tokenizer files in the target's folder; `--trust-remote-code` may be needed in `server_args`",
    ),
    Signature(
        "speculation_settings",
        r", in _handle_(?:eagle_family|speculative_decoding)$",
        "SGLang refuses these settings of speculation together",
        "give all three of `num_steps`, `eagle_topk` and `num_draft_tokens`, or none of them",
    ),
    Signature(
        "watchdog",
        r"Watchdog timeout|Health check failed\. Server couldn't get a response",
        "the server hangs",
        "look at what its processes wait for: a stuck collective, another process on the GPU",
    ),
)
"""Sorted so that a cause comes before what it brings about."""

_DECISIVE = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt)(?:$|\b.*:)|\w+Error: |\berror: | exception:")
_CONSEQUENCE = re.compile(r"Received sigquit|SIGQUIT received|kill_process_tree called")
"""What SGLang says when one of its processes is gone already."""


def find(lines: Iterable[str]) -> tuple[Signature, str] | None:
    """The first signature, in order of `SIGNATURES`, that one of the lines bears, and that line.

    What is said comes before a traceback's own lines, which quote the source that says it.
    """
    ordered = sorted(lines, key=lambda line: line.startswith(" "))
    for signature in SIGNATURES:
        pattern = re.compile(signature.pattern)
        for line in ordered:
            if pattern.search(line):
                return signature, line
    return None


def explain(lines: Iterable[str], what: str) -> JobFailure:
    """The failure of a server whose log ends with `lines`; `what` = what happened, e.g. `it ended with exit code 3`."""
    lines = tuple(lines)
    if any("kill_process_tree called" in line for line in lines):
        what = what.replace("it was ended by signal 9", "it ended itself")
    found = find(lines)
    if found is None:
        shown = next((line for line in reversed(lines) if _DECISIVE.search(line)), None)
        if shown is None and "signal 9" in what and not any(_CONSEQUENCE.search(line) for line in lines):
            return _killed(lines, what)
        said = f"; its log says: {_short(shown)}" if shown else ""
        return server_failure(
            f"the server failed: {what}{said}",
            hint="read the end of its log, which is told with this",
            details=_decisive(lines, None),
        )
    signature, line = found
    message = f"the server failed, {what}: {signature.message} ({signature.name}): {_short(_said(lines, line))}"
    return server_failure(message, hint=signature.hint, details=_decisive(lines, line))


def _said(lines: tuple[str, ...], line: str) -> str:
    """The line; where it is one of a traceback, the error that the traceback ends with."""
    after = lines[lines.index(line) :]
    return next((one for one in after if not one.startswith(" ")), line).strip()


def _killed(lines: tuple[str, ...], what: str) -> JobFailure:
    """It did not kill itself: that its log would tell."""
    return server_failure(
        f"the server failed: {what}, and not by itself (killed): often the kernel does that for lack of memory",
        hint="look at the host's memory, the cgroup's limit where the server runs, and `dmesg`",
        details=_decisive(lines, None),
    )


def _decisive(lines: tuple[str, ...], line: str | None) -> tuple[str, ...]:
    """The decisive lines first, then the end of the log."""
    errors = [shown for shown in lines if _DECISIVE.search(shown) and shown != line]
    chosen = ([line] if line else []) + errors[-5:]
    last = [shown for shown in lines[-LINES_SHOWN + len(chosen) :] if shown not in chosen]
    return tuple(_short(shown) for shown in [*dict.fromkeys(chosen), *last])


def _short(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}..."
