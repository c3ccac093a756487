"""Our client against SGLang's `bench_serving`: the same real SGLang (on the CPU), the same texts, in turn.

Both send each text once, in the same order, in a closed loop, greedy, to the same length past any end; a short first
request and a flush come before. What differs: `bench_serving` opens a connection a request (we keep them), reads each
piece's JSON (we cut the token count out and read the last), and counts the answer's tokens once more with the
tokenizer, which is not in its CPU time here. Throughput is by one definition, first sending to last token.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.interleave import Spread
from benchmarks.lines import Line, Options, Skipped
from benchmarks.load_clients import OURS, THEIRS, Ran, Target, Work, run, stub_server
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.bundled import MEASURED, PASSAGES
from remote_payload.sglang_bench.server import Running
from remote_payload.sglang_bench.starting import start
from tests.sglang.conftest import ARGUMENTS, ENVIRONMENT
from tests.support.served_models import write_draft, write_target

USERS, TOKENS = 4, 64
STUB_USERS, STUB_TOKENS, STUB_TOKENS_PER_S = 32, 256, 100
SHORTER, LONGER = 1, 4
"""Requests a user against the stub: the slope between them is free of imports and start."""


def measure(options: Options) -> list[Line | Skipped]:
    """Throughput and CPU on the real server, then CPU a token against the stub, where there are more tokens."""
    if not options.sglang_python.exists():
        why = f"needs a Python with SGLang (`make test-sglang` makes one, or --sglang PYTHON): {options.sglang_python}"
        return [Skipped(what="our client against bench_serving", why=why)]
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        folder = Path(name)
        model = write_target(folder / "target")
        work = Work(texts=PASSAGES[:MEASURED], tokens=TOKENS, users=USERS)
        with _served(options, folder, model) as running:
            target = Target(url=running.url, folder=folder, sglang_python=options.sglang_python, model=model)
            real = rounds(lambda client: run(client, target, work), options.runs)
        with stub_server(STUB_TOKENS_PER_S, STUB_TOKENS) as url:
            target = Target(url=url, folder=folder, sglang_python=options.sglang_python, model=model)
            ends = [
                rounds(lambda client, each=each: run(client, target, _stub_work(each)), max(3, options.runs // 2))
                for each in (SHORTER, LONGER)
            ]
    return [*_real_lines(real), *_stub_lines(*ends)]


def rounds(once: Callable[[str], Ran], count: int) -> dict[str, list[Ran]]:
    """Both clients in turn, ABBA."""
    found: dict[str, list[Ran]] = {OURS: [], THEIRS: []}
    for number in range(count):
        for client in (OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS):
            found[client].append(once(client))
    return found


@contextmanager
def _served(options: Options, folder: Path, model: Path) -> Iterator[Running]:
    """The bundled target with its drafter as a chain of three steps, as the tests serve it."""
    job = BenchJob(
        model=str(model),
        draft=str(write_draft(folder / "draft", "drafter_std")),
        num_steps=3,
        eagle_topk=1,
        num_draft_tokens=4,
        dtype="float32",
        context_length=1024,
        server_args=ARGUMENTS,
        server_environment=tuple(f"{name}={value}" for name, value in ENVIRONMENT.items()),
        server_python=str(options.sglang_python),
        ready_timeout_s=600.0,
    )
    (folder / "result").mkdir()
    running = start(job, "spec", 0, folder / "result", lambda _: None)
    try:
        yield running
    finally:
        running.stop()


def _stub_work(each: int) -> Work:
    texts = tuple(f"Tell the story number {number}." for number in range(each * STUB_USERS))
    return Work(texts=texts, tokens=STUB_TOKENS, users=STUB_USERS)


def _real_lines(found: dict[str, list[Ran]]) -> list[Line]:
    ours, theirs = found[OURS], found[THEIRS]
    assert len({one.tokens for one in ours + theirs}) == 1, "not the same answers"
    assert {tuple(sorted(one.prompt_tokens)) for one in ours} == {tuple(sorted(one.prompt_tokens)) for one in theirs}
    what = f"real SGLang, {USERS} users, {MEASURED} texts, {ours[0].tokens} tokens"
    pairs = list(zip(ours, theirs, strict=True))
    return [
        Line(
            what=f"output throughput measured, {what}",
            against=THEIRS,
            ratio=Spread.of([a.tok_s / b.tok_s for a, b in pairs]),
            ours=f"{_spread(Spread.of([one.tok_s for one in ours]), 'tok/s')}; {_cached(ours)}",
            theirs=f"{_spread(Spread.of([one.tok_s for one in theirs]), 'tok/s')}; {_cached(theirs)}",
        ),
        Line(
            what=f"client CPU a token while requests run, {what}",
            against=THEIRS,
            ratio=Spread.of([a.cpu_s / b.cpu_s for a, b in pairs]),
            aim=("<=", 1.0),
            ours=_spread(Spread.of([1e6 * one.cpu_s / one.tokens for one in ours]), "us"),
            theirs=_spread(Spread.of([1e6 * one.cpu_s / one.tokens for one in theirs]), "us"),
        ),
        Line(
            what="the same, CPU of the whole process, imports included",
            against=THEIRS,
            ratio=Spread.of([a.whole_cpu_s / b.whole_cpu_s for a, b in pairs]),
            ours=_spread(Spread.of([one.whole_cpu_s for one in ours]), "s"),
            theirs=_spread(Spread.of([one.whole_cpu_s for one in theirs]), "s"),
        ),
    ]


def _stub_lines(short: dict[str, list[Ran]], long: dict[str, list[Ran]]) -> list[Line]:
    """CPU a token: by the client's own clock, and as the slope of whole processes, which holds no imports."""
    what = f"stub server, {STUB_USERS} users at {STUB_TOKENS_PER_S} tok/s"
    own = {name: [1e6 * one.cpu_s / one.tokens for one in long[name]] for name in long}
    slopes = {
        name: [
            1e6 * (b.whole_cpu_s - a.whole_cpu_s) / (b.tokens - a.tokens)
            for a, b in zip(short[name], long[name], strict=True)
        ]
        for name in long
    }
    return [
        Line(
            what=f"{words}, {what}, {long[OURS][0].tokens} tokens",
            against=THEIRS,
            ratio=Spread.of([a / b for a, b in zip(values[OURS], values[THEIRS], strict=True)]),
            aim=("<=", 1.0),
            ours=_spread(Spread.of(values[OURS]), "us"),
            theirs=_spread(Spread.of(values[THEIRS]), "us"),
        )
        for words, values in (
            ("client CPU a token while requests run", own),
            (f"whole process, slope between {SHORTER} and {LONGER} requests a user", slopes),
        )
    ]


def _cached(ran: list[Ran]) -> str:
    """A side that found more of its prompts in the cache would have had less to wait for."""
    return f"{sum(one.cached_tokens for one in ran) / sum(sum(one.prompt_tokens) for one in ran):.1%} of prompts cached"


def _spread(found: Spread, unit: str) -> str:
    return f"{found.median:.3g} {unit} ({found.low:.3g}-{found.high:.3g})"
