"""Waiting for GPUs: a place in the host's queue, a look at them when it is the first, their leases."""

import contextlib
import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path

from remote_payload.failure import JobFailure, machine_failure
from remote_payload.gpus import choice
from remote_payload.gpus.facts import GpuFacts, Meanwhile, look_at_gpus
from remote_payload.gpus.leases import Leases, unusable_words
from remote_payload.schema import Event, Failure, Gpu, RunSpec
from remote_payload.schema.waiting import Holder, Waiting

POLL_S = 2.0
LOOK_S = 5.0
"""How long nvidia-smi may take for one of its answers."""
TOUCH_S = 3600.0


class GpuQueue:
    """One run's wish for devices. `close` gives them back; the end of the process does, too."""

    def __init__(
        self, spec: RunSpec, wish: Waiting, report: Callable[[Event], None], say: Callable[[str], None]
    ) -> None:
        self._spec, self._wish, self._report, self._say = spec, wish, report, say
        self._leases: Leases | None = None
        self._touched_s = float("-inf")
        self._passed_over: set[str] = set()
        self.meanwhile: Meanwhile | None = None
        """Called now and then while nvidia-smi is asked; what it raises ends the waiting."""
        self.environment: dict[str, str] = {}
        """What the worker's environment gets: the devices it may see."""

    def close(self) -> None:
        """Give back what was leased."""
        if self._leases is not None:
            self._leases.close()

    def keep(self) -> None:
        """Let those who clean temporary folders see, once an hour, that the leases are in use."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        if self._leases is not None and now_s - self._touched_s > TOUCH_S:
            self._touched_s = now_s
            self._leases.touch()

    def look(self) -> None:
        """Whether the wish can ever be granted here. Raises JobFailure where not."""
        self.usable(look_at_gpus(LOOK_S, parts=True, meanwhile=self.meanwhile), first=True)

    def wait(self, pause: Callable[[float], None]) -> None:
        """Until they are leased. `pause` as of `Gate.wait`. Raises JobFailure."""
        wish, since_s = self._wish, time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            self._leases = leases = Leases(Path(wish.leases), self._holder())
            while wish.when_free and not self._queued_up(leases):
                pause(POLL_S)
            while (why := self._try(leases)) is not None:
                now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
                if not wish.when_free:
                    hint = "wait for them with --when-free, or see who has them: eagle3-remote hosts top NAME"
                    raise machine_failure(f"{_gpus(wish.gpus)} not free: {why}", hint=hint)
                if wish.longest_s is not None and now_s - since_s >= wish.longest_s:
                    raise machine_failure(f"{_gpus(wish.gpus)} not free within {wish.longest_s:g} s: {why}")
                self._say(f"waits for {_gpus(wish.gpus)}: {why}")
                pause(POLL_S)
                self.keep()
            leases.queue.leave()
        except OSError as error:
            hint = "set `leases` for this host in eagle3.toml to a folder on a local disk that all its users may write"
            raise machine_failure(f"the GPU leases cannot be used: {error}", hint=hint) from None

    def _holder(self) -> Holder:
        wish, user = self._wish, str(os.getuid())
        with contextlib.suppress(KeyError):
            user = pwd.getpwuid(os.getuid()).pw_name
        return Holder(
            run_id=self._spec.run_id,
            user=user,
            uid=os.getuid(),
            pid=os.getpid(),
            since_unix_s=time.time(),
            gpus=wish.gpus,
            min_free_bytes=wish.min_free_bytes,
        )

    def _queued_up(self, leases: Leases) -> bool:
        """Whether there is a ticket now; who holds the queue's lock for long is waited for."""
        try:
            leases.queue.draw()
        except TimeoutError as busy:
            self._say(f"waits for the queue: {busy.strerror}")
            return False
        return True

    def _try(self, leases: Leases) -> str | None:
        """Take the GPUs; why that cannot be, None = done."""
        try:
            before = leases.queue.before()
        except TimeoutError as busy:
            return busy.strerror
        for words in leases.queue.passed_over:
            if words not in self._passed_over:
                self._passed_over.add(words)
                told = f"passed over in the queue for GPUs: {words}"
                self._report(Event(time_unix_s=time.time(), kind="warning", name="ticket_passed_over", message=told))
        if before:
            return f"{_runs(len(before))} in the queue before this one, the first: {_name(before[0])}"
        found = self.usable(look_at_gpus(LOOK_S, parts=True, meanwhile=self.meanwhile), first=False)
        return found if isinstance(found, str) else self._choose(leases, found)

    def usable(self, facts: GpuFacts, *, first: bool) -> list[Gpu] | str:
        """The devices that the run may see, or why there are not so many now.

        Raises JobFailure at the `first` look for what is so for good; later it may pass, as a driver's update does.
        """
        wish = self._wish
        if facts.answer == "no_nvidia_smi" and first:
            raise machine_failure("this host has no nvidia-smi, so nobody knows which GPUs are free")
        if facts.answer != "ok":
            return f"nvidia-smi: {facts.problem or facts.answer}"
        asked = {**os.environ, **self._spec.environment}
        mask, order = asked.get("CUDA_VISIBLE_DEVICES"), asked.get("CUDA_DEVICE_ORDER")
        try:
            seen = choice.visible(facts.gpus, mask, order)
        except choice.MaskError as error:
            raise JobFailure(Failure(kind="machine", message=str(error))) from None
        devices = [gpu for gpu in seen if not gpu.mig_devices]
        # A process sees one MIG device, and no whole GPU beside it.
        usable = [gpu for gpu in devices if gpu.mig_of is None or wish.gpus == 1]
        large = [gpu for gpu in usable if choice.is_large_enough(gpu, wish.min_free_bytes)]
        if len(large) >= wish.gpus:
            return usable
        through = "" if mask is None else f" through CUDA_VISIBLE_DEVICES={mask}"
        words = f"{_gpus(wish.gpus)} asked for, this host shows {len(usable)}{through}"
        if len(usable) >= wish.gpus:
            words = f"{_gpus(wish.gpus)} asked for, of {choice.gib(wish.min_free_bytes)}, this host has {len(large)}"
        elif len(devices) > len(usable):
            words += f", and {len(devices) - len(usable)} MIG devices, of which a process sees one alone"
        if first:
            raise machine_failure(words)
        return words

    def _choose(self, leases: Leases, usable: list[Gpu]) -> str | None:
        """Raises OSError where too few are left of those whose lease is a file that can be locked."""
        wish = self._wish
        reasons = {gpu.uuid: choice.why_not(gpu, wish.min_free_bytes) for gpu in usable}
        free = [gpu for gpu in usable if reasons[gpu.uuid] is None]
        others = leases.take([gpu.uuid for gpu in free], wish.gpus)
        if others is not None:
            if len(usable) - len(leases.unusable) < wish.gpus:
                raise next(iter(leases.unusable.values()))
            planted = {uuid: unusable_words(problem) for uuid, problem in leases.unusable.items()}
            held = {uuid: f"leased by {_name(who)}" for uuid, who in others.items()}
            return _why(usable, {**reasons, **planted, **held})
        taken = [gpu for gpu in free if gpu.uuid in leases.held]
        self.environment = choice.environment(taken)
        names = ", ".join(f"GPU {gpu.index} ({gpu.uuid})" for gpu in taken)
        self._report(Event(time_unix_s=time.time(), kind="note", name="gpus_leased", message=names))
        return None


def _why(gpus: list[Gpu], reasons: dict[str, str | None]) -> str:
    return "; ".join(f"GPU {gpu.index} {reason}" for gpu in gpus if (reason := reasons[gpu.uuid]) is not None)


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _runs(count: int) -> str:
    return "1 run stands" if count == 1 else f"{count} runs stand"


def _name(holder: Holder | None) -> str:
    return "somebody" if holder is None else f"{holder.user}'s run {holder.run_id}"
