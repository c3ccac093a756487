"""What a diagnosis is asked about: the pair, the samples, the server; and how far it may go."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import UsageError
from orchestrator.jobfile import PlannedJob
from remote_payload.schema import BenchJob

LONGEST_ID = 60
"""Characters of a diagnosis's id: its stages' run ids are made of it."""
SAMPLES = ("rows", "merged", "states", "heldout", "heldout_merged")
"""Flags that the standalone test alone takes."""
LONGEST_DRAFT = 16
"""Tokens that a draft has at most where nobody says how many steps are made."""
LONGEST_PROMPT = 512
"""Tokens of a prompt that are captured with its answer, unless eagle3.toml says another `max_tokens`."""
OF_SERVER = ("model", "draft", "algorithm", "num_steps", "eagle_topk", "num_draft_tokens", "tp", "dp", "ep", "dtype",
             "quantization", "draft_quantization", "context_length", "mem_fraction", "server_args",
             "server_environment", "exec_prefix", "server_python", "attach_url", "api_key_env", "port",
             "ready_timeout_s", "request_timeout_s")  # fmt: skip
"""Settings of a served benchmark that name its server: a capture starts the same one."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One diagnosis. Flags are those of the commands that run its stages alone; None = not given."""

    diagnosis_id: str
    model: str | None
    draft: str | None
    samples: Mapping[str, Any] = field(default_factory=dict)
    """Of `SAMPLES`."""
    serving: Mapping[str, Any] = field(default_factory=dict)
    """Flags of `run bench`, `model` and `draft` among them."""
    trained: str | None = None
    """The states that the drafter was trained on, as the trainer says, e.g. `embed,2,4`."""
    only_training: bool = False
    """Whether the prompts are training prompts where no held-out ones stand beside them."""
    job_file: Path | None = None
    """A job file of the served benchmark."""
    deep: bool = False
    """Every stage, also where the cause is certain before."""
    budget_s: float | None = None
    """No stage begins, or goes on, after so many seconds."""
    again: bool = False
    """A stage that failed before is run anew."""

    def __post_init__(self) -> None:
        if len(self.diagnosis_id) > LONGEST_ID:
            raise UsageError(f"a diagnosis's id has at most {LONGEST_ID} characters, found: {self.diagnosis_id}")

    @property
    def trained_states(self) -> tuple[int, ...] | None:
        """`trained` as HF `hidden_states` indices. Raises JobFileError."""
        return None if self.trained is None else tuple(jobfile.parse_states(self.trained, "--trained"))

    @property
    def has_rows(self) -> bool:
        """Whether there are captured training rows."""
        return self.samples.get("rows") is not None

    def run_id(self, stage: str) -> str:
        """The id of the run that is one stage of this diagnosis."""
        return f"{self.diagnosis_id}.{stage}"

    def offline(self, config: Config) -> PlannedJob:
        """The standalone test on the captured rows. Raises JobFileError."""
        return jobfile.plan("standalone", config, None, {"draft": self.draft, "target": self.model, **self.samples})

    def serve(self, config: Config, **changes: Any) -> PlannedJob:
        """The served benchmark. Raises JobFileError."""
        return jobfile.plan("bench", config, self.job_file, {**self.serving, **changes})

    def capture(self, config: Config) -> PlannedJob:
        """The capture from the same server, of answers to the same prompts. Raises JobFileError.

        Its answers go on past what is served, so that the last draft of a request is judged whole.
        """
        served = self.serve(config).job
        assert isinstance(served, BenchJob)
        base = BenchJob(model="target")
        server = {key: getattr(served, key) for key in OF_SERVER if getattr(served, key) != getattr(base, key)}
        listed = {key: list(value) if isinstance(value, tuple) else value for key, value in server.items()}
        samples = {key: self.samples.get(key) for key in ("rows", "merged", "states")}
        tokens = served.max_new_tokens + max(LONGEST_DRAFT, served.num_steps or 0) + 1
        answers = {
            "prompts": None if served.prompts in ("bundled", "random") else served.prompts,
            "heldout_prompts": served.heldout_prompts,
            "max_prompts": served.max_prompts,
            "seed": served.seed,
            "max_new_tokens": tokens,
            "ignore_eos": True,
            **({} if served.keep_outputs else {"keep_outputs": False}),
        }
        told = {"trained": self.trained} if self.has_rows else {}
        if served.attach_url is not None:  # as the server names them, where nobody else did
            named = {"model": self.model, "draft": self.draft}
            listed |= {key: value for key, value in named.items() if value is not None and listed.get(key) is None}
        longest = config.jobs.get("capture", {}).get("max_tokens", LONGEST_PROMPT + tokens)
        return jobfile.plan("capture", config, None, {**listed, **samples, **answers, **told, "max_tokens": longest})

    def named(self, host: str, config: Config) -> tuple[Any, ...]:
        """Records that name the host, what is planned for it, and who told a step's cost. Raises JobFileError."""
        costs = [{"source": table.get("source")} for table in config.step_costs]
        hosts = [{"host": name} for name in (host, *config.hosts)]  # a word that names none is told with all of them
        return *hosts, config.host(host), self.serve(config).job, {"step_costs": costs}

    def with_draft(self, draft: str, suffix: str) -> "Asked":
        """The same about another folder of the drafter, greedily; plain decoding is as fast as it was, not run."""
        serving = {key: value for key, value in self.serving.items() if key not in ("with_baseline", "sampled")}
        return dataclasses.replace(
            self, diagnosis_id=f"{self.diagnosis_id}.{suffix}", draft=draft, serving={**serving, "draft": draft}
        )
