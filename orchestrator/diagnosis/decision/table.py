"""THE table: which answers together mean what. Data; a cell of it is every row whose conditions hold there.

Several rows may hold at once, and then all are told. An axis that a row does not name may have any answer. No row of a
fault holds on an axis whose interval decides nothing: `open` and `unknown` only ever lead to what to run next.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.diagnosis.decision.axes import AXES, Answer, Axis
from orchestrator.diagnosis.finding import Cause

Kind = Literal["fault", "also", "ask", "healthy", "sound"]
"""`fault`: a cause is named; `also`: true beside it; `ask`: cannot be told yet; `healthy`: nothing is at fault;
`sound`: the same, but for the speed, which is not judged."""
Step = Literal["standalone", "sweep", "more_rows", "check_rows", "heldout", "more_heldout", "capture", "serve_train",
               "serve_heldout", "predict", "more_prompts", "bench", "baseline", "repeats", "again"]  # fmt: skip
"""What to run next, by name; see `next_runs`."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    kind: Kind
    when: str
    """`axis=answer|answer`, all of which must hold."""
    why: str
    """What the line says, and why that follows."""
    cause: Cause | None = None
    tells: tuple[Axis, ...] = ()
    """Whose results are told; the first leads. Of a fault as findings, else as what is true beside them."""
    asks: tuple[Step, ...] = ()
    doubts: bool = False
    """Whether what is named elsewhere may change once this is answered."""
    essential: bool = False
    """For `ask`: nothing can be called healthy before."""

    @functools.cached_property
    def conditions(self) -> Mapping[Axis, frozenset[Answer]]:
        """`when`, read. Raises ValueError where it names what there is not."""
        found: dict[Axis, frozenset[Answer]] = {}
        for part in self.when.split():
            name, _, words = part.partition("=")
            axis = next((known for known in AXES if known == name), None)
            answers = frozenset(words.split("|"))
            if axis is None or not answers <= set(AXES[axis]):
                raise ValueError(f"row {self.name}: no such condition: {part}")
            found[axis] = answers
        return found

    def holds(self, place: Mapping[Axis, Answer]) -> bool:
        """Whether this row speaks of that cell."""
        return all(place[axis] in answers for axis, answers in self.conditions.items())


