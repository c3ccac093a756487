"""The payload file: `remote_payload` as one zip that Python runs, the same bytes for the same sources."""

import functools
import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

PACKAGE = "remote_payload"
PYTHON_TOO_OLD_EXIT_CODE = 78
"""A payload run by a Python below 3.10 says so on stderr and ends with this code."""
OLDEST_PYTHON = (3, 10)

# Old Pythons must be able to read this much. Compiled sources: see remote_payload/bytecode.py.
_ENTRY = f"""\
import os
import sys

if sys.version_info < {OLDEST_PYTHON}:
    sys.stderr.write(
        "eagle3-remote needs Python >= {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} on the host, found: %s %s\\n"
        % (sys.executable, sys.version.split()[0])
    )
    sys.exit({PYTHON_TOO_OLD_EXIT_CODE})

archive = os.path.abspath(sys.argv[0])
compiled = os.path.splitext(archive)[0] + "." + sys.implementation.cache_tag
if os.path.isdir(compiled):
    sys.path.insert(0, compiled)

from {PACKAGE}.__main__ import main

code = main(sys.argv[1:], archive)
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # taking an interpreter apart takes time (with torch: crashes, too), and nothing here needs it
"""
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""The oldest a zip can say."""


@dataclass(frozen=True)
class Payload:
    """The file's bytes and their sha256, which is its name on the host."""

    data: bytes
    sha256: str


@functools.cache
def build_payload() -> Payload:
    """Zip the installed `remote_payload`, from a checkout or a wheel; byte-identical for identical sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, "__main__.py", _ENTRY.encode("ascii"))
        for name, data in sorted(_sources(resources.files(PACKAGE), PACKAGE)):
            _add(archive, name, data)
    data = buffer.getvalue()
    return Payload(data=data, sha256=hashlib.sha256(data).hexdigest())


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{prefix}/{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, name)
        elif entry.name.endswith(".py"):
            yield name, entry.read_bytes()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _TIMESTAMP)
    info.external_attr = 0o100644 << 16
    info.create_system = 3  # Unix, also when built on Windows
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data, compresslevel=1)  # built for every command, sent once
