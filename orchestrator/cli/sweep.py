"""`eagle3-remote sweep`: many points, measured on the host while the laptop sleeps."""

from pathlib import Path
from typing import Any

import click

from orchestrator.cli import showing
from orchestrator.cli import sweep_many as many
from orchestrator.cli.every import every_options, only_on_one_host, take_every
from orchestrator.cli.groups import ToldGroup
from orchestrator.cli.live import watching
from orchestrator.cli.notify import notify_end_of, notify_option
from orchestrator.cli.options import (
    Seconds,
    accept_new_option,
    host_of,
    json_option,
    open_session,
    open_store,
    several_hosts_option,
    tell_what_matters,
)
from orchestrator.cli.sweep_again import confirm, resume
from orchestrator.cli.sweep_ending import follow_home, require_home, show_end, sweep_session, tell_problems
from orchestrator.cli.sweep_hosts import mix_options, or_of_several
from orchestrator.cli.sweep_hosts import named as named_hosts
from orchestrator.cli.waiting import take_wish, tell_start, waiting_options


@click.group(cls=ToldGroup)
def sweep() -> None:
    """Measure many points on a host, one after the other, while this laptop may sleep.

    A sweep is a run of its host, and so is each of its starts: `status`, `logs`, `cancel`, `diff` and `report` take
    them as they take every run.
    """


@sweep.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@several_hosts_option(required=True)
@click.option("--set", "assigned", multiple=True, metavar="KEY=VALUE", help="A setting that all points share.")
@click.option("--model", help="Folder or hub id of the target, on the host.")
@click.option("--draft", help="Folder of the drafter, on the host.")
@click.option("--prompts", help="bundled, or a JSONL file on the host.")
@click.option("--run-id", help="Name the sweep yourself.")
@click.option("--prune", metavar="RUN", help="Skip what cannot win by RUN: a sweep that measured, a drafter test.")
@click.option("--step-cost", metavar="R", help="Of a drafter test's --prune, as in `runs show --depths`, at one user.")
@click.option("--dry-run", is_flag=True, help="Print the points, each skip with its reason and an estimate; end.")
@mix_options
@click.option("--detach", is_flag=True, help="Return as soon as the sweep runs on its own.")
@notify_option
@accept_new_option
@json_option
@waiting_options()
@every_options()
def run(file: Path | None, host_name: str, assigned: tuple[str, ...], run_id: str | None, **asked: Any) -> None:
    """Run the points of a sweep FILE on a host; without one, steps, width and draft tokens of a served benchmark.

    One start of a server serves all loads of its configuration. What fails is kept, and the next point goes on.
    """
    from orchestrator import config, jobfile
    from orchestrator.cli import sweep_launch
    from orchestrator.cli import sweep_many_launch as many_launch
    from orchestrator.cli.sweep_pruned import pruned
    from orchestrator.cli.sweep_settings import shared_settings
    from orchestrator.sweep.file import read
    from orchestrator.sweeping import planning

    named = {key: asked[key] for key in ("model", "draft", "prompts")}
    settings = config.load(config.here())
    wish, hosts, at_times = take_wish(asked), named_hosts(host_name), take_every(asked)
    asked_file = read(jobfile.bundled_folder() / "sweep.toml" if file is None else file)
    flags = shared_settings(assigned, named)
    every = {
        name: pruned(planning.wanted(asked_file, flags, settings, name), asked["prune"], asked["step_cost"], name)
        for name in hosts
    }
    tell_start(wish.waiting())
    if len(hosts) > 1:
        only_on_one_host(at_times)
        many_launch.run(every, settings, run_id, wish, asked)
        return
    waiting = wish.waiting(settings.host(host_name).leases)
    sweep_launch.run(every[host_name], host_name, run_id, waiting, at_times, asked)


