"""The job that asks a running SGLang which of the target's states it feeds its drafter."""

from typing import Literal

from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.record import Record, require

MOST_ROWS = 10_000
MOST_TOKENS = 1_000_000


class CaptureJob(Record):
    """Fetch the states that SGLang feeds its drafter, keep them as rows, and find them among the captured ones.

    Paths are on the server. What names the server means what it means in `BenchJob`.
    """

    kind: Literal["capture"] = "capture"
    model: str | None = None
    """Folder of the target; its `config.json` tells how wide a state is."""
    draft: str | None = None
    """Folder of the drafter, served as it would be; None = the states that `layer_ids` name, without any drafter."""
    layer_ids: tuple[int, ...] | None = None
    """Without `draft`: ids in SGLang's own counting; None = its defaults for the target's class."""
    algorithm: str = "EAGLE3"
    num_steps: int | None = None
    eagle_topk: int | None = None
    num_draft_tokens: int | None = None
    """Only how far the served drafter drafts; what it is fed does not depend on them."""
    rows: str | None = None
    """Folder of captured training rows, in any dialect of the standalone test: what the served states are held
    against."""
    merged: str | None = None
    states: tuple[int, ...] | None = None
    """HF `hidden_states` index of each captured state of `rows`; None = unlabelled."""
    trained: tuple[int, ...] | None = None
    """HF `hidden_states` indices that the drafter was trained on, in the order of its fc; None = nobody said."""
    prompts: str | None = None
    """JSONL of held-out prompts (`input_ids`, with n_prompt_tokens): answered greedily, and captured as rows. Training
    prompts where `heldout_prompts` names others."""
    heldout_prompts: str | None = None
    """JSONL of held-out prompts beside `prompts`, as in `BenchJob`; None = the job tells no splits apart."""
    max_rows: int = 8
    """Training rows fetched."""
    max_prompts: int = 8
    """Of each file, drawn by `seed` as `BenchJob` draws them."""
    seed: int = 0
    max_new_tokens: int = 64
    ignore_eos: bool = False
    """Answer on past the end of an answer: whoever walks them up to that end needs the tokens behind it."""
    keep_outputs: bool = True
    """Bring the answers' token ids home: what was served is then held against them, token by token."""
    max_tokens: int = 512
    """Tokens of a row that are fetched, from its start: a token's states are text on the wire, 20 bytes a number."""
    tp: int = 1
    dp: int = 1
    ep: int = 1
    dtype: str = "auto"
    quantization: str | None = None
    draft_quantization: str | None = None
    context_length: int | None = None
    mem_fraction: float | None = None
    server_args: tuple[str, ...] = ()
    server_environment: tuple[str, ...] = ()
    exec_prefix: tuple[str, ...] = ()
    server_python: str | None = None
    attach_url: str | None = None
    """A server that is up already, started with `--enable-return-hidden-states`; it is left running."""
    api_key_env: str | None = None
    port: int | None = None
    ready_timeout_s: float = 1800.0
    request_timeout_s: float = 600.0

    def __post_init__(self) -> None:
        # A flag that belongs to rows comes first: with it alone, prompts are not what is missing.
        require(self.merged is None or self.rows is not None, "`merged` belongs to `rows`: give their folder as well")
        labels = "`states` label the captured states of `rows`: give their folder as well"
        require(self.states is None or self.rows is not None, labels)
        require(self.rows is not None or self.prompts is not None, "give `rows`, `prompts` or both")
        require(
            self.heldout_prompts is None or self.prompts is not None,
            "`heldout_prompts` come beside training `prompts`; alone, name them as `prompts`",
        )
        for name in ("rows", "merged", "prompts", "heldout_prompts"):
            word = getattr(self, name)
            require(word is None or bool(word.strip()), f"`{name}` must not be empty")
        require(self.prompts not in ("bundled", "random"), "`prompts` must be a JSONL file of token ids on the server")
        for name, most in (("max_rows", MOST_ROWS), ("max_prompts", MOST_ROWS), ("max_tokens", MOST_TOKENS)):
            value = getattr(self, name)
            require(1 <= value <= most, f"`{name}` must be 1 to {most}, found: {value}")
        require(self.layer_ids is None or self.draft is None, "`layer_ids` are of a server without a `draft`")
        require(self.layer_ids is None or self.attach_url is None, "`layer_ids` need a server of our own to start")
        require(
            self.layer_ids is None or (min(self.layer_ids, default=-1) >= 0),
            "`layer_ids` must be 0 or more: SGLang captures no others without a drafter",
        )
        for name in ("states", "trained"):
            indices = getattr(self, name)
            require(
                indices is None or (bool(indices) and min(indices) >= 0 and len(set(indices)) == len(indices)),
                f"`{name}` must be different HF hidden_states indices, 0 or more",
            )
        self.bench(())  # what names the server is checked where it is used

    def bench(self, further: tuple[str, ...]) -> BenchJob:
        """The served benchmark's job that starts, or finds, the same server; `further`: more words for it.

        Raises ValueError where there is no such server.
        """
        return BenchJob(
            model=self.model,
            draft=self.draft,
            algorithm=self.algorithm,
            num_steps=self.num_steps,
            eagle_topk=self.eagle_topk,
            num_draft_tokens=self.num_draft_tokens,
            tp=self.tp,
            dp=self.dp,
            ep=self.ep,
            dtype=self.dtype,
            quantization=self.quantization,
            draft_quantization=self.draft_quantization,
            context_length=self.context_length,
            mem_fraction=self.mem_fraction,
            server_args=(*self.server_args, *further),
            server_environment=self.server_environment,
            exec_prefix=self.exec_prefix,
            server_python=self.server_python,
            attach_url=self.attach_url,
            api_key_env=self.api_key_env,
            port=self.port,
            ready_timeout_s=self.ready_timeout_s,
            request_timeout_s=self.request_timeout_s,
            prompts=self.prompts or "bundled",
            max_prompts=self.max_prompts,
            seed=self.seed,
            ignore_eos=self.ignore_eos,
            max_new_tokens=self.max_new_tokens,
        )
