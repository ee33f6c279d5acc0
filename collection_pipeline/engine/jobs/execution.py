"""One job inside one Dagster step: gate, body, write, audit, publish, and what Dagster is told about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, NoReturn, cast

import dagster as dg
import pandas as pd

from collection_pipeline.engine.checks import COVERAGE, CheckOutcome, Evidence, StagedRows, audit
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.jobs.declaration import Declaration
from collection_pipeline.engine.jobs.events import PICTURE, check_results, materialization
from collection_pipeline.engine.jobs.files import publish_files
from collection_pipeline.engine.jobs.gate import NothingToDoError, NotReadyError, RefusedError, gate
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Part, Product
from collection_pipeline.engine.jobs.schemas import checked
from collection_pipeline.engine.jobs.spending import PaidCalls
from collection_pipeline.engine.planning.state import Status
from collection_pipeline.engine.run_ids import RunId, RunIdError
from collection_pipeline.engine.runs.launches import (
    FETCH,
    FETCH_MISSING,
    is_automatic,
    is_out_of_sight,
    is_over,
    this_process,
)
from collection_pipeline.engine.runs.progress import advance, release_abandoned, take_graph
from collection_pipeline.engine.runs.standing import standing
from collection_pipeline.engine.store import Ancestor, Attempt, HeldError, Manifest, Published, UnknownJobError
from collection_pipeline.engine.words.outcomes import (
    degraded_inputs,
    failed_text,
    failure_reason,
    held_text,
    omitted_inputs,
    rejected_text,
    rejection_reason,
    too_little_text,
)
from collection_pipeline.sources.contract import TransientSourceError

USUAL_RUNS = 7
"""How many earlier runs the volume check compares with."""

PREVIEW_ROWS = 5


def execute(context: dg.AssetExecutionContext, declaration: Declaration, collection: Collection) -> Iterator[Any]:
    """Run one declared job for the partition of `context`, yielding its check results and its materialization.

    Raises `dg.Failure` (not retried) when the job may not run or fails for good; lets retryable errors through to the
    asset's retry policy while it has retries left.
    """
    attempt = _claim(context, declaration, collection)
    if attempt is None:
        return
    may_retry = context.retry_number < declaration.max_retries
    work = _Work(declaration, collection, attempt, may_retry)
    try:
        published = work.publish()
    except BaseException as error:  # noqa: BLE001 - whatever ends the attempt, the state table says so
        _give_up(context, collection, attempt, error, may_retry)
    _look_ahead(context, collection, attempt)
    yield from check_results(published)
    if not published.usable:
        reason = rejection_reason(published.checks)
        text = rejected_text(attempt.run_id, attempt.job_id, published.artifact.version, reason)
        raise dg.Failure(text, allow_retries=False)
    yield materialization(attempt, published, work.collection.reports, work.preview, work.picture)


def _claim(context: dg.AssetExecutionContext, declaration: Declaration, collection: Collection) -> Attempt | None:
    """Take the job if the gate lets it; None when an automatic launch may not or need not run it."""
    job_id = declaration.job_id
    try:
        run_id = RunId.parse(context.partition_key)
    except RunIdError as error:
        raise dg.Failure(f"{job_id} did not start: {error}", allow_retries=False) from error
    store, automatic = collection.store, is_automatic(context.run)
    store.open_run(run_id, run_id.moment(collection.timezone), collection.graph, collection.now())
    take_graph(collection, run_id.text, even_if_settled=not automatic)
    release_abandoned(collection, context.instance, run_id.text)
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


def _look_ahead(context: dg.AssetExecutionContext, collection: Collection, attempt: Attempt) -> None:
    """Show what the end of this attempt means for the others. Whoever looks next can do it as well, so whatever goes
    wrong here does not change how the step ends, or Dagster would try it again."""
    try:
        advance(collection, context.instance, attempt.run_id)
    except Exception as error:  # noqa: BLE001
        context.log.warning("%s has ended; the others are decided at the next look: %s", attempt.job_id, error)


@dataclass
class _Work:
    """The body's work of one attempt, from inputs to a published version."""

    declaration: Declaration
    collection: Collection
    attempt: Attempt
    may_retry: bool
    schema_errors: list[str] = field(default_factory=list)
    losses: Counter[str] = field(default_factory=Counter)
    preview: pd.DataFrame | None = None
    picture: bytes | None = None

    def publish(self) -> Published:
        """Call the body, then write, audit and publish what it produced in one transaction."""
        store, attempt = self.collection.store, self.attempt
        store.prepare(self.declaration.dataset)
        with ExitStack() as stack:
            # Opened by the first call that has to be bought: most reruns and every report buy none.
            source = cache(lambda: stack.enter_context(self.collection.open_source(attempt.moment)))
            calls = PaidCalls(store, source, attempt, self.collection.max_credits, self.collection.report_progress)
            product = _product(self.declaration.body(self._context(calls), **self._inputs()), self.attempt)
            self.picture = product.files.get(PICTURE)
            usual_rows = store.recent_row_counts(attempt.job_id, attempt.run_id, USUAL_RUNS)
            return store.publish(
                attempt,
                self.declaration.dataset,
                checked(self._frames(product), self.declaration.dataset, self.schema_errors),
                partial(self._audit, calls, usual_rows),
                manifest=partial(self._manifest, product, calls),
                now=self.collection.now(),
            )

    def _inputs(self) -> dict[str, Input | None]:
        return {
            job_id: None
            if artifact is None
            else Input(artifact, self.collection.datasets[job_id], self.collection.store)
            for job_id, artifact in self.attempt.inputs.items()
        }

    def _context(self, calls: PaidCalls) -> JobContext:
        return JobContext(
            run_id=self.attempt.run_id,
            job_id=self.attempt.job_id,
            moment=self.attempt.moment,
            as_of=self.attempt.as_of,
            lineage=self.lineage,
            missing=self._missing,
            timezone=self.collection.timezone,
            settings=self.collection.settings,
            calls=calls,
            previous=self._previous,
        )

    def _missing(self, upstream: str) -> Status | None:
        if self.attempt.inputs.get(upstream) is not None:
            return None
        return standing(self.collection, self.attempt.run_id).explanation.plan.decisions[upstream].status

    def _previous(self, dataset: Dataset) -> Input | None:
        artifact = self.collection.store.previous_artifact(dataset.name, self.attempt.run_id)
        return None if artifact is None else Input(artifact, dataset, self.collection.store)

    def _frames(self, product: Product) -> Iterator[pd.DataFrame]:
        for part in product.parts:
            rows, losses = _part(part, self.attempt)
            self.losses.update(losses.dropped)
            self.losses.update({f"nulled_{column}": count for column, count in losses.nulled.items()})
            if self.preview is None:
                self.preview = rows.head(PREVIEW_ROWS)
            yield rows

    def _audit(self, calls: PaidCalls, usual_rows: Sequence[int], staged: StagedRows) -> Sequence[CheckOutcome]:
        calls.refuse_silence()
        evidence = Evidence(
            staged,
            calls.counts,
            usual_rows=usual_rows,
            schema_errors=self.schema_errors,
            degraded=degraded_inputs(self.attempt.run_id, self.attempt.inputs, self.collection.timezone),
            omitted=omitted_inputs(self.attempt.inputs),
        )
        outcomes = audit(self.declaration.checks, evidence)
        if self.may_retry and calls.retryable and any(each.rejects and each.name == COVERAGE for each in outcomes):
            # Rolls the staged rows back: the next try buys only what is missing.
            raise TransientSourceError(too_little_text(calls.counts))
        return outcomes

    def _manifest(self, product: Product, calls: PaidCalls, version: int) -> Manifest:
        run_id, job_id = self.attempt.run_id, self.attempt.job_id
        files = publish_files(self.collection.reports, run_id, job_id, version, product.files) if product.files else []
        return Manifest(
            source=self._source(calls),
            credits_charged=calls.credits_charged,
            credits_reused=calls.credits_reused,
            metadata={**product.metadata, "lost": dict(self.losses)},
            files=files,
        )

    def _source(self, calls: PaidCalls) -> str:
        """Where the artifact's data came from: today's source if it was asked, else whatever its inputs came from."""
        inherited = dict.fromkeys(each.source for each in self.lineage if each.source)
        return self.attempt.source if calls.requested or not inherited else ", ".join(inherited)

    @cached_property
    def lineage(self) -> list[Ancestor]:
        """All that the inputs stand on, upstreams first."""
        inputs = self.attempt.inputs.values()
        return self.collection.store.lineage([artifact for artifact in inputs if artifact is not None])


