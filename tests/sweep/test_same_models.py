"""Hosts that have other models under one path are told apart, by file; what is unknown is never called alike."""

import pytest

from orchestrator.errors import UsageError
from orchestrator.sweep.same_models import alike, others, unknown
from orchestrator.sweep_groups.planning import require_same_models
from remote_payload.schema import PathIdentity
from remote_payload.schema.sweep import FileContent, PathContent


def drafter(weights: str | None, mtime: str = "x", **more: str) -> PathIdentity:
    """A folder, copied at some time."""
    if weights is None:
        return PathIdentity(path="~/drafter", digest=mtime)
    files = {"config.json": "c", "model.safetensors": weights, **more}
    told = tuple(FileContent(name=name.replace("_", "."), digest=digest) for name, digest in files.items())
    content = PathContent(digest=repr(sorted(files.items())), files=told)
    return PathIdentity(path="~/drafter", digest=mtime, content=content)


def test_a_copy_of_another_day_is_the_same() -> None:
    found = {"a": (drafter("v1", "monday"),), "b": (drafter("v1", "friday"),)}
    assert (others(found), unknown(found), alike(found)) == ((), (), (("a", "b"),))
    require_same_models(found, mix_models=False)


def test_other_weights_are_refused_by_host_and_file_unless_they_may_be_mixed() -> None:
    found = {"a": (drafter("v1"),), "b": (drafter("v1"),), "c": (drafter("v2", a_bin="1"),), "d": (drafter("v2"),)}
    assert others(found) == (
        "~/drafter on c is another than on a, by a.bin (on c alone), model.safetensors",
        "~/drafter on d is another than on a, by model.safetensors",
    )
    assert alike(found) == (("a", "b"), ("c",), ("d",))
    with pytest.raises(UsageError, match="on c is another than on a") as refused:
        require_same_models(found, mix_models=False)
    assert "--mix-models" in str(refused.value.hint)
    require_same_models(found, mix_models=True)


def test_many_files_are_counted_and_of_a_single_one_or_of_too_many_none_is_named() -> None:
    many = {"a": (drafter("v1"),), "b": (drafter("v2", **{f"m{at}_bin": "1" for at in range(4)}),)}
    assert others(many)[0].endswith("by m0.bin (on b alone), m1.bin (on b alone), m2.bin (on b alone) and 2 more")
    single = {
        name: (PathIdentity(path="p.jsonl", digest="x", content=PathContent(digest=name, files=files)),)
        for name, files in {"a": (FileContent(name="", digest="1"),), "b": (FileContent(name="", digest="2"),)}.items()
    }
    assert others(single) == ("p.jsonl on b is another than on a",)


def test_what_is_unknown_is_told_and_neither_refused_nor_called_the_same() -> None:
    found = {"a": (drafter("v1"),), "b": (drafter(None),)}
    assert others(found) == ()
    assert unknown(found) == (
        "nobody can tell whether ~/drafter is the same on these hosts: its content is unknown on b",
    )
    assert unknown({"b": (drafter(None),)}) == ()
    between = {"a": (drafter("v1"),), "b": (drafter(None),), "c": (drafter("v2"),)}
    assert alike(between) == (("a", "b"), ("c",))


def test_a_host_whose_own_model_was_replaced_on_the_way_stands_alone() -> None:
    found = {"a": (drafter("v1"), drafter("v2")), "b": (drafter("v1"),), "c": (drafter("v1"),)}
    assert others(found)[0] == "~/drafter on a is another than on a before, by model.safetensors"
    assert alike(found) == (("a",), ("b", "c"))
