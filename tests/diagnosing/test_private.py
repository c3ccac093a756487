"""A redacted diagnosis holds nothing that anybody typed, that the host's table says, or that its runs name."""

import base64
import dataclasses
import json
import re
from pathlib import Path

import pytest

from orchestrator.cli.diagnosed import nothing_private, written
from orchestrator.compare.step_cost import stored_costs
from orchestrator.config import Config, HostConfig
from orchestrator.diagnosing.addressing import addressed
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.private import redaction, redaction_before
from orchestrator.diagnosing.results import Results, Skipped
from orchestrator.diagnosing.telling import as_text, redacted
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.errors import HostNotReadyError
from orchestrator.updates import LogArrived, Note, StateChanged, Update
from remote_payload.schema import RunState
from remote_payload.schema.run import Failure
from remote_payload.schema.workload import TemplateCheck
from tests.diagnosis.decision.scenes import served, sound, story
from tests.diagnosis.test_served_template import row_of
from tests.support.made_runs import made_run

ASKED = Asked(
    diagnosis_id="slow",
    model="acme-corp/secret-7b",
    draft="secret-eagle",
    samples={"rows": "acme/rows-9", "states": "embed,2,4,5"},
    serving={
        "model": "acme-corp/secret-7b",
        "draft": "secret-eagle",
        "prompts": "acme/asked.jsonl",
        "server_python": "envs/acme/bin/python",
        "server_args": ["--served-model-name", "sunrise"],
        "server_environment": ["ACME_CACHE=warehouse"],
        "api_key_env": "ACME_KEY",
        "num_steps": 3,
    },
    job_file=Path("acme.toml"),
)
CONFIG = Config(hosts={"g1": HostConfig(ssh="eve@login7.acme.example", python="~/venv/python3")})
PRIVATE = ("g1", "acme", "secret", "sunrise", "warehouse", "ACME", "eve@", "login7", "hunter22", "venv", "/srv/")
SAID = (
    "host `g1` (eve@login7.acme.example:22): envs/acme/bin/python has no sglang for secret-eagle in "
    "/srv/somewhere/rather-deep/inside-a-folder/of-somebody/config.json, ACME_CACHE=warehouse, sunrise, acme.toml"
)


def diagnosed(known: Known, **runs: str) -> Diagnosed:
    """Stages were left out or failed with all names in what is said; the way on names the host and the folders."""
    named = ({"host": "g1"}, CONFIG.host("g1"))
    records = {stage: made_run(f"slow.{stage}", phase="failed") for stage in runs}
    for stage, message in runs.items():
        state = records[stage].state
        assert state is not None
        failed = dataclasses.replace(state, failure=Failure(kind="job", message=message))
        records[stage] = dataclasses.replace(records[stage], state=failed)
    results = Results(records=records, skipped=[Skipped(stage="serve", reason=SAID)], named=named)
    decision = addressed(decide(known), ASKED, CONFIG, "g1")
    return Diagnosed(asked=ASKED, known=known, decision=decision, results=results)


def left(text: str) -> list[str]:
    return [word for word in PRIVATE if word in text]


@pytest.mark.parametrize("known", [Known(), story()])
def test_no_format_holds_what_somebody_named(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "hunter22")
    found = diagnosed(known)
    assert known != Known() or "g1" in as_text(found, None, 100)  # it would be told
    applied = HostNotReadyError(f"{SAID}, hunter22")
    for kind in ("json", "markdown", "html"):
        text = written(found, applied, kind, redact=True)
        text = re.sub(r"base64,([\w+/=]+)", lambda found: base64.b64decode(found[1]).decode(), text)
        assert left(text) == [], text
        assert kind != "json" or json.loads(text)["verdict"] == found.decision.verdict
    for width in (60, 100):
        private = redaction(found)
        text = as_text(redacted(found, private), applied, width, whole=True, private=private)
        assert left(private.text(text)) == [], text


def test_what_a_stage_said_is_clean_however_it_is_folded() -> None:
    found = diagnosed(Known(), offline=SAID)
    for width in range(40, 120, 8):
        private = redaction(found)
        told = private.text(as_text(redacted(found, private), None, width, private=private))
        assert left(told) == [], told
        assert not [part for part in ("deep", "inside", "somebody") if part in told], told


def test_what_is_told_on_the_way_and_why_it_ends_are_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("acme.toml").write_text('kind = "bench"\n')
    private = redaction_before(ASKED, "g1", CONFIG)
    state = RunState(run_id="g1.offline", sequence=1, phase="failed", failure=Failure(kind="job", message=SAID))
    updates: list[Update] = [
        Note(name="connected", text=SAID),
        LogArrived(stream="stdout", data=SAID.encode()),
        StateChanged(state=state),
    ]
    told: list[Update] = []

    def go() -> None:
        with nothing_private(told.append, private) as tell:
            for update in updates:
                tell(update)
            raise HostNotReadyError(SAID, hint=SAID)

    with pytest.raises(HostNotReadyError) as ended:
        go()
    assert len(told) == len(updates)
    note, log, changed = told
    assert isinstance(note, Note)
    assert isinstance(log, LogArrived)
    assert isinstance(changed, StateChanged)
    assert changed.state.run_id == "g1.offline"  # runs go by their ids
    assert changed.state.failure is not None
    for text in (note.text, log.data.decode(), changed.state.failure.message, ended.value.message, ended.value.hint):
        assert text
        assert left(text) == [], text


COSTS = dataclasses.replace(CONFIG, step_costs=({"base": 3.66, "source": "quokka labs, cluster wombat"},))


def test_who_measured_a_steps_cost_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cost,) = stored_costs(COSTS.step_costs, "eagle3.toml")
    monkeypatch.chdir(tmp_path)
    Path("acme.toml").write_text('kind = "bench"\n')
    found = diagnosed(story(cost=cost))
    found = dataclasses.replace(found, results=Results(named=ASKED.named("g1", COSTS)))
    for kind in ("json", "markdown", "html"):
        assert "quokka" in written(found, None, kind, redact=False)
        text = written(found, None, kind, redact=True)
        assert not [word for word in ("quokka", "wombat") if word in text], text
    private = redaction_before(ASKED, "g1", COSTS)
    assert "quokka" not in private.text(found.decision.headline)


def test_what_is_quoted_of_prompts_is_private() -> None:
    rows = tuple(row_of("system_prompt", "same", at) for at in (0, 1))
    marked = row_of("same", "bos_doubled")
    quoted = "".join((rows[0].edits[0].trained_text or ())[:12])
    assert "You are a" in quoted
    ids = ", ".join(map(str, rows[0].edits[0].trained[:12]))
    for told, is_private in ((rows, True), ((marked,), False)):
        template = TemplateCheck(rows=told, with_messages=len(told), method="served")
        found = diagnosed(sound(served=served(retokenised=template)))
        for kind in ("json", "markdown", "html"):
            before, text = (written(found, None, kind, redact=redact) for redact in (False, True))
            for word in ("You are", ids) if is_private else ():
                assert word in before
                assert word not in text, text
            assert is_private or kind != "json" or "<|bos|>" in text  # a template's own mark


def test_a_word_that_names_no_host_is_told_without_the_names_of_those_there_are() -> None:
    several = Config(hosts={**CONFIG.hosts, "wombat7": HostConfig(ssh="wombat7")})
    about = dataclasses.replace(ASKED, job_file=None)
    told = redaction_before(about, "wombta", several).text(several.known_hosts_hint("wombta"))
    assert "configured in" in told
    assert "wombat7" not in told
