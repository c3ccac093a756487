"""The same known_hosts, the same server: we let in exactly where OpenSSH does."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostKeyError
from orchestrator.remote.link import Link
from orchestrator.remote.ssh_config import resolve
from tests.support.sshd import ServerOptions, SshClientFiles, SshServer, make_key, running_sshd


@pytest.fixture(scope="module")
def two_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with running_sshd(
        tmp_path_factory.mktemp("sshd") / "two", ServerOptions(host_keys=("ed25519", "ecdsa"))
    ) as running:
        yield running


# Lines with {name} = [127.0.0.1]:PORT, {port}, {ed} and {ec} = the server's keys, {no} = a key it does not have.
CASES = {
    "empty": "",
    "ed25519": "{name} {ed}",
    "ecdsa only": "{name} {ec}",
    "wrong": "{name} {no}",
    "wrong and right": "{name} {no}\n{name} {ed}",
    "wrong ed25519, right ecdsa": "{name} {no}\n{name} {ec}",
    "bare host": "127.0.0.1 {ed}",
    "wrong bare host, right port": "127.0.0.1 {no}\n{name} {ed}",
    "list": "gpu9,{name},10.0.0.1 {ed}",
    "star": "* {ed}",
    "host pattern": "[127.0.0.*]:{port} {ed}",
    "question mark": "[127.0.0.?]:{port} {ed}",
    "negated": "[127.0.0.*]:{port},!{name} {ed}",
    "negated first": "!{name},[127.0.0.*]:{port} {ed}",
    "brackets are literal": "[127.0.0.[1]]:{port} {ed}",
    "revoked": "@revoked {name} {ed}\n{name} {ed}",
    "revoked for all": "{name} {ed}\n@revoked * {ed}",
    "another revoked": "@revoked * {no}\n{name} {ed}",
    "authority with the host's key": "@cert-authority {name} {ed}",
    "authority beside": "@cert-authority * {no}\n{name} {ed}",
    "unknown marker": "@nonsense {name} {ed}",
    "rubbish around": "\n# comment\nxx\n  {name} {ed} me@here\nzz zz zz\n",
    "truncated key": "{name} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI",
    "key of another type": "{name} ssh-rsa {ed_key}",
    "tabs": "{name}\t{ed_tab}",
    "windows line end": "{name} {ed}\r",
}


@pytest.mark.parametrize("case", CASES)
def test_same_answer(case: str, client: SshClientFiles, two_keys: SshServer, tmp_path: Path) -> None:
    ed, ec = two_keys.public_key(0), two_keys.public_key(1)
    no = " ".join(make_key(tmp_path / "no", "ed25519").with_suffix(".pub").read_text().split()[:2])
    text = CASES[case].format(
        name=f"[127.0.0.1]:{two_keys.port}",
        port=two_keys.port,
        ed=ed,
        ec=ec,
        no=no,
        ed_key=ed.split()[1],
        ed_tab=ed.replace(" ", "\t"),
    )
    client.add_host("gpu1", two_keys, trust=False)
    client.known_hosts.write_text(text + "\n")
    theirs = subprocess.run(
        ["ssh", "-F", client.ssh_config, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "gpu1", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        with Link.open(resolve("gpu1")) as link:
            ours = link.exec(["true"], deadline_s=60).exit_code == 0
    except HostKeyError:
        ours = False
    assert ours == (theirs.returncode == 0), theirs.stderr
