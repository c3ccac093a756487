"""What a host is like, as text: `hosts list`, `hosts check`. Pure."""

from collections.abc import Sequence

from orchestrator.report.table import table
from orchestrator.report.words import UNKNOWN, size
from remote_payload.schema import Gpu, GpuProcess, HostFacts, PythonFacts
from remote_payload.schema.slurm import SlurmFacts


def check_text(
    name: str, destination: str, facts: HostFacts, skew: tuple[float, float], problems: Sequence[str] = ()
) -> str:
    """`hosts check`: one line a fact, what is wrong marked by `!`, interpreters and GPUs as lists.

    `skew` is the host's clock against ours and how far off that may be, seconds; `problems` what the configuration of
    the host asks for and it cannot do.
    """
    skew_s, skew_error_s = skew
    lines = [
        *(_line("config", problem, wrong=True) for problem in problems),
        _line("host", f"{name} ({destination}), {facts.hostname} as {facts.user}, {facts.system}"),
        _line("key", "verified against known_hosts"),
        _line("clock", f"{skew_s:+.1f} s against this laptop (± {skew_error_s:.1f} s)", wrong=abs(skew_s) > 60),
        _line(
            "cpu",
            f"{_known(facts.cpu_count)} cores, memory {size(facts.memory_total_bytes)}, "
            f"available {size(facts.memory_available_bytes)}",
        ),
        _root(facts),
        _logind(facts),
        _line("shell", facts.login_shell or UNKNOWN),
        "",
        "Python interpreters, in the order they are tried:",
        *([f"  {_python(python)}" for python in facts.pythons] or ["  ! none found"]),
        "",
        *_slurm(facts.slurm),
        _gpu_answer(facts),
        *(line for gpu in facts.gpus for line in _gpu(gpu)),
    ]
    if any(line.lstrip().startswith("! ") for line in lines):
        lines += ["", "! marks what is wrong, or what a job cannot use"]
    return "\n".join(lines)


def hosts_text(rows: Sequence[Sequence[str]]) -> str:
    """`hosts list`: name, ssh destination, python, root."""
    if not rows:
        return "no [hosts.*] configured; --host also takes an ssh alias or user@address[:port]"
    return "\n".join(table([["host", "ssh", "python", "root"], *rows]))


def _line(label: str, text: str, *, wrong: bool = False) -> str:
    return f"{'! ' if wrong else '  '}{label:<7} {text}"


def _root(facts: HostFacts) -> str:
    problem = facts.root_problem or ("not writable" if not facts.root_writable else None)
    words = f"{facts.root} on {facts.root_filesystem or UNKNOWN}, free {size(facts.disk_free_bytes)}"
    words += f", {_known(facts.inodes_free)} inodes"
    words += {True: ", noexec (harmless: Python runs the payload)", False: "", None: ", noexec unknown"}[
        facts.root_noexec
    ]
    return _line("root", f"{words}; {problem}" if problem else words, wrong=problem is not None)


def _logind(facts: HostFacts) -> str:
    kills = facts.kill_user_processes is True and facts.linger is not True
    said = {True: "yes", False: "no", None: UNKNOWN}
    words = f"KillUserProcesses {said[facts.kill_user_processes]}, linger {said[facts.linger]}"
    if kills:
        words += ": jobs die at logout; run `loginctl enable-linger` on the host"
    return _line("logind", words, wrong=kills)


def _python(python: PythonFacts) -> str:
    if python.problem:
        return f"! {python.path}: {python.problem}"
    cuda = f" (CUDA {python.torch_cuda})" if python.torch_cuda else ""
    versions = [
        f"{name} {version or '-'}{cuda if name == 'torch' else ''}"
        for name, version in (
            ("torch", python.torch),
            ("safetensors", python.safetensors),
            ("sglang", python.sglang),
            ("transformers", python.transformers),
        )
    ]
    usable = "  " if python.torch and python.safetensors else "! "
    return f"{usable}{python.path}: Python {python.version}, {', '.join(versions)}"


def _slurm(facts: SlurmFacts | None) -> list[str]:
    """Nothing where the host has no Slurm."""
    if facts is None:
        return []
    if facts.problem is not None:
        return [f"! Slurm: {facts.problem}", ""]
    accounting = {True: "with accounting", False: "without accounting", None: f"accounting {UNKNOWN}"}[facts.accounting]
    tracks = {
        True: "ends every process of a job",
        False: "may miss processes of a job that it ends",
        None: f"whether it ends every process of a job is {UNKNOWN}",
    }[facts.tracks_processes]
    largest = "" if facts.largest_array is None else f", arrays below {facts.largest_array}"
    lines = [f"Slurm {facts.version or UNKNOWN}, {accounting}, {tracks}{largest}; partitions:"]
    for one in facts.partitions:
        default = ", default" if one.is_default else ""
        gres = f", {one.gres}" if one.gres else ""
        lines.append(f"  {one.name}: {one.state}{default}, limit {one.time_limit}, {one.nodes} nodes{gres}")
    return [*lines, ""]


def _gpu_answer(facts: HostFacts) -> str:
    if facts.gpu_answer == "ok":
        return f"GPUs: {len(facts.gpus)}{f'; nvidia-smi: {facts.gpu_problem}' if facts.gpu_problem else ''}"
    words = {
        "no_nvidia_smi": "no nvidia-smi on this host (jobs run on the CPU)",
        "hung": "! nvidia-smi did not answer in time: the driver may hang",
        "failed": "! nvidia-smi failed",
    }[facts.gpu_answer]
    return f"GPUs: {words}{f': {facts.gpu_problem}' if facts.gpu_problem else ''}"


def _gpu(gpu: Gpu) -> list[str]:
    load = UNKNOWN if gpu.utilization_percent is None else f"{gpu.utilization_percent:.0f} %"
    memory = f"{size(gpu.memory_used_bytes)} of {size(gpu.memory_total_bytes)}"
    lines = [f"  {gpu.index} {gpu.name}  {memory}, load {load}  {gpu.uuid}"]
    return [*lines, *(f"      {process_words(process)}" for process in gpu.processes)]


def process_words(process: GpuProcess) -> str:
    """Who uses a GPU, e.g. `pid 7 ann 20.0 GiB python train.py`."""
    used = size(process.used_memory_bytes)
    pid = UNKNOWN if process.pid is None else process.pid
    return f"pid {pid} {process.user or UNKNOWN} {used} {process.command or ''}".rstrip()


def _known(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
