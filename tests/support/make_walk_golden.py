"""Make tests/golden/walk/*.json.gz: hits of a standalone run on served rows, beside what the real server counted.

    python -m tests.support.make_walk_golden SERVED_JSON LABEL SPLIT RESULT_FOLDER SLOTS DEPTH OUT

SERVED_JSON holds the server's answers per request (label, split, requests with `spec_correct_drafts_histogram`);
RESULT_FOLDER is the `result/` of a float32 standalone run over the rows of those requests, SLOTS e.g. `1,2,3`.
"""

import gzip
import json
import re
import sys
from pathlib import Path

from orchestrator.store.results import read_hits, read_standalone
from remote_payload.rundir import RunDir
from remote_payload.schema import to_json


def main(served_json: str, label: str, split: str, folder: str, slots: str, depth: str, out: str) -> None:  # noqa: PLR0917 - argv
    run = RunDir(Path(folder).parent)
    wanted = tuple(int(slot) for slot in slots.split(","))
    facts = next(item for item in read_standalone(run).readings if item.slots == wanted and item.stage == "full")
    rows, hits = read_hits(run)
    served = json.loads(Path(served_json).read_text())
    requests = next(item for item in served["runs"] if item["label"] == label and item["split"] == split)["requests"]
    cases = []
    for item in hits:
        if item.reading == facts.name:
            number = re.search(r"data_(\d+)", rows[item.row].name)
            assert number is not None
            request = requests[int(number[1])]
            expected = {name: value for name, value in request.items() if name.startswith("spec_")}
            expected["completion_tokens"] = request["completion_tokens"]
            row, chain = json.loads(to_json(rows[item.row])), json.loads(to_json(item))
            cases.append({"row": row, "hits": chain, "served": expected})
    golden = {
        "label": label,
        "split": split,
        "depth": int(depth),
        "engine": served["engine"].split(" (")[0],
        "cases": cases,
    }
    Path(out).write_bytes(gzip.compress(json.dumps(golden).encode(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
