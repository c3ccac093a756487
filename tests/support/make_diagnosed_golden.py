"""Make tests/golden/diagnosed.json.xz: what a real SGLang on a CPU did with each pair of `served_cases`.

    python -m tests.support.make_diagnosed_golden NAME...

Each is a whole `diagnose --deep` from a laptop over ssh. Kept are the runs of its stages as they came home, with the
paths of the machine they were made on replaced. `EAGLE3_SGLANG_PYTHON`: the interpreter with SGLang.
"""

import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from orchestrator.demo.stage import DATA
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.starting import start
from tests.sglang.conftest import ARGUMENTS, CHECKOUT, ENVIRONMENT
from tests.support.broken_scene import Scene
from tests.support.diagnosed_runs import ID, pack
from tests.support.laptop import Laptop
from tests.support.served_cases import CASES, CHAIN, ServedCase
from tests.support.served_models import write_prompts, write_target
from tests.support.sshd import running_sshd

QUICK = "[jobs.standalone]\ncapture_rows = 0\nthreads = 1\n[jobs.capture]\nmax_rows = 1\n"
PROMPTS, TOKENS = 5, 32
"""Of each split."""
LONGEST_S = 900


def write_heldout(scene: Scene, path: Path) -> Path:
    """The prompts of the rows that it was not trained on."""
    rows = [torch.load(row, weights_only=True) for row in scene.rows("heldout")]
    starts = [int(row["loss_mask"].nonzero()[0]) for row in rows]
    return write_prompts(path, [row["input_ids"][:end].tolist() for row, end in zip(rows, starts, strict=True)])


@contextlib.contextmanager
def serving(case: ServedCase, scene: Scene, target: Path, python: str, folder: Path) -> Iterator[list[str]]:
    """What to tell `diagnose` of the server: how to start it, or where one is that this has started."""
    words = (*ARGUMENTS, "--context-length", "1024")
    if case.whole:
        told = [f"--server-arg={word}" for word in words]
        told += [f"--server-env={name}={value}" for name, value in ENVIRONMENT.items()]
        yield [*told, f"--server-python={python}", "--dtype=float32"]
        return
    chain = {name.replace("-", "_"): value for name, value in {**CHAIN, **case.flags}.items() if name in CHAIN}
    job = BenchJob(
        model=str(target),
        draft=str(scene.draft),
        dtype="float32",
        server_args=(*words, "--enable-return-hidden-states"),
        server_environment=tuple(f"{name}={value}" for name, value in ENVIRONMENT.items()),
        server_python=python,
        ready_timeout_s=600.0,
        **chain,
    )
    folder.mkdir()
    running = start(job, "spec", 0, folder, lambda _: None)
    try:
        yield [f"--attach-url={running.url}"]
    finally:
        running.stop()


def make(case: ServedCase, base: Path, python: str) -> Path:
    """Diagnose one pair below `base`; the laptop's store. The drafter test comes before any server is up."""
    scene = case.scene(base / "scene")
    target = write_target(base / "target")
    samples = {
        "rows": scene.settings["rows"],
        "merged": scene.settings.get("merged", DATA / "merged.jsonl"),
        "states": ",".join(map(str, scene.settings["states"])),
        "heldout": scene.settings["heldout"],
    }
    asked = {
        "model": target,
        "heldout-prompts": write_heldout(scene, base / "heldout.jsonl"),
        "max-prompts": PROMPTS,
        "max-new-tokens": TOKENS,
        "repeats": 1,
        **CHAIN,
        **case.flags,
    }
    (base / "laptop").mkdir()
    with running_sshd(base / "gpu1") as sshd:
        laptop = Laptop(base / "laptop")
        laptop.add_host("gpu1", sshd)
        with laptop.toml.open("a") as file:
            file.write(QUICK)
        common = words_of({"host": "gpu1", "draft": scene.draft, **samples})
        run(laptop, "run", "standalone", f"--run-id={ID}.offline", f"--target={target}", *common)
        with one_server(), serving(case, scene, target, python, base / "server") as told:
            run(laptop, "diagnose", "--deep", f"--run-id={ID}", *common, *words_of(asked), *told)
    return laptop.store


def words_of(flags: Mapping[str, Any]) -> list[str]:
    """Flags as a command line has them."""
    return [f"--{name}={value}" for name, value in flags.items()]


def run(laptop: Laptop, *words: str) -> None:
    """One command, to its end; what it said goes to stderr."""
    started = laptop.start(*words)
    try:
        out, err = started.communicate(timeout=LONGEST_S)
    finally:
        laptop.close()
    sys.stderr.write(f"{out}\n{err[-3000:]}\nexit {started.returncode}\n")


@contextlib.contextmanager
def one_server() -> Iterator[None]:
    """Alone with the file that `EAGLE3_SGLANG_LOCK` names, where several share a machine."""
    path = os.environ.get("EAGLE3_SGLANG_LOCK")
    if path is None:
        yield
        return
    with Path(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(names: list[str]) -> None:
    """Make those of these names anew."""
    python = os.environ.get("EAGLE3_SGLANG_PYTHON") or str(CHECKOUT / ".sglang-venv" / "bin" / "python")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="pair-") as folder:
            base = Path(folder).resolve()
            store = make(CASES[name], base, python)
            away = {
                str(base): "/srv",
                str(Path(python).parents[1]): "/opt/sglang",
                sys.prefix: "/opt/python",
                str(CHECKOUT): "/opt/eagle3",
            }
            pack(name, store, away)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CASES))
