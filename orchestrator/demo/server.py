"""An SSH server on loopback, for the demonstration: real protocol, real commands, no root, no sshd.

Run as `python -m orchestrator.demo.server FOLDER`: makes throw-away keys in FOLDER, listens on a free port of
127.0.0.1, writes `ssh_config` and `known_hosts` for a client there, prints `ready PORT` and serves until its standard
input closes. Commands run as the user who started it, with FOLDER/home as their home.

Not covered: ptys, signals sent by the client, SFTP; the tool needs none of them.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import asyncssh

ALIAS = "demo"


async def _run(process: "asyncssh.SSHServerProcess[bytes]", home: Path) -> None:
    """Run one command as sshd would: by the shell, in the home folder, in a session of its own."""
    environment = {**os.environ, "HOME": str(home)}
    environment.pop("PYTHONPATH", None)  # the server's Python must not see the client's checkout
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command or "exit 0",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=home,
        env=environment,
        start_new_session=True,
    )
    await process.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
    code = await child.wait()
    await process.stdout.drain()
    if code < 0:
        process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
    else:
        process.exit(code)


async def serve(folder: Path) -> None:
    """Serve until standard input closes; see the module's docstring."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    user_key = asyncssh.generate_private_key("ssh-ed25519")
    user_key.write_private_key(folder / "user_key")
    (folder / "user_key").chmod(0o600)
    server = await asyncssh.create_server(
        asyncssh.SSHServer,
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(user_key.export_public_key().decode()),
        process_factory=lambda process: _run(process, home),
        encoding=None,
    )
    port = server.get_port()
    public = host_key.export_public_key().decode().split()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n", encoding="utf-8")
    (folder / "ssh_config").write_text(_client_config(folder, port), encoding="utf-8")
    print(f"ready {port}", flush=True)  # noqa: T201 - the handshake with the process that started this one
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    server.close()


def _client_config(folder: Path, port: int) -> str:
    def quoted(name: str) -> str:
        return '"' + str(folder / name).replace("%", "%%") + '"'

    return (
        f"Host {ALIAS}\n  HostName 127.0.0.1\n  Port {port}\n  User demo\n  IdentitiesOnly yes\n"
        f"  IdentityFile {quoted('user_key')}\n  UserKnownHostsFile {quoted('known_hosts')}\n"
        "  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
    )


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
