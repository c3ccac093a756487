"""`diagnose` through a real sshd: stages, what is home, what is broken off, what fails, and what is applied."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.demo.stage import DATA
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply
from tests.support.laptop import Done, Laptop
from tests.support.made_sglang import write_sglang
from tests.support.patience import wait_for
from tests.support.served_models import write_target
from tests.support.sshd import running_sshd

QUICK = '[jobs.standalone]\nsweep = "wiring"\ncapture_rows = 1\nthreads = 1\nmax_rows = 8\n'
PASSED = Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)
UNSEEN = Path(__file__).parents[1] / "golden" / "standalone" / "unseen"
PAIR = ("--states=embed,2,4,5",)


@dataclass(frozen=True)
class Scene:
    """One host with the bundled pair in its home, its ids swapped as the story's are."""

    laptop: Laptop
    story: Path

    def words(self, draft: str | None = None) -> list[str]:
        """The pair and its rows."""
        chosen = {"model": "target", "draft": "drafter_std", "rows": "rows"}
        folders = {name: str(self.story / folder) for name, folder in chosen.items()}
        if draft is not None:
            folders["draft"] = draft
        return [*(f"--{name}={path}" for name, path in folders.items()), *PAIR]

    def diagnose(self, run_id: str, *words: str) -> Done:
        return self.laptop.run("diagnose", "--host", "gpu1", "--run-id", run_id, *words)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    base = tmp_path_factory.mktemp("diagnose")
    with running_sshd(base / "gpu1") as server:
        (base / "laptop").mkdir()
        laptop = Laptop(base / "laptop")
        laptop.add_host("gpu1", server)
        with laptop.toml.open("a") as file:
            file.write(QUICK)
        story = shutil.copytree(DATA, server.home / "story")
        shutil.rmtree(story / "target")
        write_target(story / "target")  # with all its layers: a fresh forward bears out the labels of the rows
        config = json.loads((story / "drafter_std" / "config.json").read_text())
        config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [-1, 1, 3]
        (story / "drafter_std" / "config.json").write_text(json.dumps(config))
        yield Scene(laptop, story)
        laptop.close()


@pytest.fixture(scope="module")
def first(scene: Scene) -> Done:
    """The diagnosis that the others go on with."""
    return scene.diagnose("d1", *scene.words(), "--json")


