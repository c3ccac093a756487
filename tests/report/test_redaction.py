"""Nothing private leaves: what is known to be private wherever it stands, what looks private by its form."""

import dataclasses
import json
import time

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_markdown import decision_markdown
from orchestrator.report.document_json import json_text
from orchestrator.report.redaction import ENDPOINTS, Private, Redaction
from tests.diagnosis.decision.scenes import fed, story

PRIVATE = Private(secrets=("hunter2!x",), hosts=("gpu-box-7",), users=("mallory",), paths=("/srv/my models/x",))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("on gpu-box-7", "on HOST-1"),
        ("on GPU-BOX-7.", "on HOST-1."),
        ("mallory ran it", "USER-1 ran it"),
        ("mallory@gpu-box-7:22 refused", "ACCOUNT-1 refused"),
        ("key hunter2!x inside", "key SECRET-1 inside"),
        ("prefixhunter2!xsuffix", "prefixSECRET-1suffix"),
        ("read /srv/my models/x now", "read PATH-1 now"),
        ("read /home/eve/draft/config.json, then", "read PATH-1, then"),
        ("in ~/models/k2 and ~eve/x", "in PATH-1 and PATH-2"),
        (r"in C:\Users\eve\draft and \\nas\share", "in PATH-1 and PATH-2"),
        ("file:///etc/passwd", "URL-1"),
        ("http://10.0.0.7:30000/generate failed", "URL-1 failed"),
        ("https://user:pw@hub.corp/x", "URL-1"),
        ("ssh eve@cluster.example", "ssh ACCOUNT-1"),
        ("at 192.168.3.4:22, then", "at ADDRESS-1, then"),
        ("at fe80::1ff:fe23:4567:890a now", "at ADDRESS-1 now"),
        ("mac 0a:1b:2c:3d:4e:5f", "mac ADDRESS-1"),
        ("GPU-1a2b3c4d-aaaa-bbbb-cccc-1234567890ab", "DEVICE-1"),
        ("node12.cluster.internal answered", "HOST-1 answered"),
        ("token hf_abcdefghijklmnop", "token SECRET-1"),
        ("sk-ABCDEFGH12345678 leaked", "SECRET-1 leaked"),
        ("--api-key topsecret --port 1", "--api-key SECRET-1 --port 1"),
        ('{"admin_api_key": "topsecret"}', '{"admin_api_key": "SECRET-1"}'),
        (r"{\"password\": \"topsecret\"}", r"{\"password\": \"SECRET-1\"}"),
        ("jwt eyJhbGciOi.eyJzdWIiOiIx.sig-nature", "jwt SECRET-1"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a SECRET-1 b"),
        ("a -----BEGIN PRIVATE KEY-----\nMIIE cut off", "a SECRET-1"),
        ("PATH=/usr/bin:/opt/x", "PATH=PATH-1:PATH-2"),
        ("eve@nas:/data/x", "ACCOUNT-1:PATH-1"),
        (r"read /srv/my models/x\| next", r"read PATH-1\| next"),
        (r"| /data/x\|y | b |", r"| PATH-1\|y | b |"),
        (r"| http://a.b/c\\| b |", r"| URL-1\\| b |"),
        ("on gpu-\n  box-7, and", "on HOST-1, and"),
        (r"secret hunter2\!x", "secret SECRET-1"),
        (
            "<summary>Checks</summary> </details> </home> in </data/x>",
            "<summary>Checks</summary> </details> <PATH-1> in <PATH-2>",
        ),
        ("\u200bgpu\u200b-box\u2060-7\u202e", "HOST-1"),
        ("\uff47\uff50\uff55-box-7", "HOST-1"),
        ("serves another model: meta-llama/Llama-3.1-8B, not", "serves another model: PATH-1, not"),
    ],
)
def test_what_is_private_goes(text, left):
    assert Redaction(private=PRIVATE).text(text) == left


def test_known_names_go_in_their_escaped_spelling_too():
    private = Private(paths=("/srv/dra*ft [x]",), hosts=("a_b-host",), users=("e*e",))
    for text in ("in /srv/dra*ft [x].", r"in /srv/dra\*ft \[x\].", r"on a\_b-host", r"by e\*e"):
        clean = Redaction(private=private).text(text)
        assert clean in ("in PATH-1.", "on HOST-1", "by USER-1"), clean


