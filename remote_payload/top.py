"""`top`: look at the GPUs, their leases and the queue of this host, of all its users."""

import os
import time
from pathlib import Path

from remote_payload import processes
from remote_payload.frames import Send
from remote_payload.gpu_choice import why_not
from remote_payload.gpus import look_at_gpus
from remote_payload.leases import lease_holders, queue_of
from remote_payload.schema import Gpu, GpuProcess
from remote_payload.schema.frames import TopFrame
from remote_payload.schema.top import GpuUse, TopFacts, TopRequest
from remote_payload.schema.waiting import Holder


def top(request: TopRequest, send: Send) -> None:
    """Answer with one frame; leases that cannot be read are told as such."""
    found = look_at_gpus(parts=True)
    folder, problem = Path(request.leases), None
    holders: dict[str, Holder | None] = {}
    queue: tuple[Holder | None, ...] = ()
    try:
        if folder.exists():
            holders = lease_holders(folder, [gpu.uuid for gpu in found.gpus])
            queue = queue_of(folder)
    except OSError as error:
        problem = str(error)
    facts = TopFacts(
        hostname=os.uname().nodename,
        time_unix_s=time.time(),
        gpu_answer=found.answer,
        gpu_problem=found.problem,
        gpus=tuple(_use(gpu, holders) for gpu in found.gpus),
        queue=tuple(holder for holder in queue if holder is not None),
        unsigned=sum(holder is None for holder in queue),
        lease_problem=problem,
    )
    send(TopFrame(facts=facts))


def _use(gpu: Gpu, holders: dict[str, Holder | None]) -> GpuUse:
    holder = holders.get(gpu.uuid)
    strays = () if holder is None else strays_of(gpu, holder.pid)
    return GpuUse(gpu=gpu, leased=gpu.uuid in holders, holder=holder, strays=strays, why_not_free=why_not(gpu, None))


def strays_of(gpu: Gpu, supervisor: int) -> tuple[GpuProcess, ...]:
    """Processes on a device that do not descend from the supervisor of the run that leased it."""
    own = {supervisor, *processes.descendants(supervisor)}
    return tuple(process for process in gpu.processes if process.pid not in own)
