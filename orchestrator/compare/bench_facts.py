"""Under which circumstances a served benchmark was made: hard, soft, and every argument its server ran with."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from orchestrator.compare.served import LoadFigures, effective
from orchestrator.records.measurement import Fact
from remote_payload.schema.bench import BenchResult, ServerFacts
from remote_payload.schema.folder import FolderFacts

HARNESS = "eagle3-remote client, definitions 1"
"""Goes up where a metric of ours comes to mean something else."""
HARD_ARGUMENTS = {
    "target": "model_path",
    "dtype": "dtype",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "tp": "tp_size",
    "dp": "dp_size",
    "ep": "ep_size",
    "pp": "pp_size",
}
"""Hard facts and the server argument that tells each."""
DRAFT_ARGUMENTS = {
    "draft": "speculative_draft_model_path",
    "draft_quantization": "speculative_draft_model_quantization",
    "algorithm": "speculative_algorithm",
    "num_steps": "speculative_num_steps",
    "eagle_topk": "speculative_eagle_topk",
    "num_draft_tokens": "speculative_num_draft_tokens",
}
"""The same of the drafter; `none` on the plain side."""
SOFT_ARGUMENTS = ("attention_backend", "cuda_graph_max_bs", "mem_fraction_static", "disable_cuda_graph")
_ABSENT_MEANS = {"quantization": "none", "draft_quantization": "none", "pp": "1", "ep": "1", "dp": "1", "tp": "1"}
"""Arguments that a server which tells its others leaves out, or has null, where nothing was asked for."""
SIMULATED = "SGLANG_SIMULATE_ACC_LEN"


class BenchFacts:
    """The circumstances of one result's loads; `soft` adds what the run's record tells, e.g. the host."""

    def __init__(self, result: BenchResult, soft: Mapping[str, str | None]) -> None:
        self._result, self._soft = result, soft

    def hard(self, load: LoadFigures) -> tuple[Fact, ...]:
        """What must be alike."""
        servers, workload = servers_of(self._result, load), self._result.workload
        found: dict[str, str | None] = {name: _told(servers, name, key) for name, key in HARD_ARGUMENTS.items()}
        for name, key in DRAFT_ARGUMENTS.items():
            found[name] = "none" if load.side == "plain" else _told(servers, name, key)
        found["target_weights"] = _weights(self._result.target)
        found["draft_weights"] = "none" if load.side == "plain" else _weights(self._result.draft)
        found["gpu"] = _gpus(self._result.gpus)
        found |= {
            "dataset": PurePosixPath(workload.source).name or workload.source,
            "prompts_sha256": workload.sha256[:16],
            "prompts": str(workload.prompts),
            "temperature": f"{workload.temperature:g}",
            "top_p": "unset" if workload.top_p is None else f"{workload.top_p:g}",
            "top_k": "unset" if workload.top_k is None else str(workload.top_k),
            "max_new_tokens": str(workload.max_new_tokens),
            "ignore_eos": str(workload.ignore_eos).lower(),
            "harness": HARNESS,
            "simulated_acceptance": "no" if load.side == "plain" else simulated_acceptance(self._result, servers),
            "cache_policy": self._cache(load, servers),
        }
        return tuple(Fact(name=name, value=value) for name, value in found.items())

    def soft(self, load: LoadFigures) -> tuple[Fact, ...]:
        """What should be alike."""
        servers, result = servers_of(self._result, load), self._result
        found: dict[str, str | None] = {"sglang_version": result.sglang.version}
        found |= {name: _told(servers, name, name) for name in SOFT_ARGUMENTS}
        found |= {
            "python": result.python,
            "host_cpus": str(result.host_cpus),
            "gpus_of_the_host": str(len(result.gpus)),
            "target_config": _config(result.target),
            "draft_config": "none" if load.side == "plain" else _config(result.draft),
            "prompts_path": result.workload.source,
            "requests_a_point": " / ".join(sorted({str(point.requests) for point in load.points})),
            "seed": str(result.workload.seed),
            "attached": str(any(server.attached for server in servers)).lower(),
            **self._soft,
        }
        return tuple(Fact(name=name, value=value) for name, value in found.items())

    def arguments(self, load: LoadFigures) -> tuple[Fact, ...]:
        """Every argument that the server tells, by name."""
        found: dict[str, str | None] = {}
        for server in servers_of(self._result, load)[:1]:
            found = {fact.name: fact.effective for fact in server.arguments}
        return tuple(Fact(name=name, value=found[name]) for name in sorted(found))

    def _cache(self, load: LoadFigures, servers: tuple[ServerFacts, ...]) -> str:
        if any(effective(server, "disable_radix_cache") is True for server in servers):
            return "prefix cache off"
        flushed = all(point.flushed for point in load.points)
        return "flushed before each point" if flushed else "not flushed"


def _weights(folder: FolderFacts | None) -> str | None:
    return None if folder is None or folder.weights_sha256 is None else folder.weights_sha256[:12]


def _config(folder: FolderFacts | None) -> str | None:
    return None if folder is None or folder.config_sha256 is None else folder.config_sha256[:12]


def _gpus(names: Sequence[str]) -> str:
    """The host's GPUs by name; with their numbers where there are several kinds: tp, dp and pp tell how many served."""
    kinds = sorted(set(names))
    if len(kinds) < 2:
        return kinds[0] if kinds else "none, CPU"
    return " + ".join(f"{names.count(kind)} {kind}" for kind in kinds)


def simulated_acceptance(result: BenchResult, servers: Iterable[ServerFacts]) -> str | None:
    """The accept length that the servers pretend, `yes` where it is not told which, `no`; None = nobody tells."""
    length = next((value for server in servers if (value := effective(server, SIMULATED))), None)
    if length is not None:
        return str(length)
    told = result.sglang.simulates_acceptance
    return None if told is None else "yes" if told else "no"


def servers_of(result: BenchResult, load: LoadFigures) -> tuple[ServerFacts, ...]:
    """The servers that a load was measured on."""
    starts = {point.start for point in load.points}
    return tuple(server for server in result.servers if server.side == load.side and server.start in starts)


def _told(servers: tuple[ServerFacts, ...], name: str, argument: str) -> str | None:
    """An argument's value in words; None = no server tells. Several starts that differ: all values."""
    values = [effective(server, argument) for server in servers]
    known = sorted({_word(value) for value in values if value is not None})
    if known:
        return " / ".join(known)
    return _ABSENT_MEANS.get(name) if any(server.arguments for server in servers) else None


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
