"""Whether a server serves the weights that were tested offline: only then are its figures held against the test's.

A path is a spelling: a link, `~` of our own server and a trailing slash are no difference; a hub's name is not beside
its snapshot's folder, as it tells no revision.
Contents decide where both sides told them (by samples of every tensor); of a server that was up, those that lie in the
folder it names now.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.compare.served import effective
from orchestrator.diagnosis.decision.axes import Signal
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.same_path import is_one_path
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from remote_payload.schema.folder import FolderFacts

WEIGHTS = Subject(check="K13", title="served weights")
FORETOLD = Subject(check="K12", title="served against predicted")
Answer = Literal["same", "other", "unknown"]
SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Model:
    """The drafter or the target: as tested, and as served."""

    what: Literal["drafter", "target"]
    answer: Answer
    tested: str
    served: str
    by: str
    """What told, in words."""
    evidence: tuple[Evidence, ...]
    held: str = "was tested"
    """What `tested` was: of a server that was up, where nothing was tested, what it was asked for."""


def models(known: Known) -> Iterator[Model]:
    """Both, where there is a test and a speculating server; first the drafter.

    Without a test the drafter that a server that was up was asked for; its target is looked at before it is asked.
    """
    if known.served is None:
        return
    result = known.served.result
    server = next((one for one in result.servers if one.side == "spec"), None)
    if server is None:
        return
    if known.offline is None:
        yield from _asked_for(result.asked_draft, result.named_draft, effective(server, "speculative_draft_model_path"))
        return
    tested = known.offline.measured.result
    attached = server.attached
    yield _model(
        "drafter",
        (tested.checkpoint.draft, effective(server, "speculative_draft_model_path")),
        (tested.draft, result.named_draft if attached else result.draft),
        attached=attached,
    )
    yield _model(
        "target",
        (tested.checkpoint.target, effective(server, "model_path")),
        (tested.target, result.named_target if attached else result.target),
        attached=attached,
    )


def captured_model(known: Known) -> Model | None:
    """The drafter of the server that returned its states; None = it does not tell, or nothing is held against it."""
    fed, test = known.fed, known.offline
    if fed is None or fed.draft is None:
        return None
    folder = FolderFacts(path=fed.draft, weights_sha256=fed.draft_weights, tensors_sha256=fed.draft_tensors)
    if test is None:
        return next(_asked_for(fed.asked_draft, folder, fed.draft), None)
    tested = test.measured.result
    return _model("drafter", (tested.checkpoint.draft, fed.draft), (tested.draft, folder), attached=False)


def _asked_for(asked: FolderFacts | None, named: FolderFacts | None, told: object) -> Iterator[Model]:
    """The drafter that a server that was up was asked for, beside the one that it names; none: nobody asked."""
    if asked is not None:
        yield _model("drafter", (asked.path, told), (asked, named), attached=True, held="was asked for")


def _model(
    what: Literal["drafter", "target"],
    paths: tuple[object, object],
    folders: tuple[FolderFacts | None, FolderFacts | None],
    *,
    attached: bool,
    held: str = "was tested",
) -> Model:
    """Tested first, in both; a server that we started and that tells no path serves what it was asked for."""
    tested, served = ("not told" if path is None else str(path) for path in paths)
    digests, by = _digests(folders)
    if None not in digests:
        answer: Answer = "same" if digests[0] == digests[1] else "other"
    elif None in paths:
        answer, by = ("unknown" if attached else "same"), "one of the two is not told"
    else:
        answer = "same" if is_one_path(tested, served, attached=attached) else "unknown"
        by = "by the paths alone: whether both hold the same weights is not known"
    lines = [Evidence(name=f"{what} that {held}", value=tested), Evidence(name=f"{what} as served", value=served)]
    for name, digest in zip((held.removeprefix("was "), "served"), digests, strict=True):
        if digest is not None:
            lines.append(Evidence(name=f"its weights as {name}, sha256 of samples", value=digest[:SHOWN]))
    return Model(what=what, answer=answer, tested=tested, served=served, by=by, evidence=tuple(lines), held=held)


def _digests(folders: tuple[FolderFacts | None, FolderFacts | None]) -> tuple[tuple[str | None, str | None], str]:
    """Of both folders' tensors where both tell them, else of the files that hold them; and what was looked at."""
    tensors, files = (
        tuple(None if folder is None else getattr(folder, name) for folder in folders)
        for name in ("tensors_sha256", "weights_sha256")
    )
    if None in tensors or (None not in files and files[0] == files[1]):
        return (files[0], files[1]), "by the weights that lie in both folders"
    return (tensors[0], tensors[1]), "by the tensors that lie in both folders, name by name"


