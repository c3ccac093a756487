"""The questions that a decision hangs on, and the answers each may have: the coordinates of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.finding import CheckResult, Evidence

Axis = Literal[
    "files",
    "rows",
    "feeding",
    "computing",
    "heldout",
    "served_train",
    "served_heldout",
    "fed",
    "rule",
    "labels",
    "trainer",
    "arguments",
    "pays",
]
"""The first four are the standalone test on training rows."""
Answer = str

_SERVED: Mapping[Answer, str] = {
    "as_predicted": "on these prompts the server accepts what the walk foretells, within its margin",
    "below": "surely less than foretold",
    "little_below": "in float32, where nothing should differ, surely less than foretold, by no more than the margin",
    "above": "surely more than foretold",
    "as_other": "the server accepts, request by request, what was foretold of other states than it is said to feed",
    "differs": "in float32, where nothing should differ, requests do, by as much up as down or by an interval that "
    "decides nothing",
    "as_tested": "request by request what was foretold of the tested weights, though other ones are said to be served",
    "other_weights": "served with other weights than those that were tested, so held against nothing",
    "dead": "nothing it drafts is accepted, and nothing was foretold",
    "open": "served and foretold, and the interval of the difference decides nothing",
    "untold": "served, and nothing was foretold of this text and these states, or no walk follows it",
    "unknown": "these prompts were not served",
}
AXES: Mapping[Axis, Mapping[Answer, str]] = {
    "files": {
        "whole": "the drafter's files give what was trained",
        "broken": "they cannot: tensors, head, vocabulary or config, or the server loaded something else",
        "unknown": "nobody looked",
    },
    "rows": {
        "sound": "nothing speaks against the training rows",
        "flawed": "they have faults, but what was read on them stands",
        "bad": "they are not what they claim to be, so no reading can be judged on them",
        "unknown": "no rows were read",
    },
    "feeding": {
        "as_trained": "by SGLang's rule it is fed the states that it reads best",
        "mis_fed": "it surely reads other states, or another token, better than those that it would be fed",
        "suspected": "it surely reads other states better, but none well",
        "poor": "no reading predicts much",
        "open": "the readings' intervals overlap, or the rows are not to be trusted",
        "uncompared": "the rows lack a state that it would be fed, or their labels, or SGLang's rule, are not known",
        "unknown": "no standalone test",
    },
    "computing": {
        "as_trained": "no other computation reads better than the one that is served",
        "mis_read": "it surely reads better computed otherwise than serving computes it",
        "open": "cannot be told while the feeding cannot",
        "unknown": "no standalone test",
    },
    "heldout": {
        "level": "held-out text is read as well as training text, but for an honest gap",
        "small_gap": "training text is surely read better, by little more than an honest gap: worth knowing, no fault",
        "gap": "training text is surely read better, by far more than an honest gap",
        "open": "both were read, and the interval of the difference decides nothing",
        "unfit": "the held-out rows are not what they claim to be: they tell nothing",
        "untold": "no held-out text was read; as served it accepts less, and the engine may be why",
        "unknown": "no held-out text was read",
    },
    "served_train": _SERVED,
    "served_heldout": _SERVED,
    "fed": {
        "as_trained": "the running server returned the very states that it was trained on",
        "other": "the running server returned other states: surely read worse, or denied by word and readings",
        "said": "the running server returned other states than its trainer names, and no reading bears the word out",
        "alike": "the running server returned states that are read as well as any, as far as the rows tell",
        "changed": "the running server returned the states that it was trained on in other numbers: scaled or normed",
        "unlike": "it returned states that are like none of the captured ones",
        "partly": "some are those that it was trained on, and some are like none of the captured ones",
        "shifted": "each returned state is that of another token of the rows: either they or the server are off",
        "open": "it returned states, and what the drafter was trained on is not known",
        "source_right": "the installed source captures the states it was trained on; the running server was not asked",
        "source_wrong": "the installed source captures other states; the running server was not asked",
        "unknown": "the running server was not asked, or cannot return them",
    },
    "rule": {
        "agrees": "the running server returned what SGLang's rule names",
        "stale": "the running server returned what the installed source names; the table is another version's",
        "contradicts": "the running server returned, by the labels of the rows, other states than any rule names",
        "split": "the installed source names other states than the table, and the running server was not asked",
        "unknown": "the rule, or what the server feeds, is not known",
    },
    "labels": {
        "checked": "a fresh forward of the target, or the running server's states, bear out the labels of the rows",
        "unchecked": "nothing but its label says which state a row holds",
        "doubtful": "the same, and labels a layer off would make what serving feeds those states that it reads best",
        "unknown": "no labelled rows were read",
    },
    "trainer": {
        "agrees": "nothing that was read speaks against its trainer's word for the states it was trained on",
        "contradicts": "it reads other states well, and best, than its trainer says",
        "unknown": "nobody said",
    },
    "arguments": {
        "as_asked": "the server runs with what it was asked for",
        "changed": "it runs with something else that matters",
        "foreseen": "by SGLang's rule it will run with something else that matters; no server was asked",
        "unknown": "it does not tell, or none was started",
    },
    "pays": {
        "pays": "speculation is surely faster than plain decoding",
        "mendable": "surely slower, but surely faster with the accept length that the best reading has",
        "mend_open": "surely slower; whether a mended one is above the step cost r is not known, or not sure",
        "until_mended": "surely slower, beside a fault with which no mended length can be measured",
        "loses": "surely slower: the accept length is below the step cost r, and no mended one would be above it",
        "cannot": "no accept length that this draft can have is above the step cost r",
        "foreseen_loses": "not measured; by a known step cost no accept length that it has, or can have, is above r",
        "foreseen_pays": "not measured; by a known step cost the accept length that the best reading has is above r",
        "open": "measured on both sides, and the interval holds 1, or something speaks against the figures",
        "unknown": "not measured on both sides",
    },
}


@dataclass(frozen=True, kw_only=True)
class Signal:
    """One axis answered, with what says so."""

    axis: Axis
    answer: Answer
    results: tuple[CheckResult, ...] = ()
    """What was looked at; of a fault the findings, the one that weighs most first."""

    def __post_init__(self) -> None:
        if self.answer not in AXES[self.axis]:
            raise ValueError(f"expected one of {', '.join(AXES[self.axis])} on {self.axis}, found: {self.answer}")

    @property
    def findings(self) -> tuple[CheckResult, ...]:
        """The faults among its results."""
        return tuple(item for item in self.results if item.outcome == "finding")

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The first result's numbers."""
        return self.results[0].evidence if self.results else ()


def place_of(signals: Sequence[Signal]) -> dict[Axis, Answer]:
    """The cell of the table; axes that nobody answered are unknown."""
    return {**dict.fromkeys(AXES, "unknown"), **{signal.axis: signal.answer for signal in signals}}
