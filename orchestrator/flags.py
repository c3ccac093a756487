"""Settings by the names of their flags: what a person at the command line calls them."""

import re
from collections.abc import Callable, Collection
from dataclasses import fields

from remote_payload.schema import JOB_KINDS

FLAGS = {
    "max_memory_bytes": "--max-memory",
    "server_args": "--server-arg",
    "server_environment": "--server-env",
}
"""Flags that are not called as the setting is."""
WITHOUT = ("kind", "exec_prefix", "keep_outputs", "wanted", "or_anew")
"""Settings that no flag sets."""
_QUOTED = re.compile(r"`(?P<names>[a-z_]+(?:, [a-z_]+)*)(?: = (?P<value>[^`]+))?`")


def flag_of(setting: str) -> str:
    """e.g. `num_steps` -> `--num-steps`."""
    return FLAGS.get(setting, f"--{setting.replace('_', '-')}")


def is_flag(source: str) -> bool:
    """Whether a setting's last word came from the command line."""
    return source.rpartition(", then ")[2].startswith("--")


def with_flags(text: str, settings: Collection[str], wanted: Callable[[str], bool] = lambda _: True) -> str:
    """The text with the settings quoted in it (`num_steps`, `eagle_topk = 1`) as flags, those that are `wanted`."""

    def flagged(found: "re.Match[str]") -> str:
        names = found["names"].split(", ")
        if not all(name in settings and name not in WITHOUT and wanted(name) for name in names):
            return found[0]
        value = "" if found["value"] is None else f" {found['value']}"
        return f"`{', '.join(map(flag_of, names))}{value}`"

    return _QUOTED.sub(flagged, text)


def settings_in(text: str, settings: Collection[str]) -> tuple[str, ...]:
    """The settings that are quoted in the text, in their order."""
    named = [name for found in _QUOTED.finditer(text) for name in found["names"].split(", ")]
    return tuple(name for name in dict.fromkeys(named) if name in settings)


def told_in_flags(job_kind: str, text: str) -> str:
    """What a served benchmark's host says of its settings, in flags; the words of other kinds of jobs as they are."""
    if job_kind not in ("bench", "capture"):
        return text
    return with_flags(text, [field.name for field in fields(JOB_KINDS[job_kind])])
