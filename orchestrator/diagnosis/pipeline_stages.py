"""Over how many pipeline stages a server spreads its layers: more than one, and what is captured may not be told."""

from collections.abc import Sequence

from orchestrator.compare.served import effective_int
from remote_payload.schema.bench import ServerFacts

OPTIONS = ("--pp-size", "--pp", "--pipeline-parallel-size")


def stages_asked(words: Sequence[str]) -> int:
    """By the words that a server is to be started with; 1 where they do not say, or say no number."""
    found = 1
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in OPTIONS:
            told = value if equals else next(iter(words[place + 1 :]), "")
            found = int(told) if told.isdecimal() else found
    return found


def stages_of(server: ServerFacts | None) -> int:
    """As a server tells it; 1 where it does not."""
    return (None if server is None else effective_int(server, "pp_size")) or 1
