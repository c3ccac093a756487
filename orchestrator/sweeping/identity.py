"""What lies under a sweep's paths on a host, and what is installed there, as the host tells it."""

from orchestrator.errors import ProtocolError
from orchestrator.following import ANSWER_S
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from remote_payload.schema import IdentifyFrame, IdentifyRequest, PathIdentity

WHOLE_S = 600.0
"""To read some GB of weights to their last byte, also from a slow disk."""


def identify(session: HostSession, paths: tuple[str, ...], *, content: bool = False) -> tuple[PathIdentity, ...]:
    """What lies under the paths on the host, with `content` by what the files hold as well. Raises ProtocolError."""
    if not paths:
        return ()
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, paths=paths, content=content)
    return identified(session, request).paths


def identified(session: HostSession, request: IdentifyRequest) -> IdentifyFrame:
    """The host's answer. Raises ProtocolError."""
    found = session.ask("identify", request, IdentifyFrame, ANSWER_S)
    if tuple(one.path for one in found.paths) != request.paths:
        raise ProtocolError("the host must tell of the paths it was asked about, in their order")
    return found


def whole_sha256(session: HostSession, texts: tuple[tuple[str, ...], ...]) -> tuple[str | None, ...]:
    """Of each text, one or several files of the host, the sha256; None = cannot be read. Raises ProtocolError."""
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, whole=texts)
    found = session.ask("identify", request, IdentifyFrame, WHOLE_S).whole
    if len(found) != len(texts):
        raise ProtocolError("the host must tell of each text it was asked about, in their order")
    return found
