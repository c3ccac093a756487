"""`wiring`: the two configs, fc's shape and the deciding pieces of the installed SGLang, for the laptop to judge."""

import os

from remote_payload.frames import Send
from remote_payload.schema.capture_rule import WiringFacts, WiringRequest
from remote_payload.schema.frames import WiringFrame
from remote_payload.served_capture.configs import config_text
from remote_payload.served_capture.fc_shape import fc_shape
from remote_payload.served_capture.installed_source import class_of, rule_by
from remote_payload.sglang_bench.folders import told_folders


def wiring(request: WiringRequest, send: Send) -> None:
    """Answer with one frame; what cannot be read is told as such."""
    told = ("", "") if request.attach_url is None else told_folders(request.attach_url)
    model, draft = request.model or told[0], request.draft or told[1]
    target = config_text(model)
    source = "" if request.source is None else os.path.expanduser(request.source)
    rule = rule_by([*request.exec_prefix, os.path.expanduser(request.python)], source, class_of(target))
    facts = WiringFacts(
        rule=rule,
        target_config=target,
        draft_config=config_text(draft),
        fc_shape=fc_shape(draft) if draft else None,
        told_model=None if request.model else told[0] or None,
        told_draft=None if request.draft else told[1] or None,
    )
    send(WiringFrame(facts=facts))
