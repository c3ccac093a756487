"""known_hosts read line by line, compared with ssh-keygen and attacked with arbitrary text."""

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.remote.known_hosts import (
    Changed,
    HostKeyLine,
    Known,
    Revoked,
    Unknown,
    blob_type,
    fingerprint,
    judge,
    known_types,
    lines_for,
    matches,
    new_line,
    parse,
)
from tests.support.sshd import make_key

FILE = Path("known_hosts")


def blob(seed: int, kind: str = "ssh-ed25519") -> bytes:
    body = bytes([seed]) * 32
    return len(kind).to_bytes(4, "big") + kind.encode() + len(body).to_bytes(4, "big") + body


def line(hosts: str, key: bytes, marker: str = "") -> str:
    text = f"{hosts} {blob_type(key)} {base64.b64encode(key).decode()} comment of mine\n"
    return f"{marker} {text}" if marker else text


def read(*lines: str) -> tuple[HostKeyLine, ...]:
    good, bad = parse("".join(lines), FILE)
    assert bad == ()
    return good


def test_a_plain_line_makes_its_key_known_and_another_key_changed() -> None:
    lines = read("# a comment\n", "\n", line("gpu1,10.0.0.1", blob(1)))
    assert isinstance(judge(lines, "gpu1", blob(1)), Known)
    assert isinstance(judge(lines, "10.0.0.1", blob(1)), Known)
    assert judge(lines, "gpu1", blob(2)) == Changed(lines=lines)
    assert judge(lines, "gpu2", blob(1)) == Unknown()
    assert lines[0].place == "known_hosts:3"


def test_a_known_key_of_another_type_counts_as_changed() -> None:
    lines = read(line("gpu1", blob(1, "ssh-rsa")))
    assert judge(lines, "gpu1", blob(1)) == Changed(lines=lines)
    assert known_types(lines, "gpu1") == ("ssh-rsa",)


def test_several_keys_of_one_host_are_all_known() -> None:
    lines = read(line("gpu1", blob(1)), line("gpu1", blob(2)))
    assert isinstance(judge(lines, "gpu1", blob(2)), Known)


def test_revoked_wins_over_known_wherever_it_stands() -> None:
    for order in (("", "@revoked"), ("@revoked", "")):
        lines = read(*(line("gpu1", blob(1), marker) for marker in order))
        assert isinstance(judge(lines, "gpu1", blob(1)), Revoked)
    elsewhere = read(line("*", blob(1), "@revoked"), line("[gpu1]:2222", blob(1)))
    assert isinstance(judge(elsewhere, "[gpu1]:2222", blob(1)), Revoked)


def test_an_authority_never_counts_as_a_plain_key() -> None:
    lines = read(line("*.example.org", blob(1), "@cert-authority"))
    assert judge(lines, "gpu1.example.org", blob(1)) == Unknown(authorities=lines)
    assert known_types(lines, "gpu1.example.org") == ()


def test_a_bare_host_line_vouches_for_a_port_but_never_makes_it_changed() -> None:
    lines = read(line("gpu1", blob(1)))
    assert isinstance(judge(lines, "[gpu1]:2222", blob(1)), Known)
    assert judge(lines, "[gpu1]:2222", blob(2)) == Unknown()


@pytest.mark.parametrize(
    ("hosts", "name", "expected"),
    [
        ("*.example.org", "gpu1.example.org", True),
        ("*.example.org", "example.org", False),
        ("gpu?", "gpu1", True),
        ("gpu?", "gpu12", False),
        ("*,!gpu1", "gpu1", False),
        ("*,!gpu1", "gpu2", True),
        ("!gpu1", "gpu2", False),
        ("[127.0.0.*]:2222", "[127.0.0.1]:2222", True),
        ("[127.0.0.*]:2222", "127.0.0.1", False),
        ("GPU1", "gpu1", True),
        ("gpu[12]", "gpu1", False),
        ("gpu.", "gpu1", False),
        ("", "gpu1", False),
        ("|1|", "gpu1", False),
        ("|1|AAAA|!!!", "gpu1", False),
        ("|2|AAAA|AAAA", "gpu1", False),
    ],
)
def test_patterns(hosts: str, name: str, expected: bool) -> None:
    assert matches(hosts, name) is expected


def test_bad_lines_are_skipped_named_and_hide_nothing() -> None:
    text = (
        "gpu1\n"
        + "gpu1 ssh-ed25519 not*base64\n"
        + f"gpu1 ssh-rsa {base64.b64encode(blob(1)).decode()}\n"
        + "@nonsense gpu1 ssh-ed25519 AAAA\n"
        + "gpu1 1024 65537 1234567890\n"
        + "@revoked\n"
        + line("gpu1", blob(7))
    )
    good, bad = parse(text, FILE)
    assert [each.number for each in bad] == [1, 2, 3, 4, 5, 6]
    assert isinstance(judge(good, "gpu1", blob(7)), Known)


@given(st.text())
def test_no_text_breaks_the_parser_or_adds_trust(noise: str) -> None:
    good, _ = parse(noise + "\n" + line("gpu1", blob(1)), FILE)
    assert isinstance(judge(good, "gpu1", blob(1)), Known | Revoked)
    assert not isinstance(judge(good, "gpu1", blob(2)), Known)


@given(st.lists(st.sampled_from(["gpu1", "*", "!gpu1", "gpu?", "!*", "a*", "[gpu1]:22", ""]), max_size=5))
def test_a_matching_negation_always_vetoes(patterns: list[str]) -> None:
    vetoed = any(pattern in ("!gpu1", "!*") for pattern in patterns)
    assert not (vetoed and matches(",".join(patterns), "gpu1"))


@given(st.binary(max_size=40))
def test_blob_type_takes_any_bytes(key: bytes) -> None:
    assert isinstance(blob_type(key), str)


def test_fingerprints_and_hashed_lines_agree_with_ssh_keygen(tmp_path: Path) -> None:
    keys = [make_key(tmp_path / kind, kind) for kind in ("ed25519", "ecdsa", "rsa")]
    names = ["gpu1", "[gpu1]:2222", "10.0.0.7", "größe.example"]
    file = tmp_path / "known_hosts"
    blobs = [base64.b64decode(key.with_suffix(".pub").read_text().split()[1]) for key in keys]
    file.write_text("".join(new_line(name, key) for name in names for key in blobs))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "gpu1" not in file.read_text()
    lines, bad = parse(file.read_text(), file)
    assert bad == ()
    for name in names:
        shown = subprocess.run(
            ["ssh-keygen", "-F", name, "-f", str(file)], check=True, capture_output=True, text=True
        ).stdout
        theirs = {int(row.split()[-1]) for row in shown.splitlines() if row.startswith("#")}
        ours = {each.number for each in lines if matches(each.hosts, name)}
        # -F prints one heading a line it found, as `# Host NAME found: line N`
        assert ours == theirs
        assert all(isinstance(judge(lines, name, key), Known) for key in blobs)
    assert lines_for(lines, "gpu2") == ()
    for key, its_blob in zip(keys, blobs, strict=True):
        listed = subprocess.run(["ssh-keygen", "-lf", str(key)], check=True, capture_output=True, text=True).stdout
        assert fingerprint(its_blob) in listed
