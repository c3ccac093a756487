"""Files over one exec stream each: works without an sftp subsystem, costs two round trips, ignores start-up noise.

Remote paths may begin with `~/`. Both directions write to a temporary name beside the target and rename when the size
is right, so a cut leaves at most a `.part` file. The scripts are fixed; paths arrive as positional parameters.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from orchestrator.errors import HostNotReadyError, NotFoundError, ProtocolError
from orchestrator.remote.connection import VerifiedConnection
from orchestrator.remote.host_shell import EXPAND
from orchestrator.remote.local_disk import local_disk
from orchestrator.remote.session_channel import SessionChannel
from orchestrator.remote.translate_errors import describe
from orchestrator.remote.watchdog import Watchdog

SessionMaker = Callable[[Sequence[str], Iterable[bytes], Watchdog], SessionChannel]

_SILENCE_S = 15.0
_STDOUT_TAIL_BYTES = 4096
_MOST_NOISE_BYTES = 16 * 2**20
_SLOWEST_BYTES_PER_S = 32 * 1024

_EXPAND = f'{EXPAND}expand "$1"\n'
_PUT = (
    "umask 077\n"
    + _EXPAND
    + 'part=$path.part-$2\nmkdir -p -- "$(dirname -- "$path")" || exit 1\n'
    + 'if cat >"$part" && [ "$(wc -c <"$part")" -eq "$3" ] && mv -f -- "$part" "$path"; then\n'
    + '  printf "\\n%s done\\n" "$2"\nelse\n  rm -f -- "$part"; exit 1\nfi\n'
)
_GET = (
    _EXPAND
    + 'if [ ! -f "$path" ]; then printf "\\n%s missing\\n" "$2"; exit 0; fi\n'
    + 'printf "\\n%s %d\\n" "$2" "$(wc -c <"$path")"\nexec cat -- "$path"\n'
)


def put(session: SessionMaker, connection: VerifiedConnection, chunks: Iterable[bytes], size: int, remote: str) -> None:
    """Write a remote file of mode 0600, making its folders (0700).

    Raises HostNotReadyError with the host's own words when it cannot be written, LinkLostError when nothing moves for
    15 s or the whole takes longer than 32 KiB/s would.
    """
    nonce = secrets.token_hex(8)
    watchdog = _watchdog(connection, size)
    argv = ["sh", "-c", _PUT, "put", remote, nonce, str(size)]
    with watchdog, session(argv, _counted(chunks, watchdog), watchdog) as channel:
        answer = b""
        while (chunk := channel.read(restart=True)) is not None:
            answer = (answer + chunk)[-_STDOUT_TAIL_BYTES:]
        channel.finish()
    if f"\n{nonce} done\n".encode() not in answer:
        words = channel.stderr.decode(errors="replace").strip() or "no reason given"
        raise HostNotReadyError(
            f"{describe(connection.target)} cannot store {remote} ({size} bytes): {words}",
            hint="is the disk full or the folder not writable? `root` in eagle3.toml says where runs are kept",
        )


def get(session: SessionMaker, connection: VerifiedConnection, remote: str, local: Path, size: int) -> None:
    """Fetch a remote file that must be `size` bytes long.

    Raises NotFoundError when it is not there, ProtocolError when it is of another size, LinkLostError as `put` does.
    """
    nonce = secrets.token_hex(8)
    watchdog = _watchdog(connection, size)
    part = local.with_name(f".{local.name}.{os.getpid()}.part")  # another process may be fetching the same file
    try:
        with watchdog, session(["sh", "-c", _GET, "get", remote, nonce], (), watchdog) as channel:
            rest = _skip_to_size(channel, nonce, connection, remote, size)
            found = _write_rest(channel, rest, part, size)
            if found <= size:
                channel.finish()
        if found != size:
            words = "more" if found > size else str(found)
            raise ProtocolError(f"{remote} must be {size} bytes long, found: {words}")
        with local_disk(local):
            os.replace(part, local)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _write_rest(channel: SessionChannel, chunk: bytes | None, part: Path, size: int) -> int:
    """Write what comes to `part`, no more than one chunk beyond `size`; returns how much came."""
    found = 0
    with local_disk(part), part.open("wb") as file:
        while chunk is not None and found <= size:
            file.write(chunk)
            found += len(chunk)
            chunk = channel.read(restart=True)
    return found


def _skip_to_size(channel: SessionChannel, nonce: str, connection: VerifiedConnection, remote: str, size: int) -> bytes:
    """Read past start-up noise to the line that announces the size; return what already follows it."""
    mark = f"\n{nonce} ".encode()
    head = b""
    while (start := head.find(mark)) < 0 or head.find(b"\n", start + len(mark)) < 0:
        chunk = channel.read(restart=True)
        if chunk is None:
            channel.finish()
            words = channel.stderr.decode(errors="replace").strip() or "no reason given"
            raise ProtocolError(f"{describe(connection.target)} did not send {remote}: {words}")
        head += chunk
        if len(head) > _MOST_NOISE_BYTES:
            raise ProtocolError(f"{describe(connection.target)} printed {len(head)} bytes instead of {remote}")
    announced, _, rest = head[start + len(mark) :].partition(b"\n")
    if announced == b"missing":
        raise NotFoundError(f"no such file on {describe(connection.target)}: {remote}")
    if announced != str(size).encode():
        raise ProtocolError(f"{remote} must be {size} bytes long, found: {announced.decode(errors='replace')}")
    return rest


def _watchdog(connection: VerifiedConnection, size: int) -> Watchdog:
    return Watchdog(connection.abort, period_s=_SILENCE_S, limit_s=_SILENCE_S + size / _SLOWEST_BYTES_PER_S)


def _counted(chunks: Iterable[bytes], watchdog: Watchdog) -> Iterable[bytes]:
    """Every chunk that was taken for sending shows that the link moves."""
    for chunk in chunks:
        watchdog.restart()
        yield chunk
