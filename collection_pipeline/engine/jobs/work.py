"""The work of one attempt: inputs to the body, and what it produced written, audited and published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property, partial
from typing import Any, cast

import pandas as pd

from collection_pipeline.engine.checks import COVERAGE, CheckOutcome, Evidence, StagedRows, audit
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.jobs.declaration import Declaration
from collection_pipeline.engine.jobs.events import PICTURE
from collection_pipeline.engine.jobs.files import publish_files
from collection_pipeline.engine.jobs.job import Input, JobContext, Losses, Part, Product
from collection_pipeline.engine.jobs.schema_check import checked
from collection_pipeline.engine.jobs.spending import PaidCalls
from collection_pipeline.engine.planning.state import Artifact, Status
from collection_pipeline.engine.runs.standing import standing
from collection_pipeline.engine.store import Ancestor, Attempt, Manifest, Published
from collection_pipeline.engine.words.outcomes import degraded_inputs, omitted_inputs, too_little_text
from collection_pipeline.sources.contract import EMULATOR, Source, TransientSourceError

USUAL_RUNS = 7
"""How many earlier runs the volume check compares with."""

PREVIEW_ROWS = 5


class MixedSourcesError(Exception):
    """One source was to go on with what another had begun: a lost key makes the emulator the source, and a new one
    would have a real source look up what the emulator made up."""

    kind = "source"


@dataclass
class Work:
    """The body's work of one attempt, from inputs to a published version."""

    declaration: Declaration
    collection: Collection
    attempt: Attempt
    may_retry: bool
    schema_errors: list[str] = field(default_factory=list)
    losses: Losses = field(default_factory=Losses)
    preview: pd.DataFrame | None = None
    picture: bytes | None = None

    def publish(self) -> Published:
        """Call the body, then write, audit and publish what it produced in one transaction."""
        store, attempt = self.collection.store, self.attempt
        store.prepare(self.declaration.dataset)
        with ExitStack() as stack:
            # Opened by the first call that has to be bought: most reruns and every report buy none.
            source = cache(lambda: stack.enter_context(self._open_source()))
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
                now=self.collection.now,
            )

    def _open_source(self) -> AbstractContextManager[Source]:
        """The source that the settings name. Raises `MixedSourcesError`."""
        asked = self.attempt.source
        if asked == EMULATOR and (last := self.collection.store.last_source()) not in (None, EMULATOR):
            raise MixedSourcesError(
                f"the last answers here are of {last}, and now the emulator would be asked. Set SERPBASE_API_KEY again,"
                " and SERPBASE_BASE_URL if it was set, or try things out with another COLLECTION_DATA"
            )
        if asked != EMULATOR and any(each.source and EMULATOR in each.source for each in self.lineage):
            raise MixedSourcesError(
                f"what it reads is of the emulator, and {asked} would be paid to look it up. Rerun what it reads first,"
                " or begin anew with another COLLECTION_DATA"
            )
        return self.collection.open_source(self.attempt.moment.astimezone(self.attempt.timezone))

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
            collected_at=self._collected_at(),
            lineage=self.lineage,
            missing=self._missing,
            timezone=self.attempt.timezone,
            settings=self.collection.settings,
            calls=calls,
            previous=self._previous,
        )

    def _collected_at(self) -> datetime:
        # What consumes nothing is collected by this attempt.
        return self.collection.store.collected_at(self._consumed) or self.attempt.started_at

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
            self.losses += losses
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
            dropped=self.losses.dropped,
            found=self.losses.found,
            degraded=degraded_inputs(self.attempt.run_id, self.attempt.inputs, self.attempt.timezone),
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
            metadata={**product.metadata, "lost": self.losses.by_reason()},
            files=files,
        )

    def _source(self, calls: PaidCalls) -> str:
        """Where the artifact's data came from: today's source if it was asked, else whatever its inputs came from."""
        inherited = dict.fromkeys(each.source for each in self.lineage if each.source)
        return self.attempt.source if calls.requested or not inherited else ", ".join(inherited)

    @cached_property
    def lineage(self) -> list[Ancestor]:
        """All that the inputs stand on, upstreams first."""
        return self.collection.store.lineage(self._consumed)

    @property
    def _consumed(self) -> Sequence[Artifact]:
        return [artifact for artifact in self.attempt.inputs.values() if artifact is not None]


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
