"""What a sweep costs beside its work: points with nothing to do, on one host and on three, against a loop over ssh.

The loop does by hand what a point needs at least: a folder of its own, the interpreter started in it, its file brought
home. It keeps no state, no log, no failure and no GPU; it needs the laptop throughout. All hosts are sshds of this one
machine, so three hosts have no more processors than one: what is seen is the cost of asking three.
"""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.interleave import Cost, Subject, interleaved, process, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.scene import Scene, laptop
from tests.support.sshd import SshClientFiles, running_sshd

HOSTS = ("gpu1", "gpu2", "gpu3")
POINTS = 30
LOOP = """
set -e
point() {
  ssh -F "$1" "$2" "mkdir -p 'points/$3' && cd 'points/$3' && python3 -c 'open(\\"out\\", \\"wb\\").write(bytes(10))'"
  scp -q -F "$1" "$2:points/$3/out" "$4/$2.$3"
}
config=$1; folder=$2; points=$3; shift 3; hosts=$#
for host in "$@"; do
  ( set -e; n=0; while [ $n -lt $((points / hosts)) ]; do point "$config" "$host" $n "$folder"; n=$((n + 1)); done ) &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
"""


@contextmanager
def laptop_and_hosts(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[Scene, dict[str, Path]]]:
    """A laptop that knows these hosts, and the home that each has."""
    alone = laptop(folder)
    homes: dict[str, Path] = {}
    with ExitStack() as stack:
        for name in names:
            server = stack.enter_context(running_sshd(folder / f"server-{name}"))
            SshClientFiles(folder / "ssh").add_host(name, server)
            homes[name] = server.home
        yield alone, homes


def sweep_file(folder: Path, points: int) -> Path:
    """So many points that do nothing."""
    path = folder / f"{points}.toml"
    sizes = ", ".join(str(10 + n) for n in range(points))
    path.write_text(f'[sweep]\njob = "selftest"\n[sweep.grid]\nresult_bytes = [{sizes}]\n', encoding="utf-8")
    return path


def measure(options: Options) -> list[Line | Skipped]:
    """Launch, run, follow and bring home, on one host and on three."""
    runs = max(3, options.runs // 3)
    with (
        tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name,
        laptop_and_hosts(Path(name), HOSTS) as (scene, _),
    ):
        file, counter = sweep_file(scene.folder, POINTS), itertools.count()

        def ours(hosts: tuple[str, ...]) -> Cost:
            words = ("--host", ",".join(hosts), "--run-id", f"sweep{next(counter)}")
            return scene.ours("sweep", "run", str(file), *words)

        def loop(hosts: tuple[str, ...]) -> Cost:
            words = [str(scene.ssh_config), str(scene.folder), str(POINTS), *hosts]
            return process(["sh", "-c", LOOP, "loop", *words], scene.environment, scene.folder)

        subjects: dict[str, Subject] = {}
        for hosts in (HOSTS[:1], HOSTS):
            subjects[_ours(hosts)] = lambda hosts=hosts: ours(hosts)  # type: ignore[misc]
            subjects[_loop(hosts)] = lambda hosts=hosts: loop(hosts)  # type: ignore[misc]
        costs = interleaved(subjects, runs)
    a_point = {
        who: [replace(cost, wall_s=cost.wall_s / POINTS, cpu_s=cost.cpu_s / POINTS) for cost in some]
        for who, some in costs.items()
    }
    pairs = [(_ours(hosts), _loop(hosts)) for hosts in (HOSTS[:1], HOSTS)] + [(_ours(HOSTS), _ours(HOSTS[:1]))]
    return [
        Line(
            what=f"{mine}, a point of {POINTS}",
            against=other,
            ratio=ratios(a_point, mine, other),
            ours=cost_words(a_point[mine]),
            theirs=cost_words(a_point[other]),
        )
        for mine, other in pairs
    ]


def _ours(hosts: tuple[str, ...]) -> str:
    return f"no-op sweep over {_count(hosts)}"


def _loop(hosts: tuple[str, ...]) -> str:
    return f"a loop of ssh and scp {'on one host' if len(hosts) == 1 else f'a host, {len(hosts)} side by side'}"


def _count(hosts: tuple[str, ...]) -> str:
    return "one host" if len(hosts) == 1 else f"{len(hosts)} hosts"
