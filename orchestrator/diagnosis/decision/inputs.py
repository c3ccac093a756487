"""What a decision may rest on; every part may be missing, and what is missing is said, never guessed."""

import functools
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.compare.served import ServedFigures
from orchestrator.compare.served_acceptance import Acceptance
from orchestrator.compare.step_cost import StepCost
from orchestrator.diagnosis.changed_states import Changed
from orchestrator.diagnosis.contest import Contest, contest, surely_best
from orchestrator.diagnosis.decision.planned import EarlierCost, Planned
from orchestrator.diagnosis.diagnose import DOUBTED_BY, Diagnosis, diagnose
from orchestrator.diagnosis.installed_ids import Source
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.mis_wired import names_best
from orchestrator.diagnosis.served import ServedDiagnosis
from orchestrator.diagnosis.verdict import WiringVerdict
from orchestrator.diagnosis.wiring import judge
from remote_payload.schema.bench import BenchResult, RequestSample
from remote_payload.schema.folder import FolderFacts

SplitName = Literal["train", "held-out"]
SPLITS: tuple[SplitName, ...] = ("train", "held-out")


@dataclass(frozen=True, kw_only=True)
class Offline:
    """A standalone test, judged."""

    run_id: str
    measured: Measured
    wiring: WiringVerdict
    diagnosis: Diagnosis

    @functools.cached_property
    def contest(self) -> Contest | None:
        """How the sets of states stand to each other; None = nothing reads well, or what was read is in doubt."""
        if any(item.cause == "data" and item.check in DOUBTED_BY for item in self.diagnosis.findings):
            return None
        return contest(self.measured)

    @property
    def read(self) -> tuple[int, ...] | None:
        """States that it reads well, and surely best; None = none are, or what was read is in doubt."""
        return None if self.contest is None else surely_best(self.contest, self.wiring)

    def by(self, source: Source) -> "Offline":
        """The same, its ids spelled for the SGLang that is installed."""
        measured = replace(self.measured, source=source)
        wiring = judge(measured)
        return replace(self, measured=measured, wiring=wiring, diagnosis=diagnose(measured, wiring))


@dataclass(frozen=True, kw_only=True)
class ServedSplit:
    """The speculating side's answers to one split's prompts, at the lowest load that was run."""

    split: SplitName
    run_id: str
    requests: tuple[RequestSample, ...]
    acceptance: Acceptance | None
    """None = no answer tells of verify steps."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A served benchmark, judged; `splits` may come from other runs of the same server arguments."""

    run_id: str
    result: BenchResult
    figures: ServedFigures
    diagnosis: ServedDiagnosis
    splits: tuple[ServedSplit, ...] = ()

    def split(self, name: SplitName) -> ServedSplit | None:
        """That split's answers; None = its prompts were not asked."""
        return next((item for item in self.splits if item.split == name), None)


@dataclass(frozen=True, kw_only=True)
class PredictedRequest:
    """What the serving walk foretells of one request."""

    prompt: int
    """Index of the prompt in the workload, as `RequestSample.prompt`."""
    histogram: tuple[int, ...]
    """Verify steps by accepted drafts, 0 .. steps."""
    tokens: int
    """Tokens out, the prefill's included."""
    greedy: bool
    """Whether the row's tokens are the target's own greedy choice wherever the walk went."""
    output_ids: tuple[int, ...] | None = None
    """The row's response; may be longer than what was served. None = unknown: the prompt alone matches."""

    @property
    def verifies(self) -> int:
        """Verify steps."""
        return sum(self.histogram)

    @property
    def accepted(self) -> int:
        """Draft tokens accepted."""
        return sum(index * count for index, count in enumerate(self.histogram))


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """One reading walked over prompts and served outputs of one split, with the served number of steps."""

    split: SplitName
    run_id: str
    part: Literal["as served", "best"]
    """Whether the reading is what the server is said to feed and compute, or the one that reads best."""
    reading: str
    states: tuple[int, ...] | None
    """HF `hidden_states` indices that it is fed; None = unlabelled."""
    dtype: str
    """Of the offline arithmetic, e.g. `float32`."""
    requests: tuple[PredictedRequest, ...]
    computed: tuple[int, ...] = ()
    """Of `states`, what its rows do not hold: the embedding output (0), computed from the target's own table."""

    @property
    def how(self) -> str:
        """What belongs to the definition of its figures; empty where the rows hold all that was fed."""
        is_made = bool({*self.computed} & {*(self.states or ())})
        return ", with the embedding output computed from the target's own table" if is_made else ""


