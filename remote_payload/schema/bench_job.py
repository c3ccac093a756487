"""The served benchmark's job: which SGLang to start or attach to, how to load it, with what."""

import math
import re
from typing import Literal
from urllib.parse import urlsplit

from remote_payload.schema.record import Record, require

LONGEST_S = 7 * 86400.0
MOST_USERS = 10_000
"""One host's ports to one server do not reach for many more."""
MOST_REPEATS = 1000
MOST_REQUESTS = 1_000_000
SLOWEST_RATE = 0.001
FASTEST_RATE = 100_000.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class BenchJob(Record):
    """Start (or attach to) a real SGLang on the host, load it, and keep every request. Paths are on the server."""

    kind: Literal["bench"] = "bench"
    model: str | None = None
    """Folder or hub id of the target; None only with `attach_url`."""
    draft: str | None = None
    """Folder of the drafter; None = plain decoding alone."""
    algorithm: str = "EAGLE3"
    num_steps: int | None = None
    eagle_topk: int | None = None
    num_draft_tokens: int | None = None
    """The three of SGLang's flags, passed as they are; all None = SGLang's own choice."""
    tp: int = 1
    dp: int = 1
    ep: int = 1
    dtype: str = "auto"
    quantization: str | None = None
    draft_quantization: str | None = None
    context_length: int | None = None
    mem_fraction: float | None = None
    server_args: tuple[str, ...] = ()
    """More arguments of `sglang.launch_server`, verbatim."""
    server_environment: tuple[str, ...] = ()
    """`NAME=VALUE` pairs for the server alone; secrets come by name from the host's `secrets` instead."""
    exec_prefix: tuple[str, ...] = ()
    """Words before the server's command, e.g. `docker exec -i NAME`: how the host enters where SGLang is installed."""
    server_python: str | None = None
    """Interpreter that runs SGLang; None = the worker's own, or `python3` behind an `exec_prefix`."""
    attach_url: str | None = None
    """A server that is already up, e.g. `http://127.0.0.1:30000`; nothing is started or stopped."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the server's API key."""
    port: int | None = None
    ready_timeout_s: float = 1800.0
    prompts: str = "bundled"
    """`bundled`, `random`, or a JSONL file: `input_ids` (with n_prompt_tokens), `messages`, or `text`/`prompt`."""
    heldout_prompts: str | None = None
    """A second JSONL: `prompts` are then ones the drafter was trained on, these not, and acceptance is told of each."""
    max_prompts: int | None = None
    """Of each file."""
    max_new_tokens: int = 256
    ignore_eos: bool = False
    temperature: float = 0.0
    sampled: float | None = None
    """A temperature at which the lowest load is asked once more, of the last speculating server before it is stopped;
    None = not asked. Its requests stand apart, and no figure of speed is made of them."""
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    random_tokens_ok: bool = False
    """Allow acceptance claims from random tokens, which are refused otherwise."""
    concurrency: tuple[int, ...] = (1,)
    request_rate: tuple[float, ...] = ()
    requests: int | None = None
    """Requests a point; None = every prompt once, at least 5 a user."""
    repeats: int = 1
    """On each start of the server; in a pair each has a start of either side."""
    starts: int = 1
    """How often the server is started anew: a start is a sample of speed, its repeats are not."""
    with_baseline: bool = False
    """Plain decoding on the same prompts, in ABAB order over the repeats."""
    harness: Literal["own", "sglang"] = "own"
    request_timeout_s: float = 600.0
    keep_outputs: bool = True

    def __post_init__(self) -> None:
        _require_words(self)
        _require_numbers(self)
        _require_load(self)
        _require_tree(self)
        if self.attach_url is not None:
            _require_url(self.attach_url)
        require(self.model is not None or self.attach_url is not None, "`model` must name the target (or `attach_url`)")
        require(self.attach_url is None or not self.with_baseline, "`with_baseline` needs a server of our own to start")
        require(
            not self.with_baseline or self.speculates,
            "`with_baseline` compares speculation with plain decoding: it needs a `draft` (or an `algorithm` that "
            "takes none)",
        )
        require(
            self.starts == 1 or (self.attach_url is None and not self.with_baseline),
            "`starts` are of a server of our own that is measured alone: `with_baseline` starts one of either side for "
            "each of its `repeats`, and what is attached to is not started",
        )
        given = [name for name in ("num_steps", "eagle_topk", "num_draft_tokens") if getattr(self, name) is not None]
        require(
            not given or self.speculates or self.attach_url is not None,
            f"`{', '.join(given)}` without a `draft` would be left out: name the drafter's folder",
        )
        require(
            self.heldout_prompts is None or self.prompts not in ("bundled", "random"),
            "`heldout_prompts` stand beside `prompts` that are a JSONL file of training prompts",
        )
        require(
            self.sampled is None or (self.temperature == 0 and self.harness == "own" and self._may_speculate),
            "`sampled` is held against greedy answers of a speculating server: it needs `temperature` 0, a `draft` "
            "(or an algorithm without one, or `attach_url`) and the tool's own `harness`",
        )
        require(
            self.prompts != "random" or self.random_tokens_ok,
            "random tokens say nothing about acceptance: they need `random_tokens_ok`",
        )

    @property
    def repeats_in_all(self) -> int:
        """How often each load is measured, over all starts of a side."""
        return self.repeats * self.starts

    @property
    def _may_speculate(self) -> bool:
        return self.speculates or self.attach_url is not None

    @property
    def speculates(self) -> bool:
        """Whether the server is started with speculation: by a draft, an algorithm without one, or verbatim words."""
        is_verbatim = any(word.startswith("--spec") for word in self.server_args)
        return self.draft is not None or self.algorithm.upper() != "EAGLE3" or is_verbatim


