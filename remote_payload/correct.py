"""`correct`: write a corrected drafter beside the original: a new config.json, links to everything else.

The original is never touched. The new folder appears whole, by one rename, or not at all. Links are relative where both
folders lie below one parent, so that they hold where that parent is mounted elsewhere (in a container).
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from remote_payload.frames import Send
from remote_payload.refusal import MAKE_ROOM, Refusal, is_disk_full
from remote_payload.rundir import sync, write_atomically
from remote_payload.schema import EndFrame
from remote_payload.schema.corrected import CorrectFrame, CorrectRequest

CONFIG = "config.json"
TOLD = "eagle3-remote-correction.json"
"""In the new folder: what it was made from, and how."""
SUFFIX = "-for-sglang"
LARGEST_CONFIG_BYTES = 16 << 20


def correct(request: CorrectRequest, send: Send) -> None:
    """Answer with a CorrectFrame. Raises Refusal."""
    draft = _drafter(request.draft)
    named = _place(request.draft)  # beside the name that people know: a hub's snapshot is a cache, its link is theirs
    into = _place(request.into) if request.into is not None else named.with_name(named.name + SUFFIX)
    if Path(os.path.realpath(into)).is_relative_to(draft):
        raise Refusal(
            "wrong_place",
            f"nothing is written into the drafter's own folder: {into}",
            "name a folder beside it with --apply-into",
        )
    config = _patched(draft, request)
    told = _encoded({"source": str(draft), "patch": _patch(request)})
    if os.path.lexists(into):
        send(_known(draft, into, config, told))
    else:
        send(_written(draft, into, config, told))
    send(EndFrame())


def merged(value: Any, patch: Any) -> Any:
    """The value under a JSON merge patch, as RFC 7396 section 2 defines it; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), item)
    return result


def _place(named: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(named)))  # noqa: PTH100 - links stay as they are named


def _drafter(named: str) -> Path:
    draft = Path(os.path.realpath(_place(named)))  # a link that is turned elsewhere later would change the weights
    if draft.is_dir() and draft.name:
        return draft
    raise Refusal(
        "wrong_place",
        f"expected a drafter's folder on this host, found none at: {draft}",
        "a hub's name cannot be corrected in place: download it to a folder and name that",
    )


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refusal("bad_request", f"{what} is not JSON: {error}") from None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _patch(request: CorrectRequest) -> Any:
    patch = _parsed(request.patch_json, "`patch_json`")
    if not isinstance(patch, dict) or not patch:
        raise Refusal("bad_request", f"`patch_json` must be an object with something to change, found: {patch!r}")
    return patch


def _patched(draft: Path, request: CorrectRequest) -> bytes:
    """The new config.json."""
    path = draft / CONFIG
    try:
        if path.stat().st_size > LARGEST_CONFIG_BYTES:
            raise Refusal("bad_request", f"{path} is larger than any config: {path.stat().st_size} bytes")
        value = _parsed(path.read_bytes().decode("utf-8-sig", "surrogateescape"), str(path))
    except OSError as error:
        raise Refusal("bad_request", f"cannot read {path}: {error.strerror}") from None
    if _canonical(value) != _canonical(_parsed(request.config_json, "`config_json`")):
        raise Refusal(
            "changed_meanwhile",
            f"{path} does not say any more what it said when the drafter was judged",
            "judge the drafter again: its config.json changed meanwhile",
        )
    return _encoded(merged(value, _patch(request)))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _known(draft: Path, into: Path, config: bytes, told: bytes) -> CorrectFrame:
    """The folder that is there already, if it is this very correction. Raises Refusal for any other."""
    try:
        is_same = (into / CONFIG).read_bytes() == config and (into / TOLD).read_bytes() == told
        linked = tuple(sorted(entry.name for entry in into.iterdir() if entry.name not in (CONFIG, TOLD)))
    except OSError:
        is_same, linked = False, ()
    if is_same and linked == tuple(_linkable(draft)):
        return _frame(into, config, linked, existed=True)
    raise Refusal(
        "wrong_place",
        f"something else is there already, and nothing is overwritten: {into}",
        "name another folder with --apply-into; if that one is an older correction, it can be removed",
    )


def _linkable(draft: Path) -> list[str]:
    return sorted(entry.name for entry in draft.iterdir() if entry.name not in (CONFIG, TOLD))


def _written(draft: Path, into: Path, config: bytes, told: bytes) -> CorrectFrame:
    temporary = into.with_name(f".{into.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
    except OSError as error:
        raise _not_written(error, into) from None
    try:
        names = _linkable(draft)
        for name in names:
            (temporary / name).symlink_to(_target(draft / name, into))
        write_atomically(temporary / TOLD, told, mode=0o644)
        write_atomically(temporary / CONFIG, config, mode=0o644)
        temporary.rename(into)
        sync(into.parent)
    except OSError as error:
        raise _not_written(error, into) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _frame(into, config, tuple(names), existed=False)


def _target(file: Path, into: Path) -> str:
    """Where a link in `into` leads: relative where both lie in one folder's tree."""
    beside = os.path.realpath(into.parent) == str(file.parent.parent)
    return f"../{file.parent.name}/{file.name}" if beside else str(file)


def _frame(into: Path, config: bytes, linked: tuple[str, ...], *, existed: bool) -> CorrectFrame:
    return CorrectFrame(
        path=str(into), config_sha256=hashlib.sha256(config).hexdigest(), linked=linked, existed=existed
    )


def _not_written(error: OSError, into: Path) -> Refusal:
    if is_disk_full(error):
        return Refusal("disk_full", f"cannot write {into}, the disk or quota is full", MAKE_ROOM)
    return Refusal(
        "root_not_writable",
        f"cannot write {into}: {error.strerror}",
        "name a folder that this user can write with --apply-into; the weights are linked, not copied",
    )
