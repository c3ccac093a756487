"""Which tool wrote a file, seen from its content, and its measurements."""

from collections.abc import Callable
from typing import NamedTuple

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.importers import sglang_log, sglang_serving, specforge, vllm_serving
from orchestrator.importers.source import Row, Source
from orchestrator.records.measurement import MeasurementSet


class Kind(NamedTuple):
    """How one kind of file is known and read."""

    words: str
    fits: Callable[[Row], bool]
    measured: Callable[[Source], MeasurementSet]


JSON_KINDS = {
    sglang_serving.KIND: Kind("sglang bench_serving", sglang_serving.fits, sglang_serving.measured),
    vllm_serving.KIND: Kind("vllm bench serve or sweep", vllm_serving.fits, vllm_serving.measured),
    specforge.BENCH_KIND: Kind("SpecForge bench_eagle3", specforge.fits_bench, specforge.measured_bench),
    specforge.COMMAND_KIND: Kind("specforge benchmark", specforge.fits_command, specforge.measured_command),
}
KINDS = (*JSON_KINDS, sglang_log.KIND)


def measured(source: Source, kind: str | None = None) -> MeasurementSet:
    """The measurements of a file, of the kind it is said to be or the one it is seen to be.

    Raises UsageError for an unknown kind, InvalidRunError naming file and line where the file is none of that kind.
    """
    if kind is not None and kind not in KINDS:
        raise UsageError(f"expected one of {', '.join(KINDS)}, found: {kind!r}")
    if kind == sglang_log.KIND or (kind is None and sglang_log.fits_text(source.text)):
        return sglang_log.measured(source)
    rows = source.rows
    if not rows:
        raise InvalidRunError(f"{source.name}: expected results, found none")
    name = kind or _guess(source)
    for row in rows:
        if not JSON_KINDS[name].fits(row) and not (name == sglang_serving.KIND and "window_start" in row.value):
            other = next((item.words for item in JSON_KINDS.values() if item.fits(row)), "something else")
            raise InvalidRunError(f"{row.where}: expected a result of {JSON_KINDS[name].words}, found: {other}")
    return JSON_KINDS[name].measured(source)


def _guess(source: Source) -> str:
    for name, kind in JSON_KINDS.items():
        if kind.fits(source.rows[0]):
            return name
    raise InvalidRunError(
        f"{source.rows[0].where}: this is no result file that is known here",
        hint=f"known are: {', '.join(KINDS)}; --kind says which it is",
    )
