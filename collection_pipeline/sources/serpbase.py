"""The SerpBase client: many requests in flight, each retried as its errors allow, every exchange reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from itertools import count

import aiohttp
from yarl import URL

from collection_pipeline.sources.configuration import SourceConfigurationError, checked_base_url, checked_key
from collection_pipeline.sources.contract import (
    Admit,
    ApiRequest,
    BudgetExhaustedError,
    Exchange,
    OutOfCreditsError,
    SourceError,
    TransientSourceError,
    UnauthorizedError,
)
from collection_pipeline.sources.pacing import Backoff, Clock, Pacer, SystemClock, retry_after_s
from collection_pipeline.sources.transport import (
    MAX_BODY_BYTES,
    Timeouts,
    exchange,
    open_session,
)
from collection_pipeline.sources.wire import PATHS, Verdict, judge

CLIENT_NAME = "collection-pipeline"

SHORTEST_SECRET = 8
"""A shorter key is a word for an emulator: taken out wherever it occurs, it would spoil every other text."""


class SerpBaseSource:
    """SerpBase, or any server that speaks its wire format.

    `concurrency`: requests in flight, of one stream. `rate_per_s`: attempts per second over all streams of this object,
    None for no limit. Raises `SourceConfigurationError` if the key may not be sent to `base_url`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        concurrency: int = 64,
        rate_per_s: float | None = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
        backoff: Backoff | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        clock: Clock | None = None,
    ) -> None:
        if concurrency < 1:
            raise SourceConfigurationError(f"the source needs at least one request in flight, not {concurrency}")
        if rate_per_s is not None and not 0 < rate_per_s < float("inf"):
            raise SourceConfigurationError(
                f"the rate of the source must be positive (requests per second), not {rate_per_s}"
            )
        base = URL(checked_base_url(base_url))
        self._urls = {endpoint: base.joinpath(path.lstrip("/")) for endpoint, path in PATHS.items()}
        self._key = checked_key(api_key)
        self._secret = self._key if len(self._key) >= SHORTEST_SECRET else ""
        self._concurrency = concurrency
        self._timeouts = timeouts
        self._backoff = backoff or Backoff()
        self._max_body_bytes = max_body_bytes
        self._clock = clock or SystemClock()
        self._pacer = Pacer(rate_per_s, self._clock)

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        """Send all requests and yield every exchange as it ends; see `Source.stream`.

        After `BudgetExhaustedError`, as after the other two, what is in flight is still answered and nothing more is
        sent; so it is after an exception out of `requests` or `admit`, which ends the stream. Who stops reading early
        closes it (`contextlib.aclosing`); what is in flight is then given up.
        """
        waiting = iter(requests)
        ended: asyncio.Queue[Exchange | None] = asyncio.Queue(maxsize=self._concurrency)
        async with open_session(self._timeouts, self._concurrency, self._headers()) as session:
            gate = _Gate(admit)

            async def work() -> None:
                try:
                    while gate.broken_by is None and (request := next(waiting, None)) is not None:
                        await self._answer(request, session, gate, ended)
                except Exception as error:  # noqa: BLE001 - raised to whoever reads the stream, after the last answer
                    gate.broken_by = gate.broken_by or error
                await ended.put(None)

            workers = [asyncio.create_task(work()) for _ in range(self._concurrency)]
            working = len(workers)
            try:
                while working:
                    item = await ended.get()
                    if item is None:
                        working -= 1
                    else:
                        yield item
                if gate.broken_by is not None:
                    raise gate.broken_by
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    def _headers(self) -> dict[str, str]:
        return {
            "X-API-Key": self._key,
            "X-SerpBase-Source": CLIENT_NAME,
            "User-Agent": CLIENT_NAME,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }

    async def _answer(
        self,
        request: ApiRequest,
        session: aiohttp.ClientSession,
        gate: _Gate,
        ended: asyncio.Queue[Exchange | None],
    ) -> None:
        """Try one request until an attempt is final."""
        for number in count(1):
            attempt = await self._attempt(request, number, session, gate)
            await ended.put(attempt)
            if attempt.final or gate.broken_by is not None:
                return
            if not gate.closed_by:
                await self._clock.sleep(self._backoff.wait_s(number, _asked_pause(attempt.error)))

    async def _attempt(self, request: ApiRequest, number: int, session: aiohttp.ClientSession, gate: _Gate) -> Exchange:
        if not gate.closed_by:
            await self._pacer.turn()
        started_at, started = self._clock.now(), self._clock.monotonic()
        if refusal := await gate.refusal(request):
            return Exchange(request, number, True, started_at, 0, error=refusal)
        http_status = None
        try:
            reply = await exchange(
                session,
                self._urls[request.endpoint],
                json.dumps(dict(request.params)).encode(),
                max_body_bytes=self._max_body_bytes,
            )
        except SourceError as error:
            verdict = Verdict(error=error)
        else:
            http_status = reply.http_status
            pause = retry_after_s(reply.retry_after, self._clock.now())
            verdict = judge(request, http_status, reply.raw, secret=self._secret, retry_after_s=pause)
        if isinstance(verdict.error, UnauthorizedError | OutOfCreditsError):
            gate.closed_by = verdict.error
        elif pause_s := _asked_pause(verdict.error):
            self._pacer.hold(pause_s)
        return Exchange(
            request=request,
            number=number,
            final=verdict.error is None or not verdict.error.retryable or number >= self._backoff.attempts,
            started_at=started_at,
            elapsed_ms=round((self._clock.monotonic() - started) * 1000),
            http_status=http_status,
            status=verdict.status,
            request_id=verdict.request_id,
            credits_charged=verdict.credits_charged,
            body=verdict.body,
            error=verdict.error,
        )


class _Gate:
    """Whether a stream may still send. What closes it, stays the reason for every request that comes later; what breaks
    it, is none of a request."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self.closed_by: SourceError | None = None
        self.broken_by: Exception | None = None

    async def refusal(self, request: ApiRequest) -> SourceError | None:
        """Why this attempt must not be sent, or None: then it is admitted. Raises what broke the gate."""
        if self.broken_by is not None:
            raise self.broken_by
        if self.closed_by is None:
            try:
                await self._admit(request)
            except BudgetExhaustedError as error:
                self.closed_by = error
        return self.closed_by


def _asked_pause(error: SourceError | None) -> float | None:
    return error.retry_after_s if isinstance(error, TransientSourceError) else None
