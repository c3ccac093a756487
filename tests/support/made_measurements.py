"""Measurement sets made by hand: served benchmarks of many runs, and one whose every text is hostile."""

import random

from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series

HOSTILE = (
    '<script>alert("x")</script>',
    '"><img src=http://192.0.2.1/x onerror=alert(1)>',
    "{{7*7}}${7*7}{% raw %}",
    "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "nul\x00 bell\x07 esc\x1b[31m",
    "javascript:alert(1)",
    "$x^{2$ \\frac{1}",
    '=HYPERLINK("http://192.0.2.1")|cell\nnew line',
    "\ud800 lone",
    "W" * 5000,
)
"""What may stand in a label, a file's name, a server's argument, ... of a run that somebody else made."""
THROUGHPUT = "output tokens / seconds from the first send to the last token"
POOLED = "1 + accepted drafts / verify steps, bonus token in, summed over requests"


def facts(**values: str | None) -> tuple[Fact, ...]:
    return tuple(Fact(name=name, value=value) for name, value in values.items())


def made_load(
    run_id: str,
    *,
    side: str = "spec",
    users: int = 1,
    tok_s: float = 120.0,
    accept: float = 0.7,
    repeats: int = 5,
    seed: int = 0,
    invalid: tuple[str, ...] = (),
) -> Measurement:
    """One load: throughput a repeat, each on a server start of its own; acceptance a prompt."""
    draws = random.Random(seed)
    runs = tuple(f"{run_id}/{number}" for number in range(repeats))
    throughputs = tuple(tok_s * (1 + draws.uniform(-0.02, 0.02)) for _ in runs)
    series = [
        Series(metric="output_throughput_tok_s", unit="tok/s", definition=THROUGHPUT, level="run",
               keys=runs, clusters=runs, y=throughputs),
        Series(metric="ttft_s", unit="s", definition="seconds to the first token, median over requests", level="run",
               keys=runs, clusters=runs, y=tuple(0.05 + draws.uniform(0, 0.004) for _ in runs)),
    ]  # fmt: skip
    histogram = [0, 0, 0, 0]
    if side == "spec":
        verify, tokens = [], []
        for _ in range(24):
            depths = [next((d for d in range(3) if draws.random() > accept), 3) for _ in range(40)]
            for depth in depths:
                histogram[depth] += 1
            verify.append(40.0)
            tokens.append(40.0 + sum(depths))
        prompts = tuple(f"cdcdcdcd/{number}" for number in range(24))
        series.append(
            Series(metric="accept_length_pooled", unit="tokens", definition=POOLED, level="prompt", keys=prompts,
                   y=tuple(tokens), x=tuple(verify))
        )  # fmt: skip
    return Measurement(
        case=facts(side=side, concurrency=str(users)),
        series=tuple(series),
        hard=facts(target="/srv/target", dtype="bfloat16", gpu="H200 x 1", dataset="mtbench", temperature="0"),
        soft=facts(sglang_version="0.5.23", host_cpus="16", clocks=None),
        arguments=facts(speculative_num_steps="3" if side == "spec" else "null", attention_backend='"fa3"'),
        invalid=invalid,
        histogram=tuple(histogram) if side == "spec" else (),
    )


def made_set(
    run_id: str = "bench-20260102-0304-ab12cd",
    *,
    created_unix_s: float | None = 1767323045.0,
    users: tuple[int, ...] = (1, 4, 16, 64),
    gain: float = 1.35,
    seed: int = 0,
    invalid: tuple[str, ...] = (),
) -> MeasurementSet:
    """A run with speculation and plain decoding at each concurrency; the gain shrinks with the load."""
    loads = []
    for place, count in enumerate(users):
        plain = 90.0 * count**0.8
        accept = 0.7 + 0.02 * ((seed * 7) % 5 - 2)
        loads.append(made_load(run_id, side="plain", users=count, tok_s=plain, seed=seed + place))
        tok_s = plain * gain * (1 - 0.12 * place)
        loads.append(
            made_load(run_id, users=count, tok_s=tok_s, accept=accept, seed=seed + 2 * place + 1, invalid=invalid)
        )
    return MeasurementSet(
        run_id=run_id,
        origin="own",
        tool="eagle3-remote 0.5.0",
        job_kind="bench",
        host="gpu1",
        created_unix_s=created_unix_s,
        measurements=tuple(loads),
    )


def made_history(count: int) -> tuple[MeasurementSet, ...]:
    """So many runs, a day apart, with a step in the middle; every fortieth is no measurement."""
    return tuple(
        made_set(
            f"bench-{number:04d}",
            created_unix_s=1767323045.0 + 86400.0 * number,
            users=(1, 16),
            gain=1.3 if number < count / 2 else 1.42,
            seed=number,
            invalid=("3 requests failed",) if number % 40 == 39 else (),
        )
        for number in range(count)
    )


def hostile_set(number: int = 0) -> MeasurementSet:
    """Every text that can be anything is."""
    word = HOSTILE[number % len(HOSTILE)]
    all_facts = tuple(Fact(name=f"{text[:60]}{at}", value=text) for at, text in enumerate(HOSTILE))
    series = Series(
        metric=word[:80], unit=word[:40], definition=word, level="run", keys=(word, "b", "c"), y=(1.0, 2.0, 3.0)
    )
    known = Series(
        metric="output_throughput_tok_s",
        unit="tok/s",
        definition=word,
        level="run",
        keys=("a", "b", word),
        y=(90.0, 91.0, 92.0),
    )
    length = Series(
        metric="accept_length_pooled", unit="tokens", definition=word, level="prompt",
        keys=tuple(f"{word}{at}" for at in range(8)),
        y=tuple(20.0 + at for at in range(8)), x=(10.0,) * 8,
    )  # fmt: skip
    case = (Fact(name="side", value=word), Fact(name="concurrency", value="4"), Fact(name=word[:50], value=word))
    return MeasurementSet(
        run_id=word,
        origin="imported",
        tool=word,
        job_kind=word,
        label=word,
        host=word,
        created_unix_s=1767323045.0 + number,
        source=word,
        measurements=(
            Measurement(
                case=case,
                series=(series, known, length),
                hard=all_facts,
                soft=all_facts,
                arguments=all_facts,
                warnings=HOSTILE,
                histogram=(40, 30, 20, 10),
            ),
        ),
        unknown=HOSTILE,
    )