def test_the_cause_is_certain_offline_and_nothing_is_served(first: Done) -> None:
    assert first.code == 0, first.err  # a verdict, and a bad one
    told = first.objects[-1]
    assert (told["verdict"], told["certain"], told["causes"]) == ("wiring", True, ["wiring"])
    assert told["stages"] == {"offline": {"run_id": "d1.offline", "phase": "succeeded", "failure": None}}
    assert set(told["left_out"]) == {"capture", "replay", "serve"}
    assert all("the cause is certain" in reason for reason in told["left_out"].values())
    assert told["fix"]["config"]["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [1, 3, 4]
    assert all("update" in line for line in first.objects[:-1])


def test_the_same_command_again_runs_nothing(scene: Scene, first: Done) -> None:
    assert first.code == 0
    again = scene.diagnose("d1", *scene.words(), "--json", "--budget=0.1s")  # what is home costs nothing of it
    assert again.objects[-1] == first.objects[-1]
    assert {line["update"] for line in again.objects[:-1]} == {"note"}  # no connection, no launch
    tagged = json.loads(scene.laptop.run("runs", "list", "--tag", "d1", "--json").out)["runs"]
    assert [run["run_id"] for run in tagged] == ["d1.offline"]


def test_the_first_look_names_the_override_and_all_is_told_again_without_the_host(scene: Scene, first: Done) -> None:
    """The host's SGLang is a source that cannot run; the drafter test, which is home, is not run again."""
    assert first.code == 0
    home = scene.story.parent
    write_sglang(home / "packages" / "sglang", "LlamaForCausalLM")
    python = home / "python-with-sglang"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{home}/packages" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    shape = ("--num-steps=1", "--eagle-topk=1", "--num-draft-tokens=16")
    with scene.laptop.toml.open("a") as file:  # whoever says so: the look reads the source of the server's own SGLang
        file.write(f'[jobs.bench]\nserver_python = "{python}"\n')
    try:
        _first_look(scene, first, *shape)
    finally:
        scene.laptop.toml.write_text(scene.laptop.toml.read_text().partition("[jobs.bench]")[0])


def _first_look(scene: Scene, first: Done, *shape: str) -> None:
    done = scene.diagnose("d1", *scene.words(), *shape)
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "also parameters" in told
    assert "asked for 16 draft tokens, the server will run with 2" in told
    assert "the server does not come up with this drafter: before layer 0 there is no residual to add" in told
    assert "--speculative-num-draft-tokens 2" in told
    served = "what it accepts, how fast it is and what its template makes of messages (K16)"
    assert f"not known yet: what the running server feeds, {served}, whether" in told
    assert len(done.out.splitlines()) <= 24

    again = json.loads(scene.laptop.run("report", "--diagnosis", "d1", "--format", "json").out)
    assert (again["verdict"], again["stages"]) == ("wiring", first.objects[-1]["stages"])
    (override,) = (item for item in again["findings"] if item["check"] == "K13")
    assert "9.9.9: its source does so at topk 1" in {one["value"] for one in override["evidence"]}
    shown = scene.diagnose("d1", "--verbose")
    assert (shown.code, "connected" in shown.err) == (0, False)
    assert "step-1 accuracy, as served" in shown.out
    mistyped = scene.diagnose("d11")
    assert (mistyped.code, "did you mean d1" in mistyped.err) == (6, True)
    unknown = scene.laptop.run("report", "--diagnosis", "d11", "--redact")
    assert (unknown.code, "did you mean d1" in unknown.err) == (6, True)


def test_another_question_under_its_id_is_refused_and_leaves_it_as_it_was(scene: Scene, first: Done) -> None:
    assert first.code == 0
    kept = scene.laptop.store / "diagnoses" / "d1.json"
    before = kept.read_bytes()
    other = scene.diagnose("d1", *scene.words("/another/drafter"))
    assert (other.code, "its stage offline has other settings (--draft)" in other.err) == (15, True), other.err
    assert kept.read_bytes() == before


def test_nothing_private_is_told_or_written(scene: Scene, first: Done, tmp_path: Path) -> None:
    assert first.code == 0
    files = ("--markdown", str(tmp_path / "issue.md"), "--html", str(tmp_path / "page.html"))
    done = scene.diagnose("d1", *scene.words(), "--redact", *files)
    assert done.code == 0, done.err
    written, page = (tmp_path / "issue.md").read_text(), (tmp_path / "page.html").read_text()
    assert "d1.offline" in page
    assert "the cause is certain without it" in page
    for text in (done.out, written, page):
        assert "[1, 3, 4]" in text.replace("\\", "")
        assert not [word for word in ("gpu1", str(scene.story), "root@", str(tmp_path)) if word in text], text
    assert written.count("<details>") == written.count("</details>") == written.count("</summary>") > 0


def test_the_fix_is_not_applied_where_it_cannot_be(scene: Scene, first: Done) -> None:
    assert first.code == 0
    attached = scene.diagnose("d1", *scene.words(), "--apply", "--attach-url=http://127.0.0.1:9")
    assert (attached.code, "keeps its own" in attached.err) == (2, True)
    into = scene.story / "drafter_std" / "inside"
    refused = scene.diagnose("d1", *scene.words(), "--apply", f"--apply-into={into}")
    assert refused.code not in (0, 70), refused.err
    assert "WIRING" in refused.out  # the diagnosis is told all the same
    assert "nothing was applied" in refused.out
    assert not into.exists()


def test_a_stage_that_fails_is_told_and_the_next_goes_on(scene: Scene, first: Done, tmp_path: Path) -> None:
    """The laptop dies while the server is measured; the same command goes on with that very run."""
    assert first.code == 0
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"input_ids": [5, 6, 7], "n_prompt_tokens": 2}\n')
    with AnsweringServer() as server:
        server.info = {**server.info, "model_path": str(scene.story / "target")}
        # Eight rows come without states, a prompt without an answer; then two warm-ups, five requests, the last slow.
        slow = Reply(chunks=[(2.0, 1), (0.0, 63)], meta=RECORDED_META)
        server.replies = [*([Reply(status=400, body=b"{}")] * 9), *([PASSED] * 6), slow]
        words = (*scene.words(), "--deep", "--budget=30m", f"--attach-url={server.url}", f"--prompts={prompts}")
        dying = scene.laptop.start("diagnose", "--host", "gpu1", "--run-id", "d1", *words)
        wait_for(lambda: len(server.asked) >= 16, "the last request")
        dying.send_signal(signal.SIGKILL)
        scene.laptop.finish(dying)
        done = scene.diagnose("d1", *words, "--json")
        asked = len(server.asked)
    assert done.code == 0, done.err
    told = done.objects[-1]
    assert told["verdict"] == "wiring"
    assert {name: stage["phase"] for name, stage in told["stages"].items()} == {
        "offline": "succeeded",
        "capture": "failed",
        "serve": "succeeded",
    }
    assert "could be had" in told["stages"]["capture"]["failure"]
    assert any("the next stage goes on" in line.get("text", "") for line in done.objects[:-1])
    assert asked == 16  # measured once


