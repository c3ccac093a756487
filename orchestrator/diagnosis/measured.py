"""Everything a check may look at: the result as it came, and the figures made of its hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.chains import Chains, chains_of
from orchestrator.compare.figures import ReadingFigures, reading_figures
from orchestrator.diagnosis.installed_ids import Source, spelling_for
from orchestrator.diagnosis.sglang_ids import Spelling
from remote_payload.schema import ReadingFacts, ReadingHits, RowFacts, StandaloneResult


@dataclass(frozen=True, kw_only=True)
class Split:
    """One set of rows, train or held-out, with the figures of every reading measured on all of it."""

    rows: Sequence[RowFacts]
    figures: Mapping[str, ReadingFigures]
    """By reading name; `full` readings alone."""
    hits: Sequence[ReadingHits] = ()
    """What the figures were made of; empty where only they are known."""

    def chains(self, reading: str) -> tuple[Chains, ...]:
        """A reading's hits unpacked, a row each; empty where they are not at hand. Raises InvalidRunError."""
        known = any(item.reading == reading for item in self.hits)
        return chains_of(reading, self.rows, self.hits) if known else ()


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A standalone test, ready to be checked."""

    result: StandaloneResult
    train: Split
    heldout: Split | None = None
    readings: Mapping[str, ReadingFacts] = field(default_factory=dict)
    """Every reading of the result by name, whatever its stage."""
    source: Source | None = None
    """The SGLang that is installed, by which ids are spelled; None = it was not read, and the table stands for it."""

    def spelling(self, states: tuple[int, ...]) -> Spelling:
        """Ids that make SGLang feed these states of this target, in the order of the drafter's fc."""
        declared = self.result.declared
        return spelling_for(states, declared.target_class, declared.target_layers, self.source)


RowsAndHits = tuple[Sequence[RowFacts], Sequence[ReadingHits]]


def gather(
    result: StandaloneResult,
    train: RowsAndHits,
    heldout: RowsAndHits | None = None,
    *,
    max_new_tokens: int | None = None,
) -> Measured:
    """Make the figures of every reading that was measured on all rows; `max_new_tokens` as a server's, for the walk.

    Raises InvalidRunError where hits and rows do not fit each other, or a full reading's hits are missing.
    """
    return Measured(
        result=result,
        train=_split(train, result.readings, max_new_tokens),
        heldout=None if heldout is None else _split(heldout, result.heldout_readings, max_new_tokens),
        readings={facts.name: facts for facts in result.readings},
    )


def _split(split: RowsAndHits, readings: Sequence[ReadingFacts], max_new_tokens: int | None) -> Split:
    rows, hits = split
    names = [facts.name for facts in readings if facts.stage == "full"]
    figures = {name: reading_figures(name, rows, hits, max_new_tokens=max_new_tokens) for name in names}
    return Split(rows=rows, figures=figures, hits=hits)
