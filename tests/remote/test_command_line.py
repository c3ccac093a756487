"""The command line must mean the same argv to every login shell."""

import json
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import UsageError
from orchestrator.remote.command_line import command_line

SHOW_ARGV = "import json, sys; print(json.dumps(sys.argv[1:]))"
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "tcsh")
STRANGE = [
    "a b",
    "it's",
    'say "hi"',
    "a;touch /tmp/pwned",
    "line\nbreak",
    "ends with newline\n",
    "\n",
    "",
    "$HOME `id` $(id)",
    "back\\slash \\\\ \\' \\n \\0101",
    "!history !! !$",
    "* ? [a] {b,c} ~ ~root",
    "größe 漢字 🚀",
    "tab\tand\x01control\x7f",
    "%s %d %% %b",
    "-n",
    "--",
    "=ls",
    "#comment",
    "^x^y",
    "<in >out &bg |pipe",
    "A=b",
    "\udcff",
]


def through(shell: str, argv: list[str]) -> list[str]:
    done = subprocess.run([shell, "-c", command_line(argv)], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("shell", SHELLS)
def test_strange_words_survive(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    assert through(shell, [sys.executable, "-I", "-S", "-c", SHOW_ARGV, *STRANGE]) == STRANGE


@pytest.mark.parametrize("shell", SHELLS)
def test_plain_words_go_as_they_are(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    argv = ["echo", "a-b_c", "x=1", "./p/q.py", "@f", "1,2", "a:b", "+3", "%p"]
    line = command_line(argv[:-1])
    assert line == "exec echo a-b_c x=1 ./p/q.py @f 1,2 a:b +3"
    done = subprocess.run([shell, "-c", command_line(argv)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == argv[1:]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), max_size=4))
def test_any_text_survives_posix_sh(words: list[str]) -> None:
    assert through("sh", [sys.executable, "-I", "-S", "-c", SHOW_ARGV, *words]) == words


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), min_size=1))
def test_the_line_holds_only_characters_every_shell_agrees_on(words: list[str]) -> None:
    line = command_line(words)
    assert line.isascii()
    assert line.isprintable()
    assert "!" not in line
    assert line.startswith("exec ")


@pytest.mark.parametrize("argv", [[], ["a\0b"]])
def test_what_no_argv_can_hold_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        command_line(argv)
