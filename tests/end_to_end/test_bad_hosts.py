"""Hosts that cannot be trusted, reached or used: each its own clear error and exit code, nothing half-written."""

import os
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.fault_proxy import FaultProxy
from tests.support.laptop import Done, Laptop
from tests.support.sshd import ServerOptions, SshServer, closed_port, make_key, running_sshd

SELFTEST = ("run", "selftest", "--host")


def refused(done: Done, code: int, *words: str) -> None:
    """The command ended with this code and an error that holds these words."""
    assert done.code == code, done.err
    assert done.out == ""
    assert "error: " in done.err
    for word in words:
        assert word in done.err, done.err


def test_unknown_key_direct(laptop: Laptop, server: SshServer) -> None:
    laptop.add_host("stranger", server, trust=False)
    laptop.ssh.known_hosts.write_text("")
    done = laptop.run(*SELFTEST, "stranger")
    refused(done, 11, "ssh-keyscan", str(server.port), "SHA256:")
    assert laptop.ssh.known_hosts.read_text() == ""
    assert not (server.home / ".eagle3-remote").exists()
    accepted = laptop.run(*SELFTEST, "stranger", "--accept-new")
    assert accepted.code == 0, accepted.err
    assert laptop.run(*SELFTEST, "stranger").code == 0


def test_changed_key_direct_even_with_accept_new(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other_host_key", "ed25519").with_suffix(".pub").read_text().split()
    laptop.ssh.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other[0]} {other[1]}\n")
    for extra in ((), ("--accept-new",)):
        refused(laptop.run(*SELFTEST, "gpu1", *extra), 11, "ssh-keygen -R", str(server.port))
    assert not (server.home / ".eagle3-remote").exists()


@pytest.mark.parametrize("wrong", ["hop", "target"])
@pytest.mark.parametrize("how", ["unknown", "changed"])
def test_keys_behind_a_jump(laptop: Laptop, server: SshServer, tmp_path: Path, wrong: str, how: str) -> None:
    with running_sshd(tmp_path / "hop") as hop:
        laptop.ssh.known_hosts.write_text("")
        laptop.ssh.add_host("hop", hop, trust=False)
        laptop.add_host("inner", server, trust=False, ProxyJump="hop")
        for name, one in (("hop", hop), ("target", server)):
            if name != wrong:
                laptop.ssh.know(one.known_hosts_line())
            elif how == "changed":
                key = make_key(tmp_path / "other_host_key", "ed25519").with_suffix(".pub").read_text().split()
                laptop.ssh.know(f"[127.0.0.1]:{one.port} {key[0]} {key[1]}\n")
        bad = hop if wrong == "hop" else server
        refused(laptop.run(*SELFTEST, "inner"), 11, str(bad.port))
        assert not (server.home / ".eagle3-remote").exists()


def test_behind_a_sound_jump(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "hop") as hop:
        laptop.ssh.add_host("hop", hop)
        laptop.add_host("inner", server, ProxyJump="hop")
        done = laptop.run(*SELFTEST, "inner")
        assert done.code == 0, done.err


