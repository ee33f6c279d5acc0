"""`collect run`: one collection from its opening until it is settled, or one job of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.group import FAILED
from collection_pipeline.cli.opening import RUN_ID
from collection_pipeline.cli.state_table import StateTable, look
from collection_pipeline.cli.terminal import note

if TYPE_CHECKING:
    from collection_pipeline.cli.session import Session
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.run_ids import RunId


@click.command()
@click.argument("run_id", type=RUN_ID, required=False)
@click.option("--only", metavar="JOB", help="Run this job alone, or say why it cannot.")
@click.option("--json", "as_json", is_flag=True, help="End with one JSON object, the same as `collect status --json`.")
@click.pass_context
def run(ctx: click.Context, *, run_id: RunId | None, only: str | None, as_json: bool) -> None:
    """Collect: open RUN_ID if it is new, then run what is due until it is settled. Without RUN_ID: today's run.

    A settled run is left as it is. With --only, exactly one job is started: it is refused in words while its upstreams
    are not there, and not run again when its artifact is there and nothing has changed, so that a script
    `collect run R --only A && collect run R --only B` can be restarted without paying twice.
    """
    settings, kept = opening.to_collect()
    run_id = run_id or opening.today(settings)
    settled = None if only is not None else _settled(kept, run_id.text)
    if settled is not None:
        settled.print(as_json=as_json)
        note(f"Run {run_id} is settled, so there was nothing to do. To collect again:")
        note(f"  collect run {run_id.further()}  (a further collection)")
        note(f"  collect rerun {next(iter(kept.store.graph_of(run_id.text).jobs))} {run_id}  (anew, in this run)")
        ctx.exit(settled.exit_code)
    from collection_pipeline.cli.session import GRAPH, session

    job_id = None if only is None else opening.known_job(only, GRAPH.jobs)
    with session(settings, kept.store, run_id) as work:
        found = _settle(work) if job_id is None else _only(work, job_id)
    code, table = found
    table.print(as_json=as_json)
    ctx.exit(code)


def _settled(kept: Collection, run_id: str) -> StateTable | None:
    """The run, if it is there and nothing is left to do: seen without loading Dagster."""
    from collection_pipeline.engine.store import UnknownRunError

    try:
        found = look(opening.of_run(kept, run_id), run_id)
    except UnknownRunError:
        return None
    return found if found.found.is_shown and found.settled else None


def _settle(work: Session) -> tuple[int, StateTable]:
    given_up = work.settle("collect run")
    found = look(work.collection, work.run_id)
    if given_up is None:
        return found.exit_code, found
    work.display.say(f"Gave up on run {work.run_id}, since executing it changed nothing: {given_up}")
    return FAILED, found


def _only(work: Session, job_id: str) -> tuple[int, StateTable]:
    before = work.advance().plan.decisions[job_id]
    if before.status == "done":
        work.display.say(f"{job_id} of {work.run_id} is done already, and nothing that it reads has changed.")
        return 0, look(work.collection, work.run_id)
    problem = work.execute([job_id], {})
    explanation = work.advance()
    if explanation.plan.decisions[job_id].status in ("done", "skipped"):
        return 0, look(work.collection, work.run_id)
    work.display.say(problem or explanation.reason(job_id))
    return FAILED, look(work.collection, work.run_id)
