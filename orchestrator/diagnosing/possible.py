"""What was said of the states, beside the two models as they lie on the host: refused before any stage is run."""

from orchestrator import jobfile
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosis.effective_capture import layers_of
from orchestrator.diagnosis.fc_width import takes_of
from orchestrator.errors import UsageError
from remote_payload.schema.capture_rule import WiringFacts
from remote_payload.schema.target_states import HINT, beyond_layers, other_width


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