def _product(returned: Any, attempt: Attempt) -> Product:
    """The body's answer in its one shape: a part (rows and losses), parts, or a product of them. Raises `TypeError`."""
    if isinstance(returned, Product):
        return returned
    if isinstance(returned, pd.DataFrame) or not isinstance(returned, Iterable):
        raise _misshapen(returned, attempt)
    # A generator stays one: parts are judged as they come, or a large artifact would have to fit in memory.
    return Product([cast(Part, returned)] if isinstance(returned, tuple) else returned)


def _part(given: Any, attempt: Attempt) -> Part:
    """A part of a product. Raises `TypeError`."""
    match given:
        case (pd.DataFrame() as rows, Losses() as losses):
            return rows, losses
        case _:
            raise _misshapen(given, attempt)


def _misshapen(given: Any, attempt: Attempt) -> TypeError:
    return TypeError(
        f"the body of {attempt.job_id} gave a {type(given).__name__}; let it return (rows, Losses()), an iterable of"
        " such pairs, or a Product of them"
    )


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
    kind = getattr(error, "kind", None) or type(error).__name__
    collection.store.fail(attempt, reason, kind, collection.now())
    _look_ahead(context, collection, attempt)
    if not isinstance(error, Exception | KeyboardInterrupt | dg.DagsterExecutionInterruptedError):
        raise error
    # An interrupt too, or Dagster would have the retry policy try again what somebody just stopped.
    raise dg.Failure(failed_text(attempt.run_id, attempt.job_id, reason), allow_retries=False) from error
