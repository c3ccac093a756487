"""How this SGLang is asked for the states: with its drafter, without one, or not at all."""

from dataclasses import dataclass
from typing import Literal

from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.capture_rule import CaptureRule

RETURNS = "--enable-return-hidden-states"
CHUNKS = "--chunked-prefill-size"
WITHOUT_DRAFT = "--enable-return-aux-hidden-states"
ALGORITHM = "--speculative-algorithm"
SMALLEST_CHUNK = 2048


@dataclass(frozen=True, kw_only=True)
class Method:
    """What to start, or why nothing is."""

    name: Literal["speculating", "aux_flag", "none"]
    words: tuple[str, ...] = ()
    """For the server, behind the job's own."""
    why_not: str | None = None


def choose(job: CaptureJob, rule: CaptureRule) -> Method:
    """By what the job names and what the installed source offers; a source that was not found is taken at its word."""
    if job.attach_url is not None:
        return Method(name="speculating")
    version = f"SGLang {rule.version}" if rule.version else "this SGLang"
    known = rule.path is not None
    if job.draft is not None:
        if known and not rule.returns_hidden:
            return Method(name="none", why_not=f"{version} has no {RETURNS}")
        return Method(name="speculating", words=(RETURNS, *_in_one_piece(job)))
    if known and not rule.returns_aux:
        return Method(name="none", why_not=f"{version} has no {WITHOUT_DRAFT}, so it needs a drafter to be asked with")
    words: tuple[str, ...] = (RETURNS, WITHOUT_DRAFT, ALGORITHM, job.algorithm)
    if job.layer_ids is not None:
        words += ("--return-aux-hidden-state-layer-ids", *map(str, job.layer_ids))
    return Method(name="aux_flag", words=(*words, *_in_one_piece(job)))


def _in_one_piece(job: CaptureJob) -> tuple[str, ...]:
    """A row must be prefilled whole; SGLang's own pieces are no smaller than `SMALLEST_CHUNK`.

    No limit at all (-1) would make it reserve memory for the longest prompt it could ever get.
    """
    own = any(word == CHUNKS or word.startswith(f"{CHUNKS}=") for word in job.server_args)
    if own or job.max_tokens <= SMALLEST_CHUNK:
        return ()
    return (CHUNKS, str(-(-job.max_tokens // SMALLEST_CHUNK) * SMALLEST_CHUNK))
