"""What Slurm is like on this host, for whoever looks at it: two short questions, each bounded."""

import shutil

from remote_payload.schema.slurm import SlurmFacts
from remote_payload.slurm.texts import read_config, read_sinfo
from remote_payload.slurm.tools import SlurmError, ask, search_path

ANSWER_S = 5.0


def slurm_facts(answer_s: float = ANSWER_S) -> SlurmFacts | None:
    """None = there is no sbatch here."""
    if shutil.which("sbatch", path=search_path()) is None:
        return None
    try:
        config = read_config(ask(["scontrol", "show", "config"], answer_s))
        partitions = read_sinfo(ask(["sinfo", "-h", "-o", "%P|%a|%l|%D|%G"], answer_s))
    except SlurmError as problem:
        return SlurmFacts(problem=str(problem))
    storage, largest = config.get("AccountingStorageType"), config.get("MaxArraySize", "")
    tracked = config.get("ProctrackType")
    return SlurmFacts(
        version=config.get("SLURM_VERSION"),
        partitions=partitions,
        accounting=None if storage is None else "slurmdbd" in storage,
        tracks_processes=None if tracked is None else tracked == "proctrack/cgroup",
        largest_array=int(largest) if largest.isdigit() else None,
    )
