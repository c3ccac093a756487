"""A capture from job to result files: look -> server -> training rows -> prompts -> `capture.json`.

The rows that were made lie in the run's folder on the host: `captured/train` (training rows), `captured/answered`
(answers to training prompts) and `captured/heldout` (answers to held-out ones). States are large, and the standalone
test that reads them runs there.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from remote_payload.failure import job_failure, server_failure
from remote_payload.rundir import write_atomically
from remote_payload.schema.bench import ServerFacts
from remote_payload.schema.capture import CapturedAnswer, CapturedRows, CaptureResult
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.record import SchemaError, parse_json, to_json
from remote_payload.schema.run import Event
from remote_payload.served_capture.configs import config_text
from remote_payload.served_capture.fetch import Fetched, NotReturnedError, RowRefusedError, answer_of, fetch
from remote_payload.served_capture.installed_source import installed_rule
from remote_payload.served_capture.method import Method, choose
from remote_payload.sglang_bench import workload
from remote_payload.sglang_bench.attached import attach
from remote_payload.sglang_bench.folders import DRAFT, asked_folder, named_folder, own_folder, require_folders
from remote_payload.sglang_bench.progress import Journal, Report
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.starting import start
from remote_payload.standalone.capture.identify import Identifier
from remote_payload.standalone.capture.served_rows import RowWriter, as_tensor
from remote_payload.standalone.capture.training_rows import embedding_of, require_possible, sizes_of, training_rows
from remote_payload.standalone.rows.row import Row

RESULT_NAME = "capture.json"
FOLDER = "captured"
Split = Literal["train", "answered", "heldout"]
SPLITS: tuple[Split, ...] = ("train", "answered", "heldout")


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """One row to fetch: its tokens, where its prompt ends, whence it came, and its training row if it is one."""

    tokens: tuple[int, ...]
    prompt: int
    source: str
    row: Row | None = None
    digest: str | None = None
    """Of the prompt that it answers."""


def run(job: CaptureJob, result_folder: Path, report: Report) -> None:
    """Ask a server of ours, or one that is up, for its states; leaves `capture.json`. Raises JobFailure."""
    began_s = time.monotonic()
    journal = Journal(report)
    with torch.inference_mode():
        result = _Capture(job, result_folder, journal).run()
    result = replace(result, seconds=time.monotonic() - began_s, warnings=tuple(journal.warnings))
    write_atomically(result_folder / RESULT_NAME, to_json(result).encode())


class _Capture:
    """What one capture gathers on its way."""

    def __init__(self, job: CaptureJob, folder: Path, journal: Journal) -> None:
        self._job, self._folder, self._journal = job, folder, journal
        journal.phase("look")
        require_folders(job.bench(()))
        self._target, self._draft = config_text(job.model), config_text(job.draft)
        self._sizes = sizes_of(self._target, self._draft)
        require_possible(job, self._sizes)
        self._rows, self._skipped = training_rows(job, self._sizes)
        trained_on = None if job.heldout_prompts is None else job.prompts
        self._prompts: dict[str, tuple[Prompt, ...]] = {
            "answered": self._asked(trained_on),
            "heldout": self._asked(job.heldout_prompts or job.prompts),
        }
        self._identifier = Identifier(job.states, embedding_of(job.model, self._sizes))
        self._width: int | None = None

    def _asked(self, file: str | None) -> tuple[Prompt, ...]:
        """A file's prompts. Raises JobFailure(rows); JobFailure(job) where they are no ids and rows are missing."""
        if file is None:
            return ()
        found = workload.load(replace(self._job.bench(()), prompts=file), 0)
        if found.form == "token_ids":
            workload.require_vocabulary(found, self._job.model)
            return found.prompts
        message = f"prompts must hold `input_ids`, found {found.form} in: {file}"
        if not self._rows:
            hint = "a merged JSONL of the data's own format is one; `n_prompt_tokens` says where a prompt ends"
            raise job_failure(message, hint=hint)
        self._journal.warn("prompts", f"{message}; they are not asked")
        return ()

    def run(self) -> CaptureResult:
        """Everything but how long it took. Raises JobFailure."""
        rule = installed_rule(self._job, self._target)
        method = choose(self._job, rule)
        result = CaptureResult(
            method=method.name,
            why_not=method.why_not,
            sglang_version=rule.version,
            rule=rule if rule.path is not None else None,
            draft_config=self._draft,
            target_config=self._target,
            hidden_size=self._sizes.hidden_size,
            seconds=0.0,
        )
        if method.why_not is not None:
            return result
        made: list[CapturedRows] = []
        running = self._running(method)
        try:
            made = [self._split(running, split) for split in SPLITS]
            _require_some(made)
        except NotReturnedError as refused:
            result = replace(result, method="none", why_not=f"the server returns no states: {refused}")
        finally:
            facts = self._stop(running)
        return replace(
            result,
            server=facts,
            sglang_version=result.sglang_version or _told(facts, "version"),
            draft=self._draft_folder(facts),
            asked_draft=asked_folder(self._job.bench(()), self._job.draft),
            width=self._width,
            served=self._identifier.found() if self._identifier.rows else (),
            compared_rows=self._identifier.rows,
            compared_tokens=self._identifier.tokens,
            captured_states=self._identifier.captured,
            made=tuple(split for split in made if split.asked),
        )

    def _running(self, method: Method) -> Running:
        job = self._job.bench(method.words)
        if job.attach_url is not None:
            return attach(job, self._journal.pass_on)
        return start(job, "spec", 0, self._folder, self._journal.pass_on)

    def _stop(self, running: Running) -> ServerFacts:
        if not running.facts.attached:
            self._journal.phase("stop")
        return running.stop()

    def _draft_folder(self, facts: ServerFacts) -> FolderFacts | None:
        job = self._job.bench(())
        return named_folder(job, _told(facts, DRAFT)) if facts.attached else own_folder(job, job.draft)

    def _split(self, running: Running, split: Split) -> CapturedRows:
        """Fetch one split's rows. Raises NotReturnedError, JobFailure(server)."""
        asked = len(self._rows) if split == "train" else len(self._prompts[split])
        writer = RowWriter(self._folder.parent / FOLDER / split) if asked else None
        skipped = list(self._skipped) if split == "train" else []
        answers: list[CapturedAnswer] = []
        if writer is not None:
            self._journal.phase(split, f"{asked} row(s)")
            rows = self._training() if split == "train" else self._answers(running, self._prompts[split], skipped)
            for number, wanted in enumerate(rows):
                self._tell(split, number, asked)
                try:
                    self._keep(fetch(running, wanted.tokens, self._job.request_timeout_s), wanted, writer)
                except (RowRefusedError, ValueError) as error:
                    skipped.append(f"{wanted.source}: {error}")
                    continue
                if wanted.digest is not None and self._job.keep_outputs:
                    answer = tuple(wanted.tokens[wanted.prompt :])
                    answers.append(CapturedAnswer(prompt_sha256=wanted.digest, output_ids=answer))
        return CapturedRows(
            split=split,
            folder="" if writer is None else str(writer.folder),
            rows=0 if writer is None else writer.rows,
            tokens=0 if writer is None else writer.tokens,
            asked=asked,
            skipped=tuple(skipped),
            answers=tuple(answers),
        )

    def _keep(self, fetched: Fetched, wanted: _Wanted, writer: RowWriter) -> None:
        self._width = len(fetched.states[0])
        states = as_tensor(fetched.states, self._sizes.hidden_size)
        writer.write(states, fetched.tokens, fetched.answers, wanted.prompt, wanted.source)
        if wanted.row is not None:
            self._identifier.add(states, wanted.row)

    def _training(self) -> Iterator[_Wanted]:
        for row in self._rows:
            tokens = tuple(row.tokens[: self._job.max_tokens].tolist())
            prompt = min(max(1, row.prompt_tokens), len(tokens) - 1)
            yield _Wanted(tokens=tokens, prompt=prompt, source=row.source or row.name, row=row)

    def _answers(self, running: Running, prompts: Sequence[Prompt], skipped: list[str]) -> Iterator[_Wanted]:
        job = self._job
        for one in prompts:
            prompt, digest = one.input_ids or (), workload.prompt_digest(one)
            source = f"prompt {digest} greedy"
            try:
                answer = answer_of(
                    running, prompt, job.max_new_tokens, job.request_timeout_s, ignore_eos=job.ignore_eos
                )
            except RowRefusedError as error:
                skipped.append(f"{source}: {error}")
                continue
            tokens = (*prompt, *answer)[: job.max_tokens]
            if len(tokens) <= len(prompt):
                skipped.append(f"{source}: its {len(prompt)} tokens leave no room for an answer")
                continue
            yield _Wanted(tokens=tokens, prompt=len(prompt), source=source, digest=digest)

    def _tell(self, split: str, done: int, total: int) -> None:
        self._journal.pass_on(
            Event(time_unix_s=time.time(), kind="progress", name=split, done=done, total=total, unit="rows")
        )


def _require_some(made: Sequence[CapturedRows]) -> None:
    """Raise JobFailure(server) where no row came at all."""
    if not any(split.rows for split in made):
        skipped = tuple(reason for split in made for reason in split.skipped)
        raise server_failure(f"not one of {sum(one.asked for one in made)} row(s) could be had", details=skipped[:5])


def _told(facts: ServerFacts, name: str) -> str | None:
    """A word of a server's own `/server_info`."""
    with contextlib.suppress(SchemaError):
        told = parse_json(facts.server_info or "{}", "an object")
        word = told.get(name) if isinstance(told, dict) else None
        return word if isinstance(word, str) else None
    return None
