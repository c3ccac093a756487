"""What of a diagnosis is private: everything that was asked, that its host's table says, and that its runs name."""

import dataclasses
import getpass
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.config import Config, HostConfig
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.served_template import SHOWN
from orchestrator.report.private_names import private_in
from orchestrator.report.redaction import Redaction
from orchestrator.updates import LogArrived, Note, Progressed, StateChanged, Update
from remote_payload.schema import RunState

SHORTEST_SECRET = 4
"""Characters; a shorter value is part of too many words."""
_MARK = re.compile(r"<[|/]?[\w|]{1,40}>|\[/?[A-Z_]{1,20}\]")
"""A tag of a chat template: nobody's."""
_WORD = re.compile(r"[^\W\d_]{3}")
OF_SERVER = ("model_path", "tokenizer_path", "served_model_name", "speculative_draft_model_path", "host")
"""What a server says about itself that somebody chose."""


def redaction(found: Diagnosed) -> Redaction:
    """What takes hosts, accounts, addresses, paths and secrets out of texts and values about this diagnosis."""
    records = [*found.results.named, *found.results.records.values(), *_found(found.known)]
    return _redaction(found.asked, records, quoted=[*_quoted(found.known)])


def redaction_before(asked: Asked, host: str, config: Config) -> Redaction:
    """The same while nothing ran yet. Raises JobFileError."""
    return _redaction(asked, asked.named(host, config))


def update_without(update: Update, private: Redaction) -> Update:
    """An update without what is private in it, what a job prints among it; ids and the format's own words stay."""
    if isinstance(update, LogArrived):
        text = private.text(update.data.decode(errors="replace"))
        return dataclasses.replace(update, data=text.encode())
    if isinstance(update, Note):
        return dataclasses.replace(update, text=private.text(update.text))
    if isinstance(update, Progressed):
        event = dataclasses.replace(update.event, message=private.text(update.event.message))
        return dataclasses.replace(update, event=event)
    if isinstance(update, StateChanged):
        return dataclasses.replace(update, state=_state_without(update.state, private))
    return dataclasses.replace(update, reason=private.text(update.reason))


def _state_without(state: RunState, private: Redaction) -> RunState:
    failure, note = state.failure, state.note
    if failure is not None:
        hint = None if failure.hint is None else private.text(failure.hint)
        details = tuple(private.text(line) for line in failure.details)
        failure = dataclasses.replace(failure, message=private.text(failure.message), hint=hint, details=details)
    return dataclasses.replace(state, failure=failure, note=None if note is None else private.text(note))


def _found(known: Known) -> Iterator[Any]:
    """What results name: the models that were read, and how a server was started or calls itself."""
    if known.offline is not None:
        checkpoint = known.offline.measured.result.checkpoint
        yield {"draft": checkpoint.draft, "target": checkpoint.target}
    for server in () if known.served is None else known.served.result.servers:
        yield {"server_args": server.argv}
        said = json.loads(server.server_info or "{}")
        yield {key: said.get(key) for key in OF_SERVER} if isinstance(said, dict) else None


def _quoted(known: Known) -> Iterator[str]:
    """What is quoted of somebody's prompts and system prompts, and the ids that spell it; a template's marks stay."""
    told = None if known.served is None else known.served.result.workload.retokenised
    for edit in (edit for row in (() if told is None else told.rows) for edit in row.edits):
        for ids, texts in ((edit.trained, edit.trained_text), (edit.served, edit.served_text)):
            if len(ids) > 1 and (texts is None or _WORD.search(_MARK.sub("", "".join(texts[:SHOWN])))):
                yield ", ".join(map(str, ids[:SHOWN]))
                yield "" if texts is None else repr("".join(texts[:SHOWN]))[1:-1].strip()


def _redaction(asked: Asked, records: Sequence[Any], quoted: Sequence[str] = ()) -> Redaction:
    private = private_in(asked, *records)
    names = [name for record in records if isinstance(record, HostConfig) for name in record.secrets]
    names.append(asked.serving.get("api_key_env") or "")
    secrets = {value for name in names if len(value := os.environ.get(name, "")) >= SHORTEST_SECRET}
    hosts, users = {*private.hosts, platform.node()}, {*private.users, getpass.getuser()}
    return Redaction(
        private=dataclasses.replace(
            private,
            secrets=sorted(secrets),
            hosts=sorted(hosts - {""}),
            users=sorted(users - {""}),
            names=sorted({*private.names, *quoted} - {""}),
        )
    )
