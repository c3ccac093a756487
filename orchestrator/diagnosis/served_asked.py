"""What a server was asked for and what it tells, argument by argument, and how a difference is put."""

from collections.abc import Sequence

from orchestrator.compare.served import decoded
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from remote_payload.schema.bench import ArgumentFact, ServerFacts

ARGUMENTS = Subject(check="K13", title="effective arguments")


def by_full_name(facts: Sequence[ArgumentFact]) -> dict[str, ArgumentFact]:
    """The facts by name; what was asked for by an unambiguous beginning, as argparse takes it, under the full name."""
    found = {fact.name: fact for fact in facts}
    told = [fact.name for fact in facts if fact.effective is not None]
    for fact in facts:
        if fact.requested is None or fact.effective is not None:
            continue
        full = [name for name in told if name.startswith(fact.name)]
        if len(full) == 1 and found[full[0]].requested is None:
            del found[fact.name]
            values = {**vars(found[full[0]]), "requested": fact.requested}
            found[full[0]] = ArgumentFact(**values)
    return found


def requested(asked: dict[str, ArgumentFact], name: str) -> object:
    """What was asked for; None = nothing."""
    return decoded(asked[name].requested) if name in asked else None


def is_unknown_launch(server: ServerFacts) -> bool:
    """Whether a server that we did not start does not tell how it was started."""
    return server.attached and not server.argv


def where_to(server: ServerFacts) -> str:
    """What a remedy must add where the server is not ours to start."""
    return " (where that server is started: nothing is started here)" if server.attached else ""


def changed(fact: ArgumentFact, word: str) -> CheckResult:
    """An argument that the server runs otherwise."""
    wanted, value = decoded(fact.requested), decoded(fact.effective)
    return ARGUMENTS.finding(
        f"asked for {word} {wanted}, the server runs with {value}",
        severity="serious" if fact.name.startswith("speculative_") else "minor",
        cause="engine",
        evidence=(seen(f"{word} asked for", wanted), seen(f"{word} in effect", value)),
        remedy=(f"ask for what it can do, or look in its log for why it changed {word}",),
        refuted_by="/server_info with what was asked for",
    )


def has_line(server: ServerFacts, *rules: str) -> str | None:
    """The first of the log's lines that matched one of these rules."""
    return next((line.line for line in server.lines if line.rule in rules), None)


def seen(name: str, value: object) -> Evidence:
    """A plain word or number as evidence."""
    shown = value if isinstance(value, int | float | str) and not isinstance(value, bool) else str(value)
    return Evidence(name=name, value=shown)


def log_evidence(line: str | None) -> tuple[Evidence, ...]:
    """The log's own words, where there are any."""
    return () if line is None else (Evidence(name="the log says", value=line),)
