"""What is asked: prompts from a JSONL file, the bundled set or a seed, in the same order for every point and side."""

import hashlib
import json
import os
import random
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from remote_payload.failure import job_failure, rows_failure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.workload import TemplateCheck, WorkloadFacts
from remote_payload.sglang_bench.bundled import MEASURED, PASSAGES, QUESTION
from remote_payload.sglang_bench.prompt import Form, Prompt, read_row

RANDOM_PROMPTS = 64
RANDOM_TOKENS = (32, 256)
PER_USER = 5
"""Fewer requests a user do not reach a steady state, SGLang's own rule of thumb."""
_WHERE = "`prompts` is `bundled`, `random`, or a JSONL file on the server"
SAFE_VOCABULARY = 1000
"""Ids below it exist in nearly every vocabulary, where the target's own size cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The prompts that are measured, and others of the same kind for warm-ups (none where all are measured)."""

    source: str
    form: Form
    prompts: tuple[Prompt, ...]
    spare: tuple[Prompt, ...] = ()
    template: str | None = None
    """How messages became ids."""
    once: int | None = None
    """How many are asked where the job does not say; None = all."""
    heldout_from: int | None = None
    """Index of the first held-out prompt; None = the job tells no splits apart."""
    files: tuple[str, ...] = ()
    """Where they were read; with `heldout_from` two."""
    retokenised: TemplateCheck | None = None
    """What the served template makes of training rows' messages; None = no prompt holds both, or not asked yet."""

    def facts(self, job: BenchJob) -> WorkloadFacts:
        """As the result tells it."""
        known = [len(prompt.input_ids) for prompt in self.prompts if prompt.input_ids is not None]
        return WorkloadFacts(
            source=self.source,
            form=self.form,
            prompts=len(self.prompts),
            prompt_tokens=sum(known) if len(known) == len(self.prompts) else None,
            sha256=digest(self.prompts),
            prompt_sha256=tuple(map(prompt_digest, self.prompts)),
            files=self.files,
            lines=tuple(prompt.line or 0 for prompt in self.prompts) if self.files else (),
            conversations=_conversations(self.prompts),
            heldout_from=self.heldout_from,
            max_new_tokens=job.max_new_tokens,
            ignore_eos=job.ignore_eos,
            temperature=job.temperature,
            top_p=job.top_p,
            top_k=job.top_k,
            seed=job.seed,
            template=self.template,
            retokenised=self.retokenised,
        )


def load(job: BenchJob, spare: int) -> Workload:
    """The job's prompts; up to `spare` more where the source has more than are measured. Raises JobFailure(rows).

    `max_prompts` draws that many by the seed and keeps their order; without it all are measured, in order.
    """
    if job.prompts == "bundled":
        return _bundled(job)
    if job.prompts == "random":
        return _random(job, spare)
    if job.heldout_prompts is not None:
        return _both(job, spare)
    path = Path(os.path.expanduser(job.prompts))  # `~nobody` stays as it is
    kept, others = _choose(path, job, spare)
    rows = dict(_rows(path, {*kept, *others}))
    forms = sorted({form for form, _ in rows.values()})
    if len(forms) > 1:
        raise rows_failure(f"prompts of one kind are needed, {path} holds several: {', '.join(forms)}")
    form = next(form for form, _ in rows.values())
    prompts, beyond = ([replace(rows[line][1], line=line) for line in lines] for lines in (kept, others))
    return replace(_workload(str(path), form, prompts, beyond), files=(str(path),))


def _both(job: BenchJob, spare: int) -> Workload:
    """Training prompts, then held-out ones; `max_prompts` of each. Raises JobFailure(rows)."""
    train = load(replace(job, heldout_prompts=None), spare)
    heldout = load(replace(job, prompts=str(job.heldout_prompts), heldout_prompts=None), spare)
    if train.form != heldout.form:
        words = f"{train.form} in {train.source}, {heldout.form} in {heldout.source}"
        raise rows_failure(f"prompts of one kind are needed, found: {words}")
    source = f"{train.source} and, held out, {heldout.source}"
    prompts, beyond = [*train.prompts, *heldout.prompts], [*train.spare, *heldout.spare]
    both = _workload(source, train.form, prompts, beyond)
    return replace(both, heldout_from=len(train.prompts), files=(*train.files, *heldout.files))


def as_text(workload: Workload) -> Workload:
    """Messages of one turn as bare text, for a server without a chat template."""
    bare = [replace(prompt, text=_only_text(prompt), messages=None) for prompt in workload.prompts]
    spare = [replace(prompt, text=_only_text(prompt), messages=None) for prompt in workload.spare]
    return replace(workload, form="text", prompts=tuple(bare), spare=tuple(spare))


