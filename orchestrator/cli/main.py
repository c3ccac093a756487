"""`eagle3-remote`: the command group, and the one place where an error becomes words and an exit code."""

import atexit
import gc
import importlib
import signal
import sys
from typing import NoReturn

import click

from orchestrator import __version__
from orchestrator.errors import DetachedError, Eagle3Error, OutputClosedError, OutputError

# Commands are imported when they are called: `--help` must not pay for SSH. name -> (module, short help).
COMMANDS = {
    "run": ("orchestrator.cli.run", "Run a job on a host, follow it, bring its result home."),
    "diagnose": ("orchestrator.cli.diagnose", "Find out why a drafter is slow: from the cheapest look to the dearest."),
    "sweep": ("orchestrator.cli.sweep", "Measure many points on a host while this laptop sleeps."),
    "schedule": ("orchestrator.cli.schedule", "What a host launches again and again while every laptop is off."),
    "explain": ("orchestrator.cli.explain", "Show exactly what a run or a sweep executes."),
    "explain-wiring": (
        "orchestrator.cli.explain_wiring",
        "Say which states the SGLang on a host would feed a drafter, by its source.",
    ),
    "attach": ("orchestrator.cli.attach", "Follow a run that goes on on a host, and bring its result home."),
    "status": ("orchestrator.cli.status", "Show the state of runs on a host."),
    "logs": ("orchestrator.cli.logs", "Show what a job printed."),
    "cancel": ("orchestrator.cli.cancel", "End a run and everything it started."),
    "hosts": ("orchestrator.cli.hosts", "List the configured hosts, or look at one."),
    "gc": ("orchestrator.cli.gc", "Make room on a host, or here: what could go, and why the rest stays."),
    "runs": ("orchestrator.cli.runs", "List, show, tag, export, import and remove the runs on this laptop."),
    "import": ("orchestrator.cli.import_", "Keep result files of other tools as runs, to compare with."),
    "baseline": ("orchestrator.cli.baseline", "Name a run or a number to compare with."),
    "diff": ("orchestrator.cli.diff", "Compare runs, baselines, files and sets of runs."),
    "expect": ("orchestrator.cli.expect", "Judge what was expected of a run; JUnit XML for CI."),
    "report": ("orchestrator.cli.report", "Write a report on runs: one HTML file, Markdown, CSV or JSON."),
    "demo": ("orchestrator.cli.demo", "Tell the story on this machine: embedded SSH server, bundled drafter."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on call; `--help` needs the table only."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = COMMANDS[cmd_name][0]
        command = getattr(importlib.import_module(module), module.rpartition(".")[2])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command list of `--help`, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="eagle3-remote")
def cli() -> None:
    """Find out why an EAGLE-3 drafter is slow, from your laptop.

    Tests the drafter on the GPU server, outside SGLang, on captured training samples: which states it was trained on,
    which ones serving feeds it, and the config line that mends the difference.
    """


def _leave(number: int, _: object) -> NoReturn:
    """End by a signal, but in order: what was learnt of a run is stored on the way out."""
    sys.exit(128 + number)


def main() -> NoReturn:
    """Run the command line and exit with a code by kind of error (see `orchestrator/errors.py`)."""
    from orchestrator.cli import console

    # Looking for garbage among what was just imported is a tenth of a short command's time, half of it at exit.
    gc.set_threshold(300_000)
    atexit.register(gc.freeze)
    console.open_closed_streams()
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup's choice stays
            signal.signal(number, _leave)
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        console.note("stopped")
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DetachedError as error:  # what the user wanted, so no error
        console.silence(sys.stdout)  # it may be why
        console.note(error.message)
        console.note(error.hint or "")
        sys.exit(error.exit_code)
    except OutputError as error:
        console.silence(sys.stdout)
        if not isinstance(error, OutputClosedError):
            console.show_error(error)
        sys.exit(error.exit_code)
    except Eagle3Error as error:
        console.show_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        console.note("stopped before anything was launched")
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last resort: a bug of ours, said as such
        console.show_bug(error)
        sys.exit(70)