def test_too_little_to_tell(scene: Scene, tmp_path: Path) -> None:
    nothing = scene.diagnose("d2", *scene.words(), "--budget=0.1s", "--redact")
    assert nothing.code == 3, nothing.err
    assert "connected: HOST-" in nothing.err
    assert not [word for word in ("gpu1", str(scene.story), "root@") if word in nothing.out + nothing.err]
    assert "offline, capture, replay, serve: left out, the budget of 0.10 s is used up" in nothing.out
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"input_ids": [5, 6, 7], "n_prompt_tokens": 2}\n')
    with AnsweringServer() as server:
        server.replies = [PASSED]
        done = scene.diagnose("d3", f"--attach-url={server.url}", f"--prompts={prompts}")
    assert done.code == 3, done.err
    assert "CANNOT TELL" in done.out
    assert "no captured training rows were named (--rows)" in " ".join(done.out.split())
    assert "the target's folder was not named (--model)" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--trained=embed,2,9"], "--trained: expected states of a target of 8 layers, 0 (embed) to 8, found: 9"),
        (["--trained=2,4"], "--trained: expected as many states as the drafter's fc.weight takes, 3"),
        (["--states=embed,2,4,12"], "--states: expected states of a target of 8 layers, 0 (embed) to 8, found: 12"),
    ],
)
def test_states_that_this_pair_cannot_have_are_refused_before_any_stage(
    scene: Scene, words: list[str], told: str
) -> None:
    done = scene.diagnose("no1", *scene.words(), *words)
    assert (done.code, told in done.err) == (2, True), done.err
    assert "hidden_states indices" in done.err
    assert "no1." not in done.err + scene.laptop.run("runs", "list").out
    assert scene.laptop.run("report", "--diagnosis", "no1").code == 6  # what is refused is not kept


def test_a_folder_that_is_not_there_starts_nothing(scene: Scene) -> None:
    done = scene.diagnose("no2", *scene.words("/no/such/drafter"))
    assert (done.code, "no2." in done.err) == (30, False), done.err
    assert "the drafter's config.json could not be read on host `gpu1`: /no/such/drafter/config.json" in done.err
    assert "not read: the drafter's config.json" in done.err


def test_a_drafter_that_is_no_folder(scene: Scene) -> None:
    done = scene.diagnose("d4", *scene.words("meta/no-such-drafter"), "--server-python=/no/such/python", "--apply")
    told = " ".join(done.out.split())
    assert done.code == 5, done.err  # what was asked for, a fix, is not there
    assert "offline (failed): run d4.offline: the draft's folder does not exist on this machine" in told
    assert "serve (failed)" in told
    assert "nothing was applied" in told