@dataclass(frozen=True, kw_only=True)
class Fed:
    """Which of the target's states the running server feeds its drafter, as it returned them (K12)."""

    run_id: str
    sglang_version: str | None
    states: tuple[int | None, ...]
    """HF `hidden_states` index of each fed state, in order; None = like none of the captured ones."""
    trained: tuple[int, ...] | None
    """Those the drafter was trained on; None = nobody said, and then the best reading stands for them."""
    tokens: int
    """Tokens over which they were compared."""
    exact: bool
    """Whether every identified state is equal number by number, or to rounding of the coarser format."""
    target_class: str | None = None
    """`architectures` of the target's config.json."""
    target_layers: int | None = None
    token_offset: int = 0
    """Tokens by which all served states lie beside those of the rows; 0 = side by side, or not told."""
    worst_error: float | None = None
    """Largest |served - known| / |known| of the identified ones, each the median over tokens."""
    draft: str | None = None
    """The drafter's folder as that server tells it; None = it does not, or an older record."""
    draft_weights: str | None = None
    """sha256 of samples of the weights in it."""
    draft_tensors: str | None = None
    """The same of its tensors by name, whatever files they lie in."""
    asked_draft: FolderFacts | None = None
    """The drafter that it was asked about, where it was up already."""
    changed: tuple[Changed | None, ...] = ()
    """What is made of each state's numbers; None = nothing. Empty as a whole where that holds of all."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """Which states the installed SGLang's source says it will feed (K6)."""

    states: tuple[int, ...] | None
    """None = the source does not tell."""
    sglang_version: str | None
    reasoning: tuple[str, ...] = ()
    problem: str | None = None
    """Why they are not known, or what goes wrong with them."""
    fails: bool = False
    """Whether the server ends at its start or its warm-up, by the source."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Everything there is."""

    offline: Offline | None = None
    served: Served | None = None
    predicted: tuple[Predicted, ...] = ()
    fed: Fed | None = None
    resolved: Resolved | None = None
    cost: StepCost | None = None
    """What a speculative step costs by its number of drafts, where somebody knows it for this target and device."""
    planned: Planned | None = None
    earlier: EarlierCost | None = None
    source: Source | None = None
    unforetold: str | None = None
    """Why nothing is foretold of the states that it was trained on, although the served text was replayed."""
    said: tuple[int, ...] | None = None
    """States that the drafter was trained on, by its trainer's word; a capture that was told it holds it too."""

    def foretold(self, split: SplitName, part: Literal["as served", "best"]) -> Predicted | None:
        """One split's prediction of one reading."""
        return next((item for item in self.predicted if item.split == split and item.part == part), None)

    @property
    def target(self) -> tuple[str | None, int | None]:
        """The target's class and its number of layers, as the standalone test or a capture read them."""
        if self.offline is not None:
            declared = self.offline.measured.result.declared
            return declared.target_class, declared.target_layers
        return (None, None) if self.fed is None else (self.fed.target_class, self.fed.target_layers)

    @property
    def sglang_version(self) -> str | None:
        """Of the server: where it was asked what it feeds, else where it was measured, else what is installed."""
        if self.fed is not None and self.fed.sglang_version is not None:
            return self.fed.sglang_version
        if self.served is not None and self.served.result.sglang.version is not None:
            return self.served.result.sglang.version
        return None if self.planned is None else self.planned.sglang_version

    @property
    def word(self) -> tuple[int, ...] | None:
        """States that the drafter was trained on, by its trainer; None = nobody said."""
        return self.said if self.said is not None or self.fed is None else self.fed.trained

    @property
    def trained(self) -> tuple[int, ...] | None:
        """The same by its trainer's word, else as it surely reads best."""
        if self.word is not None:
            return self.word
        return None if self.offline is None else self.offline.read

    @property
    def disputed(self) -> tuple[int, ...] | None:
        """The states that it reads well, and best, where its trainer names others; None = no such contradiction.

        A word for others than config.json's that read as well contradicts nothing, nor does one for the same in layer
        order, which may stand for the set.
        """
        found = None if self.offline is None else self.offline.contest
        if self.offline is None or self.word is None or found is None:
            return None
        if self.word == found.best or self.word == tuple(sorted(found.best)):
            return None
        named = names_best(self.offline.measured, self.offline.wiring.best)
        sound = named or self.offline.wiring.verdict in ("sound", "mis_read")
        return None if self.word in found.alike and not sound else found.best
