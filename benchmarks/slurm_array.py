"""Points with nothing to do on a Slurm: our sweep, launched, followed and brought home, against submitit's `map_array`.

Ours is the laptop's whole command over SSH, every point a run with supervisor, state and checked result, and Slurm
asked once a second; submitit is started over the same SSH on the login node and reads its pickles there. Both arrays
meet the same three pretended nodes of four CPUs each, which share this machine's cores.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

from benchmarks.interleave import Cost, interleaved, process, ratios
from benchmarks.lines import Line, Options, Skipped, cost_words
from benchmarks.scene import HOST, laptop
from tests.support.slurm import SEARCH_PATH, TOOLS, running_slurm
from tests.support.sshd import ServerOptions, SshClientFiles, running_sshd

POINTS = 40
WHAT = f"{POINTS} no-op points on a Slurm"
OTHER = "submitit map_array"
ROUNDS = 5
"""At most: a round takes half a minute."""


def measure(options: Options) -> list[Line | Skipped]:
    """The wall time of a whole sweep over that of a whole array."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SEARCH_PATH) is None]
    if missing:
        return [Skipped(what=WHAT, why=f"not found: {', '.join(missing)}")]
    try:
        python = _submitit()
    except subprocess.CalledProcessError as error:
        return [Skipped(what=WHAT, why=f"submitit could not be installed: {error}")]
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name, running_slurm() as slurm:
        folder = Path(name)
        folder.chmod(0o755)  # the nodes' daemons look into it
        alone = laptop(folder)
        with running_sshd(folder / "server", ServerOptions(environment=slurm.environment)) as server:
            SshClientFiles(folder / "ssh").add_host(HOST, server)
            (folder / "eagle3.toml").write_text(
                f'[hosts.{HOST}]\nssh = "{HOST}"\nscheduler = "slurm"\n[hosts.{HOST}.slurm]\npoll_s = 1.0\n'
            )
            points = "".join(f"[[sweep.points]]\nresult_bytes = {2048 + at}\n" for at in range(POINTS))
            (folder / "sweep.toml").write_text(f'[sweep]\njob = "selftest"\n{points}')
            driver = Path(__file__).with_name("submitit_driver.py")
            there = ("ssh", "-F", alone.ssh_config, HOST, str(python), str(driver), str(server.home), str(POINTS))

            def theirs() -> Cost:
                return process(there, alone.environment, folder)

            subjects = {"ours": lambda: alone.ours("sweep", "run", "sweep.toml", "--host", HOST), OTHER: theirs}
            costs = interleaved(subjects, min(options.runs, ROUNDS))
    return [
        Line(
            what=f"{WHAT}, launched, followed, home",
            against=OTHER,
            ratio=ratios(costs, "ours", OTHER),
            ours=_a_point(costs["ours"]),
            theirs=_a_point(costs[OTHER]),
        )
    ]


def _a_point(costs: list[Cost]) -> str:
    each = [Cost(wall_s=cost.wall_s / POINTS, cpu_s=cost.cpu_s / POINTS) for cost in costs]
    return f"a point {cost_words(each)}"


def _submitit() -> Path:
    """A Python that has it, in a venv under the user's cache folder, made once. Raises CalledProcessError."""
    venv = user_cache_path("eagle3-remote") / "benchmark-submitit"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "submitit==1.5.4"], check=True, capture_output=True)
    return python
