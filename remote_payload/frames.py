"""How a verb reads its request and writes its frames: `NONCE JSON`, a line each."""

import os
import re
from collections.abc import Callable

from remote_payload.schema import Frame, SchemaError, to_json
from remote_payload.schema.record import parse_json

NONCE_PATTERN = re.compile(r"[A-Za-z0-9_-]{8,128}")


class FrameWriter:
    """Writes frames to a descriptor. Raises BrokenPipeError when nobody reads any more."""

    def __init__(self, nonce: str, descriptor: int = 1) -> None:
        self._nonce = nonce
        self._descriptor = descriptor
        self._lead = "\n"  # a banner without a newline before us must not swallow the first frame

    def send(self, frame: Frame) -> None:
        """Write one frame, whole."""
        self.send_json(to_json(frame))

    def send_json(self, text: str) -> None:
        """As `send`, for a frame that is JSON already."""
        line = memoryview(f"{self._lead}{self._nonce} {text}\n".encode("ascii"))
        self._lead = ""
        while line:
            line = line[os.write(self._descriptor, line) :]


def nonce_of(request: bytes) -> str:
    """The nonce of a request whose other keys may be wrong. Raises SchemaError."""
    value = parse_json(request, "a JSON request on stdin")
    nonce = value.get("nonce") if isinstance(value, dict) else None
    if not isinstance(nonce, str) or NONCE_PATTERN.fullmatch(nonce) is None:
        raise SchemaError(f"$.nonce: expected {NONCE_PATTERN.pattern}, found: {nonce!r}")
    return nonce


Send = Callable[[Frame], None]
"""What the verbs get to answer with."""