TABLE: tuple[Row, ...] = (
    Row(name="broken files", kind="fault", cause="loading", tells=("files",), when="files=broken",
        why="what cannot be loaded as it was trained cannot be served as it was trained, whatever it is fed"),
    Row(name="bad rows", kind="fault", cause="data", tells=("rows",), asks=("check_rows",), doubts=True,
        when="rows=bad", why="every reading on such rows is in doubt: no config is changed on them"),
    Row(name="flawed rows", kind="fault", cause="data", tells=("rows",), when="rows=flawed",
        why="the training text itself has faults that a drafter learns"),
    Row(name="fed other states", kind="fault", cause="wiring", tells=("fed", "feeding"), when="fed=other",
        why="the running server itself says so, whatever the rule says"),
    Row(name="mis-fed by the rule", kind="fault", cause="wiring", tells=("feeding",),
        when="feeding=mis_fed fed=unknown|open|unlike|source_wrong",
        why="the served reading is surely worse than the best one, and SGLang's rule names the served one"),
    Row(name="mis-fed by the installed source", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("capture",), doubts=True, when="fed=source_wrong feeding=as_trained|poor|open|unknown",
        why="the source that is installed captures other states than it was trained on, whatever other versions do"),
    Row(name="rule against source", kind="ask", tells=("fed",), asks=("capture",), doubts=True, essential=True,
        when="feeding=mis_fed fed=source_right",
        why="the rule says mis-fed, the installed source says not: the running server decides it"),
    Row(name="rule against server", kind="ask", tells=("fed",), asks=("standalone",), doubts=True, essential=True,
        when="feeding=mis_fed fed=as_trained",
        why="the rule says mis-fed, the running server says not: the server is right, the rule is another version's"),
    Row(name="server against rule", kind="also", tells=("fed",), when="feeding=as_trained fed=other",
        why="the rule says well fed and the running server says not: the server is right"),
    Row(name="mis-read", kind="fault", cause="wiring", tells=("computing",), when="computing=mis_read",
        why="the computation that is served is surely worse than another, fed alike"),
    Row(name="poor on its own states", kind="fault", cause="data", tells=("feeding",),
        when="feeding=poor files=whole rows=sound|flawed fed=as_trained",
        why="the rows hold what the server feeds, the files are whole, and yet it does not predict its training rows"),
    Row(name="poor, and nobody asked the server", kind="ask", asks=("capture", "check_rows"), doubts=True,
        essential=True, when="feeding=poor files=whole rows=sound|flawed fed=unknown|open|source_right",
        why="wrong rows, a state that is not captured, and a weak drafter look alike until the server is asked"),
    Row(name="states like none", kind="fault", cause="engine", tells=("fed",), when="fed=unlike",
        why="a target that computes its states otherwise than the captured one: quantized, rotated, or another model"),
    Row(name="generalization gap", kind="fault", cause="generalization", tells=("heldout",), when="heldout=gap",
        why="both splits are read alike, so what differs is the text: the wiring is not the cause of this part"),
    Row(name="small gap", kind="also", tells=("heldout",), when="heldout=small_gap",
        why="a drafter that costs a little on new text, not one that fails there"),
    Row(name="below everywhere", kind="fault", cause="engine", tells=("served_train", "served_heldout"),
        when="served_train=below served_heldout=below fed=as_trained|other|unlike|source_right",
        why="the same text, states and weights give more offline: the engine loses it, on any text"),
    Row(name="below on training prompts", kind="fault", cause="engine", tells=("served_train",),
        when="served_train=below served_heldout=as_predicted|above|open|untold|unknown|dead "
             "fed=as_trained|other|unlike|source_right",
        why="the same text, states and weights give more offline"),
    Row(name="below on held-out prompts", kind="fault", cause="engine", tells=("served_heldout",),
        when="served_heldout=below served_train=as_predicted|above|open|untold|unknown|dead "
             "fed=as_trained|other|unlike|source_right",
        why="the same text, states and weights give more offline; on training prompts that is not so, or not known"),
    Row(name="below on training prompts, and nobody asked the server", kind="ask", tells=("served_train",),
        asks=("capture",), doubts=True, essential=True, when="served_train=below fed=unknown|open|source_wrong",
        why="either the engine loses it, or the server feeds other states than the prediction was made with"),
    Row(name="below on held-out prompts, and nobody asked the server", kind="ask", tells=("served_heldout",),
        asks=("capture",), doubts=True, essential=True, when="served_heldout=below fed=unknown|open|source_wrong",
        why="either the engine loses it, or the server feeds other states than the prediction was made with"),
    Row(name="dead in a sound place", kind="fault", cause="engine", tells=("served_train",),
        when="served_train=dead fed=as_trained files=whole feeding=as_trained computing=as_trained",
        why="fed and computed as trained, from whole files, and nothing is accepted"),
    Row(name="dead in a sound place (held-out)", kind="fault", cause="engine", tells=("served_heldout",),
        when="served_heldout=dead fed=as_trained files=whole feeding=as_trained computing=as_trained",
        why="the same on held-out prompts"),
    Row(name="dead, and nobody asked the server", kind="ask", asks=("capture",), doubts=True, essential=True,
        when="served_train=dead fed=unknown|open|source_right files=whole feeding=as_trained computing=as_trained",
        why="sound by the rule and dead when served: either the server feeds something else, or the engine loses it"),
    Row(name="dead, and nobody asked the server (held-out)", kind="ask", asks=("capture",), doubts=True,
        essential=True,
        when="served_heldout=dead fed=unknown|open|source_right files=whole feeding=as_trained computing=as_trained",
        why="the same on held-out prompts"),
    Row(name="dead, and no standalone test", kind="ask", asks=("standalone", "capture"), doubts=True, essential=True,
        when="served_train=dead feeding=unknown|open",
        why="accept length 1.00 has a dozen causes, and the standalone test tells most of them apart"),
    Row(name="dead, and no standalone test (held-out)", kind="ask", asks=("standalone", "capture"), doubts=True,
        essential=True, when="served_heldout=dead feeding=unknown|open", why="the same on held-out prompts"),
    Row(name="better than foretold", kind="ask", asks=("capture", "predict"), doubts=True, essential=True,
        when="served_train=above",
        why="no engine accepts more than the walk of what it really feeds: the prediction is of something else"),
    Row(name="better than foretold (held-out)", kind="ask", asks=("capture", "predict"), doubts=True, essential=True,
        when="served_heldout=above", why="the same on held-out prompts"),
    Row(name="arguments changed", kind="fault", cause="parameters", tells=("arguments",), when="arguments=changed",
        why="what was asked for was never measured"),
    Row(name="arguments that will be changed", kind="fault", cause="parameters", tells=("arguments",),
        when="arguments=foreseen", why="what is asked for will not be what is measured"),
    Row(name="loses", kind="fault", cause="economics", tells=("pays",), when="pays=loses",
        why="the accept length is surely below what a speculative step costs, and no mended one is surely above it"),
    Row(name="cannot pay", kind="fault", cause="economics", tells=("pays",), when="pays=cannot",
        why="even if every draft were accepted, a step would cost more than it yields"),
    Row(name="cannot pay by a known step cost", kind="fault", cause="economics", tells=("pays",),
        when="pays=foreseen_loses", why="what a step costs is known, and the drafter does not give as much"),
    Row(name="pays by a known step cost", kind="also", tells=("pays",), when="pays=foreseen_pays",
        why="foretold, not measured"),
    Row(name="pays once mended", kind="also", tells=("pays",), when="pays=mendable",
        why="slower is the consequence of the fault that is named, not a cause of its own"),
    Row(name="pays once mended, and nothing to mend", kind="ask", asks=("more_rows",), essential=True,
        when="pays=mendable feeding=as_trained computing=as_trained",
        why="a better reading was foretold than the one that is called right: on more rows one of them is"),
    Row(name="no standalone test", kind="ask", asks=("standalone",), essential=True, when="feeding=unknown",
        why="wiring, files and computation are told apart offline"),
    Row(name="files not looked at", kind="ask", asks=("standalone",), essential=True, when="files=unknown",
        why="tensors, head, vocabulary and config are read without the target"),
    Row(name="no rows", kind="ask", asks=("standalone",), essential=True, when="rows=unknown",
        why="a drafter is judged on text that it was trained on"),
    Row(name="computation not tried", kind="ask", asks=("sweep",), essential=True,
        when="computing=open|unknown feeding=as_trained",
        why="flags of the computation are told apart by trying the others"),
    Row(name="states served, not told apart", kind="ask", asks=("capture",), essential=True, when="fed=open",
        why="served states say something only beside those that it was trained on"),
    Row(name="feeding cannot be told", kind="ask", asks=("more_rows", "capture"), doubts=True, essential=True,
        when="feeding=open fed=unknown|open|source_right",
        why="more rows, labels, or the server's own states decide it"),
    Row(name="readings alike, though fed as trained", kind="ask", asks=("more_rows",), essential=True,
        when="feeding=open fed=as_trained",
        why="the states are right; whether they are computed right is not told yet"),
    Row(name="no held-out text", kind="ask", asks=("heldout",), essential=True, when="heldout=unknown",
        why="training rows alone cannot tell learning by heart"),
    Row(name="held-out text decides nothing", kind="ask", asks=("more_heldout",), essential=True, when="heldout=open",
        why="the interval of the gap holds an honest one and a large one"),
    Row(name="training prompts not served", kind="ask", asks=("serve_train",), when="served_train=unknown",
        why="what the engine loses is seen best on text that was read offline"),
    Row(name="training prompts served, nothing to hold it against", kind="ask", asks=("predict",),
        when="served_train=untold", why="the walk over prompt and served output tells what it should have been"),
    Row(name="training prompts served, too few to tell", kind="ask", asks=("more_prompts",), essential=True,
        when="served_train=open", why="the interval of served minus predicted holds both no loss and a large one"),
    Row(name="held-out prompts not served", kind="ask", asks=("serve_heldout",), essential=True,
        when="served_heldout=unknown", why="an engine may fail on other text alone: longer, or otherwise templated"),
    Row(name="held-out prompts served, nothing to hold it against", kind="ask", asks=("predict",), essential=True,
        when="served_heldout=untold", why="the walk over prompt and served output tells what it should have been"),
    Row(name="held-out prompts served, too few to tell", kind="ask", asks=("more_prompts",), essential=True,
        when="served_heldout=open", why="the interval of served minus predicted holds both no loss and a large one"),
    Row(name="arguments not told", kind="ask", asks=("bench",), essential=True, when="arguments=unknown|foreseen",
        why="flags that change silently are read off the running server"),
    Row(name="no plain baseline", kind="ask", asks=("baseline",), essential=True,
        when="pays=unknown|foreseen_pays", why="whether it pays is a ratio of two measurements"),
    Row(name="speed-up decides nothing", kind="ask", asks=("repeats",), essential=True, when="pays=open",
        why="the interval of the speed-up holds 1, or something speaks against the figures"),
    Row(name="healthy", kind="healthy", tells=("feeding", "served_train", "served_heldout", "heldout", "pays"),
        when="files=whole rows=sound feeding=as_trained computing=as_trained heldout=level|small_gap "
             "served_train=as_predicted|untold|unknown served_heldout=as_predicted "
             "fed=as_trained|unknown|source_right arguments=as_asked pays=pays",
        why="every question has an answer and none is a fault; on training prompts a prediction may be missing"),
    Row(name="sound, and its speed is not judged", kind="sound",
        tells=("feeding", "served_train", "served_heldout", "heldout"),
        when="files=whole rows=sound feeding=as_trained computing=as_trained heldout=level|small_gap "
             "served_train=as_predicted|untold|unknown served_heldout=as_predicted "
             "fed=as_trained|unknown|source_right arguments=as_asked pays=open|unknown|foreseen_pays",
        why="neither drafter nor server has a fault; whether speculation is worth its cost here is another question"),
)  # fmt: skip
"""Of every answer of every axis there is a row that holds, or it is part of `healthy`."""


def rows_at(place: Mapping[Axis, Answer]) -> tuple[Row, ...]:
    """Every row that speaks of this cell, in the table's order."""
    return tuple(row for row in TABLE if row.holds(place))
