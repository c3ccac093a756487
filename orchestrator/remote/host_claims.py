"""What a host claims, held against what can be true: another run's state, file names no disk takes, dates of no year.

The records' own shape is checked where they are read; here is what only the asker can know. All raise ProtocolError.
"""

import math

from orchestrator.errors import ProtocolError
from remote_payload.schema import Event, Manifest, ManifestFile, RunState, StatusAnswer

_YEAR_10000_UNIX_S = 253402300800.0
_LARGEST_FILE_BYTES = 2**50
_LONGEST_PART_BYTES = 200  # file systems take 255; a temporary name adds a few
_LONGEST_NAME_BYTES = 1000


def require_state(state: RunState, run_id: str) -> RunState:
    """The state, if it is that run's and its moments are moments."""
    if state.run_id != run_id:
        raise ProtocolError(f"expected the state of run `{run_id}`, the host sent that of: {state.run_id}")
    _require_moments(f"the state of run `{run_id}`", state.started_unix_s, state.finished_unix_s)
    return state


def require_status(answer: StatusAnswer, run_id: str | None) -> StatusAnswer:
    """The answer, if every state has its spec; of `run_id` alone where that was asked."""
    counts = {len(answer.states), len(answer.specs), len(answer.heartbeat_ages_s)}
    if len(counts) != 1:
        raise ProtocolError(f"`status` must answer with as many specs as states, found: {sorted(counts)}")
    for state, spec in zip(answer.states, answer.specs, strict=True):
        require_state(state, spec.run_id)
        _require_moments(f"the spec of run `{spec.run_id}`", spec.created_unix_s)
    found = [spec.run_id for spec in answer.specs]
    if run_id is not None and found != [run_id] and (found or not answer.unreadable):
        raise ProtocolError(f"expected the state of run `{run_id}` alone, the host sent: {', '.join(found) or 'none'}")
    return answer


def require_manifest(manifest: Manifest, run_id: str) -> Manifest:
    """The manifest, if it is that run's and its files can lie side by side in one folder."""
    if manifest.run_id != run_id:
        raise ProtocolError(f"expected the manifest of run `{run_id}`, the host sent that of: {manifest.run_id}")
    names = {file.name for file in manifest.files}
    if len(names) != len(manifest.files):
        raise ProtocolError(f"the manifest of run `{run_id}` lists a file twice")
    folders = {name[:at] for name in names for at, char in enumerate(name) if char == "/"}
    for file in manifest.files:
        problem = "is a folder of another file" if file.name in folders else _problem(file)
        if problem is not None:
            shown = file.name if len(file.name) <= 80 else f"{file.name[:77]}..."
            raise ProtocolError(f"the manifest of run `{run_id}` lists a file that {problem}: {shown!r}")
    return manifest


def is_plausible(event: Event) -> bool:
    """Whether every number of the event is one that can be shown."""
    return all(number is None or math.isfinite(number) for number in (event.time_unix_s, event.done, event.total))


def _problem(file: ManifestFile) -> str | None:
    try:
        parts = [part.encode() for part in file.name.split("/")]
    except UnicodeEncodeError:
        return "has a name that is not text"
    if not file.name.isprintable() or "\\" in file.name:
        return "has a name with control characters or backslashes"
    if max(map(len, parts)) > _LONGEST_PART_BYTES or sum(map(len, parts)) > _LONGEST_NAME_BYTES:
        return "has too long a name"
    if parts[0] == b"manifest.json":
        return "is the manifest itself"
    if not 0 <= file.size_bytes <= _LARGEST_FILE_BYTES:
        return "has a size that no file has"
    return None


def _require_moments(what: str, *moments: float | None) -> None:
    for moment in moments:
        if moment is not None and not 0 <= moment < _YEAR_10000_UNIX_S:
            raise ProtocolError(f"{what}: expected seconds since 1970, found: {moment:g}")
