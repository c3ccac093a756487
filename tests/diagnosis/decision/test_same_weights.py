"""Whether the server serves what was tested: spellings of one folder, contents, and what may be concluded from each."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.same_weights import captured_model, models
from remote_payload.schema.folder import FolderFacts
from tests.diagnosis.decision.scenes import FED_WRONG, fed, served, sound

TESTED, OTHER = "/srv/drafter", "/srv/some_other_drafter"


def told(value: str) -> str:
    return f'"{value}"'


def pair(
    known: Known, *, tested: str = TESTED, path: str = TESTED, digests: tuple[str, str] | None = None, **server: Any
) -> Known:
    """The pair whose drafter was tested at one path and served from another; `digests`: of both, in that order."""
    assert known.offline is not None
    assert known.served is not None
    attached = server.get("attached", False)
    ours, theirs = (FolderFacts(path=path, weights_sha256=digest) for digest in digests or ("", ""))
    measured = known.offline.measured
    checkpoint = replace(measured.result.checkpoint, draft=tested)
    result = replace(measured.result, checkpoint=checkpoint, draft=ours if digests else None)
    offline = replace(known.offline, measured=replace(measured, result=result))
    servers = tuple(
        replace(
            one,
            arguments=tuple(
                replace(fact, effective=told(path), requested=None if attached else fact.requested)
                if fact.name == "speculative_draft_model_path"
                else fact
                for fact in one.arguments
            ),
            **server,
        )
        for one in known.served.result.servers
    )
    changed = replace(known.served.result, servers=servers)
    if digests:
        changed = replace(changed, **{"named_draft" if attached else "draft": theirs})
    return replace(known, offline=offline, served=replace(known.served, result=changed))


def answer(known: Known) -> str:
    return next(models(known)).answer


def worse(**changes: Any) -> Known:
    """Fed as trained and computed as trained, and yet less is accepted than foretold."""
    return pair(sound(served=served("embed_story_wrong")), **changes)


@pytest.mark.parametrize(
    ("tested", "path"),
    [
        ("/srv/drafter", "/srv/drafter/"),
        ("/srv//drafter", "/srv/./drafter"),
        ("~/drafter", "/home/eve/drafter"),
        ("~/models/drafter", "/data/home/eve/models/drafter"),
        ("/a/hub/models--lab--draft-1/snapshots/0a1b", "/b/hub/models--lab--draft-1/snapshots/0a1b"),
    ],
)
def test_spellings_of_one_folder_are_no_difference(tested: str, path: str) -> None:
    assert answer(pair(sound(), tested=tested, path=path)) == "same"
    assert answer(pair(sound(), tested=path, path=tested)) == "same"


@pytest.mark.parametrize(
    ("tested", "path"),
    [
        (TESTED, OTHER),
        ("~/drafter", "/srv/other/my-drafter"),
        ("~/drafter", "/models/drafter"),
        ("~/drafter", "/mnt/old-2024/eve/drafter"),
        ("~/drafter", "/home/eve/old/drafter"),
        ("/home/eve/.cache/huggingface/hub/models--lab--draft-1/snapshots/0a1b", "lab/draft-1"),
        ("lab/draft-1", "/hub/models--lab--draft-2/snapshots/0a1b"),
        ("/hub/models--lab--draft-1/snapshots/0a1b", "/hub/models--lab--draft-1/snapshots/ffff"),
    ],
)
def test_other_paths_without_contents_are_unknown(tested: str, path: str) -> None:
    assert answer(pair(sound(), tested=tested, path=path)) == "unknown"


def test_the_home_of_a_server_that_was_up_may_be_anothers() -> None:
    assert answer(pair(sound(), tested="~/drafter", path="/home/bob/drafter", attached=True)) == "unknown"
    found = decide(worse(tested="~/drafter", path="/models/drafter", attached=True))
    assert (found.causes, found.certain) == ((), False)


def test_contents_decide_whatever_the_paths_say() -> None:
    assert answer(pair(sound(), path=OTHER, digests=("aa", "aa"))) == "same"  # a link, a copy, a corrected config
    assert answer(pair(sound(), digests=("aa", "bb"))) == "other"  # trained anew in its place meanwhile
    assert answer(pair(sound(), path=OTHER, attached=True, digests=("aa", "bb"))) == "other"


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (("aa", "11"), ("bb", "11"), "same"),  # other shards of the same tensors
        (("aa", "11"), ("bb", "22"), "other"),
        (("aa", "11"), ("aa", "22"), "same"),  # the very files
        (("aa", None), ("bb", "22"), "other"),  # an older record beside a new one: by the files
        (("aa", None), ("aa", "22"), "same"),
    ],
)
def test_tensors_are_compared_whatever_files_they_lie_in(
    ours: tuple[str, str | None], theirs: tuple[str, str | None], told: str
) -> None:
    known = pair(sound(), path=OTHER, digests=(ours[0], theirs[0]))
    assert known.offline is not None
    assert known.served is not None
    result, served_result = known.offline.measured.result, known.served.result
    assert result.draft is not None
    assert served_result.draft is not None
    tested = replace(result, draft=replace(result.draft, tensors_sha256=ours[1]))
    served_one = replace(served_result, draft=replace(served_result.draft, tensors_sha256=theirs[1]))
    measured = replace(known.offline.measured, result=tested)
    sharded = replace(
        known,
        offline=replace(known.offline, measured=measured),
        served=replace(known.served, result=served_one),
        fed=replace(fed(), draft=OTHER, draft_weights=theirs[0], draft_tensors=theirs[1]),
    )
    assert answer(sharded) == told
    captured = captured_model(sharded)
    assert captured is not None
    assert captured.answer == told


def test_the_same_weights_that_accept_less_are_the_engines_fault() -> None:
    for known in (worse(), worse(path=OTHER, digests=("aa", "aa"))):
        assert decide(known).causes == ("engine",)


@pytest.mark.parametrize("attached", [True, False])
def test_another_drafter_is_named_and_the_engine_is_not(attached: bool) -> None:
    found = decide(worse(path=OTHER, attached=attached, digests=("aa", "bb")))
    assert found.causes == ("parameters",)
    assert f"the server serves another drafter than the one that was tested: {OTHER}, not {TESTED}" in found.headline
    assert {found.place["served_train"], found.place["served_heldout"]} == {"other_weights"}
    assert found.fix is None
    assert [run.step for run in found.next_runs] == ["standalone"]  # no walk of the tested one tells of the other


@pytest.mark.parametrize("attached", [True, False])
def test_where_it_is_not_known_nothing_is_certain(attached: bool) -> None:
    found = decide(worse(path=OTHER, attached=attached))
    assert (found.causes, found.verdict, found.certain) == ((), "cannot_tell", False)
    (doubt,) = [item for signal in found.signals if signal.axis == "arguments" for item in signal.results if item.needs]
    assert f"{OTHER} is served, {TESTED} was tested" in doubt.summary


def test_requests_that_came_as_foretold_prove_the_weights_whatever_the_path() -> None:
    found = decide(pair(sound(), path=OTHER))
    assert (found.verdict, found.certain) == ("healthy", True)


@pytest.mark.parametrize("path", [TESTED, OTHER])
def test_answers_of_the_tested_weights_against_digests_of_others_are_a_contradiction(path: str) -> None:
    found = decide(pair(sound(), path=path, digests=("aa", "bb")))
    assert (found.causes, found.certain, found.fix) == ((), False, None)
    assert {found.place["served_train"], found.place["served_heldout"]} == {"as_tested"}
    assert "contradiction: accept length 2.83 served, 2.83 predicted" in found.headline
    assert {"standalone", "again"} <= {run.step for run in found.next_runs if run.decides}
    assert "predict" not in [run.step for run in found.next_runs]


def test_weights_that_were_changed_in_their_place_are_to_be_tested_again() -> None:
    found = decide(worse(digests=("aa", "bb")))
    assert found.causes == ("parameters",)
    assert found.named[0].remedy == (f"test {TESTED} once more: its weights are others since it was tested",)


def captured_at(path: str, weights: str | None = None) -> Known:
    """The story by the server's word alone: it returned other states, of a drafter at that path."""
    known = pair(sound(fed=replace(fed(FED_WRONG), draft=path, draft_weights=weights)), digests=("aa", "aa"))
    return replace(known, served=None, predicted=())


