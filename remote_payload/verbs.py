"""Answering a verb: read the request, do what it asks, send frames; a refusal and a bug of ours are frames as well."""

# ruff: noqa: PLC0415 - each verb loads only what it needs: start-up time

import os
import sys
from pathlib import Path
from types import TracebackType

from remote_payload.frames import FrameWriter, nonce_of
from remote_payload.refusal import Refusal
from remote_payload.schema import (
    CancelRequest,
    ErrorFrame,
    FollowRequest,
    GatherRequest,
    IdentifyRequest,
    LaunchRequest,
    ProbeRequest,
    SchemaError,
    StatusRequest,
    SweepRequest,
    from_json,
)


def answer(verb: str, request: bytes, archive: Path) -> int:
    """Do what `request` asks and send the frames to stdout; a reader that went away is no error."""
    try:
        writer = FrameWriter(nonce_of(request))
    except SchemaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.excepthook = lambda kind, error, trace: _report_bug(writer, kind, error, trace)
    try:
        _dispatch(verb, request.decode("utf-8"), writer, archive)
    except (SchemaError, UnicodeDecodeError) as error:
        writer.send(ErrorFrame(code="bad_request", message=f"`{verb}` request: {error}"))
        return 1
    except Refusal as refusal:
        writer.send(refusal.frame)
        return 1
    except BrokenPipeError:
        _forget_stdout()
    if verb == "launch":
        from remote_payload.bytecode import keep_bytecode

        keep_bytecode(archive)
    return 0


def _dispatch(verb: str, request: str, writer: FrameWriter, archive: Path) -> None:
    if verb == "launch":
        from remote_payload.launch import launch

        launch(from_json(LaunchRequest, request), writer, archive)
    elif verb == "follow":
        from remote_payload.follow import follow

        follow(from_json(FollowRequest, request), writer.send)
    elif verb == "status":
        from remote_payload.status import status

        status(from_json(StatusRequest, request), writer.send)
    elif verb == "cancel":
        from remote_payload.cancel import cancel

        cancel(from_json(CancelRequest, request), writer.send)
    elif verb in ("sweep", "gather", "identify", "tell"):
        _about_a_sweep(verb, request, writer)
    elif verb in ("correct", "wiring"):
        _about_a_drafter(verb, request, writer)
    else:
        _about_the_host(verb, request, writer, archive)


def _about_the_host(verb: str, request: str, writer: FrameWriter, archive: Path) -> None:
    """Its GPUs and who holds them, its folders, its clockwork, its facts."""
    if verb == "hold":
        from remote_payload.hold.told import hold
        from remote_payload.schema.hold import HoldRequest

        hold(from_json(HoldRequest, request), writer.send)
    elif verb == "top":
        from remote_payload.gpus.top import top
        from remote_payload.schema.top import TopRequest

        top(from_json(TopRequest, request), writer.send)
    elif verb == "gc":
        from remote_payload.housekeeping.gc import collect_garbage
        from remote_payload.schema.housekeeping import GcRequest

        collect_garbage(from_json(GcRequest, request), writer.send, archive)
    elif verb == "schedule":
        from remote_payload.schedule.answer import answer_schedule
        from remote_payload.schema.schedule import ScheduleRequest

        answer_schedule(from_json(ScheduleRequest, request), writer.send, archive)
    else:
        from remote_payload.probe import probe

        probe(from_json(ProbeRequest, request), writer.send)


def _about_a_sweep(verb: str, request: str, writer: FrameWriter) -> None:
    if verb == "sweep":
        from remote_payload.sweep.progress import progress

        progress(from_json(SweepRequest, request), writer.send)
    elif verb == "gather":
        from remote_payload.sweep.gather import gather

        gather(from_json(GatherRequest, request), writer.send)
    elif verb == "identify":
        from remote_payload.sweep.identity import identify

        identify(from_json(IdentifyRequest, request), writer.send)
    else:
        from remote_payload.schema.group import TellRequest
        from remote_payload.sweep.group_ledger import tell

        tell(from_json(TellRequest, request), writer.send)


def _about_a_drafter(verb: str, request: str, writer: FrameWriter) -> None:
    """Verbs that read a drafter's folder."""
    if verb == "correct":
        from remote_payload.correct import correct
        from remote_payload.schema.corrected import CorrectRequest

        correct(from_json(CorrectRequest, request), writer.send)
    else:
        from remote_payload.schema.capture_rule import WiringRequest
        from remote_payload.served_capture.wiring import wiring

        wiring(from_json(WiringRequest, request), writer.send)


def _report_bug(
    writer: FrameWriter, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    sys.__excepthook__(kind, error, trace)
    try:
        writer.send(ErrorFrame(code="payload_bug", message=f"{kind.__name__}: {error}", hint="please report this"))
    except BrokenPipeError:
        _forget_stdout()
    sys.stderr.flush()
    os._exit(70)


def _forget_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter's own flush at exit complains
