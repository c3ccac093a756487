"""The draft vocabulary's map under every reading, and which one is the checkpoint's own."""

import pytest
import torch

from remote_payload.failure import JobFailure
from tests.standalone.checkpoint.writing import Scene, flag

OWN = torch.arange(24)


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def readings(checkpoint):
    return {item.reading: item for item in checkpoint.facts.vocabulary.readings}


def test_offsets(scene):
    checkpoint = scene.load()
    assert checkpoint.graph.vocabulary == "offset"
    assert {kind: ids.tolist() for kind, ids in checkpoint.vocabularies.items()} == {
        "offset": list(range(16, 40)),
        "identity": list(range(24)),
    }
    facts = checkpoint.facts.vocabulary
    assert (facts.d2t, facts.all_zero, facts.t2d_marked, facts.vocab_size) == (True, False, 24, 40)
    offset = readings(checkpoint)["offset"]
    assert (offset.in_range, offset.distinct, offset.increasing, offset.agrees_with_t2d) == (24, 24, True, True)
    assert readings(checkpoint)["absolute"].distinct == 1


def test_the_heads_rows_tell_the_reading(scene):
    theirs = scene.tiny.draw(40, 16, salt=102)
    checkpoint = scene.load({"lm_head.weight": theirs[16:]})
    assert readings(checkpoint)["offset"].head_cosine == pytest.approx(1, abs=1e-5)
    assert abs(readings(checkpoint)["identity"].head_cosine) < 0.3
    head = {item.name: item for item in checkpoint.facts.shared}["lm_head"]
    assert (head.identical, head.mean_cosine) == (True, pytest.approx(1, abs=1e-5))


def test_target_ids_instead_of_offsets(scene):
    checkpoint = scene.load({"d2t": torch.arange(16, 40)})
    assert checkpoint.target_ids.tolist() == list(range(16, 40))
    assert checkpoint.served.changes_from(checkpoint.graph) == ("vocabulary=offset",)
    found = flag(checkpoint, "vocabulary")
    assert "12 of 24 ids outside the vocabulary" in found.evidence
    assert "subtract arange" in checkpoint.warnings[0]
    assert checkpoint.vocabularies["offset"].tolist() == [*range(16, 40, 2), *[-1] * 12]


def test_no_map_where_there_is_one_vocabulary(tmp_path):
    scene = Scene(tmp_path, draft_vocab=40)
    checkpoint = scene.load(without=["d2t", "t2d"])
    assert list(checkpoint.vocabularies) == ["offset"]
    assert checkpoint.target_ids.tolist() == list(range(40))
    assert checkpoint.facts.vocabulary.readings == ()
    with pytest.raises(JobFailure, match="d2t: missing"):
        Scene(tmp_path).load(without=["d2t"])


def test_a_map_of_zeros(scene):
    checkpoint = scene.load({"d2t": torch.zeros(24, dtype=torch.int64)})
    assert checkpoint.facts.vocabulary.all_zero
    assert list(checkpoint.vocabularies) == ["offset"]
    assert checkpoint.warnings[0].startswith("t2d names other target tokens")


def test_a_few_ids_that_lead_nowhere(scene):
    d2t = torch.full((24,), 16)
    d2t[3], d2t[5] = 1000, 15
    checkpoint = scene.load({"d2t": d2t}, without=["t2d"])
    assert checkpoint.target_ids.tolist() == [16, 17, 18, -1, 20, 20, *range(22, 40)]
    (warning,) = checkpoint.warnings
    assert "1 of 24 ids outside the vocabulary and 1 to a token that another leads to already" in warning
    assert not readings(checkpoint)["offset"].increasing


def test_an_order_of_its_own_is_a_fact_not_a_failure(scene):
    order = OWN.roll(7)
    checkpoint = scene.load({"d2t": 16 + order - OWN})
    assert checkpoint.warnings == ()
    assert (readings(checkpoint)["offset"].increasing, readings(checkpoint)["offset"].distinct) == (False, 24)


def test_garbage_ends_the_job(scene):
    with pytest.raises(JobFailure, match="different target tokens") as caught:
        scene.load({"d2t": torch.full((24,), -100)})
    assert caught.value.failure.details == ("as an offset: -100..-77", "as target ids: -100..-100")


def test_more_draft_than_target_tokens(tmp_path):
    with pytest.raises(JobFailure, match="must be at most `vocab_size` = 40, found: 48"):
        Scene(tmp_path).load(
            {"lm_head.weight": torch.ones(48, 16), "d2t": torch.zeros(48, dtype=torch.int64)}, draft_vocab_size=48
        )


@pytest.mark.parametrize(("config", "served"), [({}, "random"), ({"draft_vocab_size": None}, "target")])
def test_a_head_from_the_target(tmp_path, config, served):
    scene = Scene(tmp_path, draft_vocab=40)
    checkpoint = scene.load(without=["lm_head.weight", "d2t", "t2d"], **config)
    head = {item.name: item for item in checkpoint.facts.shared}["lm_head"]
    assert (head.stored, head.used, head.served) == (False, "target", served)
    assert bool(checkpoint.warnings) == (served == "random")


def test_a_stored_head_wins_over_a_tie(scene):
    checkpoint = scene.load(tie_word_embeddings=True)
    assert torch.equal(checkpoint.weights["lm_head.weight"], scene.tensors["lm_head.weight"])
    assert {note.key for note in checkpoint.facts.notes} == {"tie_word_embeddings"}
    tied = scene.load(without=["lm_head.weight"], tie_word_embeddings=True)
    assert torch.equal(tied.weights["lm_head.weight"], scene.tiny.draw(40, 16, salt=100)[16:])
