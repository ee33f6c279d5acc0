"""Taking a job: every launch meets the gate here, and is told in words why it may not run or need not."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.holders import Holder, this_process
from collection_pipeline.engine.jobs.gate import NothingToDoError, NotReadyError, RefusedError, gate
from collection_pipeline.engine.run_ids import RunId, RunIdError
from collection_pipeline.engine.runs.interrupts import is_interrupted
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
from collection_pipeline.engine.runs.standing import refusal_in_new
from collection_pipeline.engine.store import (
    Attempt,
    HeldError,
    MadeMeanwhileError,
    UnknownJobError,
    UnknownRunError,
    UnreadableRunError,
)
from collection_pipeline.engine.words.outcomes import held_text, made_meanwhile_text, stopped_text


def claim(context: dg.AssetExecutionContext, job_id: str, collection: Collection) -> Attempt | None:
    """Take the job if the gate lets it; None when an automatic launch may not or need not run it."""
    try:
        run_id = RunId.parse(context.partition_key)
    except RunIdError as error:
        raise dg.Failure(f"{job_id} did not start: {error}", allow_retries=False) from error
    if is_interrupted():
        raise dg.Failure(stopped_text(run_id.text, job_id), allow_retries=False)
    automatic = is_automatic(context.run)
    try:
        _open(collection, run_id, job_id, automatic=automatic)
        release_abandoned(collection, run_id.text, partial(is_over, context.instance))
        name_worker(context.instance, context.run, context.job_def.executor_def.name)
        attempt = _pass_gate(context, collection, run_id.text, job_id, automatic=automatic)
        return collection.store.adopt_answers(attempt) if context.run.tags.get(FETCH) == FETCH_MISSING else attempt
    except NothingToDoError:
        context.log.info("%s of %s has nothing to do: what it would consume, it has consumed already.", job_id, run_id)
        return None
    except UnknownJobError as unknown:
        # A person's launch gave the run today's graph; an automatic one leaves a settled run the graph that it has.
        context.log.info("%s has nothing to do in %s, which is settled: %s", job_id, run_id, unknown)
        return None
    except UnreadableRunError as unreadable:
        raise dg.Failure(f"{job_id} did not start. {unreadable}", allow_retries=False) from unreadable
    except MadeMeanwhileError as made:
        text = made_meanwhile_text(run_id.text, job_id, made.dagster_run_id)
        raise dg.Failure(text, allow_retries=False) from made
    except (RefusedError, HeldError) as refusal:
        text = str(refusal)
        if isinstance(refusal, HeldError) and is_out_of_sight(context.instance, refusal.holder):
            text = held_text(run_id.text, job_id, text)
        if not automatic:
            raise dg.Failure(text, allow_retries=False) from refusal
        context.log.warning(text)
        return None


def _open(collection: Collection, run_id: RunId, job_id: str, *, automatic: bool) -> None:
    """Give the run the graph of today, or open it. Raises `RefusedError` if nobody has and the job would wait there."""
    try:
        take_graph(collection, run_id.text, even_if_settled=not automatic)
    except UnknownRunError:
        refusal = refusal_in_new(collection, run_id, job_id)
        if refusal is not None:
            raise RefusedError(refusal) from None
        collection.store.open_run(run_id, collection.timezone, collection.graph, collection.now())


def _launched_at(context: dg.AssetExecutionContext) -> datetime | None:
    """When the Dagster run was created: what was made since, whoever launched it did not know of."""
    record = context.instance.get_run_record_by_id(context.run.run_id)
    return None if record is None else record.create_timestamp


def _pass_gate(
    context: dg.AssetExecutionContext, collection: Collection, run_id: str, job_id: str, *, automatic: bool
) -> Attempt:
    """Claim the job. Raises `RefusedError` in words, or whatever else keeps it from starting."""
    launched_at = None if automatic else _launched_at(context)
    while True:
        try:
            return collection.store.claim(
                run_id,
                job_id,
                Holder(context.run.run_id, *this_process()),
                collection.graph,
                source=collection.source_label,
                decide=gate(collection.graph, job_id, automatic=automatic, now=collection.now()),
                is_over=partial(is_over, context.instance),
                now=collection.now,
                launched_at=launched_at,
            )
        except NotReadyError as not_ready:
            explanation = advance(collection, context.instance, run_id)
            # If the run changed while the words were sought, what held the job up may be over.
            if explanation.plan.decisions[job_id].readiness != "run":
                raise RefusedError(explanation.refusal(job_id)) from not_ready
