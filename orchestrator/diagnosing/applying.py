"""The fix, proved: a corrected drafter beside the original, served as the original was, and the two compared."""

from dataclasses import dataclass

from orchestrator.compare.asked import Asked as Comparing
from orchestrator.compare.comparison import SetComparison
from orchestrator.compare.diff import compare_many
from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.budget import LEAST_S
from orchestrator.diagnosing.lease import Lease
from orchestrator.diagnosing.running import run_or_take, standing
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.diagnosis.decision.fix import Fix
from orchestrator.errors import DetachedError, Eagle3Error, InvalidRunError
from orchestrator.following import ANSWER_S
from orchestrator.operands import operand
from orchestrator.order import Order
from orchestrator.records import RunRecord
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.updates import Note
from remote_payload.schema import BenchJob
from remote_payload.schema.corrected import CorrectFrame, CorrectRequest

FIXED = "fixed"
COMPARING = Comparing(vary=("draft",))
"""Before against after: the drafter alone differs by intention."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """A corrected drafter on the host, and what it does when it is served."""

    fix: Fix
    folder: str
    existed: bool
    before: RunRecord
    after: RunRecord
    """The served benchmarks of the original and of the corrected drafter."""
    compared: tuple[SetComparison, ...] = ()


class UnprovenError(Eagle3Error):
    """The corrected drafter lies on the host, and why before and after were not both served; ends as that does."""

    def __init__(self, written: CorrectFrame, cause: Eagle3Error) -> None:
        super().__init__(cause.message, hint=cause.hint)
        self.folder, self.existed = written.path, written.existed
        self.exit_code = cause.exit_code


def fix_of(diagnosed: Diagnosed) -> Fix:
    """The change of config.json that mends it. Raises InvalidRunError where there is none, and says why."""
    fix = diagnosed.decision.fix
    if fix is None:
        is_open = diagnosed.decision.verdict == "cannot_tell"
        hint = "it is not known yet what mends it: the same command goes on once more is known"
        raise InvalidRunError(
            f"there is nothing to apply: {diagnosed.decision.headline}",
            hint=hint if is_open else "no change of the drafter's config.json mends what was found",
        )
    if fix.sglang is not None:
        raise InvalidRunError(f"the fix needs another SGLang first: {fix.sglang}")
    if not (fix.config or fix.by_hand) and "wiring" in diagnosed.decision.causes:
        raise InvalidRunError(
            "it is not known yet which states it was trained on, and so not which ids mend it",
            hint="--trained names them, as its trainer knows them; more training rows may tell them apart",
        )
    if not fix.config:
        lines = [*fix.by_hand, *(f"--{edit.name.replace('_', '-')} {edit.value}" for edit in fix.server)]
        raise InvalidRunError(f"no change of the drafter's config.json mends it: {'; '.join(lines)}")
    test = diagnosed.known.offline
    if fix.rests_on is not None and test is not None and test.contest is None:
        raise InvalidRunError(
            f"nothing is applied that rests on {fix.rests_on}",
            hint="name rows that hold those states (--rows, --states): a reading of them shows whether they are right",
        )
    if test is None:
        raise InvalidRunError(
            "nothing is applied without the standalone test: nobody knows that the drafter reads these states better",
            hint="name captured training rows: --rows FOLDER",
        )
    return fix


def apply(diagnosed: Diagnosed, config: Config, lease: Lease, *, into: str | None = None) -> Applied:
    """Write the corrected folder, serve it as the original was served, compare. Raises as `fix_of` does.

    InvalidRunError also where the server is none of ours, HostNotReadyError where the host cannot write the folder;
    once it is written, UnprovenError where not both are served. Nothing is written into the drafter's own folder. Where
    the original was not served yet, it is served first.
    """
    fix = fix_of(diagnosed)
    _require_own_server(diagnosed.asked, config)
    written = _write(diagnosed, fix, lease.session, into)
    lease.tell(
        Note(name="corrected drafter", text=f"{'there already' if written.existed else 'written'}: {written.path}")
    )
    fixed = diagnosed.asked.with_draft(written.path, FIXED)
    try:
        before = diagnosed.results.records.get("serve") or _served(diagnosed.asked, config, lease)
        after = _served(fixed, config, lease)
    except DetachedError:  # who stops looking is told how to go on
        raise
    except Eagle3Error as error:
        raise UnprovenError(written, error) from error
    compared: tuple[SetComparison, ...] = ()
    if before.phase == after.phase == "succeeded":
        compared = compare_many([operand(lease.store, record.run_id) for record in (before, after)], COMPARING)
    return Applied(fix=fix, folder=written.path, existed=written.existed, before=before, after=after, compared=compared)


def _require_own_server(asked: Asked, config: Config) -> None:
    job = asked.serve(config).job
    if isinstance(job, BenchJob) and job.attach_url is not None:
        raise InvalidRunError(
            "a server that is up already keeps its drafter: none is applied to it",
            hint="leave --attach-url out, and a server of our own is started with each of the two",
        )


def _write(diagnosed: Diagnosed, fix: Fix, session: HostSession, into: str | None) -> CorrectFrame:
    offline = diagnosed.known.offline
    assert offline is not None
    checkpoint = offline.measured.result.checkpoint
    request = CorrectRequest(
        nonce=new_nonce(),
        draft=checkpoint.draft,
        into=into,
        patch_json=fix.patch_json,
        config_json=checkpoint.config_json,
    )
    return session.ask("correct", request, CorrectFrame, ANSWER_S)


def _served(asked: Asked, config: Config, lease: Lease) -> RunRecord:
    """The served benchmark; one that is home costs nothing of the budget."""
    left_s, store = lease.budget.left_s, lease.store
    order = Order(planned=asked.serve(config), run_id=asked.run_id("serve"), deadline_s=left_s)
    record = standing(order, lease, again=asked.again)
    if record is None:
        if left_s is not None and left_s < LEAST_S:
            raise InvalidRunError(
                "the budget is used up before both drafters were served",
                hint="the same command again, with a longer --budget, goes on",
            )
        record = run_or_take(order, lease, again=asked.again)
    tag = asked.diagnosis_id.removesuffix(f".{FIXED}")
    if tag not in store.labels(record.run_id).tags:
        store.label(record.run_id, tags=(f"+{tag}",))
    return record
