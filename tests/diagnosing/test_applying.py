"""What is applied: a change that mends, on what was measured, and never on a word alone."""

from dataclasses import replace

import pytest

from orchestrator.diagnosing.applying import fix_of
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.walk import Diagnosed
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.errors import InvalidRunError
from remote_payload.schema.standalone import SharedTensorFacts
from tests.diagnosing.test_stages import asked
from tests.diagnosis.decision.scenes import FED_WRONG, TRAINED, fed, offline, offline_of
from tests.support.made_measured import LATER, SHIFTED, WORSE, Made, Rows, made_measured
from tests.support.made_results import made_declared

SAID = replace(fed(FED_WRONG, TRAINED), target_class="LlamaForCausalLM", target_layers=8)
NO_HEAD = (SharedTensorFacts(name="lm_head", stored=False, used="target", served="random"),)
WRONG = made_declared(FED_WRONG, LATER, config_ids=(1, 3, 4))


def diagnosed(known: Known) -> Diagnosed:
    return Diagnosed(asked=asked(), known=known, decision=decide(known), results=Results())


def test_what_was_measured_is_applied() -> None:
    assert fix_of(diagnosed(Known(offline=offline("wrong"), fed=SAID))).config


def test_a_word_that_picks_one_of_two_sets_that_read_alike_is_applied() -> None:
    """Both were measured, and surely ahead of what is fed; what is served of it proves it."""
    near = (Made(), Made((0.745, 0.72, 0.7, 0.7), (0, 1, 3)), WORSE, SHIFTED)
    test = offline_of(made_measured(near, declared=WRONG, rows=Rows(count=12)))
    assert fix_of(diagnosed(Known(offline=test, fed=replace(SAID, trained=(0, 2, 5))))).rests_on is not None


def test_on_a_word_alone_nothing_is_applied() -> None:
    with pytest.raises(InvalidRunError, match="without the standalone test"):
        fix_of(diagnosed(Known(fed=SAID)))
    poor = (Made((0.3,) * 4), Made((0.12,) * 4, LATER))
    broken = offline_of(made_measured(poor, declared=WRONG, checkpoint_shared=NO_HEAD))
    with pytest.raises(InvalidRunError, match=r"rests on the trainer's word for \[embed, layer 2, layer 4\] alone"):
        fix_of(diagnosed(Known(offline=broken, fed=SAID)))
