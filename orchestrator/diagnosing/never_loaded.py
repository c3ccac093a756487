"""A drafter that neither a server nor the standalone test can load, both for the same line of its config.json.

Each alone may be at fault itself; that both stop at the same word of the same file is proof enough.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.config_text import object_of
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from remote_payload.schema import Failure

LOADS = Subject(check="K2", title="config.json can be loaded")
BLOCKS = ("rope_scaling", "rope_parameters")
"""Where a config.json tells its rotary embedding."""
_REFUSED = re.compile(
    r"^the drafter's rotary embedding (?:must be one of .*, found: '(\w+)'|`(\w+)` needs (.*) in config)"
)


def with_loading(decision: Decision, results: Results) -> Decision:
    """The decision, or that the drafter cannot be loaded, and by which line of its config.json."""
    found = next(_never_loaded(results), None)
    if found is None:
        return decision
    findings = (found, *(item for item in decision.findings if item.summary != found.summary))
    causes = tuple(dict.fromkeys(("loading", *decision.causes)))
    return dataclasses.replace(
        decision,
        verdict="loading",
        headline=f"loading: {found.summary}",
        findings=findings,
        causes=causes,
        next_runs=(),
        fix=None,
        certain=True,
    )


def _never_loaded(results: Results) -> Iterator[CheckResult]:
    tested = _failure(results, "offline", "checkpoint")
    refused = None if tested is None else _REFUSED.search(tested.message)
    facts = results.facts
    if tested is None or refused is None or facts is None:
        return
    draft, target = (_rotary(text) for text in (facts.draft_config, facts.target_config))
    kind, lacking = refused.group(1) or refused.group(2), re.findall(r"`(\w+)`", refused.group(3) or "")
    for stage in ("capture", "serve"):
        served = _failure(results, stage, "server")
        said = None if served is None else _said(served, kind, lacking)
        if said is not None and draft is not None and draft != target:  # else the target may be what fails
            yield _finding(draft, tested.message, (results.records[stage].run_id, said))
            return


def _failure(results: Results, stage: str, kind: str) -> Failure | None:
    record = results.records.get(stage)
    failure = None if record is None or record.state is None else record.state.failure
    return failure if failure is not None and failure.kind == kind else None


def _said(failure: Failure, kind: str, lacking: list[str]) -> str | None:
    """The line by which a server stopped at the same word; None = it stopped at another."""
    unknown = rf"Unknown RoPE scaling type.*\b{re.escape(kind)}\b"
    missing = "|".join(rf"KeyError: '{re.escape(key)}'" for key in lacking)
    sought = re.compile(missing or unknown)
    found = next((line for line in (*failure.details, *failure.message.splitlines()) if sought.search(line)), None)
    return None if found is None else found.strip()


def _rotary(config: str | None) -> tuple[str, Mapping[str, Any]] | None:
    """The block of a config.json that tells its rotary embedding, by its key; None = it has none that can be read."""
    value = object_of(config)
    found = ((key, value.get(key)) for key in BLOCKS)
    return next(((key, block) for key, block in found if isinstance(block, dict) and block), None)


def _finding(block: tuple[str, Mapping[str, Any]], tested: str, served: tuple[str, str]) -> CheckResult:
    key, value = block
    line = f"{json.dumps(key)}: {json.dumps(value)}"
    return LOADS.finding(
        f"neither the test nor the server can load the drafter, both for the same line of its config.json: {line}",
        severity="fatal",
        cause="loading",
        evidence=(
            Evidence(name="the standalone test says", value=tested),
            Evidence(name=f"the server's log says (run {served[0]})", value=served[1]),
        ),
        remedy=(
            f"in the drafter's config.json write down the rotary embedding that it was trained with in place of {line}",
        ),
        refuted_by="a server that loads the drafter as it is",
    )
