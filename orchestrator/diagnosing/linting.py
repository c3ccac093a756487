"""The look before any stage: both config.json, the installed SGLang's source, and what this laptop knows of the cost.

It starts nothing on the host, and what it read is kept: the same diagnosis again asks no host for it.
"""

import dataclasses
import json
import time

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.earlier import earlier_cost
from orchestrator.diagnosing.keeping import asked_json, asked_of
from orchestrator.diagnosing.possible import require_models
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.planned import Planned
from orchestrator.diagnosis.pipeline_stages import stages_asked
from orchestrator.errors import HostNotReadyError
from orchestrator.following import Tell
from orchestrator.order import at_host
from orchestrator.records.diagnosis import DiagnosisRecord
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.store.diagnoses import find_diagnosis, keep_diagnosis
from orchestrator.sweep.chains import is_chained
from orchestrator.updates import Note
from remote_payload.schema import BenchJob
from remote_payload.schema.capture_rule import WiringFacts

STAGE = "lint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Looked:
    """What was read, and the results to begin with."""

    record: DiagnosisRecord
    results: Results

    def keep(self, store: Store) -> None:
        """Keep it in place of what was asked before. Raises StoreError; what could not be read again is not kept."""
        asked_of(self.record)
        keep_diagnosis(store.home, self.record)


def look(asked: Asked, config: Config, session: HostSession, store: Store, tell: Tell) -> Looked:
    """Read, unless that is known. Raises HostError and its kin, StoreError, JobFileError, CheckpointError.

    The last where a folder that a path names has no config.json on the host. Nothing is kept yet.
    """
    about = _about(asked, config, session)
    known = find_diagnosis(store.home, asked.diagnosis_id)
    if known is None or known.host != session.name or known.about_json != about:
        facts, why_not = _read(asked, config, session)
        known = DiagnosisRecord(
            diagnosis_id=asked.diagnosis_id,
            created_unix_s=time.time(),
            host=session.name,
            asked_json=asked_json(asked),
            about_json=about,
            facts=facts,
            why_not=why_not,
        )
    tell(Note(name=STAGE, text=read_words(known.facts, known.why_not)))
    if known.facts is not None and session.host.scheduler is None and not _server(asked, config, session).exec_prefix:
        require_models(known.facts, session.name, asked.model, asked.draft)
    record = dataclasses.replace(known, asked_json=asked_json(asked), runs=())
    return Looked(record=record, results=results_of(known, asked, config, store))


def read_words(facts: WiringFacts | None, why_not: str | None) -> str:
    """What was read, what was not, and why."""
    if facts is None:
        return f"nothing was read: {why_not}"
    has_source = facts.rule.path is not None
    version = facts.rule.version or "of unknown version"
    parts = {
        "the target's config.json": facts.target_config is not None,
        "the drafter's config.json": facts.draft_config is not None,
        f"the source of SGLang {version}" if has_source else "an installed SGLang's source": has_source,
    }
    read, missing = ([part for part, is_read in parts.items() if is_read is wanted] for wanted in (True, False))
    told = [f"read: {', '.join(read)}"] if read else []
    told += [f"not read: {', '.join(missing)}{'' if why_not is None else f' ({why_not})'}"] if missing else []
    return "; ".join(told)


def results_of(known: DiagnosisRecord, asked: Asked, config: Config, store: Store) -> Results:
    """What a kept look says. Raises StoreError, JobFileError."""
    planned = planned_of(asked, config, known.facts)
    earlier = None if planned is None else earlier_cost(asked, config, store, known.host)
    return Results(
        facts=known.facts,
        has_budget=asked.budget_s is not None,
        pipeline_stages=_pipeline_stages(asked, config),
        planned=planned,
        earlier=earlier,
        named=asked.named(known.host, config),
    )


def _pipeline_stages(asked: Asked, config: Config) -> int:
    job = asked.serve(config).job
    return stages_asked(job.server_args) if isinstance(job, BenchJob) else 1


def planned_of(asked: Asked, config: Config, facts: WiringFacts | None) -> Planned | None:
    """The server as it will be asked for; None where none is started for this pair. Raises JobFileError."""
    job = asked.serve(config).job
    if not isinstance(job, BenchJob) or job.draft is None or job.attach_url is not None:
        return None
    rule = None if facts is None else facts.rule
    return Planned(
        num_steps=job.num_steps,
        eagle_topk=job.eagle_topk,
        num_draft_tokens=job.num_draft_tokens,
        is_chain=is_chained(job.algorithm) and job.eagle_topk == 1 and job.num_steps is not None,
        sglang_version=None if rule is None else rule.version,
        forces_draft_tokens=None if rule is None else rule.forces_draft_tokens,
        draft_config=None if facts is None else facts.draft_config,
        target_config=None if facts is None else facts.target_config,
        fc_shape=None if facts is None else facts.fc_shape,
    )


def _server(asked: Asked, config: Config, session: HostSession) -> BenchJob:
    """The benchmark as this host would run it, whoever said so: a flag, a job file, eagle3.toml."""
    job = at_host(asked.serve(config), session.name, session.host).job
    assert isinstance(job, BenchJob)
    return job


def _about(asked: Asked, config: Config, session: HostSession) -> str:
    """What the look depends on."""
    job = _server(asked, config, session)
    return json.dumps([job.model, job.draft, job.server_python, list(job.exec_prefix), job.attach_url])


def _read(asked: Asked, config: Config, session: HostSession) -> tuple[WiringFacts | None, str | None]:
    job = _server(asked, config, session)
    if planned_of(asked, config, None) is None or job.model is None or job.draft is None:
        return None, "it takes both models' folders (--model, --draft) and a server that is still to be started"
    try:
        return session.wiring(job.model, job.draft, job.server_python, None, job.exec_prefix), None
    except HostNotReadyError as lacking:  # no SGLang where the drafter is tested: both configs can be read all the same
        own = session.installed().python
        return session.wiring(job.model, job.draft, own, None, job.exec_prefix), lacking.message
