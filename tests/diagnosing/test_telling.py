"""A diagnosis on one screen: 24 lines of 100 columns hold the story, its stages and what is not known yet."""

from collections.abc import Sequence

from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosing.results import Results, Skipped
from orchestrator.diagnosing.telling import as_text
from orchestrator.diagnosing.walk import CERTAIN, Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.planned import Planned
from tests.diagnosing.test_stages import asked
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
