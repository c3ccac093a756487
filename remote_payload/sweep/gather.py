"""`gather`: what many runs left, one after the other in one answer: a sweep of thousands comes home a batch a call."""

from remote_payload.follow import follow
from remote_payload.frames import Send
from remote_payload.refusal import Refusal
from remote_payload.schema import EndFrame, FollowRequest, Frame, GatherRequest, NextFrame


def gather(request: GatherRequest, send: Send) -> None:
    """Before each run a NextFrame, then what `follow` tells of it now; a run that cannot be told of has a problem."""

    def told(frame: Frame) -> None:
        if not isinstance(frame, EndFrame):
            send(frame)

    for run_id in request.run_ids:
        send(NextFrame(run_id=run_id))
        one = FollowRequest(
            nonce=request.nonce,
            root=request.root,
            run_id=run_id,
            wait=False,
            inline_limit_bytes=request.inline_limit_bytes,
        )
        try:
            follow(one, told)
        except Refusal as refusal:
            send(NextFrame(run_id=run_id, problem=refusal.message))
    send(EndFrame())
