"""A group of commands whose `--help` tells each with its whole first sentence: click alone cuts them at a line."""

import re

import click

_SENTENCE = re.compile(r".+?[.!?](?= |$)")


class ToldGroup(click.Group):
    """Commands that are told whole."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command list of `--help`."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first(command.help or "")) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first(text: str) -> str:
    """The first sentence of the first paragraph, on one line."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return paragraph if found is None else found.group()
