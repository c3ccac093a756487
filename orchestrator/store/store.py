"""The store: `<home>/runs/<run_id>/`, `<home>/baselines/<name>.json`, `<home>/hosts/<hash>.json`.

A run's folder holds `run.json` (RunRecord) and what was collected, under the names of `remote_payload.rundir.RunDir`.
`<home>` is the user's data folder, or EAGLE3_REMOTE_HOME.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import ClaimedError, InvalidRunError, NotFoundError, StoreError, UsageError
from orchestrator.store.files import home_of, names_in, read_text, translated, write
from orchestrator.store.lock import locked
from orchestrator.store.references import no_baseline, no_run, one_run
from orchestrator.store.summary import RunSummary, read_summary, record_path
from remote_payload.rundir import RUN_ID_PATTERN, RunDir

if TYPE_CHECKING:  # the records are imported where one is read or written: a listing needs none
    from orchestrator.records import Baseline, BaselineEntry, RunRecord


@dataclass(frozen=True)
class Store:
    """Everything this laptop keeps. Methods raise StoreError where the disk refuses."""

    home: Path

    @classmethod
    def default(cls) -> Store:
        """The user's store; nothing is created by asking."""
        override = os.environ.get("EAGLE3_REMOTE_HOME")
        if override:
            return cls(home_of(override))
        from platformdirs import user_data_path

        return cls(user_data_path("eagle3-remote", appauthor=False))

    # -- runs ---------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord) -> RunDir:
        """Make the run known, before it is launched; its folder appears whole or not at all.

        Safe to repeat with the same spec. Raises ClaimedError where the id belongs to a run with another spec.
        """
        import shutil

        from orchestrator.records import record_bytes

        run = self.run_dir(record.run_id)
        half = run.path.with_name(f".{record.run_id}.{os.getpid()}.begin")
        with translated("create", run.path), locked(self.home):
            if run.path.exists():
                known = self._read(record.run_id)
                if known.spec != record.spec:
                    raise ClaimedError(f"this run id belongs to a run with another spec: {record.run_id}")
                return run
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir(mode=0o700, parents=True)
            write(RunDir(half).spec, record_bytes(record.spec))
            write(half / "run.json", record_bytes(record))
            half.rename(run.path)
        return run

    def update(self, record: RunRecord) -> None:
        """Replace the run's record; an older state never replaces a newer one (two laptop processes may follow)."""
        from orchestrator.records import record_bytes

        with locked(self.home):
            known = self._read(record.run_id)
            if known.state and (record.state is None or record.state.sequence < known.state.sequence):
                return
            write(self._record_path(record.run_id), record_bytes(record))

    def load(self, reference: str) -> RunRecord:
        """The run of an id, of the beginning of one id only, or of `last` (the newest that can be read).

        Raises NotFoundError with the closest ids, UsageError where it cannot be an id, StoreError where it is broken.
        """
        return self._read(self._resolve(reference))

    def load_exact(self, run_id: str) -> RunRecord:
        """The run of that very id, as another record names it. Raises NotFoundError, StoreError where it is broken."""
        if not self.run_dir(run_id).path.is_dir():
            raise no_run(run_id, self._run_ids())
        return self._read(run_id)

    def run_dir(self, run_id: str) -> RunDir:
        """The run's folder on this laptop; it need not exist. Raises UsageError where `run_id` is not an id."""
        if RUN_ID_PATTERN.fullmatch(run_id) is None:
            raise UsageError(f"expected a run id ({RUN_ID_PATTERN.pattern}), found: {run_id!r}")
        return RunDir(self.home / "runs" / run_id)

    def list(self) -> tuple[RunSummary, ...]:
        """Every run, newest first, unreadable ones last."""
        summaries = [read_summary(self.run_dir(run_id)) for run_id in self._run_ids()]
        return tuple(sorted(summaries, key=lambda run: (-(run.created_unix_s or 0.0), run.run_id)))

    def remove(self, run_id: str) -> None:
        """Forget a run on this laptop, also an unreadable one. Raises InvalidRunError while a baseline means it."""
        import shutil

        run = self.run_dir(run_id)
        with locked(self.home), translated("remove", run.path):
            if not run.path.is_dir():
                raise no_run(run_id, self._run_ids())
            if holders := self._holders(run_id):
                raise InvalidRunError(
                    f"expected a run that no baseline means, `{run_id}` is the baseline: {', '.join(holders)}",
                    hint=f"first run `eagle3-remote baseline rm {holders[0]}`",
                )
            gone = run.path.with_name(f".{run_id}.{os.getpid()}.removed")
            run.path.rename(gone)  # at once out of every listing, even if the rest is interrupted
            shutil.rmtree(gone)

    def has_figures(self, record: RunRecord) -> bool:
        """Whether a result with figures to judge came home whole; of a served benchmark also one that ended early."""
        run = self.run_dir(record.run_id)
        is_over = record.state is not None and record.state.is_terminal
        is_part = is_over and record.job_kind == "bench" and (run.result / "bench.json").is_file()
        is_done = record.job_kind in ("standalone", "bench") and record.phase == "succeeded"
        return (is_done or is_part) and run.manifest.is_file()

    def verify(self, run_id: str) -> tuple[str, ...]:
        """Compare the run's result files with their manifest; each problem is a sentence, none means all is well."""
        from orchestrator.store.results import verify

        return verify(self.run_dir(run_id))

    # -- baselines ----------------------------------------------------------------------------------------------

    def baseline(self, name: str) -> Baseline:
        """The baseline of that name. Raises NotFoundError with the closest names."""
        from orchestrator.records import Baseline, read_record

        path = self._baseline_path(name)
        if not path.is_file():
            raise no_baseline(name, [known.stem for known in self._baseline_files()])
        return read_record(Baseline, read_text(path), where=str(path), error=StoreError)

    def set_baseline(self, name: str, entry: BaselineEntry) -> Baseline:
        """Let `name` mean `entry` from now on; what it meant before stays in its history."""
        from orchestrator.records import Baseline, record_bytes

        path = self._baseline_path(name)
        with locked(self.home):
            earlier = self.baseline(name).history if path.is_file() else ()
            baseline = Baseline(name=name, history=(*earlier, entry))
            write(path, record_bytes(baseline))
        return baseline

    def baselines(self) -> tuple[Baseline, ...]:
        """Every baseline that can be read, by name."""
        found = (self._baseline_or_problem(path.stem) for path in self._baseline_files())
        return tuple(item for item in found if not isinstance(item, str))

    def unreadable_baselines(self) -> tuple[tuple[str, str], ...]:
        """The other ones: (name, what is wrong with it)."""
        found = ((path.stem, self._baseline_or_problem(path.stem)) for path in self._baseline_files())
        return tuple((name, item) for name, item in found if isinstance(item, str))

    def remove_baseline(self, name: str) -> None:
        """Forget a baseline with its history, also an unreadable one; its runs stay. Raises NotFoundError."""
        path = self._baseline_path(name)
        with locked(self.home), translated("remove", path):
            if not os.path.lexists(path):
                raise no_baseline(name, [known.stem for known in self._baseline_files()])
            path.unlink()

    # -- hosts --------------------------------------------------------------------------------------------------

    def host_note(self, host_key: str) -> dict[str, object] | None:
        """What was noted about a host; None where nothing was, or it cannot be read (it is only a cache)."""
        try:
            value = json.loads(self._host_path(host_key).read_bytes())
        except (OSError, ValueError):
            return None
        matches = isinstance(value, dict) and value.get("host") == host_key and isinstance(value.get("note"), dict)
        return value["note"] if matches else None

    def note_host(self, host_key: str, note: dict[str, object]) -> None:
        """Remember `note` (JSON values) about a host, in place of the earlier one."""
        write(self._host_path(host_key), json.dumps({"host": host_key, "note": note}).encode())

    # -- the layout ---------------------------------------------------------------------------------------------

    def _record_path(self, run_id: str) -> Path:
        return record_path(self.run_dir(run_id))

    def _holders(self, run_id: str) -> tuple[str, ...]:
        """The baselines that mean the run now; of an unreadable one it is enough that it names the run at all."""
        holders = [line.name for line in self.baselines() if line.current.run_id == run_id]
        for name, _ in self.unreadable_baselines():
            path = self._baseline_path(name)
            if path.is_file() and f'"{run_id}"'.encode() in path.read_bytes():
                holders.append(name)
        return tuple(holders)

    def _baseline_or_problem(self, name: str) -> Baseline | str:
        try:
            return self.baseline(name)
        except (StoreError, NotFoundError) as error:
            return error.message

    def _baseline_path(self, name: str) -> Path:
        from orchestrator.records import NAME_RULE, is_name

        if not is_name(name):
            raise UsageError(f"expected a baseline's name ({NAME_RULE}), found: {name!r}")
        return self.home / "baselines" / f"{name}.json"

    def _baseline_files(self) -> tuple[Path, ...]:
        from orchestrator.records import is_name

        folder = self.home / "baselines"
        names = (name for name in names_in(folder) if name.endswith(".json"))
        return tuple(folder / name for name in names if is_name(name.removesuffix(".json")))

    def _host_path(self, host_key: str) -> Path:
        import hashlib

        return self.home / "hosts" / f"{hashlib.sha256(host_key.encode()).hexdigest()[:32]}.json"

    def _run_ids(self) -> tuple[str, ...]:
        return tuple(name for name in names_in(self.home / "runs") if RUN_ID_PATTERN.fullmatch(name))

    def _read(self, run_id: str) -> RunRecord:
        from orchestrator.records import RunRecord, read_record

        path = self._record_path(run_id)
        record = read_record(RunRecord, read_text(path), where=str(path), error=StoreError)
        if record.run_id != run_id:
            raise StoreError(f"{path}: expected the run `{run_id}`, found: {record.run_id}")
        return record

    def _resolve(self, reference: str) -> str:
        if reference == "last":
            readable = [run for run in self.list() if run.problem is None]
            if not readable:
                raise NotFoundError("no run on this laptop yet", hint="start one with `eagle3-remote run standalone`")
            return readable[0].run_id
        if self.run_dir(reference).path.is_dir():
            return reference
        return one_run(reference, self._run_ids())
