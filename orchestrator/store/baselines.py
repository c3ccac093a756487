"""Baselines on disk: `NAME.json`, a name and everything it meant, and `records/RUN_ID.json`, what it meant by a run.

They lie in the project's folder, where they can be kept in git, or in the user's own. With a project's folder the
user's own is still read, never written: a name of the project hides the same name there. Records are written once and
never changed, so a baseline can be compared without its run, on any laptop.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import StoreError, UsageError
from orchestrator.records import NAME_RULE, Baseline, BaselineEntry, is_name, lined_bytes, read_record
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.packed import packed, sha256_of, unpacked
from orchestrator.store.files import names_in, read_text, translated, write
from orchestrator.store.lock import locked
from orchestrator.store.references import no_baseline

LONGEST_WAIT_S = 60.0
"""Who waits for the lock looked at the clock before that; a still earlier time is of a clock that was set back."""


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """The baselines that hold here. Methods raise StoreError where the disk refuses."""

    home: Path
    """The store's folder: its lock, and the user's own baselines in `baselines/`."""
    project: Path | None = None
    """The project's folder of baselines; None = there is none."""

    @property
    def folder(self) -> Path:
        """Where a baseline that is set now is written."""
        return self.project or self.home / "baselines"

    @property
    def is_shared(self) -> bool:
        """Whether that folder is the project's, whose files are as readable as the project's other ones."""
        return self.project is not None and self.folder != self.home / "baselines"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where baselines are read, the first that has a name decides."""
        own = self.home / "baselines"
        return (own,) if self.project in (None, own) else (self.folder, own)

    def read(self, name: str) -> Baseline:
        """The baseline of that name. Raises NotFoundError with the closest names."""
        return _read(self._path(name))

    def readable(self) -> tuple[Baseline, ...]:
        """Every baseline that can be read, by name."""
        return tuple(found for _, found in self._all() if isinstance(found, Baseline))

    def unreadable(self) -> tuple[tuple[str, str], ...]:
        """The other ones: (name, what is wrong with it)."""
        return tuple((path.stem, found) for path, found in self._all() if isinstance(found, str))

    def where(self, name: str) -> Path:
        """The folder that decides what the name means. Raises NotFoundError."""
        return self._path(name).parent

    def set(self, name: str, entry: BaselineEntry) -> Baseline:
        """Let `name` mean `entry` from now on; what it meant before stays in its history, which only ever grows."""
        path = self.folder / _file_name(name)
        with locked(self.home):
            return self._moved(path, entry)

    def promote(self, name: str, measured: MeasurementSet, *, source: str, note: str, now: float) -> Baseline:
        """Keep the measurements of a run for good, and let `name` mean them from now on.

        What was kept of that run before stays as it is, and is what the name then means: a record never changes. One
        that was edited or cut is written again where these are the very measurements that it held; else StoreError.
        """
        path, record = self.folder / _file_name(name), self._record_path(self.folder, measured.run_id)
        with locked(self.home):  # one for both: nobody may remove the record in between
            sha256 = self._kept(record, measured) if record.is_file() else None
            if sha256 is None:
                write(record, packed(measured), shared=self.is_shared)
                sha256 = sha256_of(measured)
            run_id = measured.run_id
            entry = BaselineEntry(run_id=run_id, record_sha256=sha256, source=source, note=note, set_at_unix_s=now)
            return self._moved(path, entry)

    def measured(self, entry: BaselineEntry) -> MeasurementSet | None:
        """What a run's entry means by its run, read and held against its hash; None where it has no record.

        Raises StoreError where the record is missing, edited, cut, or another one than the entry names.
        """
        if entry.run_id is None or entry.record_sha256 is None:
            return None
        paths = [self._record_path(folder, entry.run_id) for folder in self.folders]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise StoreError(
                f"expected the record of `{entry.run_id}`, found none at: {paths[0]}",
                hint="a record belongs beside its baseline: if that came by git, so must `records/`",
            )
        measured, found = _read_record(path)
        if found != entry.record_sha256:
            raise StoreError(
                f"{path}: the baseline names the record of sha256 {entry.record_sha256}, found: {found}",
                hint="the record was replaced after the baseline was set",
            )
        return measured

    def remove(self, name: str) -> tuple[str, ...]:
        """Forget a baseline with its history, also an unreadable one; returns the runs whose records went with it.

        Runs stay, and so do records that another baseline's history names. Raises NotFoundError.
        """
        path = self._path(name, broken=True)
        with locked(self.home), translated("remove", path):
            try:
                history = _read(path).history
            except StoreError:
                history = ()
            path.unlink()
            left = {run for item in self.readable() for run in _runs(item.history)}
            gone = () if self.unreadable() else tuple(sorted(_runs(history) - left))
            for run_id in gone:
                self._record_path(path.parent, run_id).unlink(missing_ok=True)
        return gone

    def names(self) -> tuple[str, ...]:
        """Every name, readable or not."""
        return tuple(dict.fromkeys(path.stem for path in self._paths()))

    def orphans(self) -> tuple[Path, ...]:
        """Records that no name's history needs, e.g. after a merge in git; none while a name cannot be read."""
        if self.unreadable():
            return ()
        needed = {run for item in self.readable() for run in _runs(item.history)}
        folder = self.folder / "records"
        names = (name for name in names_in(folder) if name.endswith(".json") and not name.startswith("."))
        return tuple(folder / name for name in names if name.removesuffix(".json") not in needed)

    def holders(self, run_id: str) -> tuple[str, ...]:
        """The baselines that need the run's folder: set before there were records, or unreadable and naming it."""
        needing = [
            item.name
            for item in self.readable()
            if item.current.run_id == run_id and item.current.record_sha256 is None
        ]
        for name, _ in self.unreadable():
            path = self._path(name, broken=True)
            if path.is_file() and f'"{run_id}"'.encode() in path.read_bytes():
                needing.append(name)
        return tuple(needing)

    def _path(self, name: str, *, broken: bool = False) -> Path:
        paths = [folder / _file_name(name) for folder in self.folders]
        found = next((path for path in paths if path.is_file() or (broken and path.is_symlink())), None)
        if found is None:
            raise no_baseline(name, self.names())
        return found

    def _paths(self) -> Iterator[Path]:
        for folder in self.folders:
            for name in names_in(folder):
                if name.endswith(".json") and is_name(name.removesuffix(".json")):
                    yield folder / name

    def _all(self) -> Iterator[tuple[Path, Baseline | str]]:
        """Every name once, with what it means or what is wrong with it."""
        first = {path.stem: path for path in reversed(tuple(self._paths()))}
        for name in sorted(first):
            try:
                yield first[name], _read(first[name])
            except StoreError as error:
                yield first[name], error.message

    def _moved(self, path: Path, entry: BaselineEntry) -> Baseline:
        earlier = _read(path).history if path.is_file() else ()
        if earlier and 0 < earlier[-1].set_at_unix_s - entry.set_at_unix_s < LONGEST_WAIT_S:
            entry = dataclasses.replace(entry, set_at_unix_s=earlier[-1].set_at_unix_s)
        baseline = Baseline(name=path.stem, history=(*earlier, entry))
        write(path, lined_bytes(baseline), shared=self.is_shared)
        return baseline

    def _kept(self, record: Path, measured: MeasurementSet) -> str | None:
        """The hash of the record that is there; None where it is broken and `measured` is what it held."""
        try:
            return _read_record(record)[1]
        except StoreError as error:
            ours = sha256_of(measured)
            needed = [
                (item.name, entry.record_sha256)
                for item in self.readable()
                for entry in item.history
                if entry.run_id == measured.run_id
            ]
            if ours in {sha256 for _, sha256 in needed}:
                return None
            names = " ".join(dict.fromkeys(name for name, _ in needed))
            raise StoreError(
                error.message,
                hint="the run's measurements are other ones now, so this record cannot be made again: take it from git"
                + (f", or forget what needs it: baseline rm {names}" if names else ", or remove it"),
            ) from None

    @staticmethod
    def _record_path(folder: Path, run_id: str) -> Path:
        return folder / "records" / f"{run_id}.json"


