"""Whose folders a server that is up serves, by its own word, where nobody named them."""

import dataclasses

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.keeping import asked_of
from orchestrator.diagnosing.lease import Lease
from orchestrator.order import at_host
from orchestrator.remote.session import WIRING_S, HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store.diagnoses import find_diagnosis
from orchestrator.updates import Note
from remote_payload.schema import BenchJob
from remote_payload.schema.capture_rule import WiringFacts, WiringRequest
from remote_payload.schema.frames import WiringFrame

STAGE = "lint"


def with_served_names(asked: Asked, config: Config, lease: Lease) -> Asked:
    """The question with the folders that its server names, where it serves such of that very host.

    Those that were told before stand: a diagnosis goes on about what it was of. Raises HostError and its kin.
    """
    host = lease.session.host
    job = at_host(asked.serve(config), lease.session.name, host).job
    if not isinstance(job, BenchJob) or job.attach_url is None or job.exec_prefix or host.scheduler is not None:
        return asked
    model, draft = asked.model or job.model, asked.draft or job.draft
    if model is not None and draft is not None:
        return asked
    known = find_diagnosis(lease.store.home, asked.diagnosis_id)
    before = None if known is None or known.host != lease.session.name else asked_of(known)
    if before is not None and (before.model or before.draft) and _is_same_server(before, asked):
        return dataclasses.replace(asked, model=asked.model or before.model, draft=asked.draft or before.draft)
    told = _told(lease.session, job.attach_url, model or "", draft or "")
    named = {"target": told.told_model, "drafter": told.told_draft}
    words = ", ".join(f"{what} {folder}" for what, folder in named.items() if folder is not None)
    if words:
        lease.tell(Note(name=STAGE, text=f"by the word of the server that is up, nobody else named them: {words}"))
    return dataclasses.replace(asked, model=asked.model or told.told_model, draft=asked.draft or told.told_draft)


def _is_same_server(before: Asked, asked: Asked) -> bool:
    return bool(before.serving.get("attach_url") == asked.serving.get("attach_url"))


def _told(session: HostSession, url: str, model: str, draft: str) -> WiringFacts:
    """What is empty of both, as the server names it."""
    python, root = session.installed().python, session.host.root
    request = WiringRequest(nonce=new_nonce(), root=root, model=model, draft=draft, python=python, attach_url=url)
    return session.ask("wiring", request, WiringFrame, WIRING_S).facts
