"""Many requests, each retried as its errors allow, every attempt reported."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from itertools import count

import pytest

from collection_pipeline.sources.contract import (
    ApiRequest,
    BudgetExhaustedError,
    Exchange,
    MalformedResponseError,
    NotFoundError,
    OutOfCreditsError,
    SourceError,
    UnauthorizedError,
)
from collection_pipeline.sources.pacing import LONGEST_RETRY_AFTER_S, Backoff
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline_tests.sources.fake_clock import START, FakeClock
from collection_pipeline_tests.sources.raw_server import (
    DETAIL,
    KEY,
    Answer,
    RawServer,
    Received,
    allow,
    collect,
    details,
    failure,
    http,
    raw_server,
    saying,
    success,
)

GOOD = http(success())
THRICE = Backoff(attempts=3, first_s=1, seed=1)


def run(
    answer: Answer, requests: list[ApiRequest] | None = None, clock: FakeClock | None = None, concurrency: int = 4
) -> tuple[list[Exchange], RawServer]:
    """All attempts against a server that answers so, on a clock that waits for nothing."""

    async def main() -> tuple[list[Exchange], RawServer]:
        async with raw_server(answer) as server:
            source = SerpBaseSource(
                server.base_url, KEY, concurrency=concurrency, backoff=THRICE, clock=clock or FakeClock()
            )
            return await collect(source, requests or [DETAIL]), server

    return asyncio.run(main())


class TestRequest:
    def test_is_a_post_of_the_parameters_with_the_key_in_its_header(self) -> None:
        request = ApiRequest("maps_search", {"q": "机场 \ud800", "lat": 65.5, "page": 2})
        _, server = run(saying(http({"status": 0})), [request])
        [received] = server.received
        assert (received.method, received.path) == ("POST", "/google/maps/search")
        assert received.json() == request.params
        assert received.headers["x-api-key"] == KEY
        assert received.headers["content-type"] == "application/json"
        assert "cookie" not in received.headers

    def test_goes_to_the_path_under_the_base_url(self) -> None:
        async def main() -> list[Received]:
            async with raw_server(saying(GOOD)) as server:
                await collect(SerpBaseSource(server.base_url + "/gateway/", KEY))
                return server.received

        assert asyncio.run(main())[0].path == "/gateway/google/maps/detail"

    def test_that_succeeds_is_one_attempt(self) -> None:
        [attempt], _ = run(saying(GOOD))
        assert attempt.error is None
        assert attempt.body == GOOD.split(b"\r\n\r\n", 1)[1]
        assert (attempt.request, attempt.number, attempt.final) == (DETAIL, 1, True)
        assert (attempt.http_status, attempt.status, attempt.request_id, attempt.credits_charged) == (200, 0, "r-1", 2)
        assert attempt.started_at == START


class TestRetries:
    @pytest.mark.parametrize(
        "bad",
        [
            *(http(failure(status)) for status in (1029, 1500, 1502, 1503, 1504)),
            *(http(b"<html></html>", status) for status in (429, 500, 502, 503, 504)),
            b"",
        ],
    )
    def test_of_what_may_pass_until_it_passes(self, bad: bytes) -> None:
        attempts, server = run(saying(bad, bad, GOOD))
        assert [(a.number, a.final, a.error is None) for a in attempts] == [
            (1, False, False),
            (2, False, False),
            (3, True, True),
        ]
        assert len(server.received) == 3

    def test_end_after_the_last_attempt(self) -> None:
        attempts, server = run(saying(http(failure(1503))))
        assert [(a.number, a.final) for a in attempts] == [(1, False), (2, False), (3, True)]
        assert len(server.received) == 3

    @pytest.mark.parametrize(
        "bad",
        [
            *(http(failure(status)) for status in (1000, 1001, 1004, 1020, 1999)),
            *(http(b"", status) for status in (204, 307, 400, 401, 403, 404, 405)),
            http(failure(1020), 503),
            http(b"<html></html>"),
            http(success(place=[])),
        ],
    )
    def test_are_not_made_of_anything_else(self, bad: bytes) -> None:
        [attempt], server = run(saying(bad))
        assert attempt.error is not None
        assert attempt.final
        assert len(server.received) == 1

    def test_wait_longer_each_time(self) -> None:
        clock = FakeClock()
        run(saying(http(failure(1502))), clock=clock)
        first, second = clock.slept
        assert 0.5 <= first <= 1 <= second <= 2

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [("17", 17), (format_datetime(START + timedelta(seconds=9), usegmt=True), 9), ("9999", LONGEST_RETRY_AFTER_S)],
    )
    @pytest.mark.parametrize("status", [200, 429, 503])
    def test_wait_as_long_as_the_server_asks(self, header: str, seconds: float, status: int) -> None:
        clock = FakeClock()
        body = failure(1029) if status == 200 else b""
        run(saying(http(body, status, Retry_After=header), GOOD), clock=clock)
        assert clock.slept == [seconds]

    def test_hold_back_the_other_requests_too_when_the_server_asks_for_a_pause(self) -> None:
        clock = FakeClock(stands_still=True)
        run(saying(http(failure(1029), Retry_After="30"), GOOD), details(3), clock=clock, concurrency=1)
        assert clock.slept == [30, 30, 30, 30], "after the failure, before its retry, and before both others"


class TestStops:
    @pytest.mark.parametrize(("status", "kind"), [(1001, UnauthorizedError), (1020, OutOfCreditsError)])
    def test_when_every_further_request_would_fail_alike(self, status: int, kind: type[SourceError]) -> None:
        attempts, server = run(saying(GOOD, http(failure(status)), GOOD), details(20), concurrency=1)
        assert len(server.received) == 2
        assert len(attempts) == 20
        assert all(attempt.final for attempt in attempts)
        assert [type(attempt.error) for attempt in attempts[1:]] == [kind] * 19
        assert {attempt.http_status for attempt in attempts[2:]} == {None}

    def test_also_for_requests_that_wait_for_their_next_attempt(self) -> None:
        attempts, server = run(saying(http(failure(1502)), http(failure(1001))), details(2), concurrency=2)
        assert len(server.received) == 2
        assert sum(attempt.final for attempt in attempts) == 2
        assert isinstance(attempts[-1].error, UnauthorizedError)

    def test_without_waiting_for_a_retry_that_will_not_be_sent(self) -> None:
        clock = FakeClock()
        refused = asyncio.Event()

        async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
            if request.json() == details(1)[0].params:
                await refused.wait()
                writer.write(http(failure(1502)))
            else:
                writer.write(http(failure(1001)))

        async def main() -> list[Exchange]:
            attempts = []
            async with raw_server(answer) as server:
                source = SerpBaseSource(server.base_url, KEY, concurrency=2, backoff=THRICE, clock=clock)
                async for attempt in source.stream(details(2), admit=allow):
                    attempts.append(attempt)
                    refused.set()
            return attempts

        kinds = [attempt.error.kind for attempt in asyncio.run(main()) if attempt.error]
        assert kinds == ["unauthorized", "transient", "unauthorized"]
        assert clock.slept == []

    def test_before_a_request_that_the_budget_does_not_allow(self) -> None:
        asked: list[ApiRequest] = []

        async def admit(request: ApiRequest) -> None:
            if len(asked) == 3:
                raise BudgetExhaustedError("3 requests are all there is")
            asked.append(request)

        async def main() -> tuple[list[Exchange], RawServer]:
            async with raw_server(saying(http(failure(1502)), GOOD)) as server:
                source = SerpBaseSource(server.base_url, KEY, concurrency=1, backoff=THRICE, clock=FakeClock())
                return [attempt async for attempt in source.stream(details(5), admit=admit)], server

        attempts, server = asyncio.run(main())
        assert len(server.received) == 3
        one, two, *rest = details(5)
        assert asked == [one, one, two], "every attempt is asked for, retries too"
        assert [(a.request, type(a.error)) for a in attempts[3:]] == [
            (request, BudgetExhaustedError) for request in rest
        ]

    def test_but_one_missing_or_malformed_answer_is_no_reason(self) -> None:
        attempts, _ = run(saying(http(failure(1004)), http(b"<html>"), GOOD), details(4), concurrency=1)
        assert [type(a.error) for a in attempts] == [NotFoundError, MalformedResponseError, type(None), type(None)]


class TestStream:
    def test_keeps_exactly_so_many_requests_in_flight(self) -> None:
        in_flight = most = 0
        full = asyncio.Event()

        async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            if in_flight == 8:
                full.set()
            await full.wait()
            await asyncio.sleep(0)
            in_flight -= 1
            writer.write(GOOD)

        attempts, _ = run(answer, details(40), concurrency=8)
        assert len(attempts) == 40
        assert most == 8

    def test_answers_what_is_in_flight_before_it_ends_with_what_broke_it(self) -> None:
        broken = asyncio.Event()

        async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
            await broken.wait()
            writer.write(GOOD)

        async def admit(request: ApiRequest) -> None:
            if request == details(3)[-1]:
                broken.set()
                raise ConnectionError("the books are closed")

        async def main() -> None:
            async with raw_server(answer) as server:
                stream = SerpBaseSource(server.base_url, KEY, concurrency=3).stream(details(9), admit=admit)
                answered = [(await anext(stream)).request for _ in range(2)]
                with pytest.raises(ConnectionError, match="the books are closed"):
                    await anext(stream)
                assert sorted(map(str, answered)) == sorted(map(str, details(2)))
                assert len(server.received) == 2, "nothing more is sent"

        asyncio.run(main())

    def test_takes_requests_only_as_it_needs_them_and_stops_when_nobody_listens(self) -> None:
        taken = 0

        def endless() -> Iterator[ApiRequest]:
            nonlocal taken
            for number in count(1):
                taken += 1
                yield ApiRequest("maps_detail", {"feature_id": f"0x1:{number:#x}"})

        read_unread_and_waiting_to_be_put = 10 + 4 + 4
        all_answered = asyncio.Event()
        give = saying(GOOD)

        async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
            await give(request, writer)
            if taken == read_unread_and_waiting_to_be_put:
                all_answered.set()

        async def main() -> None:
            async with raw_server(answer) as server:
                stream = SerpBaseSource(server.base_url, KEY, concurrency=4).stream(endless(), admit=allow)
                for _ in range(10):
                    await anext(stream)
                await all_answered.wait()
                for _ in range(100):
                    await asyncio.sleep(0)
                await stream.aclose()
                assert taken == read_unread_and_waiting_to_be_put
                assert len(asyncio.all_tasks()) <= 1 + 4, "only this test and the server's connections are left"

        asyncio.run(main())

    def test_ends_with_the_error_of_whoever_makes_the_requests(self) -> None:
        def broken() -> Iterator[ApiRequest]:
            yield DETAIL
            raise LookupError("no more")

        async def main() -> None:
            async with raw_server(saying(GOOD)) as server:
                await collect(SerpBaseSource(server.base_url, KEY), broken())

        with pytest.raises(LookupError, match="no more"):
            asyncio.run(main())

    def test_of_nothing_is_empty(self) -> None:
        async def main() -> list[Exchange]:
            return await collect(SerpBaseSource("http://127.0.0.1:9", KEY), [])

        assert asyncio.run(main()) == []

    def test_keeps_the_rate_over_all_its_streams(self) -> None:
        clock = FakeClock()

        async def main() -> list[float]:
            async with raw_server(saying(GOOD)) as server:
                source = SerpBaseSource(server.base_url, KEY, concurrency=1, rate_per_s=2, clock=clock)
                attempts = [*await collect(source, details(3)), *await collect(source, details(2))]
                return [(a.started_at - START).total_seconds() for a in attempts]

        assert asyncio.run(main()) == [0, 0.5, 1, 1.5, 2]

    def test_uses_its_connections_again(self) -> None:
        peers: set[object] = set()

        async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
            peers.add(writer.get_extra_info("peername"))
            writer.write(GOOD)

        run(answer, details(50), concurrency=3)
        assert len(peers) <= 3


class TestSecrets:
    """A server that says the key back, in every answer it gives."""

    ECHO = f"your key is {KEY}"

    @pytest.mark.parametrize(
        "answer",
        [
            http(success(place={"name": ECHO, KEY: [KEY]})),
            http(success(request_id=KEY)),
            http(failure(1000, ECHO)),
            http(failure(1001, ECHO, request_id=KEY)),
            http(failure(1502, ECHO)),
            http(ECHO.encode()),
            http(ECHO.encode(), 401),
            http(b"", 302, Location=f"https://evil.example/{KEY}"),
            http(b"", 429, Retry_After=KEY),
            f"HTTP/1.1 {KEY}\r\n\r\n".encode(),
            f"{KEY}\r\n\r\n".encode(),
            b"HTTP/1.1 200 OK\r\n" + KEY.encode() + b"\r\n\r\n",
            http(b"x", Content_Encoding="gzip") + KEY.encode(),
        ],
    )
    def test_are_in_no_attempt_error_traceback_or_log(self, answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        attempts, _ = run(saying(answer))
        for attempt in attempts:
            assert KEY not in repr(attempt)
            assert KEY not in (attempt.body or b"").decode()
            if attempt.error:
                assert KEY not in "".join(traceback.format_exception(attempt.error))
        assert KEY not in caplog.text

    def test_are_not_in_the_source_s_own_text(self) -> None:
        assert KEY not in repr(SerpBaseSource("https://api.serpbase.dev", KEY))
