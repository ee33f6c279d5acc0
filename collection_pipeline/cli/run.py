"""`collect run`: one collection from its opening until it is settled, or one job of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.group import FAILED, Failure
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
    settings = opening.settings_to_collect()
    if only is not None or not opening.is_begun(settings):  # what is declared wrongly begins no database
        from collection_pipeline.definitions import GRAPH

        if only is not None:
            opening.known_job(only, GRAPH.jobs)
    run_id = run_id or opening.today(settings)
    kept = opening.kept_collection(settings)
    settled = _settled(kept, run_id.text) if only is None else None
    if settled is not None:
        settled.print(as_json=as_json)
        _how_to_collect_again(kept, run_id)
        ctx.exit(settled.exit_code)
    if only is not None:
        _refuse_too_early(kept, run_id, only)
    from collection_pipeline.cli.session import session

    command = f"collect run {run_id}" + ("" if only is None else f" --only {only}")
    with session(settings, kept.store, run_id, command) as work:
        code, table = _settle(work) if only is None else _only(work, only)
    table.print(as_json=as_json)
    ctx.exit(code)


def _refuse_too_early(kept: Collection, run_id: RunId, job_id: str) -> None:
    from collection_pipeline.definitions import GRAPH
    from collection_pipeline.engine.runs.standing import refusal_in_new
    from collection_pipeline.engine.store import UnknownRunError

    try:
        kept.store.graph_of(run_id.text)
    except UnknownRunError:
        refusal = refusal_in_new(replace(kept, graph=GRAPH), run_id, job_id)
        if refusal is not None:
            raise Failure(refusal) from None


def _how_to_collect_again(kept: Collection, run_id: RunId) -> None:
    first = next(iter(kept.store.graph_of(run_id.text).jobs))
    note(f"Run {run_id} is settled, so there was nothing to do. To collect again:")
    note(f"  collect run {run_id.further()}  (a further collection)")
    note(f"  collect rerun {first} {run_id}  (anew, in this run)")


def _settled(kept: Collection, run_id: str) -> StateTable | None:
    """The run, if it is there and nothing is left to do: seen without loading Dagster."""
    from collection_pipeline.engine.store import UnknownRunError

    try:
        found = look(opening.of_run(kept, run_id), run_id)
    except UnknownRunError:
        return None
    return found if found.found.is_shown and found.settled and not found.has_stopped else None


def _settle(work: Session) -> tuple[int, StateTable]:
    settled = work.settle("collect run", resume=True)
    found = look(work.collection, work.run_id)
    return found.exit_code if settled else FAILED, found


def _only(work: Session, job_id: str) -> tuple[int, StateTable]:
    from collection_pipeline.cli.session import going_on
    from collection_pipeline.engine.runs.launches import REQUESTED_BY

    explanation = work.advance()
    before = explanation.plan.decisions[job_id]
    problem = work.held(job_id)
    if before.status == "done":
        work.display.say(f"{job_id} of {work.run_id} is done already, and nothing that it reads has changed.")
    elif before.readiness != "run":
        problem = problem or explanation.refusal(job_id)
    elif problem is None:
        # Only a failed job is run again without a reason; whatever else was asked for may be done when its turn comes.
        by_itself = {REQUESTED_BY: "collect run --only"}
        tags = going_on(explanation, job_id) if before.status == "failed" else by_itself
        problem = work.execute([job_id], tags) or work.held(job_id)
    explanation = work.advance()
    if explanation.plan.decisions[job_id].status in ("done", "skipped"):
        return 0, look(work.collection, work.run_id)
    work.display.say(problem or f"{job_id} of {work.run_id}: {explanation.reason(job_id)}")
    return FAILED, look(work.collection, work.run_id)
