"""Whatever command may see a run end can be told to tell nobody."""

from collections.abc import Iterator

import click

from orchestrator.cli.main import cli


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


def test_what_can_be_detached_from_may_be_told_to_tell_nobody() -> None:
    waits = {name: one for name, one in commands(cli) if any("--detach" in option.opts for option in one.params)}
    assert {"run bench", "sweep run", "sweep resume", "sweep confirm"} <= waits.keys()
    silent = [
        name for name, one in waits.items() if not any("--no-notify" in option.secondary_opts for option in one.params)
    ]
    assert silent == []