def test_the_fix_is_written_once_and_beside_the_drafter(scene: Scene) -> None:
    """No SGLang here: both servers fail, and that is what is told of before and after."""
    draft = scene.story / "it's $(reboot) \u202e mine"
    shutil.copytree(scene.story / "drafter_std", draft)
    words = (*scene.words(str(draft)), "--apply", "--server-python=/no/such/python", "--budget=30m")
    done = scene.diagnose("d5", *words, "--json")
    assert done.code == 0, done.err
    applied = done.objects[-1]["applied"]
    new = draft.with_name(f"{draft.name}-for-sglang")
    assert (applied["folder"], applied["existed"], applied["compared"]) == (str(new), False, None)
    written = (new / "config.json").read_text()
    assert json.loads(written)["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [1, 3, 4]
    shown = scene.diagnose("d5", *words)
    assert "corrected drafter: there already: " in shown.err
    assert "before and after are not compared" in shown.out
    assert "\u202e" not in shown.out + shown.err
    assert (new / "config.json").read_text() == written
    assert {path.name for path in draft.parent.glob("it's*")} == {draft.name, new.name}


@pytest.mark.slow
def test_what_can_be_said_without_weights_rows_or_the_right_server(scene: Scene, tmp_path: Path) -> None:
    bare = scene.story / "target_without_weights"
    bare.mkdir()
    shutil.copy(scene.story / "target" / "config.json", bare)
    words = scene.words()[1:]
    told = scene.diagnose("b1", f"--model={bare}", *words)
    assert (told.code, "the target's folder has no *.safetensors" in told.out) == (30, True), told.err
    assert "the same command with --again" in told.out

    pair = (f"--model={scene.story / 'target'}", f"--draft={scene.story / 'drafter_std'}")
    shape = ("--num-steps=1", "--eagle-topk=1", "--num-draft-tokens=16")
    told = scene.diagnose("b2", *pair, *shape)  # no rows
    assert (told.code, "PARAMETERS: not what was asked for (not certain yet)" in told.out) == (0, True), told.err
    assert "--host gpu1" in " ".join(told.out.split())

    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"input_ids": [5, 6, 7], "n_prompt_tokens": 2}\n')
    with AnsweringServer() as server:
        server.info = {**server.info, "model_path": "/elsewhere/other-model"}
        told = scene.diagnose("b3", *pair, f"--attach-url={server.url}", f"--prompts={prompts}")
    assert (told.code, "serves another model: /elsewhere/other-model" in " ".join(told.out.split())) == (20, True)

    long = b'{"error": {"message": "The input (2000 tokens) is longer than the context length (1024 tokens)."}}'
    with AnsweringServer() as server:
        server.info = {**server.info, "model_path": str(scene.story / "target")}
        server.replies = [Reply(status=400, body=long)]
        told = scene.diagnose("b4", *pair, f"--attach-url={server.url}", f"--prompts={prompts}")
    assert (told.code, "longer than the context length" in " ".join(told.out.split())) == (20, True)


@pytest.mark.slow
def test_more_in_a_question_runs_the_stages_that_it_changes_and_no_other(scene: Scene) -> None:
    words = (*scene.words(), "--json")
    assert scene.diagnose("m1", *words).objects[-1]["stages"]["offline"]["run_id"] == "m1.offline"
    said = scene.diagnose("m1", *words, "--trained=2,4,5")  # the trainer's word changes no figure
    assert (said.objects[-1]["stages"]["offline"]["run_id"], said.code) == ("m1.offline", 0), said.err
    assert {line["update"] for line in said.objects[:-1]} == {"note"}  # no launch
    more = scene.diagnose("m1", *words, f"--heldout={UNSEEN}")
    assert more.objects[-1]["stages"]["offline"]["run_id"] == "m1.offline.2", more.err
    assert any("offline (--heldout)" in line.get("text", "") for line in more.objects[:-1])
    assert more.objects[-1]["place"]["heldout"]["answer"] != "unknown"
    again = json.loads(scene.laptop.run("report", "--diagnosis", "m1", "--format", "json").out)
    assert again["stages"] == more.objects[-1]["stages"]
    back = scene.diagnose("m1", *words)
    assert back.objects[-1]["stages"]["offline"]["run_id"] == "m1.offline"
    assert {line["update"] for line in back.objects[:-1]} == {"note"}


