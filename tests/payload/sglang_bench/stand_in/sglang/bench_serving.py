"""As SGLang's own load tool is called, and what it leaves: a line of JSON in its output file.

STAND_IN_TOOL (JSON) says how: `says`, `exit`, `leaves` (its line; null: none), `text` and `times` (more in that line),
`bar` (states of its progress bar), `hangs` (never ends, ignores TERM, has a child in a session of its own).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BEHAVIOUR = json.loads(os.environ.get("STAND_IN_TOOL", "{}"))
LINE = {"output_throughput": 12.5, "request_rate": float("inf"), "completed": 5}


def main() -> int:
    options = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    print(json.dumps({"argv": sys.argv[1:], "key": os.environ.get("OPENAI_API_KEY"), "folder": str(Path.cwd())}))
    print(BEHAVIOUR.get("says", ""))
    for done in BEHAVIOUR.get("bar", []):
        print(
            f"\r{20 * done:3}%|{'#' * done:10}| {done}/5 [00:01<00:02,  1.5s/it]", end="", file=sys.stderr, flush=True
        )
    if BEHAVIOUR.get("hangs"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
        time.sleep(300)
    asked = json.loads(Path(options["--dataset-path"]).read_text())
    line = BEHAVIOUR.get("leaves", {**LINE, "asked": [turns["conversations"][0]["value"] for turns in asked]})
    if line is not None:
        line |= {"text": BEHAVIOUR.get("text", "") * BEHAVIOUR.get("times", 1)}
        with Path(options["--output-file"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return int(BEHAVIOUR.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
