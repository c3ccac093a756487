"""A real Slurm on this machine: munged, slurmctld and three nodes, everything under one folder; stopped by pid.

    with running_slurm() as slurm:
        slurm.run("sbatch", "--wrap", "true")
        slurm.nodes[0].kill()                     # the power of a node fails

Each node is a slurmd in namespaces of its own: its own host name and process table, as a real one has, so that no pid
of a job means anything outside it. Needs root, for the namespaces and for slurmd.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.sshd import free_port

NODES = 3
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin"
FREEZER = Path("/sys/fs/cgroup/freezer")
PROVES = FREEZER.is_dir()
"""Whether the cluster keeps a job's processes in a control group, which none of them can leave."""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={port}
ProctrackType={proctrack}
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0,requeue_setup_env_fail
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MinJobAge=300
KillWait=5
SlurmdTimeout=3
SlurmctldTimeout=5
InactiveLimit=0
MessageTimeout=2
UnkillableStepTimeout=30
JobAcctGatherType=jobacct_gather/none
{accounting}
GresTypes=gpu
SlurmdParameters=config_overrides
PartitionName=gpu Nodes=node[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
PartitionName=cheap Nodes=node[1-{nodes}] MaxTime=INFINITE State=UP PreemptMode=CANCEL
PartitionName=urgent Nodes=node[1-{nodes}] MaxTime=INFINITE State=UP PreemptMode=OFF PriorityTier=10
"""
_NODE = (
    "NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000 Gres=gpu:h200:8"
    " State=UNKNOWN\n"
)


@dataclass
class Node:
    """One slurmd with host name and process table of its own."""

    name: str
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Switch it on."""
        start = f'hostname {self.name} && exec slurmd -D -N {self.name} -f "{self.folder}/slurm.conf"'
        command = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", start]
        self.process = spawn(command, self.folder)

    def kill(self) -> None:
        """Switch it off: every process there is gone at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Slurm:
    """A running cluster."""

    folder: Path
    nodes: list[Node] = field(default_factory=list)
    daemons: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str) -> str:
        """Run one of Slurm's tools; returns what it printed."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def start_controller(self, *, forgetting: bool = False) -> None:
        """Start slurmctld (again); `forgetting` every job there was."""
        command = ["slurmctld", "-D", *(["-c"] if forgetting else []), "-f", f"{self.folder}/slurm.conf"]
        self.daemons["slurmctld"] = spawn(command, self.folder)

    def stop_controller(self) -> None:
        """The controller is gone, its nodes and jobs go on."""
        _end(self.daemons.pop("slurmctld"))

    def idle_nodes(self) -> int:
        """How many nodes have nothing to do."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            return int(self.run("sinfo", "-h", "-t", "idle", "-o", "%D") or 0)
        return 0


Accounting = Callable[[Slurm], tuple[str, Callable[[], None]]]


def needs_slurm() -> None:
    """Skip the test where Slurm or the right to run its daemons is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"needs a Slurm (apt-get install slurm-wlm munge); not found: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd and its namespaces need root")


@contextlib.contextmanager
def running_slurm(accounting: "Accounting | None" = None) -> Iterator[Slurm]:
    """Start a cluster of three nodes with eight pretended GPUs each; everything it writes goes with it.

    `accounting` starts a data base: its lines of slurm.conf, and what is to be done once those are written.
    """
    needs_slurm()
    # Not below a test's own folder: Slurm makes sockets in its spool, whose paths have at most 108 characters.
    with _alone(), tempfile.TemporaryDirectory(prefix="e3r-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("state", "spool"):
            (folder / part).mkdir()
        folder.chmod(0o755)
        yield from _lifetime(Slurm(folder=folder), accounting)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One cluster at a time on this machine: the kernel's control groups are named by node and job alone."""
    with (Path(tempfile.gettempdir()) / "eagle3-remote-tests-slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _lifetime(slurm: Slurm, accounting: "Accounting | None") -> Iterator[Slurm]:
    folder = slurm.folder
    try:
        _start_munge(slurm)
        lines, then = accounting(slurm) if accounting else (NO_ACCOUNTING, lambda: None)
        _configure(folder, lines)
        then()
        slurm.start_controller()
        for number in range(1, NODES + 1):
            (folder / "spool" / f"node{number}").mkdir()
            slurm.nodes.append(Node(f"node{number}", folder))
            slurm.nodes[-1].start()
        try:
            until(lambda: slurm.idle_nodes() == NODES, "three idle nodes", 120.0)
        except AssertionError as late:
            logs = [f"{path.name}: {path.read_text(errors='replace')[-600:]}" for path in sorted(folder.glob("*.log"))]
            raise AssertionError("\n".join([str(late), *logs])) from None
        yield slurm
    finally:
        for node in slurm.nodes:
            node.kill()
        for process in reversed(slurm.daemons.values()):
            _end(process)
        _remove_groups()


def _remove_groups() -> None:
    """The nodes' empty control groups, the inner ones first."""
    for number in range(1, NODES + 1):
        top = FREEZER / f"slurm_node{number}"
        for group in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        with contextlib.suppress(OSError):
            top.rmdir()


def until(holds: Callable[[], bool], what: str, patience_s: float = 60.0) -> None:
    """Wait for something to hold."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience_s:.0f} s: {what}"
        time.sleep(0.1)


def _configure(folder: Path, accounting: str) -> None:
    proctrack = "proctrack/linuxproc"
    if PROVES:
        proctrack = "proctrack/cgroup"
        (folder / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n"
            "ConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n"
        )
    text = _CONFIGURATION.format(
        host=os.uname().nodename.partition(".")[0],
        folder=folder,
        port=free_port(),
        proctrack=proctrack,
        accounting=accounting,
        nodes=NODES,
    )
    for number in range(1, NODES + 1):
        text += _NODE.format(name=f"node{number}", port=free_port())
    (folder / "slurm.conf").write_text(text)
    for number in range(8):
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (folder / "gres.conf").write_text(f"NodeName=node[1-{NODES}] Name=gpu Type=h200 File={folder}/gpu[0-7]\n")


def _start_munge(slurm: Slurm) -> None:
    folder = slurm.folder
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    # --force: it dislikes folders that others may write to, as the temporary ones are.
    command = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.sock"]
    command += [f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed"]
    slurm.daemons["munged"] = spawn(command, folder)
    until((folder / "munge.sock").exists, "munged's socket")


def spawn(command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start one of the cluster's programs; what it prints goes to `daemons.log`."""
    with (folder / "daemons.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": SEARCH_PATH, "SLURM_CONF": str(folder / "slurm.conf")},
            start_new_session=True,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """TERM, and KILL where that is not enough."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
