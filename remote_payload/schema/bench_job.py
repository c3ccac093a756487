"""The served benchmark's job: which SGLang to start or attach to, how to load it, with what."""

from typing import Literal

from remote_payload.schema.record import Record, require, require_finite


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
    max_prompts: int | None = None
    max_new_tokens: int = 256
    ignore_eos: bool = False
    temperature: float = 0.0
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
    with_baseline: bool = False
    """Plain decoding on the same prompts, in ABAB order over the repeats."""
    harness: Literal["own", "sglang"] = "own"
    request_timeout_s: float = 600.0
    keep_outputs: bool = True

    def __post_init__(self) -> None:
        require_finite(ready_timeout_s=self.ready_timeout_s, request_timeout_s=self.request_timeout_s)
        require(self.model is not None or self.attach_url is not None, "`model` must name the target (or `attach_url`)")
        require(self.attach_url is None or not self.with_baseline, "`with_baseline` needs a server of our own to start")
        for name in ("tp", "dp", "ep", "repeats", "max_new_tokens"):
            require(getattr(self, name) >= 1, f"`{name}` must be at least 1, found: {getattr(self, name)}")
        require(all(users >= 1 for users in self.concurrency), "`concurrency` must be 1 or more")
        require(all(rate > 0 for rate in self.request_rate), "`request_rate` must be above 0")
        require(bool(self.concurrency or self.request_rate), "give `concurrency` or `request_rate`")
        require(all(word and "\0" not in word for word in self.exec_prefix), "`exec_prefix` must hold words")
        require(all("=" in pair for pair in self.server_environment), "`server_environment` must hold NAME=VALUE pairs")
        require(
            self.prompts != "random" or self.random_tokens_ok,
            "random tokens say nothing about acceptance: they need `random_tokens_ok`",
        )