def _require_words(job: BenchJob) -> None:
    """What becomes a path or a word of a command."""
    for name in (
        "model",
        "draft",
        "prompts",
        "heldout_prompts",
        "algorithm",
        "dtype",
        "quantization",
        "server_python",
        "api_key_env",
    ):
        word = getattr(job, name)
        require(word is None or (word.strip() != "" and "\0" not in word), f"`{name}` must not be empty")
    for name in ("exec_prefix", "server_args", "server_environment"):
        require(all("\0" not in word for word in getattr(job, name)), f"`{name}` must not hold a null character")
    require(all(job.exec_prefix), "`exec_prefix` must hold words")
    require(
        all(_VARIABLE.match(pair) for pair in job.server_environment),
        "`server_environment` must hold NAME=VALUE pairs",
    )


def _require_numbers(job: BenchJob) -> None:
    for name in ("ready_timeout_s", "request_timeout_s"):
        _require_within(job, name, 0.01, LONGEST_S)
    for name in ("tp", "dp", "ep", "num_steps", "eagle_topk", "num_draft_tokens", "context_length", "max_new_tokens"):
        _require_within(job, name, 1, 2**31 - 1)
    for name in ("requests", "max_prompts"):
        _require_within(job, name, 1, MOST_REQUESTS)
    _require_within(job, "repeats", 1, MOST_REPEATS)
    _require_within(job, "starts", 1, MOST_REPEATS)
    _require_within(job, "port", 1, 65535)
    _require_within(job, "mem_fraction", 0.01, 1)
    _require_within(job, "temperature", 0, 100)
    _require_within(job, "sampled", 0.01, 100)
    _require_within(job, "seed", 0, 2**32 - 1)
    require(job.top_p is None or 0 < job.top_p <= 1, f"`top_p` must be above 0 and at most 1, found: {job.top_p}")
    require(job.top_k is None or job.top_k == -1 or job.top_k >= 1, f"`top_k` must be at least 1, found: {job.top_k}")


def _require_within(job: BenchJob, name: str, least: float, most: float) -> None:
    value = getattr(job, name)
    if value is None:
        return
    require(math.isfinite(value), f"`{name}` must be finite, found: {value}")
    require(value >= least, f"`{name}` must be at least {least}, found: {value}")
    require(value <= most, f"`{name}` must be at most {most}, found: {value}")


def _require_load(job: BenchJob) -> None:
    require(bool(job.concurrency or job.request_rate), "give `concurrency` or `request_rate`")
    for users in job.concurrency:
        require(1 <= users <= MOST_USERS, f"`concurrency` must be 1 to {MOST_USERS}, found: {users}")
    for rate in job.request_rate:
        words = f"`request_rate` must be {SLOWEST_RATE:g} to {FASTEST_RATE:g} requests a second, found: {rate:g}"
        require(SLOWEST_RATE <= rate <= FASTEST_RATE, words)
    for name in ("concurrency", "request_rate"):
        loads = getattr(job, name)
        require(
            len(set(loads)) == len(loads),
            f"`{name}` names a load twice: {', '.join(map(str, loads))}; `repeats` measures each of them again",
        )


def _require_tree(job: BenchJob) -> None:
    """A verify step takes its drafts from those that the steps made: `topk` of the first, topk * topk of each other."""
    steps, topk, tokens = job.num_steps, job.eagle_topk, job.num_draft_tokens
    if steps is None or topk is None or tokens is None or topk == 1 or job.attach_url is not None:
        return  # at topk 1 the server takes num_steps + 1, whatever is asked
    made = topk + (steps - 1) * topk * topk
    require(
        tokens - 1 <= made,
        f"`num_draft_tokens` = {tokens} is more than this tree holds: `num_steps` = {steps} and `eagle_topk` = {topk} "
        f"make {made} drafts, so at most {made + 1}; the server would die of it",
    )


def _require_url(url: str) -> None:
    """The address alone: a key in it would be written wherever the address is. The message holds none of it."""
    like = "`attach_url` must be like http://127.0.0.1:30000"
    require(url.isascii() and url.isprintable() and " " not in url, f"{like}: plain letters, no spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"{like}: its port must be a number from 1 to 65535") from None
    require(parts.scheme in ("http", "https"), f"{like}: it must begin with http:// or https://")
    require(
        parts.username is None and parts.password is None and not parts.query and not parts.fragment,
        f"{like}, without a user, password or query: name the variable that holds the key as `api_key_env`",
    )
    require(bool(parts.hostname), f"{like}: it names no host")
    require(port != 0, f"{like}: its port must be a number from 1 to 65535")
