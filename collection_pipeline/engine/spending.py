"""Paid calls of one attempt: what was paid for is reused, what arrives is stored at once, the budget is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from collection_pipeline.engine.checks import CallCounts
from collection_pipeline.engine.store import Attempt as JobAttempt
from collection_pipeline.engine.store import Store
from collection_pipeline.sources.contract import (
    Answer,
    ApiRequest,
    Attempt,
    BudgetExhaustedError,
    OutOfCreditsError,
    Source,
    SourceError,
    Unanswered,
    UnauthorizedError,
)

RESERVATION_CREDITS = 128
"""Credits reserved at a time, so that the budget costs one short transaction per 64 two-credit calls."""

WRITE_BATCH = 256
"""Calls stored per transaction at the most."""

ReportProgress = Callable[[str, int, int], None]
"""Told (job_id, calls ended, calls known of) as calls end."""


class SpendingStoppedError(Exception):
    """No further call can succeed (key refused, account empty, budget used up). What was paid for is kept."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Answers:
    """The answers to a batch of requests, in request order, read from the ledger as they are iterated (flat memory)."""

    store: Store
    attempt: JobAttempt
    requests: Sequence[ApiRequest]
    unanswered: Sequence[Unanswered]

    def __iter__(self) -> Iterator[Answer]:
        return self.store.answers(self.attempt, self.requests)


@dataclass
class PaidCalls:
    """The calls of one attempt, through the source that `source` opens. `max_credits` bounds the whole run."""

    store: Store
    source: Callable[[], Source]
    attempt: JobAttempt
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
        `SpendingStoppedError` when no further call can succeed.
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
        return Answers(self.store, self.attempt, list(batch.asked.values()), batch.unanswered)

    @property
    def counts(self) -> CallCounts:
        """How the calls ended, for the checks."""
        not_found = sum(1 for call in self.lost if call.kind == "not_found")
        return CallCounts(
            requested=self.requested,
            answered=self.requested - len(self.lost),
            not_found=not_found,
            missing=len(self.lost) - not_found,
        )

    async def _buy(self, requests: Iterable[ApiRequest], batch: _Batch) -> None:
        arrived: asyncio.Queue[Attempt | None] = asyncio.Queue(maxsize=WRITE_BATCH)
        allowance = _Allowance(self.store, self.attempt, self.max_credits)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._write(arrived))
                tasks.create_task(self._collect(requests, batch, allowance, arrived))
        except BaseExceptionGroup as group:
            raise _first(group) from group
        finally:
            allowance.close()
        if batch.stopped_by is not None:
            raise SpendingStoppedError(str(batch.stopped_by), batch.stopped_by.kind) from batch.stopped_by

    async def _collect(
        self,
        requests: Iterable[ApiRequest],
        batch: _Batch,
        allowance: _Allowance,
        arrived: asyncio.Queue[Attempt | None],
    ) -> None:
        ended = 0
        async for call in self.source().stream(requests, admit=allowance.admit):
            await arrived.put(call)
            if not call.final:
                continue
            ended += 1
            self.report_progress(self.attempt.job_id, ended, len(batch.asked) - batch.reused)
            if call.error is not None:
                batch.unanswered.append(Unanswered(call.request, call.error.kind, str(call.error)))
                self.retryable = self.retryable or call.error.retryable
                if isinstance(call.error, _STOPPING):
                    batch.stopped_by = call.error
        await arrived.put(None)

    async def _write(self, arrived: asyncio.Queue[Attempt | None]) -> None:
        """Store calls as they end. One batch gathers while another commits: a kill loses at most what was in flight."""
        call = await arrived.get()
        while call is not None:
            batch = [call]
            while len(batch) < WRITE_BATCH and not arrived.empty():
                following = arrived.get_nowait()
                if following is None:
                    arrived.put_nowait(None)
                    break
                batch.append(following)
            sent = (each.request.credits for each in batch if not isinstance(each.error, BudgetExhaustedError))
            release = 0 if self.max_credits is None else sum(sent)
            await asyncio.to_thread(self.store.record, self.attempt, batch, release=release)
            self.credits_charged += sum(each.credits_charged for each in batch)
            call = await arrived.get()


_STOPPING = (UnauthorizedError, OutOfCreditsError, BudgetExhaustedError)


class _Batch(Iterator[ApiRequest]):
    """The requests of one fetch that have to be bought, drawn one by one; remembers all in order."""

    def __init__(self, requests: Iterable[ApiRequest], paid: Collection[str]) -> None:
        self._requests = iter(requests)
        self._paid = paid
        self.asked: dict[str, ApiRequest] = {}
        self.reused = 0
        self.credits_reused = 0
        self.unanswered: list[Unanswered] = []
        self.stopped_by: SourceError | None = None

    def __next__(self) -> ApiRequest:
        for request in self._requests:
            fingerprint = request.fingerprint
            if fingerprint in self.asked:
                continue
            self.asked[fingerprint] = request
            if fingerprint not in self._paid:
                return request
            self.reused += 1
            self.credits_reused += request.credits
        raise StopIteration


class _Allowance:
    """The run's budget as one attempt sees it: reserved in blocks, so that no two processes spend the same credit."""

    def __init__(self, store: Store, attempt: JobAttempt, max_credits: int | None) -> None:
        self._store, self._attempt, self._max_credits = store, attempt, max_credits
        self._reserved = 0

    def admit(self, request: ApiRequest) -> None:
        if self._max_credits is None:
            return
        if self._reserved < request.credits and not (
            self._reserve(RESERVATION_CREDITS) or self._reserve(request.credits)
        ):
            raise BudgetExhaustedError(
                f"the run's budget of {self._max_credits} credits (COLLECTION_MAX_CREDITS) does not allow this call"
            )
        self._reserved -= request.credits

    def _reserve(self, amount: int) -> bool:
        assert self._max_credits is not None
        if not self._store.reserve(self._attempt.run_id, self._attempt.job_id, amount, self._max_credits):
            return False
        self._reserved += amount
        return True

    def close(self) -> None:
        """Give back what was reserved and not needed."""
        if self._reserved:
            self._store.release(self._attempt.run_id, self._attempt.job_id, self._reserved)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
