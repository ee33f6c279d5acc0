"""`collect rerun`: the next version of one job, then whatever follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from collection_pipeline.cli import opening
from collection_pipeline.cli.group import FAILED, Failure
from collection_pipeline.cli.opening import RUN_ID
from collection_pipeline.cli.state_table import look
from collection_pipeline.cli.terminal import result, result_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collection_pipeline.cli.session import Session
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.run_ids import RunId
    from collection_pipeline.engine.store import JobView


@click.command()
@click.argument("job")
@click.argument("run_id", type=RUN_ID)
@click.option("--dry-run", is_flag=True, help="Only list what would follow, edge by edge, and what it would cost.")
@click.option("--missing-only", is_flag=True, help="Keep the answers of the last version and buy only what is missing.")
@click.option(
    "--take-over", is_flag=True, help="End the attempt that holds the job, if nobody knows what became of it."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def rerun(
    ctx: click.Context, *, job: str, run_id: RunId, dry_run: bool, missing_only: bool, take_over: bool, as_json: bool
) -> None:
    """Run JOB of RUN_ID again, whatever became of it before, and then what follows it by its edges.

    Earlier versions stay readable. Answers that were paid for and led to no version are used, not bought again.
    """
    settings = opening.settings_to_collect()
    kept = opening.kept_collection(settings, run_id)
    kept.store.graph_of(run_id.text)  # refuses a run that there is not
    from collection_pipeline.definitions import GRAPH

    job_id = opening.known_job(job, GRAPH.jobs)
    if dry_run:
        _preview(replace(kept, graph=GRAPH), job_id, run_id.text, missing_only=missing_only, as_json=as_json)
        return
    from collection_pipeline.cli.session import session
    from collection_pipeline.engine.runs.executing import attempts
    from collection_pipeline.engine.runs.launches import FETCH, FETCH_MISSING

    options = " --missing-only" if missing_only else ""
    command = f"collect rerun {job_id} {run_id}{options}"
    with session(settings, kept.store, run_id, command, goes_on=f"collect run {run_id}") as work:
        work.advance()  # a holder that is gone no longer holds the job
        held = work.held(job_id)
        if held is not None:
            raise Failure(f"{held}\n{_IN_SIGHT}" if take_over else held)
        if take_over:
            _take_over(work, job_id)
        before = attempts(work.collection, work.run_id).get(job_id)  # None for a job that the run does not have yet
        problem = work.execute([job_id], {FETCH: FETCH_MISSING} if missing_only else {})
        if attempts(work.collection, work.run_id).get(job_id) == before:
            raise Failure(problem or work.advance().refusal(job_id))
        settled = work.settle("collect rerun")
    found = look(work.collection, run_id.text)
    found.print(as_json=as_json)
    ctx.exit(found.exit_code if settled else FAILED)


_IN_SIGHT = (
    "--take-over changed nothing: it is for a holder of whom nothing can be known, and this one is seen to live. Stop"
    " it first, then type the command again."
)


def _take_over(work: Session, job_id: str) -> None:
    """Release a job from a holder that is out of sight. Should they be alive after all, they can no longer publish."""
    from collection_pipeline.engine.runs.launches import end_unwatched

    store = work.collection.store
    for running in store.running(work.run_id):
        if running.job_id == job_id:
            since = running.since.astimezone(store.run_view(work.run_id).timezone)
            reason = f"{running.holder} was made to give it up by: collect rerun --take-over"
            if store.fail_abandoned(work.run_id, job_id, running.holder, reason, work.collection.now()):
                end_unwatched(work.instance, running.holder.dagster_run_id)  # or what it has planned is waited for
                work.display.say(f"Took {job_id} from {running.holder}, which held it since {since:%F %T}.")


def _preview(collection: Collection, job_id: str, run_id: str, *, missing_only: bool, as_json: bool) -> None:
    from collection_pipeline.engine.planning.preview import rerun_preview

    found = look(collection, run_id).found
    cost = _prices(collection, found.view.jobs, run_id)
    if missing_only:
        cost.pop(job_id, None)
    preview = rerun_preview(collection.graph, found.state, job_id, collection.now(), cost)
    if preview.decision.readiness != "run":
        raise Failure(found.explanation.refusal(job_id))
    if as_json:
        value: dict[str, Any] = {
            "run_id": run_id,
            "job_id": job_id,
            "edges": [
                {"upstream": each.edge.upstream, "consumer": each.consumer, "effect": each.effect}
                for each in preview.effects
            ],
            "runs": list(preview.runs),
            "outdated": list(preview.outdated),
            "credits": preview.credits,
            "not_counted": list(preview.uncounted),
        }
        result_json(value)
        return
    for line in preview.lines():
        result(line)
    result("The cost is what these jobs last took.")
    if missing_only:
        result(f"Of {job_id} only what is missing is bought.")


def _prices(collection: Collection, jobs: Sequence[JobView], run_id: str) -> dict[str, int]:
    """What buying all answers of each job's newest version anew would cost, in API credits.

    That of an earlier run, if this run has none; a job that never had a version has no price.
    """
    here = {job.job_id: job.latest.credits_charged + job.latest.credits_reused for job in jobs if job.latest}
    earlier = {each: collection.store.earlier_cost(each, run_id) for each in collection.graph.jobs if each not in here}
    return here | {job_id: price for job_id, price in earlier.items() if price is not None}
