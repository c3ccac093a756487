"""What a user's word for a run or a baseline means, and what to offer where it means nothing."""

from collections.abc import Sequence

from orchestrator.errors import NotFoundError


def one_run(reference: str, run_ids: Sequence[str]) -> str:
    """The run whose id begins with `reference`. Raises NotFoundError where none or several do."""
    begun = [run_id for run_id in run_ids if run_id.startswith(reference)]
    if len(begun) > 1:
        raise NotFoundError(f"more than one run begins with `{reference}`: {', '.join(begun[:6])}")
    if not begun:
        raise no_run(reference, run_ids)
    return begun[0]


def no_run(reference: str, run_ids: Sequence[str]) -> NotFoundError:
    """No such run; the closest ids as a hint."""
    return NotFoundError(f"no such run on this laptop: {reference}", hint=_closest(reference, run_ids, "runs"))


def no_baseline(name: str, names: Sequence[str]) -> NotFoundError:
    """No such baseline; the closest names as a hint."""
    return NotFoundError(f"no baseline of that name: {name}", hint=_closest(name, names, "baseline"))


def _closest(name: str, known: Sequence[str], command: str) -> str:
    import difflib  # noqa: PLC0415 - a listing starts without it

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean: {', '.join(close)}" if close else f"`eagle3-remote {command} list` shows what there is"