def other_words(known: Known) -> str | None:
    """Why no walk of the test foretells what was served; None = as far as is known, the weights are those tested."""
    other = next((model for model in models(known) if model.answer == "other"), None)
    return None if other is None else f"the server serves another {other.what} than the one that {other.held}"


def weights_results(known: Known, signals: Sequence[Signal]) -> tuple[CheckResult, ...]:
    """A finding for each that is another; `signals`: what was served request by request as foretold proves the same."""
    answers = {item.answer for item in signals}
    as_foretold = "as_predicted" in answers
    found = []
    for model in models(known):
        if model.answer == "other" and "as_tested" in answers:
            found.append(
                WEIGHTS.cannot_tell(
                    f"whether the server serves the {model.what} that {model.held} is contradicted: {model.by} it does "
                    "not, and yet its answers are, request by request, those of that one",
                    needs="test and benchmark once more, one after the other",
                    evidence=model.evidence,
                )
            )
        elif model.answer == "other":
            found.append(_other(model))
        elif model.answer == "unknown" and not as_foretold:
            found.append(
                WEIGHTS.cannot_tell(
                    f"whether the server serves the {model.what} that {model.held} is not known: {model.served} is "
                    f"served, {model.tested} {model.held} ({model.by})",
                    needs=f"`run standalone` and `run bench` on one folder of the {model.what}, on the server's host",
                    evidence=model.evidence,
                )
            )
    return tuple(found)


def _other(model: Model) -> CheckResult:
    return WEIGHTS.finding(
        f"the server serves another {model.what} than the one that {model.held}: {model.served}, not {model.tested} "
        f"({model.by})",
        severity="fatal",
        cause="parameters",
        evidence=model.evidence,
        remedy=(
            f"test {model.served} once more: its weights are others since it was tested"
            if model.tested == model.served
            else f"serve {model.tested}, or test {model.served}: neither figure speaks of the other's weights",
        ),
        refuted_by="the same bytes in both folders as the server sees them (in a container a path may be another one), "
        "a folder that was written anew after the server's start, or, where files were compared, the same tensors in "
        "other files (shards, a copy)",
    )


def doubted(known: Known, signal: Signal) -> Signal:
    """What was served, as `other_weights` where those that were tested are others, as `untold` where they may be.

    What came request by request as foretold needs no path to show that the weights are the same.
    """
    answers = {model.answer: model for model in models(known)}
    other, unknown = answers.get("other"), answers.get("unknown")
    if signal.answer == "as_tested" or (other is None and (unknown is None or signal.answer not in _TELLING)):
        return signal
    model = other or unknown
    if model is None or not signal.results:
        return signal
    reason = "it is another" if other is not None else "whether it is the same is not known"
    result = FORETOLD.cannot_tell(
        f"{signal.results[0].summary}; no fault of the engine is concluded from it: {model.served} is served, "
        f"{model.tested} {model.held} as the {model.what}, and {reason}",
        needs=f"the {model.what} that is served, tested",
        evidence=(*model.evidence, *signal.results[0].evidence),
    )
    return Signal(axis=signal.axis, answer="untold" if other is None else "other_weights", results=(result,))


_TELLING = ("below", "little_below", "above", "differs", "dead")
"""Answers from which something would be concluded of an engine that serves the tested weights."""


def doubted_states(known: Known, signal: Signal) -> Signal:
    """What a server feeds another drafter, or one that may be another, is no word on the one that was tested."""
    model = captured_model(known) if signal.axis == "fed" else None
    if model is None or model.answer == "same" or (model.answer == "unknown" and signal.answer == "as_trained"):
        return signal
    is_other = model.answer == "other"
    reason = "serves another drafter than the one" if is_other else "may serve another drafter than the one"
    result = WEIGHTS.cannot_tell(
        f"the server that returned its states {reason} that {model.held}: {model.served}, not {model.tested} "
        f"({model.by})",
        needs=f"`run capture` on {model.tested}, or `run standalone` on {model.served}",
        evidence=model.evidence,
    )
    return Signal(axis="fed", answer="open", results=(result,))


def captured_results(known: Known) -> tuple[CheckResult, ...]:
    """A finding where the server that returned its states surely serves another drafter."""
    model = captured_model(known)
    return (_other(model),) if model is not None and model.answer == "other" else ()


def doubts(signals: Sequence[Signal]) -> Iterator[str]:
    """In words, what is not known of the weights that were served."""
    for item in (one for signal in signals for one in signal.results):
        if item.title == WEIGHTS.title and item.outcome == "cannot_tell":
            yield item.summary
