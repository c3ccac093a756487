"""SGLang's own load tool as a served benchmark of ours called it (`--harness sglang`): the last line of each file.

The line tells the server's arguments and the figures; the call tells what the line does not: side, load, how many
requests were to be sent, whether the prefix cache was flushed, and on which GPUs.
"""

import dataclasses
from collections.abc import Mapping

from orchestrator.compare.bench_facts import simulated_acceptance
from orchestrator.importers import sglang_serving
from orchestrator.importers.assembly import Origin, assembled
from orchestrator.importers.point import Point
from orchestrator.importers.row import in_words
from orchestrator.importers.source import Source
from orchestrator.records.measurement import Measurement
from remote_payload.schema.bench import BenchResult, HarnessRun
from remote_payload.schema.folder import FolderFacts


def call_measurements(
    run_id: str, result: BenchResult, texts: Mapping[str, str], soft: Mapping[str, str | None]
) -> tuple[Measurement, ...]:
    """A measurement a load and side; none where no call left a line. `texts`: the tool's files by name.

    Raises InvalidRunError naming file and line where one is not what the tool writes.
    """
    points: list[Point] = []
    for call in result.harness:
        text = texts.get(call.result_file or "", "")
        if call.returncode == 0 and text.strip():
            *_, last = Source(call.result_file or "", text.encode()).rows()
            points += [_as_called(point, call, result, soft) for point in sglang_serving.points(last)]
    if not any(point.figures for point in points):
        return ()
    failed = len(result.harness) - len(points)
    origin = Origin(kind="", tool=sglang_serving.KIND.words)
    found = assembled(Source(run_id, b""), origin, points, run_id).measurements
    if not failed:
        return found
    told = f"{failed} of {len(result.harness)} calls of SGLang's tool left no result and are in no figure"
    return tuple(dataclasses.replace(one, warnings=(*one.warnings, told)) for one in found)


def _as_called(point: Point, call: HarnessRun, result: BenchResult, soft: Mapping[str, str | None]) -> Point:
    load = {"concurrency": in_words(call.concurrency), "request_rate": in_words(call.request_rate)}
    told = {name: value for name, value in load.items() if value is not None}
    flushed = {None: None, True: "flushed before each point", False: "not flushed"}[call.flushed]
    servers = [server for server in result.servers if server.side == call.side]
    is_plain = call.side == "plain"
    own = {
        "gpu": " + ".join(sorted(set(result.gpus))) or "none, CPU",
        "cache_policy": point.hard.get("cache_policy") or flushed,
        "simulated_acceptance": "no" if is_plain else simulated_acceptance(result, servers),
        "target_weights": _weights(result.target),
        "draft_weights": "none" if is_plain else _weights(result.draft),
    }
    return dataclasses.replace(
        point,
        case={"side": call.side, **(told or {name: value for name, value in point.case.items() if name != "side"})},
        hard={**point.hard, **own, "prompts": in_words(call.requests) or point.hard.get("prompts")},
        soft={**point.soft, **soft},
        asked=call.requests if call.requests is not None else point.asked,
    )


def _weights(folder: FolderFacts | None) -> str | None:
    return None if folder is None or folder.weights_sha256 is None else folder.weights_sha256[:12]
