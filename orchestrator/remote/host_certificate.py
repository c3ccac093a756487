"""Host certificates: whether a `@cert-authority` line of known_hosts vouches for the key a host shows.

The rules are those of OpenSSH (sshkey_cert_check_authority): a host certificate, signed by an authority whose line
matches the host, inside its validity, whose principals are empty or name the host, without critical options. paramiko
verifies that the host holds the certified key; everything else is checked here with `cryptography`.
"""

import base64
import time
from collections.abc import Sequence

import paramiko
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)

from orchestrator.remote.known_hosts import REVOKED, HostKeyLine, authorities_for, lines_for, matches
from orchestrator.remote.ssh_config import SshTarget


def why_not(key: paramiko.PKey, lines: Sequence[HostKeyLine], target: SshTarget) -> str | None:
    """None when a certificate authority vouches for this key; otherwise a clause for the error message."""
    authorities = authorities_for(lines, target.host_key_name)
    if not authorities:
        return ""
    vouchers = f" (a certificate authority at {authorities[0].place} may vouch for it, but"
    if key.public_blob is None:
        return f"{vouchers} the host shows a plain key, no certificate)"
    try:
        blob = key.public_blob
        identity = load_ssh_public_identity(f"{blob.key_type} ".encode() + base64.b64encode(blob.key_blob))
    except ValueError as error:
        return f"{vouchers} its certificate cannot be read: {error})"
    if not isinstance(identity, SSHCertificate):
        return f"{vouchers} the host shows a plain key, no certificate)"
    problem = _problem(identity, lines, authorities, target)
    return f"{vouchers} {problem})" if problem else None


def _problem(
    certificate: SSHCertificate, lines: Sequence[HostKeyLine], authorities: Sequence[HostKeyLine], target: SshTarget
) -> str | None:
    signer = base64.b64decode(
        certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split()[1]
    )
    if any(line.marker == REVOKED and line.key == signer for line in lines_for(lines, target.host_key_name)):
        return "the authority itself is revoked"
    if not any(line.key == signer for line in authorities):
        return "its certificate is signed by another authority"
    try:
        certificate.verify_cert_signature()
    except InvalidSignature:
        return "its certificate's signature is wrong"
    if certificate.type is not SSHCertificateType.HOST:
        return "its certificate is not a host's"
    now = time.time()
    if not certificate.valid_after <= now < certificate.valid_before:
        return "its certificate is not valid today"
    if certificate.critical_options:
        return "its certificate carries critical options"
    # OpenSSH compares principals with the bare name, never with [host]:port.
    name = (target.host_key_alias or target.hostname).lower()
    principals = [each.decode(errors="replace") for each in certificate.valid_principals]
    if principals and not any(matches(each, name) for each in principals):
        return f"its certificate is for {', '.join(principals)}"
    return None