def _file_name(name: str) -> str:
    if not is_name(name):
        raise UsageError(f"expected a baseline's name ({NAME_RULE}), found: {name!r}")
    return f"{name}.json"


def _read(path: Path) -> Baseline:
    baseline = read_record(
        Baseline, _merged(path, "both entries of `history`, oldest first"), where=str(path), error=StoreError
    )
    if baseline.name != path.stem:
        raise StoreError(f"{path}: expected the baseline `{path.stem}`, found: {baseline.name}")
    return baseline


def _merged(path: Path, keep: str) -> str:
    """The file's text. Raises StoreError where git left a conflict in it, with what to keep."""
    text = read_text(path)
    if any(line.startswith("<<<<<<< ") for line in text.splitlines()):
        raise StoreError(f"{path}: git left a merge conflict in it", hint=f"keep {keep}, and drop the marks of git")
    return text


def _read_record(path: Path) -> tuple[MeasurementSet, str]:
    measured, sha256 = unpacked(_merged(path, "one side whole"), where=str(path))
    if measured.run_id != path.stem:
        raise StoreError(f"{path}: expected the record of `{path.stem}`, found: {measured.run_id}")
    return measured, sha256


def _runs(history: tuple[BaselineEntry, ...]) -> set[str]:
    return {entry.run_id for entry in history if entry.run_id is not None and entry.record_sha256 is not None}
