"""What was said of the states, beside the two models as they lie on the host: refused before any stage is run."""

import json

from orchestrator import jobfile
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosis.effective_capture import layers_of
from orchestrator.diagnosis.fc_width import takes_of
from orchestrator.errors import CheckpointError, UsageError
from remote_payload.schema.capture_rule import WiringFacts
from remote_payload.schema.target_states import HINT, beyond_layers, other_width

PATHS = ("/", "~")
"""How a path begins; anything else may be a name on a hub."""


def require_models(facts: WiringFacts, host: str, model: str | None, draft: str | None) -> None:
    """Raise CheckpointError for a path whose config.json was not found, or says nothing: no stage could use it."""
    given = (("target", model, facts.target_config), ("drafter", draft, facts.draft_config))
    for whose, folder, text in given:
        if folder is not None and folder.startswith(PATHS):
            require_config(whose, folder, text, host)


def require_config(whose: str, folder: str, text: str | None, host: str) -> None:
    """Raise CheckpointError where `text` is no JSON object; None = it could not be read."""
    why = "could not be read" if text is None else "is no JSON object"
    if text is None or not _is_object(text):
        raise CheckpointError(
            f"the {whose}'s config.json {why} on host `{host}`: {folder.rstrip('/')}/config.json",
            hint="name the folder of a model on that host, from `/` or `~` on",
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def require_possible(asked: Asked, facts: WiringFacts | None) -> None:
    """Raise UsageError for `--trained`, or labels of rows, that this target and this drafter's fc cannot mean.

    What was not read on the host refuses nothing.
    """
    trained, labels = asked.trained_states, asked.samples.get("states")
    wrong = None
    if trained is not None:
        if len(set(trained)) < len(trained):
            wrong = f"--trained: expected different states, found: {asked.trained}"
        if facts is not None:
            layers = layers_of(facts.target_config)
            wrong = (
                wrong
                or beyond_layers("--trained", trained, layers)
                or other_width("--trained", trained, takes_of(facts))
            )
    if labels is not None and facts is not None:
        named = jobfile.parse_states(labels, "--states")
        wrong = wrong or beyond_layers("--states", named, layers_of(facts.target_config))
    if wrong is not None:
        raise UsageError(wrong, hint=HINT)
