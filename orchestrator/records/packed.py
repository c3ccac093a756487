"""A measurement set as one text that can live in git: readable lines, raw numbers packed, a hash of the whole inside.

The facts are indented, a line each and in a fixed order, so that two versions differ where they differ; the raw numbers
of a series are one line of base64. The hash is of the unpacked content in canonical JSON: line ends, indentation and
another zlib do not matter to it, any other edit does.
"""

import base64
import binascii
import hashlib
import json
import re
import zlib
from typing import Any

from orchestrator.errors import Eagle3Error, StoreError
from orchestrator.records.measurement import MeasurementSet
from orchestrator.records.reading import json_of, record_of
from remote_payload.schema import SCHEMA_VERSION, to_json

ARRAYS = ("keys", "clusters", "y", "x")
MAX_ARRAY_BYTES = 200 << 20
"""Of one series, unpacked: a small text may unpack to more than a laptop's memory."""
_LEVEL = 9
_FACT = re.compile(r'\{\n *("name": .*),\n *("value": .*)\n *\}')
"""A fact over four lines, to be written on one: no string in JSON holds a line end."""


_AGAIN = "it was edited or cut; take it from git, or make it of its run again: baseline set, runs export"


def packed(measured: MeasurementSet) -> bytes:
    """The text of a set; `unpacked` gives the set again."""
    content = json.loads(to_json(measured))
    sealed = {"schema_version": measured.schema_version, "sha256": _sha256(content), "content": content}
    for series in _series_of(content):
        arrays = {name: series.pop(name) for name in ARRAYS}
        text = json.dumps(arrays, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        series["packed"] = base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()
    return (_FACT.sub(r"{\1, \2}", json.dumps(sealed, ensure_ascii=True, allow_nan=False, indent=1)) + "\n").encode()


def sha256_of(measured: MeasurementSet) -> str:
    """The hash that `packed` writes."""
    return _sha256(json.loads(to_json(measured)))


def unpacked(text: str | bytes, *, where: str, error: type[Eagle3Error] = StoreError) -> tuple[MeasurementSet, str]:
    """The set of a text and its hash. Raises `error` naming file and reason: cut off, edited, from the future."""
    value = _sealed(text, where, error)
    if not isinstance(value, dict) or not {"schema_version", "sha256", "content"} <= set(value):
        raise error(
            f"{where}: expected a record of measurements (schema_version, sha256, content), found: other JSON",
            hint=_AGAIN,
        )
    written, content = value["sha256"], value["content"]
    _require_version(value["schema_version"], where, error)
    if isinstance(content, dict):
        for number, series in enumerate(_series_of(content), start=1):
            series.update(_arrays(series.pop("packed", None), f"{where}: series {number}", error))
        found = _sha256(content)
        if found != written and not _is_newer(content):
            raise error(
                f"{where}: expected the content of sha256 {written}, found: {found}",
                hint=_AGAIN,
            )
    return record_of(MeasurementSet, content, where=where, error=error), str(written)


def _sealed(text: str | bytes, where: str, error: type[Eagle3Error]) -> Any:
    """The JSON of a record's text; a cut or empty file gets the hint of an edited one."""
    try:
        return json_of(text, "a record of measurements", where=where, error=error)
    except error as problem:
        raise error(problem.message, hint=_AGAIN) from None


def _require_version(version: object, where: str, error: type[Eagle3Error]) -> None:
    """That this version reads what stands outside the content; the hash does not cover it."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise error(f"{where}: `schema_version`: expected a whole number from 1, found: {version!r}", hint=_AGAIN)
    if version > SCHEMA_VERSION:
        raise error(
            f"{where}: expected a record of schema version {SCHEMA_VERSION} or older, "
            f"written by a newer eagle3-remote: {version}",
            hint="a newer eagle3-remote reads it",
        )


def _is_newer(content: dict[str, Any]) -> bool:
    """Whether a newer tool may have hashed it by other rules; then its version is what has to be said."""
    version = content.get("schema_version")
    return isinstance(version, int) and version > SCHEMA_VERSION


def _sha256(content: object) -> str:
    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _series_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Every series in a set's value, as far as it has the form of one."""
    measurements = content.get("measurements")
    found = (
        [one.get("series") for one in measurements if isinstance(one, dict)] if isinstance(measurements, list) else []
    )
    return [series for several in found if isinstance(several, list) for series in several if isinstance(series, dict)]


def _arrays(text: object, where: str, error: type[Eagle3Error]) -> dict[str, Any]:
    if not isinstance(text, str):
        raise error(f"{where}: expected packed numbers, found none", hint=_AGAIN)
    engine = zlib.decompressobj()
    try:
        data = engine.decompress(base64.b64decode(text, validate=True), MAX_ARRAY_BYTES)
    except (binascii.Error, zlib.error, ValueError) as problem:
        raise error(f"{where}: expected packed numbers, found: {problem}", hint=_AGAIN) from None
    if not engine.eof:
        words = f"more than {MAX_ARRAY_BYTES >> 20} MB" if engine.unconsumed_tail else "the beginning of them only"
        raise error(f"{where}: expected packed numbers, found: {words}", hint=_AGAIN)
    value = json_of(data, "packed numbers", where=where, error=error)
    if not isinstance(value, dict) or set(value) != set(ARRAYS):
        raise error(f"{where}: expected packed {', '.join(ARRAYS)}, found: other JSON", hint=_AGAIN)
    return value
