"""A sweep of a served benchmark on servers that stand in for SGLang: shared starts, a load that kills, the table."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.laptop import Laptop

SGLANG = Path(__file__).parent.parent / "payload" / "sglang_bench"
META = {"spec_verify_ct": 2, "spec_accept_token_num": 2, "spec_draft_token_num": 2}


def write_sweep(folder: Path) -> Path:
    """Plain, one step and two; the server of two steps ends under its second load."""
    (folder / "prompts.jsonl").write_text("".join(f'{{"text": "Once {n}"}}\n' for n in range(4)), encoding="utf-8")
    told: dict[str, Any] = {
        "log": str(SGLANG / "recorded/start.log"),
        "info": str(SGLANG / "recorded/server_info.json"),
    }
    told |= {"flushes": 2, "only_with": "--speculative-num-steps 2", "meta": META}
    settings = {
        "model": "models/target",
        "draft": "models/draft",
        "prompts": str(folder / "prompts.jsonl"),
        "requests": 4,
        "server_python": sys.executable,
        "server_environment": [f"PYTHONPATH={SGLANG / 'stand_in'}", f"STAND_IN={json.dumps(told)}"],
        "eagle_topk": 1,
    }
    base = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    grid = "num_steps = [1, 2]\nconcurrency = [1, 2, 3]\n"
    derive = '[[sweep.derive]]\nset = "num_draft_tokens"\nto = "num_steps + 1"\n'
    path = folder / "steps.toml"
    path.write_text(f'[sweep]\njob = "bench"\n[sweep.base]\n{base}[sweep.grid]\n{grid}{derive}', encoding="utf-8")
    return path


def test_a_load_that_kills_its_server_is_a_failure_and_the_others_are_measured(laptop: Laptop, tmp_path: Path) -> None:
    file = write_sweep(tmp_path)
    done = laptop.run("sweep", "run", str(file), "--host", "gpu1", "--run-id", "night")
    print(done.out)
    assert done.code == 20, done.err
    told = json.loads(laptop.run("sweep", "report", "night", "--json").out)
    assert told["counts"]["measured"] == 8
    words = {row["point"]: row for row in told["rows"]}
    (failed,) = (point for point in told["points"] if point["word"] == "failed")
    assert failed["settings"] == {"num_steps": 2, "num_draft_tokens": 3, "concurrency": 2}
    assert failed["run_id"] == "night.u0002.0"
    runs = {point["run_id"] for point in told["points"]}
    assert runs == {"night.u0000.0", "night.u0001.0", "night.u0002.0", "night.u0002.1"}  # one start of all loads each
    row = words["num_steps 1, num_draft_tokens 2, concurrency 3"]
    assert row["figures"]["output_throughput_tok_s"]["value"] > 0
    assert row["against_plain"]["change"]["value"] is not None
    assert row["figures"]["accept_length_pooled"]["value"] == 2.0
    # Its first load was measured to the end, whatever its server did under the next.
    kept = words["num_steps 2, num_draft_tokens 3, concurrency 1"]
    assert (kept["measured"], kept["invalid"], kept["against_plain"]["verdict"]) == (1, [], "single run")
    assert "1 of 3 points finished" in laptop.run("runs", "show", "night.u0002.0").out

    told = json.loads(laptop.run("explain", "night", "--json").out)
    assert [unit["settings"]["concurrency"] for unit in told["units"]] == [[1, 2, 3]] * 3
    assert told["units"][2]["job"]["num_draft_tokens"] == 3
    assert "Units, in this order" in laptop.run("explain", "night").out
    (server,) = json.loads(laptop.run("explain", "night.u0001.0", "--json").out)["servers"]
    assert server["argv"][server["argv"].index("--speculative-num-steps") + 1] == "1"
    assert told["units"][1]["servers"] == {"night.u0001.0": [server]}
