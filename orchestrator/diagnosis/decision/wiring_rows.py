"""Rows of the table on what is fed: by the server, by SGLang's rule, by its source; and on what names states at all.

A fault is certain only where what is fed was measured, or where word and readings name the same other states; and
that by labels of rows that somebody bears out: a fresh forward, or the server's own states. A word alone, labels that
nobody compared, and rules that disagree leave it named at most, and doubtful.
"""

from orchestrator.diagnosis.decision.row import Row

WIRING_ROWS: tuple[Row, ...] = (
    Row(name="fed other states", kind="fault", cause="wiring", tells=("fed", "feeding"),
        when="fed=other feeding!=poor|suspected served_train!=as_other served_heldout!=as_other",
        why="the running server itself says so"),
    Row(name="fed other states, by the trainer's word alone", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("standalone", "check_rows"), doubts=True,
        when="fed=said feeding!=poor|suspected served_train!=as_other served_heldout!=as_other",
        why="the server feeds other states than its trainer names, and nobody measured that it reads those better"),
    Row(name="fed other states, beside broken files", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("standalone",), doubts=True,
        when="fed=other|said feeding=poor|suspected files=broken served_train!=as_other served_heldout!=as_other",
        why="the server feeds other states than its trainer names; that no reading is good the files explain"),
    Row(name="fed other states, and no reading is good", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("check_rows",), doubts=True,
        when="fed=other|said feeding=poor|suspected files!=broken served_train!=as_other served_heldout!=as_other",
        why="the running server itself says so, but no reading is good: nothing shows that other states mend it"),
    Row(name="fed as well as any", kind="ask", tells=("fed",), asks=("more_rows",), doubts=True, essential=True,
        when="fed=alike", why="nothing is surely read better than what is fed: more rows, or its trainer, tell"),
    Row(name="trainer against reading", kind="ask", tells=("trainer",), asks=("check_rows", "capture"), doubts=True,
        essential=True, bars_fix=True, when="trainer=contradicts",
        why="either the word is wrong (SGLang's ids instead of hidden_states indices?), or the rows' labels are"),
    Row(name="mis-fed by the rule", kind="fault", cause="wiring", tells=("feeding",),
        when="feeding=mis_fed fed=unknown|open|shifted|unlike|partly|source_wrong rule!=contradicts|split "
             "trainer!=contradicts",
        why="the served reading is surely worse than the best one, and SGLang's rule names the served one"),
    Row(name="mis-fed as trained", kind="fault", cause="wiring", tells=("feeding",),
        when="feeding=mis_fed fed=as_trained|changed|source_right rule=agrees|stale|unknown trainer!=contradicts",
        why="the states are right, and in another order, or beside another token, they are surely read better"),
    Row(name="mis-fed by the rule, and no reading is good", kind="fault", cause="wiring", tells=("feeding",),
        asks=("check_rows", "capture"), doubts=True,
        when="feeding=suspected fed=unknown|open|shifted|unlike|partly|source_wrong rule!=contradicts|split "
             "trainer!=contradicts",
        why="another reading is surely better and none is good: wrong rows or a broken export look like that too"),
    Row(name="mis-fed by the installed source", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("capture",), doubts=True, when="fed=source_wrong feeding!=mis_fed|suspected "
             "served_train!=as_predicted|differs served_heldout!=as_predicted|differs",
        why="the source that is installed captures other states than it was trained on, whatever other versions do"),
    Row(name="mis-fed by the table and by the source", kind="fault", cause="wiring", tells=("fed", "feeding"),
        asks=("capture",), doubts=True, when="fed=source_wrong feeding=mis_fed|suspected rule=split",
        why="the two name different states, and neither names those that it was trained on"),
    Row(name="source against answers", kind="ask", tells=("fed", "served_train"), asks=("capture",), doubts=True,
        essential=True, bars_fix=True, when="fed=source_wrong feeding!=mis_fed|suspected "
             "served_train=as_predicted|differs",
        why="the answers are those of the trained states, the installed source says otherwise: the server decides it"),
    Row(name="source against answers (held-out)", kind="ask", tells=("fed", "served_heldout"), asks=("capture",),
        doubts=True, essential=True, bars_fix=True,
        when="fed=source_wrong feeding!=mis_fed|suspected served_heldout=as_predicted|differs",
        why="the same on held-out prompts"),
)  # fmt: skip
NAMING_ROWS: tuple[Row, ...] = (
    Row(name="rule against server", kind="ask", tells=("rule",), asks=("capture",), doubts=True, essential=True,
        bars_fix=True, when="rule=contradicts fed!=other|said labels=checked",
        why="a fresh forward bears out the labels, so the server is right, and the rule is another version's or that "
            "of another config.json: a capture reads what is installed and served"),
    Row(name="rule against labels", kind="ask", tells=("rule",), asks=("check_rows",), doubts=True, essential=True,
        bars_fix=True, when="rule=contradicts fed!=other|said labels!=checked",
        why="served states are named by the labels of the rows: those are off, or the rule is another version's"),
    Row(name="server against rule", kind="ask", tells=("rule",), asks=("check_rows", "capture"), doubts=True,
        essential=True, bars_fix=True, when="rule=contradicts fed=other|said",
        why="the running server feeds other states than it reads best, and not those that the rule makes of "
            "config.json: ids by that rule mend nothing before it is known which is off, the rule or the labels"),
    Row(name="rule against source", kind="ask", tells=("rule",), asks=("capture",), doubts=True, essential=True,
        bars_fix=True, when="rule=split",
        why="the table and the installed source name different states: the running server decides it"),
    Row(name="labels that a layer's shift would turn round", kind="ask", tells=("labels",),
        asks=("check_rows", "capture"), doubts=True, essential=True, bars_fix=True,
        when="labels=doubtful feeding=mis_fed rule!=contradicts|split",
        why="labels in SGLang's ids instead of hidden_states indices look just like ids in vLLM's numbering"),
    Row(name="labels that nobody compared", kind="ask", asks=("check_rows", "capture"), doubts=True,
        when="labels=unchecked feeding=mis_fed trainer!=contradicts",
        why="which states the rows hold is said by their labels alone, and the ids of a fix hang on it"),
)  # fmt: skip
"""Contradictions between those that name states without reading them, and labels that nobody compared."""