def test_states_of_the_tested_drafter_are_the_servers_word() -> None:
    for known in (captured_at(f"{TESTED}/"), captured_at(OTHER, "aa")):
        assert decide(known).place["fed"] == "other"
        assert "wiring" in decide(known).causes


def test_states_that_are_fed_to_another_drafter_prove_no_wiring() -> None:
    found = decide(captured_at(OTHER, "bb"))
    assert (found.place["fed"], found.causes, found.fix) == ("open", ("parameters",), None)
    assert f"the server serves another drafter than the one that was tested: {OTHER}, not {TESTED}" in found.headline
    unknown = decide(captured_at(OTHER))
    assert (unknown.place["fed"], unknown.causes, unknown.certain) == ("open", (), False)
    assert f"may serve another drafter than the one that was tested: {OTHER}" in unknown.also[-1]


def test_a_test_of_before_says_nothing_against_it() -> None:
    known = pair(sound())
    assert [model.answer for model in models(known)] == ["same", "same"]
    assert list(models(replace(known, offline=None))) == []


def attached_to(path: str, asked: str | None = TESTED, digests: tuple[str, str] | None = None) -> Known:
    """A server that was up, asked about one drafter, that names another folder; nothing was tested or captured."""
    known = pair(sound(), path=path, attached=True)
    assert known.served is not None
    ours, theirs = digests or (None, None)
    result = replace(
        known.served.result,
        asked_draft=None if asked is None else FolderFacts(path=asked, weights_sha256=ours),
        named_draft=FolderFacts(path=path, weights_sha256=theirs),
    )
    return Known(served=replace(known.served, result=result))


def test_a_server_that_was_up_is_held_against_the_drafter_that_it_was_asked_about() -> None:
    other = decide(attached_to(OTHER, digests=("aa", "bb")))
    assert (other.verdict, other.place["arguments"]) == ("parameters", "changed")
    assert f"another drafter than the one that was asked for: {OTHER}, not {TESTED}" in other.headline
    runs = [run for run in other.next_runs if "--draft" in run.command]
    assert runs
    assert all(run.command[run.command.index("--draft") + 1] == TESTED for run in runs)
    unknown = decide(attached_to(OTHER))
    assert (unknown.causes, unknown.place["arguments"]) == ((), "unknown")
    assert f"{OTHER} is served, {TESTED} was asked for" in " ".join(unknown.also)
    for same in (attached_to(OTHER, digests=("aa", "aa")), attached_to(f"{TESTED}/"), attached_to(OTHER, None)):
        assert decide(same).place["arguments"] == "as_asked"


def test_states_of_another_drafter_than_the_one_that_was_asked_about_prove_nothing() -> None:
    states = replace(fed(FED_WRONG), draft=OTHER, draft_weights="bb")
    found = decide(Known(fed=replace(states, asked_draft=FolderFacts(path=TESTED, weights_sha256="aa"))))
    assert (found.place["fed"], found.causes) == ("open", ("parameters",))
    assert f"another drafter than the one that was asked for: {OTHER}, not {TESTED}" in found.headline
    assert "wiring" in decide(Known(fed=states)).causes
