"""What was noted about a host, `hosts/<hash>.json`: only a cache, so what cannot be read was never noted."""

import hashlib
import json
from pathlib import Path

from orchestrator.store.files import write


def host_note(home: Path, host_key: str) -> dict[str, object] | None:
    """What was noted about a host; None where nothing was, or it cannot be read."""
    try:
        value = json.loads(_path(home, host_key).read_bytes())
    except (OSError, ValueError):
        return None
    matches = isinstance(value, dict) and value.get("host") == host_key and isinstance(value.get("note"), dict)
    return value["note"] if matches else None


def note_host(home: Path, host_key: str, note: dict[str, object]) -> None:
    """Remember `note` (JSON values) about a host, in place of the earlier one. Raises StoreError."""
    write(_path(home, host_key), json.dumps({"host": host_key, "note": note}).encode())


def _path(home: Path, host_key: str) -> Path:
    return home / "hosts" / f"{hashlib.sha256(host_key.encode()).hexdigest()[:32]}.json"
