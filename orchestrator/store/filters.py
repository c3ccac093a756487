"""Which runs a listing shows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.errors import UsageError
from orchestrator.store.summary import RunSummary

_SPAN = re.compile(r"([0-9]{1,6})(m|h|d|w)")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """All that is asked for must hold; None or empty = not asked for."""

    host: str | None = None
    job: str | None = None
    tags: tuple[str, ...] = ()
    """All of them."""
    model: str | None = None
    """Stands in the target's or the drafter's name, in capitals or not."""
    verdict: str | None = None
    since_unix_s: float | None = None
    limit: int | None = None


def spelt(verdict: str) -> str:
    """A verdict as it is shown, however somebody wrote it: `Mis_wired` is `mis-wired`."""
    return re.sub("[ _]", "-", verdict).lower()


def require_word(option: str, word: str | None, known: Iterable[str]) -> None:
    """Raise UsageError where a word of a closed vocabulary is none of it, with the words that there are."""
    words = sorted(set(known))
    if word is not None and word not in words:
        raise UsageError(f"{option}: expected one of {', '.join(words)}, found: {word!r}")


def chosen(runs: Sequence[RunSummary], wanted: RunFilter) -> tuple[RunSummary, ...]:
    """The runs that fit, in their order; a run that does not tell what is asked for does not fit."""
    found = [run for run in runs if _fits(run, wanted)]
    return tuple(found[: wanted.limit])


def since(text: str, now_unix_s: float) -> float:
    """When `7d`, `12h`, `30m`, `2w` ago was, or a day or time in UTC (`2026-11-01`). Raises UsageError."""
    span = _SPAN.fullmatch(text)
    if span:
        return now_unix_s - int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"expected 30m, 12h, 7d, 2w, or a day like 2026-11-01, found: {text!r}") from None


def _fits(run: RunSummary, wanted: RunFilter) -> bool:
    names = f"{run.model or ''} {run.draft or ''}".lower()
    return (
        wanted.host in (None, run.host)
        and wanted.job in (None, run.job_kind)
        and set(wanted.tags) <= set(run.tags)
        and (wanted.model is None or wanted.model.lower() in names)
        and (wanted.verdict is None or spelt(wanted.verdict) == run.verdict_word)
        and (wanted.since_unix_s is None or (run.created_unix_s or 0.0) >= wanted.since_unix_s)
    )
