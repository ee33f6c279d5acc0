"""Paid calls of one attempt: what was paid for is reused, what arrives is stored within moments, the budget is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

from collection_pipeline.engine.checks import CallCounts
from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.jobs.allowance import Allowance
from collection_pipeline.engine.jobs.recording import Recorder
from collection_pipeline.engine.jobs.troubles import Troubles
from collection_pipeline.engine.store import Attempt, LostClaimError, Store
from collection_pipeline.sources.contract import (
    Answer,
    ApiRequest,
    BudgetExhaustedError,
    Exchange,
    NotFoundError,
    OutOfCreditsError,
    Source,
    SourceError,
    Unanswered,
    UnauthorizedError,
)

ReportProgress = Callable[[str, int, int], None]
"""Told (job_id, calls ended, calls known of) as calls end."""


class SpendingStoppedError(Exception):
    """No further call can succeed (key refused, account empty, budget used up). What was paid for is kept.

    The message says how much is here, what the rest would cost, and what has to change.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class NothingAnsweredError(Exception):
    """No call of the attempt was answered, and the source did not say that what was asked for does not exist.

    `kind` is that of the commonest error; `retryable` says whether a later attempt may fare better.
    """

    def __init__(self, message: str, kind: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


@dataclass
class Answers:
    """The answers to a batch of requests, in request order, read from the ledger as they are iterated (flat memory)."""

    store: Store
    attempt: Attempt
    fingerprints: Sequence[bytes]
    unanswered: Sequence[Unanswered]

    def __iter__(self) -> Iterator[Answer]:
        return self.store.answers(self.attempt, map(bytes.hex, self.fingerprints))


@dataclass
class PaidCalls:
    """The calls of one attempt, through the source that `source` opens. `max_credits` bounds the whole run."""

    store: Store
    source: Callable[[], Source]
    attempt: Attempt
    max_credits: int | None
    report_progress: ReportProgress
    requested: int = 0
    credits_charged: int = 0
    credits_reused: int = 0
    lost: list[Unanswered] = field(default_factory=list)
    retryable: bool = False
    """Whether any call ended in an error that a later attempt may not meet."""

    def fetch(self, requests: Iterable[ApiRequest]) -> Answers:
        """Answer all requests, buying only those that no unfinished attempt of this job and run has paid for.

        `requests` is consumed as calls are made. A single failed request is no error: it is among `unanswered`. Raises
        `SpendingStoppedError` when no further call can succeed, `LostClaimError` when the job is not this attempt's any
        more; what was bought until then is kept.
        """
        batch = _Batch(requests, self.store.reusable(self.attempt))
        first = next(batch, None)
        if first is not None:
            asyncio.run(self._buy(chain((first,), batch), batch))
        if batch.credits_reused:
            self.store.count_reuse(self.attempt, batch.credits_reused)
        self.credits_reused += batch.credits_reused
        self.requested += len(batch.asked)
        self.lost.extend(batch.unanswered)
        return Answers(self.store, self.attempt, list(batch.asked), batch.unanswered)

    @property
    def counts(self) -> CallCounts:
        """How the calls ended, for the checks."""
        missing = self._missing
        return CallCounts(
            requested=self.requested,
            answered=self.requested - len(self.lost),
            not_found=len(self.lost) - len(missing),
            missing=len(missing),
            commonest_error=_commonest(missing).text if missing else "",
        )

    def refuse_silence(self) -> None:
        """Raise `NothingAnsweredError` if calls were made and every one ended in an error: no data to judge is here."""
        missing = self._missing
        if missing and len(missing) == self.requested:
            common = _commonest(missing)
            message = f"0 of {counted(self.requested, 'call')} answered: {common.text}"
            raise NothingAnsweredError(message, common.kind, retryable=self.retryable)

    @property
    def _missing(self) -> list[Unanswered]:
        return [call for call in self.lost if call.kind != NotFoundError.kind]

    async def _buy(self, requests: Iterable[ApiRequest], batch: _Batch) -> None:
        allowance = Allowance(self.store, self.attempt, self.max_credits)
        recorder = Recorder(partial(self._record, allowance))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(recorder.run())
                tasks.create_task(self._collect(requests, batch, allowance, recorder))
        except BaseExceptionGroup as group:
            raise _first(group) from group
        finally:
            allowance.close()
        if batch.stopped_by is not None:
            raise SpendingStoppedError(
                self._stopped(batch, batch.stopped_by), batch.stopped_by.kind
            ) from batch.stopped_by

    async def _collect(
        self,
        requests: Iterable[ApiRequest],
        batch: _Batch,
        allowance: Allowance,
        recorder: Recorder[tuple[Exchange, int]],
    ) -> None:
        ended, troubles = 0, Troubles(self.attempt, batch.open)
        async with troubles.watched(), aclosing(self.source().stream(requests, admit=allowance.admit)) as calls:
            async for call in calls:
                troubles.see(call)
                await recorder.put((call, allowance.used_by(call)))
                troubles.wait()
                if not call.final:
                    batch.failures[str(call.error)] += 1
                    continue
                ended += 1
                batch.open.pop(call.request.fingerprint, None)
                self.report_progress(self.attempt.job_id, ended, len(batch.asked) - batch.reused)
                if call.error is not None:
                    batch.unanswered.append(Unanswered(call.request, call.error.kind, str(call.error)))
                    self.retryable = self.retryable or call.error.retryable
                    if isinstance(call.error, tuple(_REMEDIES)):
                        batch.stopped_by = call.error
        batch.unanswered += (
            Unanswered(each, "unanswered", "the source gave no answer") for each in batch.open.values()
        )
        await recorder.close()

    def _record(self, allowance: Allowance, ended: Sequence[_Ended]) -> None:
        calls = [call for call, _ in ended]
        used = sum(amount for _, amount in ended)
        try:
            self.store.record(self.attempt, calls, release=0 if allowance.is_unlimited else used)
        except LostClaimError as lost:  # all of them are stored; what is in flight will be as well
            allowance.stop(lost)
        allowance.settle(used)
        self.credits_charged += sum(call.credits_charged for call in calls)

    def _stopped(self, batch: _Batch, error: SourceError) -> str:
        """What stopped the spending, how much is here, what the rest would cost, and what has to change."""
        missing = [call.request for call in batch.unanswered if call.kind != NotFoundError.kind]
        here = self.requested - len(self.lost) + len(batch.asked) - len(batch.unanswered)
        cost = sum(request.credits for request in missing)
        spent = self.store.credits(self.attempt.run_id)
        remedy = _REMEDIES[type(error)].format(enough=spent.charged + spent.possibly_billed + cost)
        kept, price = counted(here, "answer"), counted(cost, "credit")
        tried = "".join(
            f"; {counted(batch.failures.total(), 'failed attempt')}, most often: {words}"
            for words, _ in batch.failures.most_common(1)
        )
        return f"{error}; {kept} kept, {len(missing)} missing for {price}{tried}; {remedy}"


class _Commonest(NamedTuple):
    kind: str
    text: str


def _commonest(missing: Sequence[Unanswered]) -> _Commonest:
    ((kind, message), times) = Counter((call.kind, call.message) for call in missing).most_common(1)[0]
    return _Commonest(kind, f"{message} ({times} of {len(missing)})")


_Ended = tuple[Exchange, int]
"""A call, and how many reserved credits it used up."""

_REMEDIES: Mapping[type[SourceError], str] = {
    UnauthorizedError: "check the key of the source",
    OutOfCreditsError: "top up the account",
    BudgetExhaustedError: "raise COLLECTION_MAX_CREDITS to {enough} or more for this job",
}
"""The errors after which no further call can succeed, and what has to change."""


class _Batch(Iterator[ApiRequest]):
    """The requests of one fetch that have to be bought, drawn one by one; remembers all fingerprints in order.

    As bytes, which take half the memory of their hexadecimal texts.
    """

    def __init__(self, requests: Iterable[ApiRequest], paid: Collection[str]) -> None:
        self._requests = iter(requests)
        self._paid = paid
        self.asked: dict[bytes, None] = {}
        self.reused = 0
        self.credits_reused = 0
        self.open: dict[str, ApiRequest] = {}
        """Drawn, and not ended yet: in flight, or waiting for their turn to be."""
        self.unanswered: list[Unanswered] = []
        self.failures: Counter[str] = Counter()
        """Of calls that are tried again, by their words."""
        self.stopped_by: SourceError | None = None

    def __next__(self) -> ApiRequest:
        for request in self._requests:
            fingerprint = bytes.fromhex(request.fingerprint)
            if fingerprint in self.asked:
                continue
            self.asked[fingerprint] = None
            if request.fingerprint not in self._paid:
                self.open[request.fingerprint] = request
                return request
            self.reused += 1
            self.credits_reused += request.credits
        raise StopIteration


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
