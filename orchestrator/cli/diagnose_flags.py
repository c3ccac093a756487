"""What the flags of `diagnose` must be: looked at before a host is asked, so that hours of stages end with a report."""

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.cli.saved import require_place
from orchestrator.errors import UsageError
from orchestrator.jobfile import parse_states
from orchestrator.split_files import one_file
from remote_payload.schema.job import MAX_STEPS

REPORTS = ("markdown", "html")
TEXTS = ("model", "draft", "rows", "merged", "states", "trained", "heldout", "heldout_merged", "heldout_prompts",
         "prompts", "server_python", "attach_url", "apply_into")  # fmt: skip
"""Flags that are no flag at all when they are empty, as an unset variable of a shell makes them."""

FOLDERS = ("model", "draft", "rows", "merged", "heldout", "heldout_merged", "heldout_prompts", "prompts", "apply_into")
"""Those that are folders and files of the host."""


def require_usable(flags: Mapping[str, Any]) -> None:
    """Raise UsageError for what no stage could use, JobFileError for states that are none, OutputError."""
    require_named({name: flags[name] for name in TEXTS})
    require_rooted({name: flags[name] for name in FOLDERS})
    _require_apart(flags)
    for name in REPORTS:
        if flags[name] is not None:
            require_place(flags[name], f"--{name}")
    if flags["apply_into"] is not None and not flags["applies"]:
        raise UsageError("--apply-into says where --apply writes: give both")
    if flags["applies"] and flags["attach_url"] is not None:
        raise UsageError("--apply serves the corrected drafter, and a server that is up already keeps its own")
    if flags["trained"] is not None:
        _require_states(flags["trained"])
    steps = flags["num_steps"]
    if steps is not None and steps > MAX_STEPS:
        raise UsageError(
            f"--num-steps: what a server accepts is foretold for at most {MAX_STEPS} steps, found: {steps}",
            hint="`run bench --num-steps` serves and measures more of them",
        )


def _require_apart(flags: Mapping[str, Any]) -> None:
    """Raise JobFileError where one file is to be asked as training prompts and as held-out ones."""
    train = next((name for name in ("prompts", "merged") if flags[name]), None)
    heldout = next((name for name in ("heldout_prompts", "heldout_merged") if flags[name]), None)
    if train is None or heldout is None:
        return
    if posixpath.normpath(flags[train]) == posixpath.normpath(flags[heldout]):
        raise one_file(f"--{heldout.replace('_', '-')} and --{train}", flags[train])


def require_rooted(paths: Mapping[str, str | None]) -> None:
    """Raise UsageError for the first of these options that is a path from a folder which nobody knows."""
    for name, path in paths.items():
        if path is not None and re.match(r"\.{1,2}(/|$)", path):
            raise UsageError(
                f"--{name.replace('_', '-')}: expected a path on the host from `/` or `~` on, found: {path}",
                hint="each run has a folder of its own there: a relative path would mean another place in each",
            )


def require_named(texts: Mapping[str, str | None]) -> None:
    """Raise UsageError for the first of these options (by parameter name) that was given, but empty."""
    for name, text in texts.items():
        if text is not None and not text.strip():
            raise UsageError(
                f"--{name.replace('_', '-')} is empty: expected a value, found: {text!r}",
                hint="is a variable of your shell not set?",
            )


def _require_states(text: str) -> None:
    states = parse_states(text, "--trained")
    twice = sorted({state for state in states if states.count(state) > 1})
    if twice:
        named = ", ".join("embed" if state == 0 else str(state) for state in twice)
        raise UsageError(f"--trained: each state stands once, found twice: {named} (in {text})")
