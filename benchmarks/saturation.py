"""How many users a client can listen to: a stub server streams at a fixed rate, and what a client measures falls short
of that plan once the client is the bottleneck.

A client keeps up at a concurrency where it measures at least 95 % of the plan; the number told is the highest such
level below its first failure, median of the rounds. The plan is users x rate: the stub starts an answer at its next
moment, so that a client that asks at once loses nothing between two requests. Beside it whether our report's notice
(`CLIENT_BOUND`) would say that the client may be the bottleneck. Where the stub itself was late, nobody can tell: such
a load is told as the stub's limit and a client that kept up below it as keeping up with at least so many.
"""

import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.interleave import Spread
from benchmarks.lines import Line, Options, Skipped
from benchmarks.load_clients import OURS, THEIRS, Ran, Target, Work, run, stub_lateness, stub_server
from orchestrator.compare.served import CLIENT_BOUND
from tests.support.served_models import write_target

USERS = (64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144)
TOKENS_PER_S, TOKENS, EACH = 25, 128, 2
KEPT = 0.95
GIVEN_UP = 0.7
"""Of the plan: higher levels are not tried after it."""
STUB_LATE = 0.02
"""Of the load's planned time: a stub that was later than that at some moment may have cost the throughput itself."""


@dataclass(kw_only=True)
class _Rise:
    """One client's rounds by level; `late_s` is how late the stub was at its worst moment of each."""

    ran: dict[int, list[Ran]] = field(default_factory=dict)
    late_s: dict[int, list[float]] = field(default_factory=dict)

    def share(self, users: int) -> float:
        """Measured over planned throughput."""
        return statistics.median(one.tok_s for one in self.ran[users]) / (users * TOKENS_PER_S)

    def core(self, users: int) -> float:
        """Share of one core."""
        return statistics.median(one.core_share for one in self.ran[users])

    def is_stubs(self, users: int) -> bool:
        """Whether the stub may be what fell short."""
        return statistics.median(self.late_s[users]) > STUB_LATE * EACH * TOKENS / TOKENS_PER_S

    def limit(self) -> tuple[int, bool]:
        """The highest level that is kept below the first that is not, 0 = none; and whether there is such a one."""
        kept = 0
        for users in sorted(self.ran):
            if self.share(users) < KEPT:
                return kept, not self.is_stubs(users)
            kept = users
        return kept, False


def measure(options: Options) -> list[Line | Skipped]:
    """Every level with both clients in turn, then where each stops keeping up."""
    if not options.sglang_python.exists():
        why = f"needs a Python with SGLang (`make test-sglang` makes one, or --sglang PYTHON): {options.sglang_python}"
        return [Skipped(what="where our client and bench_serving saturate", why=why)]
    rises = {OURS: _Rise(), THEIRS: _Rise()}
    with (
        tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name,
        stub_server(TOKENS_PER_S, TOKENS) as url,
    ):
        folder = Path(name)
        model = write_target(folder / "target")
        target = Target(url=url, folder=folder, sglang_python=options.sglang_python, model=model)
        for users in USERS:
            for _ in range(max(1, options.runs // 3)):
                for client, rise in rises.items():
                    _level(rise, client, target, users)
    levels = [_line(rises, users) for users in USERS if users in rises[OURS].ran and users in rises[THEIRS].ran]
    return [*levels, _limits(rises)]


def _level(rise: _Rise, client: str, target: Target, users: int) -> None:
    below = [level for level in rise.ran if level < users]
    if below and rise.share(max(below)) < GIVEN_UP:
        return
    texts = tuple(f"Tell the story number {number}." for number in range(EACH * users))
    stub_lateness(target.url)
    rise.ran.setdefault(users, []).append(run(client, target, Work(texts=texts, tokens=TOKENS, users=users)))
    rise.late_s.setdefault(users, []).append(stub_lateness(target.url)["max_s"])


def _line(rises: dict[str, _Rise], users: int) -> Line:
    pairs = zip(rises[OURS].ran[users], rises[THEIRS].ran[users], strict=True)
    return Line(
        what=f"tok/s measured of {users * TOKENS_PER_S} planned, {users} users at {TOKENS_PER_S} tok/s",
        against=THEIRS,
        ratio=Spread.of([a.tok_s / b.tok_s for a, b in pairs]),
        ours=_words(rises[OURS], users),
        theirs=_words(rises[THEIRS], users),
    )


def _words(rise: _Rise, users: int) -> str:
    notice = "notice" if rise.core(users) >= CLIENT_BOUND else "no notice"
    late = f", stub up to {statistics.median(rise.late_s[users]):.2f} s late" if rise.is_stubs(users) else ""
    return f"{rise.share(users):.3f} of the plan, {rise.core(users):.2f} of a core ({notice}){late}"


def _limits(rises: dict[str, _Rise]) -> Line | Skipped:
    ours, theirs = rises[OURS].limit(), rises[THEIRS].limit()
    what = f"most users at {KEPT:.0%} of the plan"
    if not (ours[0] and theirs[0]):
        return Skipped(what=what, why=f"a client keeps up at no level: {ours[0]}, {theirs[0]} users")
    return Line(
        what=what,
        against=THEIRS,
        ratio=Spread.of([ours[0] / theirs[0]]),
        ours="; ".join((_limit_words(*ours), *_alone(rises[OURS], rises[THEIRS]))),
        theirs="; ".join((_limit_words(*theirs), *_alone(rises[THEIRS], rises[OURS]))),
    )


def _limit_words(users: int, is_its_own: bool) -> str:
    return (
        f"{users} users" if is_its_own else f"at least {users} users: above it the stub was late, or nothing was tried"
    )


def _alone(rise: _Rise, other: _Rise) -> list[str]:
    """The levels that the other was given up at."""
    return [f"{users}: {_words(rise, users)}" for users in rise.ran if users not in other.ran]
