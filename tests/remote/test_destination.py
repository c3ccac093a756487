"""What may be typed for a host."""

import pytest

from orchestrator.errors import UsageError
from orchestrator.remote.destination import Destination, parse_destination


@pytest.mark.parametrize(
    ("text", "user", "host", "port"),
    [
        ("gpu1", None, "gpu1", None),
        ("ann@gpu1", "ann", "gpu1", None),
        ("ann@gpu1:2222", "ann", "gpu1", 2222),
        ("gpu1:2222", None, "gpu1", 2222),
        ("[fe80::1]:22", None, "fe80::1", 22),
        ("ann@[::1]", "ann", "::1", None),
        ("fe80::1", None, "fe80::1", None),
        ("ssh://ann@gpu1:2222/", "ann", "gpu1", 2222),
        ("ann@corp@gpu1", "ann@corp", "gpu1", None),
        ("größe", None, "größe", None),
    ],
)
def test_taken_apart(text: str, user: str | None, host: str, port: int | None) -> None:
    assert parse_destination(text) == Destination(user=user, host=host, port=port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=touch x",
        "ann@-oProxyCommand=x",
        "-l@gpu1",
        "@gpu1",
        "ann@",
        "gpu 1",
        "gpu1;reboot",
        "gpu1\nHost x",
        "gpu1'",
        'gpu"1',
        "gpu`id`",
        "$(id)",
        "gpu\\1",
        "a|b",
        "gpu1\x00",
        "gpu\u202e1",
        "gpu1\u00a0",
        "gpu1:",
        "gpu1:0",
        "gpu1:65536",
        "gpu1:٣",
        "gpu1:2x",
        "[::1",
        "[::1]22",
        "a,b",
    ],
)
def test_refused_with_the_text_shown(text: str) -> None:
    if text == "gpu1:":
        assert parse_destination(text) == Destination(host="gpu1")  # as scp reads it
        return
    with pytest.raises(UsageError) as caught:
        parse_destination(text)
    assert repr(text) in caught.value.message
