"""The job from prompts to result files, on a server that is attached to and answers as SGLang does."""

import gzip
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.failure import JobFailure
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.bench_machine import MachineSample
from remote_payload.schema.record import from_json
from remote_payload.schema.run import Event
from remote_payload.sglang_bench import machine_samples
from remote_payload.sglang_bench.folders import named_folder
from remote_payload.sglang_bench.job import run
from remote_payload.sglang_bench.plan import Start, loads, starts
from remote_payload.sglang_bench.points import Points
from remote_payload.sglang_bench.prompt import read_row
from remote_payload.weights import folder_facts
from tests.payload.sglang_bench.conftest import Site
from tests.support.answering_server import RECORDED_META, AnsweringServer, Reply

SPECULATING = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
PASSED = Reply(chunks=[(0.0, 1), (0.0, 63)], meta=RECORDED_META)


class Bench:
    """A result folder, a server to attach to, and what a job left and told."""

    def __init__(self, folder: Path, server: AnsweringServer) -> None:
        self.folder = folder / "run" / "result"
        self.folder.mkdir(parents=True)
        self.server = server
        self.events: list[Event] = []
        server.info |= SPECULATING
        server.replies = [PASSED]
        self.prompts = folder / "prompts.jsonl"
        rows = [{"input_ids": [5, number], "n_prompt_tokens": 2} for number in range(6)]
        self.prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, **settings: Any) -> BenchResult:
        job = BenchJob(**{"attach_url": self.server.url, "prompts": str(self.prompts), **settings})
        run(job, self.folder, self.events.append)
        return self.result

    @property
    def result(self) -> BenchResult:
        return from_json(BenchResult, (self.folder / "bench.json").read_text())

    def lines(self, name: str, kind: Any) -> list[Any]:
        with gzip.open(self.folder / name, "rt") as file:
            return [from_json(kind, line) for line in file]

    @property
    def samples(self) -> list[RequestSample]:
        return self.lines("requests.jsonl.gz", RequestSample)

    def told(self, kind: str) -> list[str]:
        return [event.name for event in self.events if event.kind == kind]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with AnsweringServer() as server:
        yield Bench(tmp_path, server)


def test_the_whole_job(bench: Bench) -> None:
    result = bench.run(concurrency=(1, 2), repeats=2, max_prompts=4, requests=8)
    assert [(point.point, point.concurrency, point.repeat) for point in result.points] == [
        (0, 1, 0),
        (1, 2, 0),
        (2, 1, 1),
        (3, 2, 1),
    ]
    assert {(point.side, point.requests, point.failed, point.flushed) for point in result.points} == {
        ("spec", 8, 0, True)
    }
    assert [point.warmup_requests for point in result.points] == [2, 4, 2, 4]
    for point in result.points:
        assert point.before is not None
        assert point.after is not None
        assert point.last_token_s is not None
        assert 0 < point.before.time_s < point.first_sent_s < point.last_token_s < point.after.time_s
    assert result.workload.form == "token_ids"
    assert result.workload.prompts == 4
    assert result.servers[0].attached
    assert result.sglang.version == "0.5.23"
    assert result.servers[0].stopped == "left"
    assert result.warnings == ()
    samples = bench.samples
    assert [(sample.point, sample.index) for sample in samples] == [
        (point, index) for point in range(4) for index in range(8)
    ]
    assert [sample.prompt for sample in samples[:8]] == [0, 1, 2, 3, 0, 1, 2, 3]  # from the first again
    assert [point.repeated_prompts for point in result.points] == [4] * 4
    assert {sample.broken_identities for sample in samples} == {()}
    machine = bench.lines("machine.jsonl.gz", MachineSample)
    assert {sample.gpu for sample in machine} >= {None}
    assert all(sample.load_1min is not None for sample in machine if sample.gpu is None)


def test_what_a_server_that_was_up_names_is_told_by_content(bench: Bench, tmp_path: Path) -> None:
    draft = tmp_path / "some_other_drafter"
    draft.mkdir()
    (draft / "config.json").write_text("{}")
    (draft / "pytorch_model.bin").write_bytes(bytes(5000))
    bench.server.info["speculative_draft_model_path"] = str(draft)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "pytorch_model.bin").write_bytes(bytes(4000))
    result = bench.run(max_prompts=1, requests=1, draft=str(mine))
    assert result.named_draft == folder_facts(str(draft))
    assert result.named_draft.weights_sha256 is not None
    assert (result.draft, result.target, result.named_target) == (None, None, None)  # /models/target is not here
    assert result.asked_draft == folder_facts(str(mine))