def test_a_bearers_token_goes_whatever_stands_before_it():
    for text in ("Authorization: Bearer abc.def", "authorization=Bearer abc.def", "sent bearer abc.def"):
        assert "abc.def" not in Redaction().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "asked for 16 draft tokens, the server runs with 2",
        "56.8 against 90.0 tok/s (0.63x) at 12:34:56 and 3/1/4",
        'set "eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]} in config.json',
        "SGLang 0.5.22 to 0.5.23, sha256 cdcdcdcdcdcd, K12 and/or K13",
        "draft_token_num: 3, api_key: null, num_draft_tokens = 2, max_new_tokens: 64, speculative_num_draft_tokens 16",
        "accept length / r; +1.6 points [75.0, 80.6] n=852; step 2:3",
        "see https://github.com/sgl-project/sglang/pull/33518 for the names",
        *(f"answered {path} with 200" for path in ENDPOINTS),
        "PATH-1 and HOST-2 are placeholders already",
        "train/held-out, tok/s, K12/K13, and/or, jobs/standalone.toml, float32/bfloat16",
    ],
)
def test_what_is_nobodys_stays(text):
    assert Redaction(private=PRIVATE).text(text) == text


def test_equal_values_have_equal_placeholders_over_texts_and_values():
    redaction = Redaction(private=PRIVATE)
    first = redaction.text("from /a/b to /c/d on gpu-box-7")
    second = redaction.values({"draft": "/c/d", "/a/b": ["/a/b/", 3, None, True], "host": "gpu-box-7"})
    assert first == "from PATH-1 to PATH-2 on HOST-1"
    assert second == {"draft": "PATH-2", "PATH-1": ["PATH-1", 3, None, True], "host": "HOST-1"}


def test_a_path_with_blanks_goes_whole_where_it_is_a_value():
    assert Redaction().values({"rows": "/home/eve/my rows/train", "url": "/server_info"}) == {
        "rows": "PATH-1",
        "url": "/server_info",
    }


def test_redacting_twice_changes_nothing():
    redaction = Redaction(private=PRIVATE)
    once = redaction.text("eve@gpu-box-7 read /home/eve/x with hf_abcdefghijklmnop at 10.0.0.7")
    assert Redaction(private=PRIVATE).text(once) == once


def test_a_short_name_goes_where_it_stands_as_a_word():
    redaction = Redaction(private=Private(users=("me",), hosts=("h1", "7")))
    told = redaction.text("some measure on h1, me@h1: see `--host h1`; H1 and h1-x of 7 rows, --host 7")
    assert told == "some measure on HOST-1, ACCOUNT-1: see `--host HOST-1`; H1 and h1-x of 7 rows, --host HOST-2"


def test_a_name_is_not_sought_in_a_placeholder():
    redaction = Redaction(private=Private(users=("path", "host"), paths=("/srv/x y",)))
    assert (
        redaction.text("path of host: /srv/x y and /srv/x\n   y, PATH-1")
        == "USER-1 of USER-2: PATH-1 and PATH-1, PATH-1"
    )


def test_a_known_name_goes_however_its_letters_are_composed():
    assert Redaction(private=Private(paths=("acme/me\u0301t",))).text("in acme/m\u00e9t") == "in PATH-1"


@pytest.mark.parametrize("user", ["fed", "rows", "wiring", "train", "finding", "serious"])
def test_a_user_who_is_called_like_our_words_breaks_no_report(user):
    found = Redaction(private=Private(users=(user,))).record(decide(story()))
    assert found.verdict == "wiring"
    assert json_text(decision_json(found))
    assert decision_markdown(found)


def test_a_whole_decision_without_hosts_users_or_paths():
    known = story(fed=dataclasses.replace(fed((2, 4, 5)), run_id="run-by-mallory"))
    found = decide(known)
    spoken = dataclasses.replace(
        found, also=(*found.also, "eve@gpu-box-7: /srv/target", "export HF_TOKEN=topsecretvalue")
    )
    clean = Redaction(private=PRIVATE).record(spoken)
    for text in (decision_markdown(clean), json_text(decision_json(clean))):
        for word in ("mallory", "gpu-box-7", "/srv", "topsecretvalue", "eve@"):
            assert word not in text
    assert "asked for 16 draft tokens" in decision_markdown(clean)
    assert clean.fix == found.fix
    values = Redaction(private=PRIVATE).values(json.loads(json_text(decision_json(spoken))))
    assert "/srv" not in json.dumps(values)
    assert "topsecretvalue" not in json.dumps(values)
    assert values["causes"] == ["wiring", "parameters", "economics"]


@pytest.mark.parametrize(
    "unit", ["/a", "a@", "0:", "1.", "http://", "token=", "-----BEGIN ", "~/", "a.b.", "eyJa", "\\\\"]
)
def test_a_long_hostile_text_costs_its_length(unit):
    text = unit * (60000 // len(unit))
    begun = time.perf_counter()
    Redaction(private=PRIVATE).text(text)
    assert time.perf_counter() - begun < 5
