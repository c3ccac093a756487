"""A store as this version writes it, for all later versions to read: `python -m tests.support.make_store_golden`.

Made once a schema version, into `tests/golden/store/v<version>/`; what is there is never made again.
"""

import dataclasses
import shutil
import sys
import tempfile
from pathlib import Path

from orchestrator.records import Baseline, BaselineEntry, BaselineNumber, record_bytes
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.store.archive import export_run
from remote_payload.schema import SCHEMA_VERSION, to_json
from tests.support.made_bench import made_paired
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, packed_json_lines, put_files, put_standalone

GOLDEN = Path(__file__).parent.parent / "golden" / "store"


def main() -> None:
    """Write the store of this version, if there is none yet."""
    target = GOLDEN / f"v{SCHEMA_VERSION}"
    if target.exists():
        sys.exit(f"there is one already, and it stays: {target}")
    with tempfile.TemporaryDirectory() as folder:
        fill(Store(Path(folder) / "home", Path(folder) / "project"), Path(folder))
        for pattern in (".lock", "runs/golden-run/measurements.*", "runs/golden-bench/measurements.*"):
            for leftover in Path(folder, "home").glob(pattern):  # the lock, and copies made of the results
                leftover.unlink()
        shutil.copytree(folder, target)


def fill(store: Store, folder: Path) -> None:
    """Runs, labels, a verdict, an imported set, baselines of both forms, an archive."""
    from orchestrator.promotion import promote  # noqa: PLC0415 - as few modules as a test of the names needs

    row_facts, hits, readings = made_readings({((0, 1, 2), 1): 0.7, ((1, 2, 3), 1): 0.2}, rows=6)
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)), rows=6)
    put_standalone(store, made_run("golden-run", created_unix_s=1.8e9), result, row_facts, hits)
    store.begin(made_run("golden-failed", phase="failed", created_unix_s=1.8e9))
    store.label("golden-run", tags=["+good"], note="the first one")
    served = made_run("golden-bench", created_unix_s=1.8e9)
    run = store.begin(dataclasses.replace(served, spec=dataclasses.replace(served.spec, job_kind="bench")))
    bench, requests = made_paired(repeats=1)
    put_files(run, {"bench.json": to_json(bench).encode(), "requests.jsonl.gz": packed_json_lines(requests)})
    review(store, store.load_exact("golden-run"))
    store.add_imported(imported(), b"what it was read from\n")
    promote(store, "golden-run", "main", source="me@laptop", note="", now=1.8e9)
    number = BaselineNumber(metric="output_throughput_tok_s", value=90.0, unit="tok/s")
    store.set_baseline(
        "plain", BaselineEntry(numbers=(number,), source="a paper", note="no drafter", set_at_unix_s=1.8e9)
    )
    old = Baseline(name="old", history=(BaselineEntry(run_id="golden-run", source="me@laptop", set_at_unix_s=1.7e9),))
    path = store.home / "baselines" / "old.json"  # as the first release wrote it: on one line, without a record
    path.parent.mkdir()
    path.write_bytes(record_bytes(old).replace(b'"record_sha256":null,', b""))
    export_run(store.run_dir("golden-run"), folder / "golden-run.tar.gz")


def imported() -> MeasurementSet:
    """What another tool measured."""
    series = Series(
        metric="accept_length_per_verify",
        unit="tokens",
        definition="completion tokens / verify steps, summed over requests",
        level="prompt",
        keys=("a", "b"),
        clusters=("one", "one"),
        y=(106.0, 94.5),
        x=(43.0, 40.0),
    )
    return MeasurementSet(
        run_id="golden-imported",
        origin="imported",
        tool="other tool 1",
        job_kind="imported",
        label="theirs",
        created_unix_s=1.8e9,
        source="result.jsonl",
        measurements=(
            Measurement(
                case=(Fact(name="concurrency", value="4"),),
                series=(series,),
                hard=(Fact(name="target", value="Big-Model"),),
                soft=(Fact(name="sglang_version", value=None),),
                warnings=("a warm cache",),
                histogram=(11, 14, 11, 4, 0, 3),
            ),
        ),
        unknown=("the seed",),
    )


if __name__ == "__main__":
    main()
