"""Schedules from the laptop: handed to a host's own clockwork, looked at, taken away; what they ran brought home."""

import dataclasses
from contextlib import suppress
from dataclasses import dataclass

from orchestrator import pipeline
from orchestrator.errors import ClaimedError, ConfigError, LinkLostError, NotFoundError, ProtocolError, UsageError
from orchestrator.following import ANSWER_S, Tell
from orchestrator.order import Order, record_of
from orchestrator.records import RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import Store
from orchestrator.sweeping import asking
from orchestrator.sweeping.collecting import collect as collect_sweep
from orchestrator.sweeping.collecting import only_trouble
from remote_payload.schema import RunState
from remote_payload.schema.cron import CronError, parse_cron
from remote_payload.schema.frames import ScheduleFrame
from remote_payload.schema.schedule import LONGEST_ID, Engine, ScheduleRequest

SECRETS_KINDS = ("bench", "sweep")
"""Jobs that may need a host's secrets; the others read files of the host alone."""


@dataclass(frozen=True, kw_only=True)
class Every:
    """The words of the command line."""

    cron: str
    engine: Engine | None = None
    overlap: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError for what is no cron expression."""
        try:
            parse_cron(self.cron)
        except CronError as error:
            raise UsageError(
                f"--every: {error}", hint="`0 22 * * *` is every day at 22:00 of the host's clock; see crontab(5)"
            ) from None


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What a look at a schedule's runs came to."""

    home: tuple[RunRecord, ...]
    """Brought home now."""
    going: tuple[RunState, ...]
    known: int
    """Were here before."""
    problems: tuple[str, ...]


def schedule(order: Order, every: Every, session: HostSession, store: Store, tell: Tell) -> ScheduleFrame:
    """Hand the order to the host's clockwork. Raises UsageError, ConfigError, HostNotReadyError, ClaimedError."""
    if len(order.run_id) > LONGEST_ID:
        raise UsageError(f"a schedule's id has at most {LONGEST_ID} characters, found: {order.run_id}")
    if order.waiting is not None and (order.waiting.after or order.waiting.start_unix_s or order.waiting.start_local):
        raise UsageError("--every says when a run starts: it goes with neither --at nor --after")
    _require_no_secrets(order, session)
    # The interpreter has to be there for weeks: it is looked for now, whatever was found before.
    python = pipeline.python_for(order, session, store, tell, trust=False)
    spec = dataclasses.replace(record_of(order, session, python).spec, secret_names=())
    request = ScheduleRequest(
        nonce=new_nonce(),
        root=session.host.root,
        action="add",
        schedule_id=order.run_id,
        cron=every.cron,
        engine=every.engine,
        overlap=every.overlap,
        spec=spec,
    )
    return _ask(session, request)


def look(
    session: HostSession, schedule_id: str | None = None, *, coming: int = 1, history: bool = False
) -> ScheduleFrame:
    """One schedule of the host, or all. Raises NotFoundError."""
    request = ScheduleRequest(
        nonce=new_nonce(),
        root=session.host.root,
        action="show",
        schedule_id=schedule_id,
        coming=coming,
        history=history,
    )
    return _ask(session, request)


def remove(session: HostSession, schedule_id: str) -> ScheduleFrame:
    """Take a schedule, or an entry that lost its folder, off the host; its runs stay. Raises NotFoundError."""
    request = ScheduleRequest(nonce=new_nonce(), root=session.host.root, action="remove", schedule_id=schedule_id)
    return _ask(session, request)


def collect(session: HostSession, schedule_id: str, store: Store, tell: Tell) -> Collected:
    """Bring every run of the schedule home that is over and not here, with its id as their tag. Safe to repeat."""
    standing = look(session, schedule_id, coming=0).standings[0]
    home: list[RunRecord] = []
    problems: list[str] = []
    over = [state for state in standing.runs if state.is_terminal]
    left = [state.run_id for state in over if not _is_here(state.run_id, store)]
    for run_id in left:
        try:
            record = pipeline.attach(session, run_id, store, only_trouble(tell))
            if record.job_kind == "sweep":
                problems += collect_sweep(asking.ask(session, run_id, store), session, store, tell)
        except (NotFoundError, ProtocolError, ClaimedError, LinkLostError) as error:
            problems.append(f"{run_id}: {error.message}")
        else:
            store.label(run_id, tags=(f"+{schedule_id}",))
            home.append(record)
    going = tuple(state for state in standing.runs if not state.is_terminal)
    return Collected(home=tuple(home), going=going, known=len(over) - len(left), problems=tuple(problems))


def _ask(session: HostSession, request: ScheduleRequest) -> ScheduleFrame:
    answer = session.ask("schedule", request, ScheduleFrame, ANSWER_S)
    if request.schedule_id is not None and request.action != "remove":
        told = [standing.schedule_id for standing in answer.standings]
        if told != [request.schedule_id]:
            raise ProtocolError(f"the host must tell of the schedule it was asked about, found: {told}")
    return answer


def _require_no_secrets(order: Order, session: HostSession) -> None:
    """Raises ConfigError for a job that may need them: cron starts it with nobody there to hand them over."""
    kind = order.planned.job.kind
    if session.host.secrets and kind in SECRETS_KINDS:
        raise ConfigError(
            f"--every: nobody is there to hand over the `secrets` of [hosts.{session.name}] when a run starts, and a "
            f"{kind} may need them: {', '.join(session.host.secrets)}",
            hint="a second entry of this host in eagle3.toml without `secrets` is for schedules that need none",
        )


def _is_here(run_id: str, store: Store) -> bool:
    with suppress(NotFoundError):
        return pipeline.is_home(store.load_exact(run_id), store)
    return False
