"""A stored run -> what of it can be compared; made once, kept beside the run, made again when its files change.

`measurements.json` beside `run.json` is only a cache: `measurements.key` says from which files (manifest, sizes, times)
and by which version of the extraction it was made, and what its own sha256 is: one that was edited, or emptied by a
power cut, is made again. A run whose files are not what its manifest says is refused.
"""

import hashlib

import orchestrator
from orchestrator.compare.extract_bench import bench_measurements
from orchestrator.compare.extract_standalone import SplitFigures, standalone_measurements
from orchestrator.diagnosis.validity import judge_loads
from orchestrator.errors import InvalidRunError, StoreError
from orchestrator.importers.own_calls import call_measurements
from orchestrator.records import RunRecord, read_record, record_bytes
from orchestrator.records.measurement import Measurement, MeasurementSet
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.content import StandaloneReport
from orchestrator.review import review
from orchestrator.store import Store
from orchestrator.store.files import read_text, translated, write
from orchestrator.store.imported import read_imported
from orchestrator.store.layout import KEY, MEASUREMENTS, is_imported
from orchestrator.store.results import read_harness, read_machine
from remote_payload.rundir import RUN_ID_PATTERN, RunDir

EXTRACTION = 3
"""Goes up where the same result files give other measurements."""


def measurements_of(store: Store, record: RunRecord) -> MeasurementSet:
    """Everything of a run that can be compared, with what speaks against it.

    Raises InvalidRunError where it has no figures or its files are not what its manifest says, StoreError where one
    cannot be read.
    """
    run = store.run_dir(record.run_id)
    if not store.has_figures(record):
        raise InvalidRunError(
            f"expected a run with figures to compare, `{record.run_id}` ({record.job_kind}, {record.phase}) has none",
            hint=f"`eagle3-remote attach {record.run_id}` fetches the result of a run that is over on its host",
        )
    key = _key(run)
    known = _known(run, key)
    if known is not None:
        return known
    made = _measure(store, record)
    data = record_bytes(made)
    try:
        write(run.path / MEASUREMENTS, data, durable=False)
        write(run.path / KEY, _kept_key(key, data), durable=False)
    except StoreError:
        pass  # a store that cannot be written can still be compared
    return made


def set_of_run(store: Store, run_id: str) -> MeasurementSet:
    """The measurements of a run of that very id, own or imported. Raises as `measurements_of`, NotFoundError."""
    return store.imported(run_id) if store.is_imported(run_id) else measurements_of(store, store.load_exact(run_id))


def is_here(store: Store, measured: MeasurementSet) -> bool:
    """Whether these are the measurements of a run in this store, and not of another one under its id.

    A file or a baseline's record may be of a run that was never on this laptop. Raises StoreError.
    """
    if measured.origin not in ("own", "imported") or RUN_ID_PATTERN.fullmatch(measured.run_id) is None:
        return False
    run = store.run_dir(measured.run_id)
    if is_imported(run):  # also an own run's measurements alone, from another laptop
        return read_imported(run) == measured
    return measured.origin == "own" and run.manifest.is_file() and _sha256(run) == measured.source_sha256


def is_same_run(one: MeasurementSet, other: MeasurementSet) -> bool:
    """Whether two sets of one id are of the very same result, be it as two versions of this tool extracted it."""
    is_alike = one.source_sha256 is not None and one.source_sha256 == other.source_sha256
    return one == other or (is_alike and one.origin == other.origin == "own")


def _measure(store: Store, record: RunRecord) -> MeasurementSet:
    report = review(store, record)
    run = store.run_dir(record.run_id)
    soft = {"host": record.host.name, "payload": record.payload_sha256[:12]}
    found: tuple[Measurement, ...] = ()
    if report.bench is not None:
        found = _of_bench(report.bench, record.run_id, run, soft)
    elif report.standalone is not None:
        found = _of_standalone(report.standalone, soft)
    if not found:
        raise InvalidRunError(f"expected a run with figures to compare, nothing was measured by: {record.run_id}")
    return MeasurementSet(
        run_id=record.run_id,
        origin="own",
        tool=f"eagle3-remote {orchestrator.__version__}",
        job_kind=record.job_kind,
        host=record.host.name,
        created_unix_s=record.created_unix_s,
        source=f"run {record.run_id}",
        source_sha256=_sha256(run),
        measurements=found,
    )


def _of_bench(report: BenchReport, run_id: str, run: RunDir, soft: dict[str, str]) -> tuple[Measurement, ...]:
    result = report.result
    machine = read_machine(run, whole=result.whole)
    judged = judge_loads(result, report.requests, report.figures, machine)
    found = bench_measurements(run_id, result, report.figures, judged, more_soft=soft)
    if found or not result.harness:
        return found
    texts = read_harness(run, [call.result_file for call in result.harness if call.result_file is not None])
    return call_measurements(run_id, result, texts, soft)


def _of_standalone(report: StandaloneReport, soft: dict[str, str]) -> tuple[Measurement, ...]:
    measured, wiring = report.measured, report.wiring
    best = wiring.best.facts.name
    declared = None if wiring.declared is None else wiring.declared.facts.name
    splits = [
        SplitFigures(
            name="train",
            rows=measured.train.rows,
            facts=measured.result.rows,
            best=measured.train.figures[best],
            declared=None if declared is None else measured.train.figures[declared],
        )
    ]
    heldout = measured.heldout
    if heldout is not None and measured.result.heldout is not None and best in heldout.figures:
        splits.append(
            SplitFigures(
                name="held-out",
                rows=heldout.rows,
                facts=measured.result.heldout,
                best=heldout.figures[best],
                declared=None if declared is None else heldout.figures.get(declared),
            )
        )
    return standalone_measurements(measured.result, splits, soft)


def _known(run: RunDir, key: str) -> MeasurementSet | None:
    """The kept measurements, if they were made of these very files; a damaged or edited cache is made again."""
    path, key_path = run.path / MEASUREMENTS, run.path / KEY
    try:
        data = read_text(path).encode() if path.is_file() and key_path.is_file() else b""
        if not data or read_text(key_path).encode() != _kept_key(key, data):
            return None
        return read_record(MeasurementSet, data, where=str(path), error=StoreError)
    except StoreError:
        return None


def _kept_key(key: str, data: bytes) -> bytes:
    """What stands in `measurements.key`: from what the measurements were made, and the hash of what was made."""
    return f"{key} {hashlib.sha256(data).hexdigest()}".encode()


def _key(run: RunDir) -> str:
    """Changes with the extraction, the manifest, and the name, size or times of any result file.

    The time of the last change to an inode cannot be set by anybody, so an edit that puts the other time back shows.
    """
    with translated("list", run.result):
        files = sorted(path for path in run.result.rglob("*") if path.is_file())
        stats = [(path.relative_to(run.result).as_posix(), path.stat()) for path in files]
    told = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}" for name, stat in stats)
    whole = f"{EXTRACTION} {orchestrator.__version__} {_sha256(run)}\n{told}"
    return hashlib.sha256(whole.encode()).hexdigest()


def _sha256(run: RunDir) -> str:
    return hashlib.sha256(read_text(run.manifest).encode()).hexdigest()
