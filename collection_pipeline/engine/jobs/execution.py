"""One job inside one Dagster step: gate, body, write, audit, publish, and what Dagster is told about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.claiming import claim
from collection_pipeline.engine.jobs.declaration import Declaration
from collection_pipeline.engine.jobs.events import check_results, materialization
from collection_pipeline.engine.jobs.work import Work
from collection_pipeline.engine.runs.progress import advance
from collection_pipeline.engine.store import Attempt
from collection_pipeline.engine.words.outcomes import (
    failed_text,
    failure_kind,
    failure_reason,
    only_checks_text,
    rejected_text,
    rejection_reason,
)


def execute(context: dg.AssetExecutionContext, declaration: Declaration, collection: Collection) -> Iterator[Any]:
    """Run one declared job for the partition of `context`, yielding its check results and its materialization.

    Raises `dg.Failure` (not retried) when the job may not run or fails for good; lets retryable errors through to the
    asset's retry policy while it has retries left.
    """
    if not context.selected_asset_keys:  # since the asset can be subset, Dagster offers its checks without it as well
        run_id = context.partition_key if context.has_partition_key else "RUN_ID"
        raise dg.Failure(only_checks_text(run_id, declaration.job_id), allow_retries=False)
    attempt = claim(context, declaration.job_id, collection)
    if attempt is None:
        return
    may_retry = context.retry_number < declaration.max_retries
    work = Work(declaration, collection, attempt, may_retry)
    try:
        published = work.publish()
    except BaseException as error:  # noqa: BLE001 - whatever ends the attempt, the state table says so
        _give_up(context, collection, attempt, error, may_retry)
    command = _look_ahead(context, collection, attempt)
    yield from check_results(published)
    if not published.usable:
        reason = rejection_reason(published.checks)
        text = rejected_text(attempt.run_id, attempt.job_id, published.artifact.version, reason, command)
        raise dg.Failure(text, allow_retries=False)
    yield materialization(attempt, published, collection.reports, work.preview, work.picture)


def _look_ahead(context: dg.AssetExecutionContext, collection: Collection, attempt: Attempt) -> str:
    """Show what the end of this attempt means for the others, and return what to type next. Whoever looks next can do
    it as well, so whatever goes wrong here does not change how the step ends, or Dagster would try it again."""
    command = None
    try:
        command = advance(collection, context.instance, attempt.run_id).next_command(attempt.job_id)
    except Exception as error:  # noqa: BLE001
        context.log.warning("%s has ended; the others are decided at the next look: %s", attempt.job_id, error)
    return command or f"collect status {attempt.run_id}"


def _give_up(
    context: dg.AssetExecutionContext,
    collection: Collection,
    attempt: Attempt,
    error: BaseException,
    may_retry: bool,
) -> NoReturn:
    """Leave the job running for its retry, or fail it; say what was kept and what to type."""
    if may_retry and getattr(error, "retryable", False):
        collection.store.await_retry(attempt)
        context.log.warning("%s of %s will be tried again: %s", attempt.job_id, attempt.run_id, error)
        raise error
    reason = failure_reason(error)
    collection.store.fail(attempt, reason, failure_kind(error), collection.now())
    command = _look_ahead(context, collection, attempt)
    if not isinstance(error, Exception | KeyboardInterrupt | dg.DagsterExecutionInterruptedError):
        raise error
    # An interrupt too, or Dagster would have the retry policy try again what somebody just stopped.
    raise dg.Failure(failed_text(attempt.run_id, attempt.job_id, reason, command), allow_retries=False) from error