def digest(prompts: tuple[Prompt, ...]) -> str:
    """Over what is sent and its order: equal workloads have equal ones, wherever their file lies."""
    sha = hashlib.sha256()
    for prompt in prompts:
        sha.update(_sent(prompt) + b"\n")
    return sha.hexdigest()


def _conversations(prompts: tuple[Prompt, ...]) -> tuple[str, ...]:
    """A hash each: an id may be what nobody should read. A prompt that tells none is its own."""
    if all(prompt.conversation is None for prompt in prompts):
        return ()
    ids = (prompt.conversation for prompt in prompts)
    return tuple(
        _short(_sent(prompt)) if told is None else _short(f"conversation {told}".encode())
        for told, prompt in zip(ids, prompts, strict=True)
    )


def prompt_digest(prompt: Prompt) -> str:
    """By which a prompt is known again, in another run as well."""
    return _short(_sent(prompt))


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _sent(prompt: Prompt) -> bytes:
    sent = prompt.input_ids if prompt.input_ids is not None else prompt.text or prompt.messages
    return json.dumps(sent, ensure_ascii=True, sort_keys=True).encode()


def _workload(source: str, form: Form, prompts: list[Prompt], spare: list[Prompt]) -> Workload:
    numbered = tuple(replace(prompt, index=index) for index, prompt in enumerate(prompts))
    beyond = tuple(replace(prompt, index=len(numbered) + index) for index, prompt in enumerate(spare))
    return Workload(source=source, form=form, prompts=numbered, spare=beyond)


def _bundled(job: BenchJob) -> Workload:
    """As many as the largest point asks for; later rounds begin otherwise, so that no prefix is in the cache yet."""
    once = min(job.max_prompts or MEASURED, MEASURED)
    count = max(once, job.requests or PER_USER * max(job.concurrency, default=0))
    prompts = [_about(PASSAGES[index % once], index // once) for index in range(count)]
    made = _workload("bundled", "messages", prompts, [_about(passage, 0) for passage in PASSAGES[MEASURED:]])
    return replace(made, once=once)


def _about(passage: str, reading: int) -> Prompt:
    numbered = f"Reading {reading + 1}. " if reading else ""
    return Prompt(index=0, messages=({"role": "user", "content": f"{numbered}{passage}\n\n{QUESTION}"},))


def _random(job: BenchJob, spare: int) -> Workload:
    draw = random.Random(job.seed)  # noqa: S311 - prompts, not secrets
    vocabulary = vocabulary_of(job.model) or SAFE_VOCABULARY

    def prompt() -> Prompt:
        length = draw.randint(*RANDOM_TOKENS)
        return Prompt(index=0, input_ids=tuple(draw.randrange(3, vocabulary) for _ in range(length)))

    count = job.max_prompts or RANDOM_PROMPTS
    return _workload("random", "random", [prompt() for _ in range(count)], [prompt() for _ in range(spare)])


def require_vocabulary(workload: Workload, model: str | None) -> None:
    """Raise JobFailure(rows) for an id beyond the target's vocabulary: one such request ends a whole SGLang server."""
    size = vocabulary_of(model)
    for prompt in (*workload.prompts, *workload.spare) if size is not None else ():
        largest = max(prompt.input_ids or (0,))
        if size is not None and largest >= size:
            raise rows_failure(
                f"prompt {prompt.index}: expected token ids below {size}, the target's vocabulary, found: {largest}",
                hint="these rows were made with another tokenizer",
            )


def vocabulary_of(model: str | None) -> int | None:
    """By the target's config.json; None where it is no folder that can be read here."""
    try:
        config = json.loads(Path(os.path.expanduser(model or ""), "config.json").read_bytes())
        size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return size if isinstance(size, int) and size > 3 else None


def _choose(path: Path, job: BenchJob, spare: int) -> tuple[list[int], list[int]]:
    """Line numbers that are measured, and others for warm-ups. Raises JobFailure(rows)."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise job_failure(f"`prompts` is no file: {path}", hint=_WHERE)
        with path.open("rb") as file:
            lines = [number for number, line in enumerate(file, 1) if line.strip()]
    except OSError as error:
        raise job_failure(f"the prompts cannot be read ({error.strerror}): {path}", hint=_WHERE) from None
    if not lines:
        raise rows_failure(f"expected a line of JSON a prompt, the file holds none: {path}")
    draw = random.Random(job.seed)  # noqa: S311 - a sample, not a secret
    count = min(job.max_prompts or len(lines), len(lines))
    kept = sorted(draw.sample(lines, count))
    rest = sorted(set(lines) - set(kept))
    return kept, sorted(draw.sample(rest, min(spare, len(rest))))


def _rows(path: Path, wanted: set[int]) -> Iterator[tuple[int, tuple[Form, Prompt]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number in wanted:
                yield number, read_row(line, f"line {number} of {path}")


def _only_text(prompt: Prompt) -> str:
    return "\n\n".join(str(turn.get("content", "")) for turn in prompt.messages or ())
