"""Taking a job: every launch meets the gate here, and is told in words why it may not run or need not."""

from __future__ import annotations

from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.holders import Holder, this_process
from collection_pipeline.engine.jobs.gate import NothingToDoError, NotReadyError, RefusedError, gate
from collection_pipeline.engine.run_ids import RunId, RunIdError
from collection_pipeline.engine.runs.launches import (
    FETCH,
    FETCH_MISSING,
    is_automatic,
    is_out_of_sight,
    is_over,
    name_worker,
)
from collection_pipeline.engine.runs.progress import advance, take_graph
from collection_pipeline.engine.runs.releasing import release_abandoned
from collection_pipeline.engine.store import Attempt, HeldError, UnknownJobError
from collection_pipeline.engine.words.outcomes import held_text, made_meanwhile_text


def claim(context: dg.AssetExecutionContext, job_id: str, collection: Collection) -> Attempt | None:
    """Take the job if the gate lets it; None when an automatic launch may not or need not run it."""
    try:
        run_id = RunId.parse(context.partition_key)
    except RunIdError as error:
        raise dg.Failure(f"{job_id} did not start: {error}", allow_retries=False) from error
    store, automatic = collection.store, is_automatic(context.run)
    store.open_run(run_id, collection.timezone, collection.graph, collection.now())
    take_graph(collection, run_id.text, even_if_settled=not automatic)
    release_abandoned(collection, run_id.text, partial(is_over, context.instance))
    name_worker(context.instance, context.run, context.job_def.executor_def.name)
    if not automatic:
        refuse_if_made_meanwhile(context.instance, context.run.run_id, collection, run_id.text, job_id)
    try:
        attempt = _pass_gate(context, collection, run_id.text, job_id, automatic=automatic)
        return store.adopt_answers(attempt) if context.run.tags.get(FETCH) == FETCH_MISSING else attempt
    except NothingToDoError:
        context.log.info("%s of %s has nothing to do: what it would consume, it has consumed already.", job_id, run_id)
        return None
    except UnknownJobError as unknown:
        # A person's launch gave the run today's graph; an automatic one leaves a settled run the graph that it has.
        context.log.info("%s has nothing to do in %s, which is settled: %s", job_id, run_id, unknown)
        return None
    except (RefusedError, HeldError) as refusal:
        text = str(refusal)
        if isinstance(refusal, HeldError) and is_out_of_sight(context.instance, refusal.holder):
            text = held_text(run_id.text, job_id, text)
        if not automatic:
            raise dg.Failure(text, allow_retries=False) from refusal
        context.log.warning(text)
        return None


def refuse_if_made_meanwhile(
    instance: dg.DagsterInstance, dagster_run_id: str, collection: Collection, run_id: str, job_id: str
) -> None:
    """Of two launches at once, one waits for its place in the pool and meets no holder any more: it would buy again.

    Raises `dg.Failure` if another Dagster run made the job since this one was created.
    """
    record = instance.get_run_record_by_id(dagster_run_id)
    job = next((each for each in collection.store.run_view(run_id).jobs if each.job_id == job_id), None)
    if record is None or job is None or job.outcome != "done" or job.finished_at is None or job.dagster_run_id is None:
        return
    # Not later than now: after the clock was set back, what was finished "later" was finished before.
    meanwhile = record.create_timestamp < job.finished_at <= collection.now()
    if meanwhile and job.dagster_run_id != dagster_run_id:
        raise dg.Failure(made_meanwhile_text(run_id, job_id, job.dagster_run_id), allow_retries=False)


def _pass_gate(
    context: dg.AssetExecutionContext, collection: Collection, run_id: str, job_id: str, *, automatic: bool
) -> Attempt:
    """Claim the job. Raises `RefusedError` in words, or whatever else keeps it from starting."""
    while True:
        now = collection.now()
        try:
            return collection.store.claim(
                run_id,
                job_id,
                Holder(context.run.run_id, *this_process()),
                collection.graph,
                source=collection.source_label,
                decide=gate(collection.graph, job_id, automatic=automatic, now=now),
                is_over=partial(is_over, context.instance),
                now=now,
            )
        except NotReadyError as not_ready:
            explanation = advance(collection, context.instance, run_id)
            # If the run changed while the words were sought, what held the job up may be over.
            if explanation.plan.decisions[job_id].readiness != "run":
                raise RefusedError(explanation.refusal(job_id)) from not_ready
