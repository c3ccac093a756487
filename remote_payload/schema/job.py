"""What a run is asked to do: one record per job kind, chosen by its `kind`."""

from typing import Literal

from remote_payload import rundir
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.hold import HoldJob
from remote_payload.schema.record import Record, SchemaError, from_value, parse_json, require, require_finite
from remote_payload.schema.sweep import SweepJob, SweepUnit

MAX_STEPS = 16


class StandaloneJob(Record):
    """Test an EAGLE-3 drafter outside SGLang on captured rows. Paths are on the server; `~` is its home."""

    kind: Literal["standalone"] = "standalone"
    draft: str
    """Folder of the drafter: `config.json` and safetensors (single or sharded)."""
    rows: str
    """Folder of captured rows (`rows_A-B/data_i.ckpt[.gz]`, or row states beside `merged`)."""
    target: str | None = None
    """Folder of the target; only `embed_tokens`, `lm_head` and final `norm` are read, where the draft lacks them."""
    merged: str | None = None
    """Merged JSONL, a line a row: input_ids, loss_mask, seq_len, n_prompt_tokens, n_response_tokens, source."""
    states: tuple[int, ...] | None = None
    """HF `hidden_states` index of each slot (0 = embedding output, i = output of layer i-1); None = unlabelled."""
    add_embedding: bool = False
    """Put the target's embedding output before the `states` that rows hold, computed from its own table and the rows'
    tokens; where its table does not give it, that is a warning and nothing is added."""
    wanted: tuple[int, ...] | None = None
    """States, in fc order, of a reading that is measured on all rows whatever the search makes of it."""
    steps: int = 4
    """Training-time-test steps K: how deep a chain is followed."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "auto"
    """`auto` (CUDA where it works, else CPU), `cpu`, `cuda` or `cuda:N`."""
    threads: int | None = None
    """CPU threads of torch; None = torch's own choice."""
    max_rows: int | None = None
    """Read at most this many rows, in row order; None = all."""
    search_rows: int = 4
    """Rows of the first, pruned search over all wirings."""
    keep_readings: int = 8
    """How many readings survive the first screen."""
    token_offsets: tuple[int, ...] = (1, 0, 2, -1)
    """Token offsets tried: the state of token t goes with the embedding of token t+offset. 1 is every trainer's."""
    heldout: str | None = None
    """Folder of captured rows the drafter was not trained on; the finalists are measured on them as well."""
    heldout_merged: str | None = None
    """Merged JSONL of the held-out rows."""
    sweep: Literal["full", "wiring"] = "full"
    """`full`: also residual source, norms, feedback, embedding, vocabulary map, rope; `wiring`: slots and offsets."""
    capture_rows: int = 2
    """Rows compared with a fresh forward of the target, where this host can run it (transformers); 0 = none."""
    max_memory_bytes: int | None = None
    """Peak memory to stay below (the GPU's, where one is used); None = no limit."""
    resume: str | None = None
    """Id of an earlier, unfinished run of the same job on this host, whose finished rows are taken over."""
    or_anew: bool = False
    """Where that run left nothing that fits, measure all of it and say so, instead of failing."""

    def __post_init__(self) -> None:
        require(bool(self.draft.strip()), "`draft` must name the drafter's folder")
        require(bool(self.rows.strip()), "`rows` must name the folder of captured rows")
        require(1 <= self.steps <= MAX_STEPS, f"`steps` must be 1..{MAX_STEPS}, found: {self.steps}")
        require(self.max_rows is None or self.max_rows >= 1, "`max_rows` must be at least 1")
        require(self.threads is None or self.threads >= 1, "`threads` must be at least 1")
        require(self.search_rows >= 1, "`search_rows` must be at least 1")
        require(self.keep_readings >= 2, "`keep_readings` must be at least 2")
        require(1 in self.token_offsets, "`token_offsets` must contain 1, the pairing every trainer uses")
        require(all(-1 <= offset <= 2 for offset in self.token_offsets), "`token_offsets` must lie in -1..2")
        require(self.capture_rows >= 0, "`capture_rows` must not be negative")
        require(self.max_memory_bytes is None or self.max_memory_bytes >= 1, "`max_memory_bytes` must be at least 1")
        require(self.heldout is None or bool(self.heldout.strip()), "`heldout` must name a folder of captured rows")
        require(self.heldout_merged is None or self.heldout is not None, "`heldout_merged` belongs to `heldout`")
        if self.resume is not None:
            named = rundir.RUN_ID_PATTERN.fullmatch(self.resume) is not None
            require(named, f"`resume` must be the id of a run, found: {self.resume!r}")
        require(self.resume is not None or not self.or_anew, "`or_anew` belongs to `resume`")
        if self.states is not None:
            require(len(set(self.states)) == len(self.states), "`states` must not repeat an index")
            require(all(index >= 0 for index in self.states), "`states` are HF hidden_states indices, 0 or more")
        if self.add_embedding:
            lacks = self.states is not None and 0 not in self.states
            require(lacks, "`add_embedding` is for rows whose `states` are given and lack 0, the embedding output")


class SelftestJob(Record):
    """Walk the whole path with no model: sleep, print, write a result of a given size. Proves a host."""

    kind: Literal["selftest"] = "selftest"
    duration_s: float = 0.0
    result_bytes: int = 2048
    fail: bool = False
    """End with a failure, to see how one is reported."""

    def __post_init__(self) -> None:
        require_finite(duration_s=self.duration_s)
        require(self.duration_s >= 0, "`duration_s` must not be negative")
        require(0 <= self.result_bytes <= 2**30, "`result_bytes` must be 0..1 GiB")


UnitJob = StandaloneJob | BenchJob | CaptureJob | SelftestJob
"""What can be a unit of a sweep."""
Job = StandaloneJob | BenchJob | CaptureJob | SelftestJob | SweepJob | HoldJob
JOB_KINDS: dict[str, type[StandaloneJob] | type[BenchJob] | type[CaptureJob] | type[SelftestJob]] = {
    "standalone": StandaloneJob,
    "bench": BenchJob,
    "capture": CaptureJob,
    "selftest": SelftestJob,
}
"""The kinds that a job file has; a sweep is made of such jobs, and a hold is no job that anybody writes."""


def job_from_json(text: str) -> Job:
    """Read a job by its `kind`. Raises SchemaError."""
    return job_from_value(parse_json(text, "a job"))


def job_from_value(value: object) -> Job:
    """As `job_from_json`, for a value that is already parsed."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "sweep":
        return from_value(SweepJob, value)
    if kind == "hold":
        return from_value(HoldJob, value)
    return _unit_job(value, kind)


def job_of_unit(sweep: SweepJob, unit: SweepUnit, **more: object) -> UnitJob:
    """The whole job of a unit: the base, the unit's changes, and `more` over both. Raises SchemaError."""
    base, changes = (parse_json(text, "an object") for text in (sweep.base_json, unit.changes_json))
    if not isinstance(base, dict) or not isinstance(changes, dict):
        raise SchemaError("$: expected objects for a unit's base and changes")
    value = {**base, **changes, **more}
    return _unit_job(value, value.get("kind"))


def _unit_job(value: object, kind: object) -> UnitJob:
    if not isinstance(kind, str) or kind not in JOB_KINDS:
        raise SchemaError(f"$.kind: expected one of {', '.join(JOB_KINDS)}, found: {kind!r}")
    return from_value(JOB_KINDS[kind], value)
