"""One request under way on a connection."""

from dataclasses import dataclass

from remote_payload.sglang_bench.incoming import Incoming
from remote_payload.sglang_bench.stream import Events, Streamed


@dataclass(kw_only=True, eq=False)
class Exchange:
    """What was sent of it, and what came."""

    request: bytes
    into: Streamed
    incoming: Incoming
    events: Events
    unsent: bytes
    refusal: bytes = b""
    """Body of an answer that is not 200."""
    may_repeat: bool
    """The server may have dropped a kept connection before it saw the request."""
