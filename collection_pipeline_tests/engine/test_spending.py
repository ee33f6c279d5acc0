"""Paid calls of an attempt that loses its job while it fetches, of a source that is silent, and of one that is down."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from threading import Semaphore

import pytest

from collection_pipeline.engine.jobs import troubles
from collection_pipeline.engine.jobs.spending import PaidCalls, SpendingStoppedError
from collection_pipeline.engine.store import Attempt, LostClaimError, Store
from collection_pipeline.engine.store.database import Database
from collection_pipeline.sources.contract import (
    Admit,
    ApiRequest,
    BudgetExhaustedError,
    Exchange,
    TransientSourceError,
)
from collection_pipeline_tests.store.world import World

RUN = "2026-11-29"
NOW = datetime(2026, 11, 29, 6, tzinfo=UTC)
REQUESTS = 200


class OneByOne(Store):
    """Gives a turn for each exchange that is stored, and one to begin with."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.turns = Semaphore(1)

    def record(self, attempt: Attempt, batch: Sequence[Exchange], *, release: int = 0) -> None:
        try:
            super().record(attempt, batch, release=release)
        finally:
            self.turns.release(len(batch))


class TakenOver:
    """Answers one request after the other, each when the one before is stored; meanwhile the job is taken away."""

    def __init__(self, store: OneByOne, attempt: Attempt) -> None:
        self._store, self._attempt = store, attempt
        self.sent = 0

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        for request in requests:
            await asyncio.to_thread(self._store.turns.acquire)
            await admit(request)
            self.sent += 1
            if self.sent == 10:
                self._store.fail_abandoned(RUN, self._attempt.job_id, self._attempt.holder, "made to give it up", NOW)
            yield Exchange(request, 1, True, NOW, 1, 200, 0, "req-1", request.credits, body=b"{}")


@pytest.fixture
def store(sqlite_url: str) -> Iterator[OneByOne]:
    with OneByOne.open(sqlite_url) as store:
        World(store).open(RUN)
        yield store


@pytest.mark.parametrize("max_credits", [None, 100_000])
def test_it_soon_stops_to_buy_and_keeps_what_it_bought(store: OneByOne, max_credits: int | None) -> None:
    attempt = World(store).claim(RUN, "search")
    source = TakenOver(store, attempt)
    calls = PaidCalls(store, lambda: source, attempt, max_credits, lambda *_: None)

    with pytest.raises(LostClaimError, match="Attempt 1 at search of run 2026-11-29 no longer holds the job"):
        calls.fetch(ApiRequest("maps_detail", {"feature_id": f"0x{number:x}:0x1"}) for number in range(REQUESTS))
    assert source.sent <= 10 + 1, "one may be on its way while the last is stored"
    assert len(store.reusable(World(store).claim(RUN, "search"))) == source.sent


class Forgetful:
    """Sends every request, and says nothing of every other one."""

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        for number, request in enumerate(requests):
            await admit(request)
            if number % 2:
                yield Exchange(request, 1, True, NOW, 1, 200, 0, "req-1", request.credits, body=b"{}")


def test_a_request_that_the_source_says_nothing_of_is_missing(store: OneByOne) -> None:
    attempt = World(store).claim(RUN, "search")
    calls = PaidCalls(store, Forgetful, attempt, None, lambda *_: None)
    answers = calls.fetch(ApiRequest("maps_detail", {"feature_id": f"0x{number:x}:0x1"}) for number in range(10))
    assert len(list(answers)) == 5
    counts = calls.counts
    assert (counts.requested, counts.answered, counts.missing) == (10, 5, 5)
    assert counts.commonest_error == "the source gave no answer (5 of 5)"


class Down:
    """Fails every request, `tries` times each."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        for request in requests:
            for number in range(1, self._tries + 1):
                await admit(request)
                error = TransientSourceError("HTTP 503 \u202eand a trick")
                yield Exchange(request, number, number == self._tries, NOW, 1, 503, error=error)


@pytest.mark.parametrize(
    ("tries", "words"), [(2, []), (5, ["a call failed 2 times and is tried again: HTTP 503 [U+202E]and a trick"])]
)
def test_calls_that_fail_more_than_once_are_told_of_once_in_a_while(
    tries: int, words: list[str], store: OneByOne, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = World(store).claim(RUN, "search")
    calls = PaidCalls(store, lambda: Down(tries), attempt, None, lambda *_: None)
    calls.fetch(ApiRequest("maps_detail", {"feature_id": f"0x{number:x}:0x1"}) for number in range(10))
    assert caplog.messages == [f"search of {RUN}: {text}" for text in words]


class Costly(Down):
    """Fails every request once, and may not send it again."""

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        for request in requests:
            await admit(request)
            yield Exchange(request, 1, False, NOW, 1, error=TransientSourceError("the answer broke off"))
            yield Exchange(request, 2, True, NOW, 0, error=BudgetExhaustedError("the budget is used up"))


def test_a_budget_that_failures_used_up_names_them(store: OneByOne) -> None:
    calls = PaidCalls(store, lambda: Costly(2), World(store).claim(RUN, "search"), 4, lambda *_: None)
    with pytest.raises(SpendingStoppedError) as stopped:
        calls.fetch(ApiRequest("maps_detail", {"feature_id": f"0x{number:x}:0x1"}) for number in range(2))
    assert "; 2 failed attempts, most often: the answer broke off; raise COLLECTION_MAX_CREDITS" in str(stopped.value)


class Hangs(logging.Handler):
    """Begins all requests, and answers them once somebody was told that none comes back."""

    def __init__(self) -> None:
        super().__init__()
        self._told = asyncio.Event()

    def emit(self, _: logging.LogRecord) -> None:
        self._told.set()

    async def stream(self, requests: Iterable[ApiRequest], *, admit: Admit) -> AsyncGenerator[Exchange, None]:
        begun = list(requests)
        async with asyncio.timeout(30):
            await self._told.wait()
        for request in begun:
            await admit(request)
            yield Exchange(request, 1, True, NOW, 1, 200, 0, "req-1", request.credits, body=b"{}")


def test_a_source_that_hangs_is_told_of(
    store: OneByOne, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(troubles, "EVERY_S", 0.01)
    hangs = Hangs()
    calls = PaidCalls(store, lambda: hangs, World(store).claim(RUN, "search"), None, lambda *_: None)
    troubles.log.logger.addHandler(hangs)
    try:
        calls.fetch(ApiRequest("maps_detail", {"feature_id": f"0x{number:x}:0x1"}) for number in range(10))
    finally:
        troubles.log.logger.removeHandler(hangs)
    assert re.fullmatch(rf"search of {RUN}: nothing came back for \d+ s; 10 calls begun", caplog.messages[0])


def test_a_source_is_not_blamed_for_what_is_done_with_its_answers(
    store: OneByOne, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(troubles, "EVERY_S", 0)
    told = troubles.Troubles(World(store).claim(RUN, "search"), [])
    answered = Exchange(ApiRequest("maps_detail", {"feature_id": "0x1:0x1"}), 1, True, NOW, 1, 200, 0, "req-1", 2)

    async def several_looks() -> list[str]:
        for _ in range(10):
            await asyncio.sleep(0)
        return caplog.messages.copy()

    async def fetch() -> tuple[list[str], list[str]]:
        async with told.watched():
            told.see(answered)
            while_it_is_stored = await several_looks()
            told.wait()
            return while_it_is_stored, await several_looks()

    while_it_is_stored, while_none_comes = asyncio.run(fetch())
    assert while_it_is_stored == []
    assert while_none_comes
