"""A warm run with nothing to do - launch, follow, 2 KB of result home - against tools that do as much by hand.

The others copy 200 KB (about our payload, which a warm run need not send), run `python3 -c pass` and fetch 2 KB.
Whole processes on the same sshd; nobody keeps a connection from one round to the next.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import peer_tools
from benchmarks.interleave import Cost, Subject, interleaved, process, ratios, together
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.scene import HOST, Scene, laptop_and_host

UP_BYTES, DOWN_BYTES = 200_000, 2048
WHAT = "warm no-op run"
RAW = "raw scp + ssh + scp"


def measure(options: Options) -> list[Line | Skipped]:
    """Ours against raw OpenSSH commands, ansible-playbook and pyinfra."""
    skipped: list[Line | Skipped] = []
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name, laptop_and_host(Path(name)) as scene:
        assert scene.server is not None
        (scene.folder / "up").write_bytes(os.urandom(UP_BYTES))
        (scene.server.home / "small").write_bytes(os.urandom(DOWN_BYTES))
        subjects: dict[str, Subject] = {"ours": lambda: scene.ours("run", "selftest", "--host", HOST), RAW: _raw(scene)}
        for tool, given in (("ansible-playbook", options.ansible), ("pyinfra", options.pyinfra)):
            try:
                subjects[tool] = peer_tools.subject(tool, given, scene)
            except peer_tools.NotInstalledError as error:
                skipped.append(Skipped(what=f"{WHAT} against {tool}", why=str(error)))
        costs = interleaved(subjects, options.runs, warm_ups=3)
    return [*(_line(other, costs, 0.6 if other == RAW else None) for other in list(subjects)[1:]), *skipped]


def _raw(scene: Scene) -> Callable[[], Cost]:
    assert scene.server is not None
    config, home = ("-F", scene.ssh_config), scene.server.home

    def run(*argv: str | os.PathLike[str]) -> Cost:
        return process(argv, scene.environment, scene.folder)

    steps = [
        lambda: run("scp", *config, "-q", "up", f"{HOST}:{home}/up"),
        lambda: run("ssh", *config, HOST, "python3 -c pass"),
        lambda: run("scp", *config, "-q", f"{HOST}:{home}/small", "down"),
    ]
    return lambda: together(steps)


def _line(other: str, costs: dict[str, list[Cost]], bound: float | None) -> Line:
    return Line(
        what=WHAT,
        against=other,
        ratio=ratios(costs, "ours", other),
        aim=None if bound is None else ("<=", bound),
        ours=cost_words(costs["ours"]),
        theirs=cost_words(costs[other]),
    )