@pytest.mark.parametrize(
    ("settings", "told"), [({}, True), ({"attach_url": "http://gpu2:30000"}, False), ({"exec_prefix": ("env",)}, False)]
)
def test_only_a_server_of_this_host_names_folders_of_this_host(
    tmp_path: Path, settings: dict[str, Any], told: bool
) -> None:
    job = BenchJob(**{"attach_url": "http://127.0.0.1:30000", "prompts": "p.jsonl", **settings})
    assert (named_folder(job, str(tmp_path)) is not None) == told
    assert named_folder(job, "lab/a-name-on-a-hub") is None


def test_each_point_warms_up_with_other_prompts_then_flushes_then_measures(bench: Bench) -> None:
    bench.server.busy_flushes = 2  # the last warm-up is not booked out yet
    result = bench.run(concurrency=(2,), max_prompts=2, requests=4)
    asked = [tuple(body["input_ids"]) for body in bench.server.asked]
    assert not set(asked[:4]) & set(asked[4:])
    paths = [path for path in bench.server.paths if path in ("/generate", "/flush_cache", "/server_info")]
    measured = paths[paths.index("/generate") :]
    assert measured[:4] == ["/generate"] * 4
    assert measured[4:7] == ["/flush_cache"] * 3
    assert measured[7:] == ["/server_info", *["/generate"] * 4, "/server_info"]
    assert result.points[0].flushed
    assert not result.points[0].warmup_repeats_prompts
    assert bench.run().points[0].warmup_repeats_prompts  # all are measured: there are no others


def test_a_server_that_never_flushes_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote_payload.sglang_bench.points.FLUSH_PAUSE_S", 0.0)
    bench.server.busy_flushes = 1000
    result = bench.run()
    assert not result.points[0].flushed
    assert "did not flush" in result.warnings[0]


def test_identities_are_checked_with_the_width_that_the_server_tells(bench: Bench) -> None:
    bench.server.info["speculative_num_draft_tokens"] = 8
    bench.run()
    assert bench.samples[0].broken_identities == ("proposed drafts = 87, verify steps x 7 = 203",)


def test_adaptive_steps_have_no_width(bench: Bench) -> None:
    bench.server.info |= {"speculative_num_draft_tokens": 8, "speculative_adaptive": True}
    bench.run()
    assert bench.samples[0].broken_identities == ()


def test_a_plain_server_is_known_by_what_it_tells(bench: Bench) -> None:
    bench.server.info["speculative_algorithm"] = None
    bench.server.replies = [Reply(chunks=[(0.0, 1)] * 5)]
    assert {point.side for point in bench.run().points} == {"plain"}


def test_ids_beyond_the_vocabulary_are_never_sent(bench: Bench, tmp_path: Path) -> None:
    """One such request ends a real server."""
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 5}}')
    bench.server.info["model_path"] = str(tmp_path)
    with pytest.raises(JobFailure, match="prompt 0: expected token ids below 5, the target's vocabulary, found: 5"):
        bench.run()
    with pytest.raises(JobFailure, match="expected token ids below 5"):
        bench.run(model=str(tmp_path), attach_url=None)
    assert bench.server.asked == []


def test_failed_requests_are_counted_and_the_result_stays(bench: Bench) -> None:
    bench.server.replies = [PASSED, PASSED, PASSED, Reply(status=500, body=b"oops"), PASSED]
    result = bench.run()
    assert (result.points[0].requests, result.points[0].failed) == (6, 1)
    assert [sample.error for sample in bench.samples] == [None, "HTTP 500: oops", None, None, None, None]


def test_a_server_that_refuses_every_warm_up_fails_the_job(bench: Bench) -> None:
    bench.server.replies = [Reply(status=400, body=b'{"error": {"message": "token id out of range"}}')]
    with pytest.raises(JobFailure) as caught:
        bench.run()
    assert caught.value.failure.kind == "server"
    assert caught.value.failure.message.endswith("2 warm-up requests: HTTP 400: token id out of range")
    assert not (bench.folder / "bench.json").exists()


def test_prompts_of_the_same_text_are_repeated_ones(bench: Bench) -> None:
    bench.prompts.write_text('{"text": "Once"}\n{"text": "Once"}\n{"text": "upon"}\n')
    assert [point.repeated_prompts for point in bench.run(requests=3).points] == [1]
    assert [point.repeated_prompts for point in bench.run(requests=7).points] == [5]


