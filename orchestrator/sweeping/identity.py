"""What lies under a sweep's paths on a host, and what is installed there, as the host tells it."""

from orchestrator.errors import ProtocolError
from orchestrator.following import ANSWER_S
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from remote_payload.schema import IdentifyFrame, IdentifyRequest, PathIdentity
from remote_payload.schema.folder import FolderFacts

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


def pair_there(
    session: HostSession, texts: tuple[tuple[str, ...], ...], target: str
) -> tuple[tuple[str | None, ...], FolderFacts]:
    """Of each text, one or several files of the host, the sha256, None = cannot be read; then the target's folder.

    Raises ProtocolError.
    """
    request = IdentifyRequest(nonce=new_nonce(), root=session.host.root, whole=texts, folders=(target,))
    found = session.ask("identify", request, IdentifyFrame, WHOLE_S)
    if (len(found.whole), len(found.folders)) != (len(texts), 1):
        raise ProtocolError("the host must tell of each text and folder it was asked about, in their order")
    return found.whole, found.folders[0]