def test_refused_auth(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger", "ed25519")
    laptop.ssh.ssh_config.write_text(laptop.ssh.ssh_config.read_text().replace(str(server.user_key), str(stranger)))
    refused(laptop.run(*SELFTEST, "gpu1"), 12, "hint: ")


def test_dead_address_and_closed_port_and_unknown_name(laptop: Laptop) -> None:
    with closed_port() as port:
        refused(laptop.run(*SELFTEST, f"127.0.0.1:{port}"), 10, "127.0.0.1")
    refused(laptop.run(*SELFTEST, "no-such-host.invalid"), 10, "no-such-host.invalid", "configured in")


def test_a_listener_that_never_speaks(laptop: Laptop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, laptop.toml.open("a") as file:
        port = silent.getsockname()[1]
        file.write(f'[hosts.mute]\nssh = "127.0.0.1:{port}"\nconnect_timeout_s = 1.0\n')
        file.flush()
        refused(laptop.run(*SELFTEST, "mute"), 10, str(port))


@pytest.mark.parametrize(
    "name", ["a b", "a;id", "a'b", 'a"b', "a\nb", "-oProxyCommand=id", "$(id)", "`id`", "", "x" * 300 + ":0", "ä b"]
)
def test_host_names_that_cannot_be_meant(laptop: Laptop, name: str) -> None:
    refused(laptop.run(*SELFTEST, name), 2)


@pytest.mark.parametrize("run_id", ["a b", "a;id", "../up", "a'b", "a\nb", "-x", "Ü", "", "x" * 101, "a/b", "$(id)"])
def test_run_ids_that_cannot_be_meant(laptop: Laptop, server: SshServer, run_id: str) -> None:
    refused(laptop.run(*SELFTEST, "gpu1", f"--run-id={run_id}"), 2)
    for command in ("attach", "status", "logs", "cancel"):
        refused(laptop.run(command, "--host", "gpu1", "--", run_id), 2)
    assert not (server.home / ".eagle3-remote").exists()


def test_a_run_nobody_knows(laptop: Laptop) -> None:
    for command in ("attach", "status", "logs", "cancel"):
        refused(laptop.run(command, "no-such-run", "--host", "gpu1"), 6, "no-such-run")
        refused(laptop.run(command, "no-such-run"), 6, "no-such-run")


@pytest.mark.parametrize("after", [600, 2_000, 3_500, 5_000, 8_000, 20_000, 60_000, 95_000, 100_000, 104_000, 108_000])
def test_a_link_cut_in_any_phase(laptop: Laptop, server: SshServer, after: int) -> None:
    """Cut after so many bytes: key exchange, login, look, ship, launch, follow. A try later everything is whole."""
    with FaultProxy(server.port) as proxy:
        laptop.add_host("shaky", server, port=proxy.port, settings="reconnect_s = 20.0")
        proxy.cut_after(after)
        first = laptop.run(*SELFTEST, "shaky", "--run-id", "r", "--duration-s", "0.5")
        assert first.code in {0, 10, 13}, first.err
        payloads = server.home / ".eagle3-remote" / "payloads"
        again = laptop.run(*SELFTEST, "shaky", "--run-id", "r2")
        assert again.code == 0, again.err
        assert [path.name for path in payloads.iterdir() if "arrived" in path.name] == []
        assert len(list(payloads.glob("*.pyz"))) == 1


@pytest.mark.slow
def test_a_half_open_link_while_following(laptop: Laptop, server: SshServer) -> None:
    with FaultProxy(server.port) as proxy:
        laptop.add_host("shaky", server, port=proxy.port)
        process = laptop.start(*SELFTEST, "shaky", "--run-id", "r", "--duration-s", "16", "--json")
        assert process.stdout is not None
        for line in process.stdout:
            if '"running"' in line:
                break
        proxy.swallow()
        for line in process.stdout:
            if '"reconnecting"' in line:
                break
        proxy.heal()
        rest, err = process.communicate(timeout=60)
        assert process.returncode == 0, rest + err


def test_no_python_and_no_torch(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    laptop.add_host("none", server, settings='python = "/nonexistent/python"')
    refused(laptop.run(*SELFTEST, "none"), 14, "/nonexistent/python", "hint: ")
    laptop.add_host("bare", server, settings=f'python = "{bare}"')
    done = laptop.run("run", "standalone", "--host", "bare", "--draft", "/d", "--rows", "/r")
    refused(done, 14, "torch and safetensors", str(bare), "hint: ")
    assert laptop.run("runs", "list", "--json").out.strip() == '{"runs": []}'


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small tmpfs; needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting a tmpfs needs root")


@needs_root
def test_full_disk(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=64k") as small:
        laptop.add_host("full", server, settings=f'root = "{small}/e3"')
        refused(laptop.run(*SELFTEST, "full"), 14, "No space left", "hint: ")
        assert [path for path in small.rglob("*") if path.is_file()] == []


@needs_root
def test_a_disk_that_fills_while_the_job_writes(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=1m") as small:
        laptop.add_host("full", server, settings=f'root = "{small}/e3"')
        done = laptop.run(*SELFTEST, "full", "--result-bytes", "4000000")
        refused(done, 14, "disk")


@needs_root
def test_noexec_is_no_obstacle(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    with mounted(tmp_path / "noexec", "size=16m,noexec") as folder:
        laptop.add_host("noexec", server, settings=f'root = "{folder}/e3"')
        done = laptop.run(*SELFTEST, "noexec")
        assert done.code == 0, done.err
        assert "noexec" in laptop.run("hosts", "check", "noexec").out


def test_a_root_that_cannot_be_written(laptop: Laptop, server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    laptop.add_host("blocked", server, settings=f'root = "{tmp_path}/file/e3"')
    refused(laptop.run(*SELFTEST, "blocked"), 14, str(tmp_path / "file"), "hint: ")


NASTY = 'it\'s; rm -rf $HOME `id` "q" ü\n\\x'


def test_paths_with_everything_in_them(laptop: Laptop, server: SshServer) -> None:
    root = server.home / NASTY / "e3"
    laptop.add_host("nasty", server, settings=f"root = {toml_string(str(root))}")
    done = laptop.run(*SELFTEST, "nasty", "--result-bytes", "2000000")
    assert done.code == 0, done.err
    assert len(list((root / "runs").iterdir())) == 1
    again = laptop.run(*SELFTEST, "nasty")
    assert again.code == 0, again.err
    assert "nothing shipped" in again.err


def toml_string(text: str) -> str:
    """Text as a TOML basic string."""
    return '"' + "".join(f"\\u{ord(char):04x}" if not char.isalnum() else char for char in text) + '"'


@pytest.mark.parametrize("shell", ["/usr/bin/fish", "/usr/bin/tcsh", "/bin/bash"])
def test_login_shells(laptop: Laptop, tmp_path: Path, shell: str) -> None:
    assert Path(shell).exists(), f"these tests need {shell}: apt-get install fish tcsh"
    with running_sshd(tmp_path / "other", ServerOptions(login_shell=shell)) as other:
        laptop.add_host("other", other)
        for _ in range(2):
            done = laptop.run(*SELFTEST, "other")
            assert done.code == 0, done.err
        assert laptop.run("hosts", "check", "other").code == 0


def test_a_start_up_file_that_prints(laptop: Laptop, tmp_path: Path) -> None:
    noise = 'echo "Welcome!"; echo "{\\"kind\\":\\"end\\"}"; printf "no newline at the end"; echo error >&2\n'
    with running_sshd(tmp_path / "noisy", ServerOptions(bashrc=noise)) as noisy:
        laptop.add_host("noisy", noisy)
        for _ in range(2):
            done = laptop.run(*SELFTEST, "noisy", "--result-bytes", "1500000")
            assert done.code == 0, done.err
        assert laptop.run("hosts", "check", "noisy", "--json").code == 0


def test_hosts_check_says_what_there_is(laptop: Laptop) -> None:
    text = laptop.run("hosts", "check", "gpu1")
    assert text.code == 0, text.err
    assert f"{sys.executable}: Python 3." in text.out
    assert "torch 2" in text.out
    (facts,) = laptop.run("hosts", "check", "gpu1", "--json").objects
    assert facts["facts"]["pythons"][0]["path"] == sys.executable
    assert abs(facts["clock_skew_s"]) <= facts["clock_skew_error_s"] + 0.1


def test_hosts_check_looks_around_where_the_configuration_is_wrong(
    laptop: Laptop, server: SshServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    wrong = f'python = "/no/such/python"\nroot = "{tmp_path}/file/e3"'
    laptop.add_host("wrong", server, settings=wrong)
    text = laptop.run("hosts", "check", "wrong")
    assert text.code == 14
    assert "! config  the configured interpreter `/no/such/python` does not run" in text.out
    assert f"{tmp_path}/file" in text.out
    assert "Python interpreters, in the order they are tried:" in text.out
    assert ": Python 3." in text.out
    assert text.out.rstrip().endswith("! marks what is wrong, or what a job cannot use")
    listed = laptop.run("hosts", "check", "wrong", "--json")
    assert listed.code == 14
    (value,) = listed.objects
    assert len(value["problems"]) == 2
    assert len(value["facts"]["pythons"]) > 0


def test_hosts_list(laptop: Laptop, new_laptop: Callable[[str], Laptop]) -> None:
    assert "gpu1" in laptop.run("hosts", "list").out
    assert "no [hosts.*] configured" in new_laptop("empty").run("hosts", "list").out
