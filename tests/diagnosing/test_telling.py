"""A diagnosis on one screen: 24 lines of 100 columns hold the story, its stages and what is not known yet."""

import dataclasses
from collections.abc import Sequence

from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosing.applying import UnprovenError
from orchestrator.diagnosing.page import as_html
from orchestrator.diagnosing.results import Results, Skipped
from orchestrator.diagnosing.telling import as_json, as_markdown, as_text
from orchestrator.diagnosing.walk import CERTAIN, USED_UP, Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.planned import Planned
from orchestrator.errors import InvalidRunError
from orchestrator.records import RunRecord
from remote_payload.schema.corrected import CorrectFrame
from remote_payload.schema.run import Failure, RunPhase
from tests.diagnosing.test_stages import DIED, asked
from tests.diagnosis.decision.scenes import offline, served, sound, story
from tests.support.made_runs import made_run

STAGES = ("offline", "capture", "replay", "serve")
ASKED = Planned(num_steps=1, eagle_topk=1, num_draft_tokens=16, is_chain=True)


def screen(known: Known, ran: Sequence[str] = STAGES) -> str:
    skipped = [Skipped(stage=name, reason=CERTAIN) for name in STAGES if name not in ran]
    results = Results(records={name: made_run(f"d.{name}") for name in ran}, skipped=skipped)
    text = as_text(Diagnosed(asked=asked(), known=known, decision=decide(known), results=results), None, 100)
    lines = text.splitlines()
    assert len(lines) <= 24, text
    assert max(map(len, lines)) <= 100
    return " ".join(text.split())


def test_the_story_with_every_stage() -> None:
    told = screen(story())
    for part in ("wiring: fc is fed with", "asked for 16 draft tokens", "cannot pay below accept length 2.2 to 2.6"):
        assert part in told
    assert "--num-steps 5 --eagle-topk 4 --num-draft-tokens 16" in told
    assert "[-1, 1, 3]" in told
    assert told.endswith("stages: offline, capture, replay, serve (runs d.*)")


def test_the_story_where_it_stops_early_names_all_that_is_known_and_what_is_not() -> None:
    told = screen(Known(offline=offline("wrong"), planned=ASKED), ["offline"])
    assert "also parameters" in told
    assert "whether speculation pays. The cause is certain without it; the same command with --deep asks" in told
    cost = StepCost(base=3.66, source="eagle3.toml")
    told = screen(Known(offline=offline("wrong"), planned=ASKED, cost=cost), ["offline"])
    assert "also parameters, economics" in told
    assert "cannot pay below accept length 3.66 at this step cost (eagle3.toml)" in told
    assert "whether speculation pays" not in told


def test_a_sound_pair_that_is_slower_is_called_sound() -> None:
    slower = screen(sound(served=served(spec=(60.0, 61.0, 59.0))))
    assert slower.startswith("ECONOMICS: nothing is wrong with drafter or server; speculation does not pay here")
    once = screen(sound(served=served(spec=(60.0,))))
    assert once.startswith(
        "SOUND: nothing is wrong with drafter or server; whether speculation pays here is not judged"
    )
    assert "speed is not judged on 1 repeat" in once


def test_a_speed_that_is_not_judged_is_told_beside_a_cause() -> None:
    told = screen(story(served=served(spec=(11.5,))))
    assert told.startswith("WIRING")
    assert "whether speculation pays is open: 11.5 against 90.0 tok/s (0.13x): speed is not judged on 1 repeat" in told
    assert "is open" not in screen(story())
    assert screen(sound(served=served(spec=(60.0,)))).count("speed is not judged on 1 repeat") == 1


LOG = ("ValueError: Unknown RoPE type x", *(f"  File line {number}" for number in range(5)))


def ended(stage: str, phase: RunPhase, failure: Failure | None = None) -> RunRecord:
    run = made_run(f"d.{stage}", phase=phase)
    assert run.state is not None
    return dataclasses.replace(run, state=dataclasses.replace(run.state, failure=failure, signal="SIGKILL"))


def found(results: Results) -> Diagnosed:
    return Diagnosed(asked=asked(), known=Known(), decision=decide(Known()), results=results)


def test_one_cause_of_two_stages_is_told_once_and_its_log_is_left_to_the_run() -> None:
    died = Failure(kind="server", message=DIED, details=LOG)
    results = Results(records={name: ended(name, "failed", died) for name in ("capture", "serve")})
    told = as_text(found(results), None, 100)
    assert len(told.splitlines()) <= 24
    assert f"capture, serve (failed): runs d.capture, d.serve: {DIED}" in " ".join(told.split())
    assert "File line" not in told
    assert "--again" in told
    assert "File line 4" in as_text(found(results), None, 100, whole=True)
    for text in (as_markdown(found(results), None), as_html(found(results), None, None, made_unix_s=None, tool="t")):
        assert text.count("File line 4") == 2
        assert text.count("Unknown RoPE type x") >= 2


def test_what_was_cut_short_needs_no_again() -> None:
    told = as_text(found(Results(records={"offline": ended("offline", "killed")})), None, 100)
    assert "offline (killed): run d.offline: the job was ended by SIGKILL" in told
    assert ("the same command runs anew what was cut short" in told, "--again" in told) == (True, False)
    goes_on = as_text(found(Results(records={"offline": ended("offline", "running")})), None, 100)
    assert "offline (running): run d.offline" in goes_on
    assert "what still goes on is waited for" in goes_on
    assert "$ eagle3-remote" not in goes_on


def test_a_budget_that_is_used_up_names_the_longer_one_and_no_stage_of_its_own() -> None:
    skipped = [Skipped(stage="serve", reason=f"{USED_UP}6.0 s is used up: the same command with a longer --budget")]
    results = Results(records={"offline": ended("offline", "timed_out")}, skipped=skipped, has_budget=True)
    told = " ".join(as_text(found(results), None, 100).split())
    assert "offline (timed_out): run d.offline: the budget of the diagnosis was used up" in told
    assert "$ eagle3-remote run" not in told
    assert "with a longer --budget" in str(results.failures["offline"].hint)
    alone = Results(skipped=skipped)
    assert "$ eagle3-remote run" not in as_text(found(alone), None, 100)
    assert "$ eagle3-remote run" in as_text(found(Results()), None, 100)


def test_markdown_has_the_stages_and_why_nothing_was_applied() -> None:
    skipped = [Skipped(stage="serve", reason="no | ready server")]
    results = Results(records={"offline": made_run("d.offline")}, skipped=skipped)
    text = as_markdown(found(results), InvalidRunError("there is *nothing*"))
    assert "| offline | succeeded | d.offline | - |" in text
    assert "| serve | left out | - | no \\| ready server |" in text
    assert "nothing was applied: there is \\*nothing\\*" in text


def test_a_folder_that_was_written_is_told_also_where_it_is_not_proven() -> None:
    written = CorrectFrame(path="/srv/new", config_sha256="ab", linked=())
    error = UnprovenError(written, InvalidRunError("the budget is used up", hint="a longer --budget"))
    assert (error.exit_code, error.hint) == (5, "a longer --budget")
    one = found(Results())
    page = as_html(one, error, None, made_unix_s=None, tool="t")
    for text in (as_text(one, error, 100), as_markdown(one, error), page):
        assert "/srv/new" in text
        assert "othing was applied" not in text
    told = as_json(one, error)
    assert told["applied"]["folder"] == "/srv/new"
    assert (told["applied"]["after"], told["not_applied"]) == (None, "the budget is used up")
