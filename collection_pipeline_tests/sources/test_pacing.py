"""When the next attempt may be sent."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from email.utils import format_datetime

import pytest

from collection_pipeline.sources.pacing import LONGEST_RETRY_AFTER_S, Backoff, Pacer, retry_after_s
from collection_pipeline_tests.sources.fake_clock import START, FakeClock


def turns(pacer: Pacer, clock: FakeClock, count: int) -> list[float]:
    async def take() -> list[float]:
        taken = []
        for _ in range(count):
            await pacer.turn()
            taken.append(clock.monotonic())
        return taken

    return asyncio.run(take())


def test_turns_are_evenly_spaced() -> None:
    clock = FakeClock()
    assert turns(Pacer(4, clock), clock, 4) == [0, 0.25, 0.5, 0.75]


def test_no_limit_means_no_wait() -> None:
    clock = FakeClock()
    assert turns(Pacer(None, clock), clock, 3) == [0, 0, 0]


def test_a_rate_below_one_a_second_works_too() -> None:
    clock = FakeClock()
    assert turns(Pacer(0.5, clock), clock, 3) == [0, 2, 4]


def test_when_the_server_asks_for_a_pause_everybody_pauses() -> None:
    clock = FakeClock()
    pacer = Pacer(None, clock)
    pacer.hold(7)
    pacer.hold(3)
    assert turns(pacer, clock, 2) == [7, 7]


def test_waits_double_up_to_a_limit_and_lose_at_most_half() -> None:
    backoff = Backoff(first_s=1, longest_s=8, seed=1)
    for attempt, ceiling in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (5000, 8)]:
        waits = [backoff.wait_s(attempt) for _ in range(50)]
        assert all(ceiling / 2 <= wait <= ceiling for wait in waits)
        assert len(set(waits)) > 1


def test_waits_are_repeatable_with_a_seed() -> None:
    one, other = Backoff(seed=3), Backoff(seed=3)
    assert [one.wait_s(n) for n in range(1, 6)] == [other.wait_s(n) for n in range(1, 6)]


def test_never_earlier_than_the_server_asked_for() -> None:
    assert Backoff(first_s=1, seed=1).wait_s(1, retry_after_s=20) == 20


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("17", 17),
        (" 17 ", 17),
        (format_datetime(START + timedelta(seconds=12), usegmt=True), 12),
        (format_datetime(START - timedelta(days=1), usegmt=True), 0),
        ("86400", LONGEST_RETRY_AFTER_S),
        ("9" * 5000, LONGEST_RETRY_AFTER_S),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_RETRY_AFTER_S),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_capped(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, START) == seconds
