"""`explain-wiring` as text: the answer first, then the chain of reasoning. Pure."""

from orchestrator.diagnosis.effective_capture import Effective, names
from orchestrator.diagnosis.fc_width import FcWidth
from orchestrator.report.findings_text import wrapped


def chain_text(found: Effective, fc: FcWidth, width: int) -> str:
    """The states on top, or that they are not known, and whether the drafter takes so many; every step below."""
    if found.states is None:
        top = "The server would not start." if found.fails else "Unknown."
        head = [f"{top} {_sentence(found.problem)}"]
    else:
        verb = "captures" if found.fails else "feeds the drafter"
        head = [f"SGLang {verb} {names(found.states)}."]
        head += [f"But {found.problem}."] if found.problem else []
    head += [f"{'But' if fc.fits is False else 'And'} {fc.summary}."] if found.states is not None else []
    head += [_sentence(fc.summary)] if found.states is None and fc.takes is not None else []
    lines = [line for text in head for line in wrapped(text, width, first="", then="  ")]
    steps = [line for step in found.reasoning for line in wrapped(step, width)]
    return "\n".join([*lines, "", "By the source:", *steps] if steps else lines)


def _sentence(text: str | None) -> str:
    text = text or "nothing tells"
    return f"{text[:1].upper()}{text[1:]}."