@pytest.mark.slow
def test_a_test_that_was_killed_goes_on_with_what_it_finished(scene: Scene) -> None:
    started = scene.laptop.start("diagnose", "--host", "gpu1", "--run-id", "k1", *scene.words())
    runs = scene.story.parent / ".eagle3-remote" / "runs"
    partial, state = runs / "k1.offline" / "partial.jsonl", runs / "k1.offline" / "state.json"
    wait_for(lambda: partial.exists() and partial.read_bytes().count(b"\n") > 20, "the first searched readings")
    os.kill(json.loads(state.read_text())["worker_pid"], signal.SIGKILL)
    scene.laptop.finish(started)
    done = scene.diagnose("k1", *scene.words(), "--json")
    assert done.objects[-1]["stages"]["offline"] == {"run_id": "k1.offline.2", "phase": "succeeded", "failure": None}
    assert any("with every row that it finished" in line.get("text", "") for line in done.objects[:-1])
    result = json.loads((runs / "k1.offline.2" / "result" / "standalone.json").read_text())
    assert result["resumed_from"] == "k1.offline"
    assert not any("measured anew" in json.dumps(line) for line in done.objects)


@pytest.mark.slow
def test_no_fix_is_applied_where_the_trainers_word_speaks_against_what_reads_best(scene: Scene) -> None:
    """It surely reads [layer 2, layer 4, layer 5]; no folder is written, and what contradicts is told."""
    draft = scene.story / "drafter_contradicted"
    shutil.copytree(scene.story / "drafter_std", draft)
    words = (*scene.words(str(draft)), "--trained=embed,2,4", "--server-python=/no/such/python", "--apply")
    done = scene.diagnose("x1", *words, "--json")
    told = done.objects[-1]
    assert done.code == 5, done.err
    assert (told["certain"], told["fix"], told["applied"]) == (False, None, None)
    assert told["place"]["trainer"]["answer"] == "contradicts"
    assert "there is nothing to apply" in str(told["not_applied"])
    assert [path.name for path in scene.story.glob("drafter_contradicted*")] == [draft.name]


class ShortServer(AnsweringServer):
    """Takes prompts below 1024 tokens."""

    def next_reply(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[Reply, list[float]]:
        _, sent = super().next_reply(body, headers)
        if len(body["input_ids"]) < 1024:
            return PASSED, sent
        told = f"The input ({len(body['input_ids'])} tokens) is longer than the model's context length (1024 tokens)."
        return Reply(status=400, body=json.dumps({"error": {"message": told}}).encode()), sent


@pytest.mark.slow
def test_a_server_that_is_up_names_its_folders_and_refuses_a_line_for_its_length(scene: Scene, tmp_path: Path) -> None:
    """Nobody names the pair: the capture is of what the server says. What it can answer tells of acceptance."""
    target, drafter = scene.story / "target", scene.story / "drafter_std"
    prompts = tmp_path / "prompts.jsonl"
    rows = [[5, 6, place] for place in range(3)]
    rows.insert(2, [7] * 1200)
    prompts.write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))
    report = tmp_path / "report.md"
    with ShortServer() as server:
        server.info |= {"model_path": str(target), "speculative_draft_model_path": str(drafter)}
        server.info |= {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1}
        words = (f"--attach-url={server.url}", f"--prompts={prompts}")
        told = scene.diagnose("u1", *words, f"--markdown={report}")
        again = scene.diagnose("u1", *words, "--json")
    named = f"by the word of the server that is up, nobody else named them: target {target}, drafter {drafter}"
    assert named in " ".join(told.err.split())
    assert "capture (failed): run u1.capture" in told.out  # this server cannot capture
    assert again.objects[-1]["stages"]["capture"]["run_id"] == "u1.capture"
    assert not any("by the word of" in line.get("text", "") for line in again.objects[:-1])
    long = f"line 3 of {prompts} (1200 tokens) is too long for the 1024 tokens that the server takes"
    mends = f"name a copy of {prompts} without line 3"
    for text in (told.out, report.read_text(), json.dumps(again.objects[-1])):
        assert (long in " ".join(text.split()), mends in " ".join(text.split())) == (True, True), text
    assert "accept length 2.17 on training prompts" in " ".join(told.out.split())
    hidden = scene.laptop.run("report", "--diagnosis", "u1", "--redact", "--format", "markdown")
    assert (hidden.code, str(prompts) in hidden.out, "prompts.jsonl" in hidden.out) == (0, False, False), hidden.out
    assert "(1200 tokens) is too long for" in hidden.out
