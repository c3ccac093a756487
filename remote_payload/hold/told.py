"""`hold`: tell a hold whether more members come, and what became of it."""

import time

from remote_payload.claim import absolute_root
from remote_payload.frames import Send
from remote_payload.hold.door import LOOK_S, ask
from remote_payload.liveness import current_state
from remote_payload.refusal import Refusal
from remote_payload.runstate import run_at
from remote_payload.schema import to_json
from remote_payload.schema.frames import HoldFrame
from remote_payload.schema.hold import HoldFacts, HoldRequest

OVER_S = 10.0
"""How long one without members may take to be over."""


def hold(request: HoldRequest, send: Send) -> None:
    """Answer with one HoldFrame: one that no more come to and that has no members is over by then. Raises Refusal."""
    run = run_at(absolute_root(request.root), request.run_id)
    told = ask(run, "hold", to_json(request))
    members = told.facts.members if isinstance(told, HoldFrame) else ()
    is_ending = isinstance(told, HoldFrame) and not request.goes_on and not members
    until_s = time.monotonic() + (OVER_S if is_ending else 0.0)
    while True:
        state = current_state(run)
        if state is None:
            raise Refusal("no_such_run", f"this run was claimed but never started: {request.run_id}")
        if state.is_terminal or time.monotonic() >= until_s:
            break
        time.sleep(LOOK_S)
    send(HoldFrame(facts=HoldFacts(state=state, members=members)))
