"""What to run next, with the host, folders and files that this diagnosis was asked about in place of capitals.

And with all that was said to reach its server: the next one is to be the same. Secrets are none of it: a job refuses
them, and an API key goes by the name of its variable.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.config import Config
from orchestrator.diagnosing.asked import OF_SERVER, Asked
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.decision.next_runs import NextRun
from orchestrator.errors import JobFileError
from orchestrator.flags import WITHOUT, flag_of
from remote_payload.schema import BenchJob

OWN_SERVER = ("attach_url", "api_key_env")
"""Settings of a server that is up, which a benchmark of one of our own leaves out."""
OF_WORK = ("max_prompts", "max_new_tokens", "repeats")
"""What was asked of the server, and by how much."""


def addressed(decision: Decision, asked: Asked, config: Config, host: str) -> Decision:
    """The same; what nobody said stays in capitals."""
    serving, samples = asked.serving, asked.samples
    has_both = serving.get("heldout_prompts") is not None
    known = {
        "HOST": host,
        "TARGET": asked.model,
        "DRAFT": asked.draft,
        "TRAIN_ROWS": samples.get("rows"),
        "HELDOUT_ROWS": samples.get("heldout"),
        "TRAIN_PROMPTS.jsonl": serving.get("prompts") if has_both or asked.only_training else None,
        "HELDOUT_PROMPTS.jsonl": serving.get("heldout_prompts" if has_both else "prompts"),
    }
    if decision.place["heldout"] == "unfit":  # those that were given tell nothing: others are asked for
        known["HELDOUT_ROWS"] = None
    if asked.only_training:
        known["HELDOUT_PROMPTS.jsonl"] = None
    runs = []
    for run in decision.next_runs:
        command = tuple(str(known.get(word) or word) for word in run.command)
        named = dataclasses.replace(run, command=command)
        said = {"offline": _of_rows, "capture": _of_capture, "serve": _of_bench}[run.cost](named, asked, config)
        more = {key: value for key, value in said.items() if flag_of(key) not in command}
        runs.append(dataclasses.replace(run, command=(*command, *flag_words(more))))
    return dataclasses.replace(decision, next_runs=tuple(runs))


def _of_rows(run: NextRun, asked: Asked, _config: Config) -> dict[str, Any]:
    """How its rows are read, where these are the rows."""
    samples, words = asked.samples, set(run.command)
    said = {}
    if samples.get("rows") in words:
        said = {key: samples.get(key) for key in ("states", "merged")}
    if samples.get("heldout") in words:
        said["heldout_merged"] = samples.get("heldout_merged")
    return said


def _of_capture(run: NextRun, asked: Asked, config: Config) -> dict[str, Any]:
    """The very server that is measured, whoever said so: `run capture` reads neither its job file nor its table."""
    settings = [key for key in OF_SERVER if key not in WITHOUT]
    try:
        served, base = asked.serve(config).job, BenchJob(model="target")
        said = {key: getattr(served, key) for key in settings if getattr(served, key) != getattr(base, key)}
    except JobFileError:  # its job file is gone since: what was typed is known all the same
        said = {key: asked.serving.get(key) for key in settings}
    return {**_of_rows(run, asked, config), "trained": asked.trained, **said}


def _of_bench(run: NextRun, asked: Asked, _config: Config) -> dict[str, Any]:
    """What was typed; its table of eagle3.toml is read by itself."""
    said = {key: asked.serving.get(key) for key in (*OF_SERVER, *OF_WORK)}
    if "--prompts" not in run.command:
        said |= {key: asked.serving.get(key) for key in ("prompts", "heldout_prompts")}
    if run.step == "bench" or "--with-baseline" in run.command:
        said = {key: value for key, value in said.items() if key not in OWN_SERVER}
    if run.step == "more_prompts":
        del said["max_prompts"]
    return {**said, "job": None if asked.job_file is None else str(asked.job_file)}


def flag_words(settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as a command line has them; None = not given. A word that looks like a flag stands behind its `=`."""
    for key, value in settings.items():
        flag = flag_of(key)
        if value is True:
            yield flag
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from (f"{flag}={word}" for word in value)
        elif value is not None and value is not False:
            word = str(value)
            yield from (f"{flag}={word}",) if word.startswith("-") else (flag, word)
