"""The store: `<home>/runs/<run_id>/`, `<home>/baselines/`, `<home>/hosts/<hash>.json`, and `<home>/index.json`.

A run's folder holds `run.json` (RunRecord) and what was collected, under the names of `remote_payload.rundir.RunDir`;
an imported one holds its measurements. `<home>` is the user's data folder, or EAGLE3_REMOTE_HOME. Everything is written
whole or not at all, and the run folders are all that counts: what is listed is made from them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import ClaimedError, InvalidRunError, NotFoundError, StoreError, UsageError
from orchestrator.store import index
from orchestrator.store.files import home_of, names_in, read_text, translated, write
from orchestrator.store.folders import appearing, vanish, write_together
from orchestrator.store.layout import LABELS, has_figures, is_imported, record_path
from orchestrator.store.lock import locked
from orchestrator.store.references import no_run, one_run
from orchestrator.store.summary import RunSummary
from remote_payload.rundir import RUN_ID_PATTERN, RunDir

if TYPE_CHECKING:  # the records are imported where one is read or written: a listing needs none
    from orchestrator.records import Baseline, BaselineEntry, RunLabels, RunRecord
    from orchestrator.records.measurement import MeasurementSet
    from orchestrator.store.baselines import Baselines


@dataclass(frozen=True)
class Store:
    """Everything this laptop keeps. Methods raise StoreError where the disk refuses."""

    home: Path
    project: Path | None = None
    """The project's folder of baselines, `baselines/` beside its eagle3.toml; None = it has none."""

    @classmethod
    def default(cls, project: Path | None = None) -> Store:
        """The user's store; nothing is created by asking."""
        override = os.environ.get("EAGLE3_REMOTE_HOME")
        if override:
            return cls(home_of(override), project)
        from platformdirs import user_data_path

        return cls(user_data_path("eagle3-remote", appauthor=False), project)

    # -- runs ---------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord, labels: RunLabels | None = None) -> RunDir:
        """Make the run known, before it is launched; its folder appears whole or not at all, with its first labels.

        Safe to repeat with the same spec. Raises ClaimedError where the id belongs to a run with another spec.
        """
        from orchestrator.records import record_bytes

        run = self.run_dir(record.run_id)
        with translated("create", run.path), locked(self.home):
            if run.path.exists():
                known = self._read(record.run_id)
                if known.spec != record.spec:
                    raise ClaimedError(f"this run id belongs to a run with another spec: {record.run_id}")
                return run
            with appearing(run.path) as half:
                files = {RunDir(half).spec: record_bytes(record.spec), record_path(RunDir(half)): record_bytes(record)}
                files |= {} if labels is None else {half / LABELS: record_bytes(labels)}
                write_together(half, files)
        return run

    def update(self, record: RunRecord) -> None:
        """Replace the run's record; an older state never replaces a newer one (two laptop processes may follow)."""
        from orchestrator.records import record_bytes

        with locked(self.home):
            known = self._read(record.run_id)
            if known.state and (record.state is None or record.state.sequence < known.state.sequence):
                return
            if known.state == record.state and known == replace(record, state_seen_unix_s=known.state_seen_unix_s):
                return
            write(record_path(self.run_dir(record.run_id)), record_bytes(record))

    def load(self, reference: str) -> RunRecord:
        """The run of an id, of the beginning of one id only, or of `last` (the newest that can be read).

        Raises NotFoundError with the closest ids, UsageError where it cannot be an id, StoreError where it is broken,
        InvalidRunError where it was imported and so never was a run of a host.
        """
        return self._read(self.resolve(reference))

    def load_exact(self, run_id: str) -> RunRecord:
        """The run of that very id, as another record names it. Raises NotFoundError, StoreError where it is broken."""
        if not self.run_dir(run_id).path.is_dir():
            raise no_run(run_id, self._run_ids())
        return self._read(run_id)

    def resolve(self, reference: str) -> str:
        """The run id that a word means, of an imported run as well; raises as `load`, and reads no record."""
        if reference == "last":
            runs = (run for run in self.list() if run.problem is None and run.phase != "imported")
            newest = next(runs, None)
            if newest is None:
                raise NotFoundError("no run on this laptop yet", hint="start one with `eagle3-remote run standalone`")
            return newest.run_id
        if self.run_dir(reference).path.is_dir():
            return reference
        return one_run(reference, self._run_ids())

    def run_dir(self, run_id: str) -> RunDir:
        """The run's folder on this laptop; it need not exist. Raises UsageError where `run_id` is not an id."""
        if RUN_ID_PATTERN.fullmatch(run_id) is None:
            raise UsageError(f"expected a run id ({RUN_ID_PATTERN.pattern}), found: {run_id!r}")
        return RunDir(self.home / "runs" / run_id)

    def list(self) -> tuple[RunSummary, ...]:
        """Every run, newest first, unreadable ones last."""
        summaries = index.listed(self.home, self._run_ids())
        return tuple(sorted(summaries, key=lambda run: (-(run.created_unix_s or 0.0), run.run_id)))

    def remove(self, run_id: str) -> None:
        """Forget a run on this laptop, also an unreadable one.

        Raises InvalidRunError while a baseline means it that has no record of its own.
        """
        run = self.run_dir(run_id)
        with locked(self.home), translated("remove", run.path):
            if not run.path.is_dir():
                raise no_run(run_id, self._run_ids())
            if holders := self.names.holders(run_id):
                raise InvalidRunError(
                    f"expected a run that no baseline needs, `{run_id}` is the baseline: {', '.join(holders)}",
                    hint=f"first run `eagle3-remote baseline rm {holders[0]}`",
                )
            vanish(run.path)

    def has_figures(self, record: RunRecord) -> bool:
        """Whether a result with figures to judge came home whole; of a served benchmark also one that ended early."""
        return has_figures(self.run_dir(record.run_id), record)

    def verify(self, run_id: str) -> tuple[str, ...]:
        """Compare the run's result files with their manifest; each problem is a sentence, none means all is well."""
        from orchestrator.store.results import verify

        return verify(self.run_dir(run_id))

    # -- what is said about a run, and what others measured --------------------------------------------------------

    def labels(self, run_id: str) -> RunLabels:
        """Tags and note of a run. Raises StoreError."""
        from orchestrator.store.labels import read_labels

        run = self.run_dir(run_id)
        return read_labels(run, () if is_imported(run) else self._read(run_id).tags)

    def label(self, run_id: str, *, tags: Sequence[str] = (), note: str | None = None) -> RunLabels:
        """Change tags (`+a`, `-b`) and the note of a run. Raises UsageError, NotFoundError, StoreError."""
        from orchestrator.store.labels import changed_tags, noted, write_labels

        run = self.run_dir(run_id)
        with locked(self.home):
            if not run.path.is_dir():
                raise no_run(run_id, self._run_ids())
            labels = changed_tags(self.labels(run_id), tags)
            labels = labels if note is None else noted(labels, note)
            write_labels(run, labels)
        return labels

    def keep_verdict(self, run_id: str, verdict: str) -> None:
        """Remember what a review said of the result that is here, for listings; never fails for the disk's sake."""
        from orchestrator.store.labels import keep_verdict

        keep_verdict(self.home, self.run_dir(run_id), verdict)

    def is_imported(self, run_id: str) -> bool:
        """Whether another tool measured it."""
        return is_imported(self.run_dir(run_id))

    def imported(self, run_id: str) -> MeasurementSet:
        """The measurements of an imported run. Raises NotFoundError, InvalidRunError where it is no such run."""
        from orchestrator.store.imported import read_imported

        run = self.run_dir(run_id)
        if not run.path.is_dir():
            raise no_run(run_id, self._run_ids())
        return read_imported(run)

    def add_imported(self, measured: MeasurementSet, raw: bytes | None = None) -> bool:
        """Keep what another tool measured, and the file it was read from; False where it is here already.

        Raises ClaimedError where the id belongs to something else.
        """
        from orchestrator.store.imported import add_imported

        return add_imported(self.home, self.run_dir(measured.run_id), measured, raw)

    # -- baselines ----------------------------------------------------------------------------------------------

    @property
    def names(self) -> Baselines:
        """The baselines that hold here."""
        from orchestrator.store.baselines import Baselines

        return Baselines(home=self.home, project=self.project)

    def baseline(self, name: str) -> Baseline:
        """The baseline of that name. Raises NotFoundError with the closest names."""
        return self.names.read(name)

    def baselines(self) -> tuple[Baseline, ...]:
        """Every baseline that can be read, by name."""
        return self.names.readable()

    def set_baseline(self, name: str, entry: BaselineEntry) -> Baseline:
        """Let `name` mean `entry` from now on; what it meant before stays in its history."""
        return self.names.set(name, entry)

    # -- hosts --------------------------------------------------------------------------------------------------

    def host_note(self, host_key: str) -> dict[str, object] | None:
        """What was noted about a host; None where nothing was, or it cannot be read (it is only a cache)."""
        from orchestrator.store.hosts import host_note

        return host_note(self.home, host_key)

    def note_host(self, host_key: str, note: dict[str, object]) -> None:
        """Remember `note` (JSON values) about a host, in place of the earlier one."""
        from orchestrator.store.hosts import note_host

        note_host(self.home, host_key, note)

    # -- the layout ---------------------------------------------------------------------------------------------

    def _run_ids(self) -> tuple[str, ...]:
        return tuple(name for name in names_in(self.home / "runs") if RUN_ID_PATTERN.fullmatch(name))

    def _read(self, run_id: str) -> RunRecord:
        from orchestrator.records import RunRecord, read_record

        run = self.run_dir(run_id)
        if is_imported(run):
            raise InvalidRunError(
                f"expected a run of a host, `{run_id}` was imported",
                hint="`runs show`, `diff`, `report` and `baseline set` take it as well",
            )
        path = record_path(run)
        record = read_record(RunRecord, read_text(path), where=str(path), error=StoreError)
        if record.run_id != run_id:
            raise StoreError(f"{path}: expected the run `{run_id}`, found: {record.run_id}")
        return record