@sweep.command()
@click.argument("run_id", metavar="SWEEP")
@several_hosts_option(required=False)
@accept_new_option
@json_option
@or_of_several
def status(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """Show how far a sweep is: what is measured, what runs, what failed and why."""
    if many.is_many(run_id, host_name):
        many.status(run_id, host_name, accept_new=accept_new, as_json=as_json)
        return
    from orchestrator.cli.sweep_shown import show_progress
    from orchestrator.sweeping import asking

    with sweep_session(run_id, host_name, accept_new=accept_new) as (name, session, store):
        asked = asking.ask(session, name, store)
    show_progress(asked, as_json=as_json)


@sweep.command()
@click.argument("run_id", metavar="SWEEP")
@several_hosts_option(required=False)
@notify_option
@accept_new_option
@json_option
@or_of_several
def follow(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """Follow a sweep to its end, bring its runs home and report. Works from any laptop."""
    if many.is_many(run_id, host_name):
        many.follow(run_id, host_name, accept_new=accept_new, as_json=as_json)
        return
    store = open_store()
    run_id, host_name = host_of(run_id, host_name, store)
    with watching(as_json=as_json) as tell, open_session(host_name, tell, accept_new=accept_new) as session:
        problems = follow_home(run_id, session, store, tell)
    show_end(run_id, store, problems, as_json=as_json)


@sweep.command()
@click.argument("run_id", metavar="SWEEP")
@several_hosts_option(required=False)
@notify_option
@accept_new_option
@json_option
@or_of_several
def collect(run_id: str, host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """Bring home what has ended so far; the sweep may go on. Each start becomes a run with the sweep's tag.

    Exit code 17: something that has ended did not come home, as told; the rest did.
    """
    if many.is_many(run_id, host_name):
        many.collect(run_id, host_name, accept_new=accept_new, as_json=as_json)
        return
    from orchestrator.cli.sweep_shown import show_progress
    from orchestrator.sweeping import asking
    from orchestrator.sweeping.collecting import collect as collect_runs

    store = open_store()
    run_id, host_name = host_of(run_id, host_name, store)
    with watching(as_json=as_json) as tell, open_session(host_name, tell, accept_new=accept_new) as session:
        asked = asking.ask(session, run_id, store)
        problems = collect_runs(asked, session, store, tell)
        tell_problems(problems)
        notify_end_of(run_id, store)
    show_progress(asked, as_json=as_json)
    require_home(run_id, problems)


@sweep.command()
@click.argument("run_id", metavar="SWEEP")
@several_hosts_option(required=False)
@click.option("--grace-s", type=Seconds(0, 600), default=5.0, show_default=True, help="Between TERM and KILL.")
@accept_new_option
@json_option
@or_of_several
def cancel(run_id: str, host_name: str | None, grace_s: float, *, accept_new: bool, as_json: bool) -> None:
    """End a sweep and the start under way; what is measured stays, and `sweep resume` goes on with the rest."""
    if many.is_many(run_id, host_name):
        many.cancel(run_id, host_name, grace_s, accept_new=accept_new, as_json=as_json)
        return
    from orchestrator import pipeline
    from orchestrator.errors import JobError

    with sweep_session(run_id, host_name, accept_new=accept_new) as (name, session, store):
        answer = pipeline.cancel(session, name, grace_s, store)
    showing.show_cancel(answer, as_json=as_json)
    if answer.survivors:
        pids = ", ".join(map(str, answer.survivors))
        raise JobError(f"these processes of {name} could not be killed: {pids}")


@sweep.command("list")
@click.option("--host", "host_name", metavar="NAME", help="Ask this host as well.")
@accept_new_option
@json_option
def list_(host_name: str | None, *, accept_new: bool, as_json: bool) -> None:
    """List the sweeps this laptop knows, and those of a host."""
    from orchestrator.cli.sweep_shown import show_list

    store = open_store()
    there: tuple[tuple[str, str, str], ...] = ()
    if host_name is not None:
        from orchestrator import pipeline

        with open_session(host_name, tell_what_matters, accept_new=accept_new) as session:
            answer = pipeline.status(session, None, store)
        there = tuple(
            (spec.run_id, host_name, state.phase)
            for spec, state in zip(answer.specs, answer.states, strict=True)
            if spec.job_kind == "sweep"
        )
    show_list(store, there, as_json=as_json)


@sweep.command()
@click.argument("run_id", metavar="SWEEP")
@json_option
def report(run_id: str, *, as_json: bool) -> None:
    """Show a table of the points of a sweep from what came home: figures, n, intervals, failures. Also half-way."""
    if many.is_many(run_id, None):
        many.report(run_id, as_json=as_json)
        return
    from orchestrator.cli.sweep_shown import show_report
    from orchestrator.sweeping import asking

    store = open_store()
    show_report(asking.known(store.resolve(run_id), store), store, as_json=as_json)


sweep.add_command(resume)
sweep.add_command(confirm)
