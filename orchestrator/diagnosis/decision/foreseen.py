"""What is known before anything runs: the asked shape by SGLang's rule, and the two config.json beside each other."""

from collections.abc import Iterator

from orchestrator.diagnosis.config_text import count_of, object_of, text_part
from orchestrator.diagnosis.decision.axes import Signal
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.planned import Planned
from orchestrator.diagnosis.fc_width import fc_width
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject
from orchestrator.diagnosis.served_asked import ARGUMENTS
from orchestrator.diagnosis.served_shape import shapes_for
from remote_payload.schema.capture_rule import WiringFacts

CONFIGS = Subject(check="K2", title="the drafter's config beside the target's")
STARTS = Subject(check="K6", title="whether the server would start")
NEVER_UP = "the server does not come up with this drafter"
UNUSED = "the server comes up with this drafter and does not use its fc"
WIDTH = Subject(check="K2", title="fc beside the states that are captured")


def foreseen_arguments(known: Known) -> Iterator[Signal]:
    """The shape that no server will run as it is asked for; none where a server told, or nothing speaks against it."""
    planned = known.planned
    if known.served is not None or planned is None or not _is_overridden(planned):
        return
    steps, wanted = planned.num_steps or 0, planned.num_draft_tokens
    version = known.sglang_version
    source = (
        "its source does so at topk 1" if planned.forces_draft_tokens else "not read; 0.4.8 and later do so at topk 1"
    )
    found = ARGUMENTS.finding(
        f"asked for {wanted} draft tokens, the server will run with {steps + 1}: with eagle_topk 1 it takes "
        f"num_steps + 1 = {steps + 1}",
        severity="serious",
        cause="parameters",
        evidence=(
            Evidence(name="draft tokens asked for", value=wanted),
            Evidence(name="draft tokens that it will run with", value=steps + 1),
            Evidence(name="the installed SGLang", value=f"{version or 'of unknown version'}: {source}"),
        ),
        remedy=shapes_for(wanted),
        refuted_by=f"/server_info with speculative_num_draft_tokens {wanted}",
    )
    yield Signal(axis="arguments", answer="foreseen", results=(found,))


def _is_overridden(planned: Planned) -> bool:
    if not planned.is_chain or planned.num_steps is None or planned.num_draft_tokens is None:
        return False
    return planned.forces_draft_tokens is not False and planned.num_draft_tokens != planned.num_steps + 1


def foreseen_checks(known: Known) -> Iterator[CheckResult]:
    """Two config.json that do not go together, and a source by which the server ends at its start."""
    if known.served is not None or known.fed is not None:  # it runs: what ends a server at its start is not so
        if known.planned is not None:
            yield from _fc(known, known.planned, runs=True)
        return
    resolved = known.resolved
    if known.planned is not None:
        told = tuple(_configs(known.planned))
        yield from told
        if not any(item.outcome == "finding" for item in told) and (resolved is None or not resolved.fails):
            yield from _fc(known, known.planned, runs=False)
    if resolved is not None and resolved.fails and resolved.problem is not None:
        yield STARTS.finding(
            f"by the source of SGLang {resolved.sglang_version or 'of unknown version'} the server does not come up "
            f"with this drafter: {resolved.problem}",
            severity="serious",
            cause="wiring",
            evidence=tuple(Evidence(name="the source says", value=step) for step in resolved.reasoning[-3:]),
            remedy=("name states that this SGLang can capture, or serve with one that can capture these",),
            refuted_by="a server that starts with this drafter and answers",
        )


def _fc(known: Known, planned: Planned, *, runs: bool) -> Iterator[CheckResult]:
    """Whether fc.weight takes as many states as the installed source captures; none where nobody read it.

    Of a server that `runs`, only what does not keep it from coming up.
    """
    if planned.fc_shape is None or known.source is None:
        return
    captured = None if known.resolved is None else known.resolved.states
    facts = WiringFacts(
        rule=known.source.rule,
        target_config=planned.target_config,
        draft_config=planned.draft_config,
        fc_shape=planned.fc_shape,
    )
    found = fc_width(facts, captured)
    if found.fits and not runs:
        yield WIDTH.passed(found.summary)
    if found.fits is False and (found.starts or not runs):
        yield WIDTH.finding(
            f"{UNUSED if found.starts else NEVER_UP}: {found.summary}",
            severity="fatal",
            cause="loading",
            evidence=(
                Evidence(name="columns of fc.weight", value=planned.fc_shape[1]),
                Evidence(name="states that would be captured", value=None if captured is None else len(captured)),
            ),
            remedy=("name as many states as fc.weight takes, or serve the drafter that this config belongs to",),
            refuted_by=(
                "served lengths as the walk through fc foretells them"
                if found.starts
                else "a server that starts with this drafter and answers"
            ),
        )


def _configs(planned: Planned) -> Iterator[CheckResult]:
    """Width: the drafter's fc takes the target's states, and SGLang sizes it by the drafter's own config.json."""
    draft, target = object_of(planned.draft_config), object_of(planned.target_config)
    made_for = next((width for key in ("target_hidden_size", "hidden_size") if (width := count_of(draft, key))), None)
    width = count_of(text_part(target), "hidden_size")
    if made_for is None or width is None:
        return
    if made_for == width:
        yield CONFIGS.passed(f"the drafter is made for states of {width} numbers, which is what this target has")
        return
    yield CONFIGS.finding(
        f"the drafter is made for states of {made_for} numbers, this target's have {width}: another target's drafter",
        severity="fatal",
        cause="loading",
        evidence=(
            Evidence(name="width by the drafter's config.json", value=made_for),
            Evidence(name="width by the target's config.json", value=width),
        ),
        remedy=("serve it with the target it was trained for, or mend target_hidden_size if the weights are right",),
        refuted_by="a tensor fc whose input width is a multiple of the target's",
    )
