"""What a host claims and cannot be: each a ProtocolError that says which."""

import dataclasses

import pytest

from orchestrator.errors import ProtocolError
from orchestrator.remote.host_claims import require_manifest, require_state, require_status
from remote_payload.schema import Manifest, ManifestFile, RunSpec, RunState, StatusAnswer

STATE = RunState(run_id="r1", sequence=1, phase="running", started_unix_s=1.7e9)
SPEC = RunSpec(
    run_id="r1",
    job_kind="selftest",
    job_json="{}",
    python="python3",
    payload_sha256="0" * 64,
    environment={},
    launched_by="me@laptop",
    created_unix_s=1.7e9,
)


def manifest(*names: str, size_bytes: int = 1) -> Manifest:
    files = tuple(ManifestFile(name=name, size_bytes=size_bytes, sha256="0" * 64) for name in names)
    return Manifest(run_id="r1", files=files)


def answer(*pairs: tuple[RunState, RunSpec], unreadable: tuple[str, ...] = ()) -> StatusAnswer:
    return StatusAnswer(
        states=tuple(state for state, _ in pairs),
        specs=tuple(spec for _, spec in pairs),
        heartbeat_ages_s=(None,) * len(pairs),
        unreadable=unreadable,
    )


def test_a_sound_manifest_passes() -> None:
    sound = manifest("result.json", "hits/a.jsonl.gz", "hits/b.jsonl.gz", "ünïcode.txt", "x" * 200)
    assert require_manifest(sound, "r1") is sound


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a\0b",), "control characters"),
        (("a\x1b[31mb",), "control characters"),
        (("..\\..\\evil",), "backslashes"),
        (("x" * 300,), "too long"),
        (("ü" * 101,), "too long"),
        (("/".join("x" * 100 for _ in range(11)),), "too long"),
        (("a\ud800b",), "not text"),
        (("a", "a/b"), "folder of another file: 'a'"),
        (("a/b", "a/b/c/d"), "folder of another file: 'a/b'"),
        (("a", "a"), "twice"),
        (("manifest.json",), "the manifest itself"),
    ],
)
def test_names_that_no_folder_can_hold(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        require_manifest(manifest(*names), "r1")


@pytest.mark.parametrize("size_bytes", [-5, 10**400])
def test_sizes_that_no_file_has(size_bytes: int) -> None:
    with pytest.raises(ProtocolError, match="a size that no file has: 'a'"):
        require_manifest(manifest("a", size_bytes=size_bytes), "r1")


def test_a_manifest_of_another_run() -> None:
    with pytest.raises(ProtocolError, match=r"manifest of run `r2`, the host sent that of: r1"):
        require_manifest(manifest("a"), "r2")


@pytest.mark.parametrize("moment", [1e300, -1.0, 253402300800.0])
def test_moments_of_no_year(moment: float) -> None:
    with pytest.raises(ProtocolError, match="seconds since 1970"):
        require_state(dataclasses.replace(STATE, finished_unix_s=moment), "r1")
    with pytest.raises(ProtocolError, match="the spec of run `r1`"):
        require_status(answer((STATE, dataclasses.replace(SPEC, created_unix_s=moment))), None)


def test_a_status_answers_what_was_asked() -> None:
    other = (dataclasses.replace(STATE, run_id="r2"), dataclasses.replace(SPEC, run_id="r2"))
    both = answer((STATE, SPEC), other)
    assert require_status(both, None) is both
    assert require_status(answer((STATE, SPEC)), "r1").specs == (SPEC,)
    damaged = answer(unreadable=("r1: state.json is empty",))
    assert require_status(damaged, "r1") is damaged
    for wrong in (answer(), both, answer(other), answer((STATE, SPEC), (STATE, SPEC))):
        with pytest.raises(ProtocolError, match="alone"):
            require_status(wrong, "r1")
    with pytest.raises(ProtocolError, match="as many specs as states"):
        require_status(dataclasses.replace(both, specs=(SPEC,)), None)
    with pytest.raises(ProtocolError, match="expected the state of run `r1`, the host sent that of: r2"):
        require_status(answer((other[0], SPEC)), None)
