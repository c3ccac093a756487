"""`top`: look at the GPUs, their leases and the queue of this host, of all its users."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from remote_payload import processes
from remote_payload.frames import Send
from remote_payload.gpus.choice import why_not
from remote_payload.gpus.facts import look_at_gpus
from remote_payload.gpus.leases import lease_holders, unseen_holders, unusable_words
from remote_payload.gpus.tickets import Standing, queue_of
from remote_payload.schema import Gpu, GpuProcess
from remote_payload.schema.frames import TopFrame
from remote_payload.schema.top import GpuUse, TopFacts, TopRequest
from remote_payload.schema.waiting import Holder


def top(request: TopRequest, send: Send) -> None:
    """Answer with one frame; leases that cannot be read are told as such."""
    found = look_at_gpus(parts=True)
    folder, problems = Path(request.leases), dict[str, OSError]()
    lease_problem: str | None = None
    holders: dict[str, Holder | None] = {}
    unseen: dict[str, Holder | None] = {}
    queue = Standing()
    try:
        if folder.exists():
            holders = lease_holders(folder, [gpu.uuid for gpu in found.gpus], problems)
            unseen = unseen_holders(folder, [gpu.uuid for gpu in found.gpus], problems)
            queue = queue_of(folder)
    except OSError as error:
        lease_problem = str(error)
    facts = TopFacts(
        hostname=os.uname().nodename,
        time_unix_s=time.time(),
        gpu_answer=found.answer,
        gpu_problem=found.problem,
        gpus=tuple(_use(gpu, holders, problems.pop(gpu.uuid, None)) for gpu in found.gpus),
        unseen=unseen,
        unusable={name: str(problem) for name, problem in problems.items()},
        queue=tuple(place.holder for place in queue.places if place.holder is not None),
        unsigned=sum(place.holder is None for place in queue.places),
        passed_over=queue.passed_over,
        lease_problem=lease_problem,
    )
    send(TopFrame(facts=facts))


def _use(gpu: Gpu, holders: dict[str, Holder | None], problem: OSError | None) -> GpuUse:
    holder = holders.get(gpu.uuid)
    told = Users() if holder is None else users_of(gpu, holder.pid, holder.run_id)
    return GpuUse(
        gpu=gpu,
        leased=gpu.uuid in holders,
        holder=holder,
        strays=told.strays,
        hidden=told.hidden,
        why_not_free=why_not(gpu, None) or (None if problem is None else unusable_words(problem)),
    )


@dataclass(frozen=True, kw_only=True)
class Users:
    """Who is on a leased device beside the run that leased it."""

    strays: tuple[GpuProcess, ...] = ()
    hidden: bool = False
    """Whether there are others of whom that cannot be told."""


def users_of(gpu: Gpu, supervisor: int, run_id: str) -> Users:
    """Its processes that neither descend from the run's supervisor nor carry the run's mark.

    Where neither supervisor nor process can be seen, as with `hidepid`, the process may be the run's own.
    """
    own = {supervisor, *processes.descendants(supervisor)}
    sees_holder = processes.read_stat(supervisor) is not None
    seen = [(one, one.pid) for one in gpu.processes if one.pid is not None]
    others = [(one, pid) for one, pid in seen if pid not in own and not _is_marked(pid, run_id)]
    strays = tuple(one for one, pid in others if sees_holder or processes.read_stat(pid) is not None)
    return Users(strays=strays, hidden=len(strays) < len(others) or len(seen) < len(gpu.processes))


def _is_marked(pid: int, run_id: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"EAGLE3_RUN_ID={run_id}".encode() in environment.split(b"\0")
