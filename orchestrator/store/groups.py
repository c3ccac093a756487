"""`groups/<id>.json`: the sweeps over several hosts that this laptop knows."""

import shutil
from pathlib import Path

from orchestrator.errors import NotFoundError, StoreError
from orchestrator.records import read_record, record_bytes
from orchestrator.records.group import SweepGroup
from orchestrator.store.files import names_in, read_text, write
from remote_payload.rundir import RUN_ID_PATTERN, RunDir

SUFFIX = ".json"


def is_group(home: Path, group_id: str) -> bool:
    """Whether a sweep of this id went to several hosts from here, or was asked for here."""
    return RUN_ID_PATTERN.fullmatch(group_id) is not None and _path(home, group_id).is_file()


def load_group(home: Path, group_id: str) -> SweepGroup:
    """The record. Raises NotFoundError, StoreError where it is broken."""
    path = _path(home, group_id)
    if not is_group(home, group_id):
        raise NotFoundError(
            f"no sweep over several hosts on this laptop is called: {group_id}",
            hint=f"`eagle3-remote sweep status {group_id} --host A,B,C` asks its hosts, and makes it known here",
        )
    return read_record(SweepGroup, read_text(path), where=str(path), error=StoreError)


def keep_group(home: Path, group: SweepGroup) -> None:
    """Write it in place of what is there. Raises StoreError."""
    write(_path(home, group.group_id), record_bytes(group))


def group_ids(home: Path) -> tuple[str, ...]:
    """All of them, sorted."""
    return tuple(name.removesuffix(SUFFIX) for name in names_in(home / "groups") if name.endswith(SUFFIX))


def forget_group(home: Path, group_id: str) -> None:
    """Take the record away. Raises StoreError."""
    try:
        _path(home, group_id).unlink(missing_ok=True)
        shutil.rmtree(_told(home, group_id), ignore_errors=True)
    except OSError as error:
        raise StoreError(f"{_path(home, group_id)} cannot be removed: {error.strerror}") from None


def told_folder(home: Path, group: SweepGroup) -> RunDir:
    """Where it is kept who was told of its end; of a sweep that was gone on with, which ends once more, another."""
    return RunDir(_told(home, group.group_id) / str(max(share.number for share in group.shares)))


def group_size(home: Path, group_id: str) -> int:
    """Bytes of the record."""
    return _path(home, group_id).stat().st_size


def _path(home: Path, group_id: str) -> Path:
    return home / "groups" / f"{group_id}{SUFFIX}"


def _told(home: Path, group_id: str) -> Path:
    return home / "groups" / f"{group_id}.told"
