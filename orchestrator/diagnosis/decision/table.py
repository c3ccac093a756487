"""THE table: which answers together mean what. Data; a cell of it is every row whose conditions hold there.

Several rows may hold at once, and then all are told. An axis that a row does not name may have any answer. No row of a
fault holds on an axis whose interval decides nothing: `open` and `unknown` only ever lead to what to run next. Where
two proofs speak against each other neither is believed: that is told, nothing is certain, and no config is changed.
"""

from collections.abc import Mapping

from orchestrator.diagnosis.decision.axes import Answer, Axis
from orchestrator.diagnosis.decision.row import Row
from orchestrator.diagnosis.decision.served_rows import SERVED
from orchestrator.diagnosis.decision.wiring_rows import NAMING_ROWS, WIRING_ROWS

TABLE: tuple[Row, ...] = (
    Row(name="broken files", kind="fault", cause="loading", tells=("files",), when="files=broken",
        why="what cannot be loaded as it was trained cannot be served as it was trained, whatever it is fed"),
    Row(name="bad rows", kind="fault", cause="data", tells=("rows",), asks=("check_rows",), doubts=True, bars_fix=True,
        when="rows=bad", why="every reading on such rows is in doubt: no config is changed on them"),
    Row(name="flawed rows", kind="fault", cause="data", tells=("rows",), when="rows=flawed",
        why="the training text itself has faults that a drafter learns"),
    *WIRING_ROWS,
    Row(name="mis-read", kind="fault", cause="wiring", tells=("computing",),
        when="computing=mis_read feeding!=poor|suspected",
        why="the computation that is served is surely worse than another, fed alike"),
    Row(name="mis-read, and no reading is good", kind="fault", cause="wiring", tells=("computing",),
        asks=("check_rows",), doubts=True, when="computing=mis_read feeding=poor|suspected",
        why="another computation is surely better and none is good: wrong rows or a broken export look like that too"),
    Row(name="poor on its own states", kind="ask", tells=("feeding",), asks=("check_rows",), doubts=True,
        essential=True, when="feeding=poor|suspected files=whole rows=sound|flawed fed=as_trained",
        why="it is fed as trained, so the wiring is not it. Left are rows that are not its own, a config or an export "
            "that no check saw, and a weak drafter: its trainer's own accuracy tells, about this one = weak, far above "
            "= rows or export"),
    Row(name="poor, and nobody asked the server", kind="ask", asks=("capture", "check_rows"), doubts=True,
        essential=True, when="feeding=poor|suspected files=whole rows=sound|flawed fed=unknown|open|source_right",
        why="wrong rows, a state that is not captured, and a weak drafter look alike until the server is asked"),
    Row(name="poor beside broken files", kind="also", tells=("feeding",),
        when="files=broken feeding=poor|suspected fed!=as_trained|other",
        why="the files explain it, and the wiring is not judged: mend them and test again, or give `--trained`"),
    Row(name="states in other numbers", kind="fault", cause="engine", tells=("fed",),
        when="fed=changed feeding=as_trained|mis_fed served_train!=as_predicted served_heldout!=as_predicted",
        why="on the captured states the drafter reads well, so the served ones are those that are off: a factor, a "
            "norm or another basis in the served model"),
    Row(name="states in other numbers, and yet as foretold", kind="also", tells=("fed",),
        when="fed=changed served_train=as_predicted", why="this drafter accepts as much with them"),
    Row(name="states in other numbers, and yet as foretold (held-out)", kind="also", tells=("fed",),
        when="fed=changed served_heldout=as_predicted", why="this drafter accepts as much with them"),
    Row(name="states like none", kind="fault", cause="engine", tells=("fed",), asks=("check_rows",), doubts=True,
        when="fed=unlike feeding=as_trained|mis_fed served_train!=as_predicted served_heldout!=as_predicted",
        why="a target that computes its states otherwise than the captured one: quantized, rotated, or another model; "
            "or states that the rows do not hold"),
    Row(name="states like none, and nobody read the rows", kind="ask", tells=("fed",), asks=("standalone",),
        doubts=True, essential=True, when="fed=unlike|changed feeding=unknown",
        why="rows of another model or target look just like a target that is served otherwise"),
    Row(name="states like none, and the rows in doubt", kind="ask", tells=("fed",), asks=("check_rows",), doubts=True,
        essential=True, when="fed=unlike|changed feeding=poor|suspected|open|uncompared",
        why="no reading on these rows is good or decided, so they may be of another model or target themselves"),
    Row(name="states like none, and yet as foretold", kind="ask", tells=("fed", "served_train"),
        asks=("check_rows", "capture"), doubts=True, essential=True, bars_fix=True,
        when="fed=unlike|partly served_train=as_predicted",
        why="on the captured states the walk foretells what is served: then the comparison of states is at fault"),
    Row(name="states like none, and yet as foretold (held-out)", kind="ask", tells=("fed", "served_heldout"),
        asks=("check_rows", "capture"), doubts=True, essential=True, bars_fix=True,
        when="fed=unlike|partly served_heldout=as_predicted", why="the same on held-out prompts"),
    Row(name="some states like none", kind="ask", tells=("fed",), asks=("other_rows", "check_rows"), doubts=True,
        essential=True, when="fed=partly",
        why="the others are those of the rows: this may be a layer that the rows do not hold, a state that the rows "
            "hold wrong, or a target that is served otherwise from there on"),
    Row(name="generalization gap", kind="fault", cause="generalization", tells=("heldout",), when="heldout=gap",
        why="both splits are read alike, so what differs is the text: the wiring is not the cause of this part"),
    Row(name="small gap", kind="also", tells=("heldout",), when="heldout=small_gap",
        why="a drafter that costs a little on new text, not one that fails there"),
    *SERVED,
    *NAMING_ROWS,
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
        when="pays=mendable feeding=as_trained computing=as_trained fed!=other served_train!=below|little_below "
             "served_heldout!=below|little_below",
        why="a better reading was foretold than the one that is called right: on more rows one of them is"),
    Row(name="whether it pays once mended", kind="ask", tells=("pays",), asks=("predict", "repeats"), essential=True,
        when="pays=mend_open",
        why="slower as it is served; what a mended one would accept is not known, or its interval overlaps that of r"),
    Row(name="whether it pays is not known before", kind="ask", tells=("pays",), asks=("again",), essential=True,
        when="pays=until_mended", why="slower as it is served; no reading of what is broken is a mended accept length"),
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
    Row(name="served states a token off", kind="ask", tells=("fed",), asks=("check_rows",), doubts=True, essential=True,
        bars_fix=True, when="fed=shifted",
        why="what is fed was not held against the rows side by side: a fresh forward tells which of the two is off"),
    Row(name="feeding cannot be told", kind="ask", asks=("more_rows", "capture"), doubts=True, essential=True,
        when="feeding=open fed=unknown|open|shifted|source_right",
        why="more rows, or the server's own states, decide it"),
    Row(name="feeding cannot be looked up", kind="ask", tells=("feeding",), asks=("capture", "other_rows"), doubts=True,
        essential=True, when="feeding=uncompared fed=unknown|open|shifted|source_right",
        why="no number of rows decides it: the server's own states do, or rows that hold what is served, with labels"),
    Row(name="fed as trained, and the rows do not hold it", kind="ask", asks=("other_rows",), essential=True,
        when="feeding=uncompared fed=as_trained",
        why="the states are right; whether they are computed right only rows that hold them tell"),
    Row(name="readings alike, though fed as trained", kind="ask", asks=("more_rows",), essential=True,
        when="feeding=open fed=as_trained",
        why="the states are right; whether they are computed right is not told yet"),
    Row(name="no held-out text", kind="ask", asks=("heldout",), essential=True, when="heldout=unknown",
        why="training rows alone cannot tell learning by heart"),
    Row(name="served lengths alone", kind="ask", tells=("heldout",), asks=("predict", "heldout"), essential=True,
        when="heldout=untold", why="a server may lose drafts on other text alone, and then the drafter is not it"),
    Row(name="held-out rows that tell nothing", kind="ask", tells=("heldout",), asks=("heldout",), essential=True,
        when="heldout=unfit", why="what such rows lose says nothing of the drafter"),
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
             "fed=as_trained|changed|unknown|source_right rule=agrees|stale|unknown trainer=agrees|unknown "
             "arguments=as_asked pays=pays",
        why="every question has an answer and none is a fault; on training prompts a prediction may be missing"),
    Row(name="sound, and its speed is not judged", kind="sound",
        tells=("feeding", "served_train", "served_heldout", "heldout"),
        when="files=whole rows=sound feeding=as_trained computing=as_trained heldout=level|small_gap "
             "served_train=as_predicted|untold|unknown served_heldout=as_predicted "
             "fed=as_trained|changed|unknown|source_right rule=agrees|stale|unknown trainer=agrees|unknown "
             "arguments=as_asked pays=open|unknown|foreseen_pays",
        why="neither drafter nor server has a fault; whether speculation is worth its cost here is another question"),
)  # fmt: skip
"""Of every answer of every axis there is a row that holds, or it is part of `healthy`."""


def rows_at(place: Mapping[Axis, Answer]) -> tuple[Row, ...]:
    """Every row that speaks of this cell, in the table's order."""
    return tuple(row for row in TABLE if row.holds(place))