def test_what_was_measured_before_a_failure_stays(bench: Bench) -> None:
    bench.server.replies = [PASSED] * 8 + [Reply(status=503)]
    with pytest.raises(JobFailure):
        bench.run(concurrency=(1, 2))
    assert len(bench.result.points) == 1
    assert (bench.result.whole, bench.result.planned, bench.result.repeats) == (False, 2, 1)
    assert len(bench.samples) == 6


def test_after_each_point_the_result_is_on_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever kills the worker leaves it there."""
    found: list[tuple[int, bool, int, str | None]] = []
    points = Points.measure

    def measure(*words: Any) -> None:
        if (bench.folder / "bench.json").exists():
            left = bench.result
            found.append((len(left.points), left.whole, left.planned or 0, left.servers[0].stopped))
        points(*words)

    monkeypatch.setattr(Points, "measure", measure)
    result = bench.run(repeats=3)
    assert found == [(1, False, 3, None), (2, False, 3, None)]
    assert (len(result.points), result.whole, result.servers[0].stopped) == (3, True, "left")


def test_progress_is_told_with_rate_and_accept_length(bench: Bench) -> None:
    bench.run()
    last = [event for event in bench.events if event.kind == "progress"][-1]
    assert (last.name, last.done, last.total, last.unit) == ("requests", 6.0, 6.0, "requests")
    assert "tok/s, accept length 2.17" in last.message
    assert bench.told("phase") == ["look", "attached", "warm-up", "measure"]
    assert last.figures is not None
    assert last.figures["output_tok_s"] == pytest.approx(float(last.message.split(" ")[0]), abs=0.05)
    assert last.figures["accept_length"] == pytest.approx(2.17, abs=0.005)
    assert {name: last.figures[name] for name in ("failed", "point", "points", "left_s", "point_left_s")} == {
        "failed": 0.0,
        "point": 1.0,
        "points": 1.0,
        "left_s": 0.0,
        "point_left_s": 0.0,
    }


def test_progress_says_which_point_of_how_many(bench: Bench) -> None:
    bench.run(concurrency=(1, 2), repeats=2, requests=2)
    last = [event for event in bench.events if event.kind == "progress"][-1]
    assert last.message.startswith("point 4/4, ")
    phases = [event.message for event in bench.events if event.name == "measure"]
    assert phases[2] == "point 3 of 4: spec, 1 user, repeat 2 of 2"


def test_the_key_is_sent_and_written_nowhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "k-very-secret")
    bench.server.key = "k-very-secret"
    bench.server.info["api_key"] = "k-very-secret"
    bench.run(api_key_env="SERVER_KEY")
    assert {headers["Authorization"] for headers in bench.server.headers} == {"Bearer k-very-secret"}
    written = b"".join(path.read_bytes() for path in bench.folder.iterdir() if path.suffix == ".json")
    with gzip.open(bench.folder / "requests.jsonl.gz") as file:
        written += file.read()
    assert b"k-very-secret" not in written
    assert "k-very-secret" not in repr(bench.events)


def test_a_server_that_starts_slowly_is_waited_for(bench: Bench) -> None:
    bench.server.starting, bench.server.health_delay_s = 2, 0.3
    assert bench.run().points[0].failed == 0


def rendered(ids: list[int]) -> tuple[int, dict[str, Any]]:
    """As a real server answered, with these ids."""
    answer = json.loads((Path(__file__).parent / "recorded" / "chat.json").read_text())
    answer["choices"][0]["prompt_token_ids"] = ids
    answer["usage"]["prompt_tokens"] = len(ids)
    return 200, answer


def test_messages_go_through_the_served_template_once(bench: Bench) -> None:
    bench.prompts.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n')
    bench.server.chat = [rendered([1, 2, 3])]
    result = bench.run(repeats=2)
    assert (result.workload.form, result.workload.template) == ("messages", "served")
    assert result.workload.prompt_tokens == 3
    assert {tuple(body["input_ids"]) for body in bench.server.asked} == {(1, 2, 3)}
    assert len(bench.server.chats) == 1
    assert bench.server.chats[0]["return_prompt_token_ids"] is True


def test_the_lowest_load_once_more_at_another_temperature(bench: Bench) -> None:
    result = bench.run(concurrency=(2, 1), repeats=2, requests=3, sampled=0.8)
    assert [point.concurrency for point in result.points] == [2, 1, 2, 1]
    assert result.sampled is not None
    assert (result.sampled.temperature, result.sampled.point.concurrency) == (0.8, 1)
    assert len(bench.samples) == 4 * 3
    assert len(bench.lines("sampled.jsonl.gz", RequestSample)) == 3
    hot = [body["sampling_params"]["temperature"] for body in bench.server.asked]
    assert hot == [0.0] * (4 * 3 + 2 * 4 + 2 * 2) + [0.8] * (2 + 3)  # warm-ups of 2 a user, and requests
    assert result.planned == 4
    last = [event for event in bench.events if event.kind == "progress"][-1]
    assert last.message.startswith("point 5/5, ")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": 0.5}, "needs `temperature` 0"),
        ({"harness": "sglang"}, "own `harness`"),
        ({"sampled": 0.0}, "0.01"),
    ],
)
def test_a_sampled_load_that_means_nothing_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BenchJob(**{"model": "/models/target", "draft": "/models/draft", "sampled": 1.0, **settings})


TURNS = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]


def test_rows_with_messages_are_held_against_the_served_template(bench: Bench) -> None:
    """One row whose BOS is doubled, one that is equal, one without messages; each is asked by its own ids."""
    row = {"input_ids": [1, 2, 3, 7, 8], "loss_mask": [0, 0, 0, 1, 1], "messages": TURNS}
    other = {"input_ids": [1, 5, 3, 7], "n_prompt_tokens": 3, "conversations": TURNS}
    lines = [row, other, {"input_ids": [1, 4, 3], "messages": [{"role": 5}]}]
    bench.prompts.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    bench.server.chat = [rendered([1, 1, 2, 3]), rendered([1, 5, 3])]
    bench.server.texts = {1: "<s>"}
    told = bench.run(repeats=2).workload.retokenised
    assert told is not None
    assert (told.with_messages, told.method, told.why_not) == (2, "served", None)
    doubled, equal = told.rows
    assert (equal.prompt, equal.edits, equal.trained_tokens) == (1, (), 3)
    (edit,) = doubled.edits
    assert (edit.position, edit.trained, edit.served, edit.served_text) == (1, (), (1,), ("<s>",))
    assert [body["messages"] for body in bench.server.chats] == [TURNS[:1], TURNS[:1]]
    assert {tuple(body["input_ids"]) for body in bench.server.asked} == {(1, 2, 3), (1, 5, 3), (1, 4, 3)}
    bench.server.chats.clear()
    bench.server.chat, bench.server.texts = [(500, {"message": "broken"})], {}
    told = bench.run().workload.retokenised
    assert told is not None
    assert told.rows == ()
    assert "HTTP 500" in (told.why_not or "")


def test_a_row_of_many_turns_ends_with_its_last_answer() -> None:
    mask = [0, 0, 1, 1, 0, 0, 1, 1, 0]
    line = {"input_ids": list(range(9)), "loss_mask": mask, "messages": [*TURNS, *TURNS]}
    _, prompt = read_row(json.dumps(line).encode(), "line 1")
    assert prompt.input_ids == (0, 1)
    assert prompt.trained is not None
    assert prompt.trained.prompt_tokens == 6
    assert prompt.trained.messages == (*TURNS, TURNS[0])


def test_bundled_prompts_go_as_text_where_there_is_no_template(bench: Bench) -> None:
    said = "Cannot use chat template functions because tokenizer.chat_template is not set"
    bench.server.chat = [(400, {"message": said})]
    result = bench.run(prompts="bundled", max_prompts=2)
    assert result.workload.form == "text"
    assert "Alice" in bench.server.asked[-5]["text"]


def test_own_messages_are_refused_where_there_is_no_template(bench: Bench) -> None:
    bench.prompts.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n')
    bench.server.chat = [(400, {"message": "no chat template"})]
    with pytest.raises(JobFailure, match="the server cannot render them"):
        bench.run()


def test_a_tokenizer_that_renders_otherwise_than_the_server_is_refused(bench: Bench, tmp_path: Path) -> None:
    """An older server tells only how many tokens a prompt has; a stand-in for its Python renders two."""
    bench.prompts.write_text('{"messages": [{"role": "user", "content": "Why?"}]}\n')
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "loading...\\n%s[[8, 9]]\\n" "$3"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    bench.server.chat = [(200, {"choices": [{}], "usage": {"prompt_tokens": 3}})]
    with pytest.raises(JobFailure, match="makes 3 tokens of it, the template of its tokenizer: 2"):
        bench.run(server_python=str(python), model="/models/target")
    bench.server.chat = [(200, {"choices": [{}], "usage": {"prompt_tokens": 2}})]
    result = bench.run(server_python=str(python), model="/models/target")
    assert result.workload.template == "tokenizer, lengths as served"
    assert bench.server.asked[-1]["input_ids"] == [8, 9]


@pytest.mark.slow
def test_a_hung_nvidia_smi_is_told_once_and_hangs_nobody(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setattr(machine_samples, "DEADLINE_S", 0.2)
    monkeypatch.setattr("remote_payload.gpus.facts.DEADLINE_S", 0.2)
    bench.server.replies = [Reply(chunks=[(0.1, 1)] * 3)]
    result = bench.run(repeats=2)
    assert [warning for warning in result.warnings if "nvidia-smi" in warning] == [
        "no GPU clocks and temperatures: nvidia-smi gave no answer within 0.2 s and was left out from then on"
    ]
    assert {sample.gpu for sample in bench.lines("machine.jsonl.gz", MachineSample)} == {None}
    assert (result.gpu_answer, result.gpus) == ("hung", ())


def test_gpus_are_sampled_and_an_old_driver_knows_another_name(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\ncase $1 in *clocks_event_reasons*) echo 'Field is not a valid field'; exit 2;; esac\n"
        "echo '0, 1980, 2619, 412.31, 61, 0x0000000000000004, 81559, 97'\n"
        "echo '1, [N/A], [N/A], [N/A], [N/A], [N/A], 10, [Not Supported]'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    bench.run()
    gpus = [sample for sample in bench.lines("machine.jsonl.gz", MachineSample) if sample.gpu is not None]
    first, second = gpus[:2]
    assert (first.gpu, first.sm_clock_mhz, first.power_w, first.temperature_c) == (0, 1980.0, 412.31, 61.0)
    assert (first.throttle, first.utilization) == ("0x0000000000000004", 0.97)
    assert first.memory_used_bytes == 81559 * 2**20
    assert (second.sm_clock_mhz, second.throttle, second.utilization) == (None, None, None)


def test_the_order_of_a_pair() -> None:
    job = BenchJob(model="m", draft="d", with_baseline=True, repeats=3)
    assert [(one.side, one.repeats) for one in starts(job)] == [
        ("spec", (0,)),
        ("plain", (0,)),
        ("plain", (1,)),
        ("spec", (1,)),
        ("spec", (2,)),
        ("plain", (2,)),
    ]
    assert starts(BenchJob(model="m", draft="d", repeats=2)) == (Start(side="spec", repeats=(0, 1)),)
    assert starts(BenchJob(model="m", repeats=2)) == (Start(side="plain", repeats=(0, 1)),)
    assert starts(BenchJob(model="m", draft="d", repeats=2, starts=3)) == tuple(
        Start(side="spec", repeats=repeats) for repeats in ((0, 1), (2, 3), (4, 5))
    )


def test_loads_are_users_then_rates_with_the_seed() -> None:
    job = BenchJob(model="m", concurrency=(1, 8), request_rate=(2.5,), seed=7)
    assert [(load.users, load.rate, load.seed) for load in loads(job)] == [(1, None, 0), (8, None, 0), (None, 2.5, 7)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"input_ids": [1, 2]}', "these are token ids"),
        (
            '{"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}',
            "longer conversations",
        ),
    ],
)
def test_sglangs_own_tool_takes_text_alone(bench: Bench, row: str, words: str) -> None:
    bench.prompts.write_text(row + "\n")
    with pytest.raises(JobFailure, match=words):
        bench.run(harness="sglang")


def test_a_server_that_is_started_anew_is_measured_on_each_start(site: Site, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"text": "Once"}\n')
    run(site.job(prompts=str(prompts), starts=2, repeats=2, requests=2), site.result, site.events.append)
    result = from_json(BenchResult, (site.result / "bench.json").read_text())
    assert [(server.start, server.stopped) for server in result.servers] == [(0, "term"), (1, "term")]
    assert [(point.start, point.repeat) for point in result.points] == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert (result.whole, result.planned, result.repeats) == (True, 4, 4)
    measured = [event.message for event in site.events if event.kind == "phase" and event.name == "measure"]
    assert "repeat 4 of 4" in measured[-1]
