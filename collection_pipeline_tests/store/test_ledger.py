"""Every exchange is kept; what was paid for is not bought again until something is published; the budget holds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from datetime import timedelta

import pytest

from collection_pipeline.engine.store import Attempt, Credits, LostClaimError
from collection_pipeline.sources.contract import (
    ApiRequest,
    Exchange,
    NotFoundError,
    SourceError,
    TransientSourceError,
)
from collection_pipeline_tests.store.world import World, rejects

RUN = "2026-11-29"


def asked(*words: str) -> list[ApiRequest]:
    return [ApiRequest("maps_search", {"q": word, "page": 1}) for word in words]


def answered(world: World, request: ApiRequest, body: bytes = b'{"places":[]}') -> Exchange:
    return Exchange(request, 1, True, world.now, 1500, 200, 0, "req-1", request.credits, body=body)


def unanswered(world: World, request: ApiRequest, error: SourceError, number: int = 1) -> Exchange:
    return Exchange(request, number, True, world.now, 20, 503, None, None, 0, error=error)


def fingerprints(requests: Sequence[ApiRequest]) -> set[str]:
    return set(ordered(requests))


def ordered(requests: Sequence[ApiRequest]) -> list[str]:
    return [request.fingerprint for request in requests]


@pytest.fixture
def attempt(world: World) -> Attempt:
    world.open(RUN)
    return world.claim(RUN, "search")


def test_an_answer_comes_back_whole_and_in_the_order_asked(world: World, attempt: Attempt) -> None:
    requests = asked("東京", "b", "c")
    bodies = {request.fingerprint: bytes([number]) * 9 for number, request in enumerate(requests)}
    batch = [answered(world, request, bodies[request.fingerprint]) for request in reversed(requests)]
    world.store.record(attempt, batch)
    answers = list(world.store.answers(attempt, ordered([*requests, *asked("never asked")])))
    assert [answer.request for answer in answers] == requests
    assert [answer.body for answer in answers] == list(bodies.values())
    assert answers[0].request_id == "req-1"
    assert answers[0].received_at == world.now + timedelta(seconds=1.5)


def test_every_exchange_can_be_looked_up(world: World, attempt: Attempt) -> None:
    [request] = asked("a")
    hostile = TransientSourceError("cut \0 off \ud800", possibly_billed=True)
    world.store.record(attempt, [unanswered(world, request, hostile), answered(world, request)])
    with world.store.database.read() as connection:
        query = "SELECT job_id, attempt, try_number, kind, request_id, http_status, credits_charged, error, params"
        rows = [tuple(row) for row in connection.exec_driver_sql(f"{query} FROM requests ORDER BY id")]
    assert rows == [
        ("search", 1, 1, "transient", None, 503, 0, "cut \ufffd off ?", '{"page": 1, "q": "a"}'),
        ("search", 1, 1, "ok", "req-1", 200, 2, None, '{"page": 1, "q": "a"}'),
    ]


class TestReuse:
    def test_the_next_attempt_has_what_the_last_one_paid_for(self, world: World, attempt: Attempt) -> None:
        requests = asked("a", "b")
        world.store.record(attempt, [answered(world, requests[0]), unanswered(world, requests[1], NotFoundError("no"))])
        world.store.fail(attempt, "killed", "abandoned", world.now)
        following = world.claim(RUN, "search")
        assert world.store.reusable(following) == fingerprints(requests[:1])
        assert len(list(world.store.answers(following, ordered(requests)))) == 1

    def test_what_arrives_after_a_take_over_is_kept(self, world: World, attempt: Attempt) -> None:
        world.store.fail_abandoned(RUN, "search", attempt.holder, "gone", world.now)
        following = world.claim(RUN, "search")
        with pytest.raises(LostClaimError):
            world.store.record(attempt, [answered(world, request) for request in asked("late")])
        assert world.store.reusable(following) == fingerprints(asked("late"))

    @pytest.mark.parametrize("usable", [True, False])
    def test_a_rerun_after_a_published_artifact_or_a_failed_check_asks_anew(
        self, world: World, attempt: Attempt, usable: bool
    ) -> None:
        world.store.record(attempt, [answered(world, request) for request in asked("a")])
        world.publish(attempt, None, None if usable else rejects())
        assert world.store.reusable(world.claim(RUN, "search")) == set()

    def test_unless_it_is_told_to_fetch_only_what_is_missing(self, world: World, attempt: Attempt) -> None:
        """Twice in a row: the third version still has the answers bought for the first."""
        world.store.record(attempt, [answered(world, request) for request in asked("a")])
        world.publish(attempt)
        for word in ("b", "c"):
            following = world.store.adopt_answers(world.claim(RUN, "search"))
            world.store.record(following, [answered(world, request) for request in asked(word)])
            world.publish(following)
        again = world.store.adopt_answers(world.claim(RUN, "search", by=None))
        assert world.store.reusable(again) == fingerprints(asked("a", "b", "c"))
        assert world.store.reusable(world.claim(RUN, "search", again.holder)) == fingerprints(asked("a", "b", "c"))

    def test_which_says_nothing_to_the_next_attempt(self, world: World, attempt: Attempt) -> None:
        """What a published version was made of is fetched anew, also after one that adopted it and came to nothing.

        What that one bought itself is reused, as after any attempt that did not publish.
        """
        world.store.record(attempt, [answered(world, request) for request in asked("a")])
        world.publish(attempt)
        adopting = world.store.adopt_answers(world.claim(RUN, "search"))
        world.store.record(adopting, [answered(world, request) for request in asked("b")])
        world.store.fail(adopting, "killed", "abandoned", world.now)
        plain = world.claim(RUN, "search")
        assert world.store.reusable(plain) == fingerprints(asked("b"))
        again = world.store.adopt_answers(world.claim(RUN, "search", takes_over=True))
        assert world.store.reusable(again) == fingerprints(asked("a", "b"))
        world.publish(again)

    def test_there_is_nothing_to_adopt_before_the_first_version(self, world: World, attempt: Attempt) -> None:
        assert world.store.adopt_answers(attempt) == attempt

    def test_answers_of_another_source_are_left_alone_until_it_is_asked_again(
        self, world: World, attempt: Attempt
    ) -> None:
        """Neither the next attempt nor one that fetches only what is missing takes them for its own."""
        [request] = asked("a")
        world.store.record(attempt, [answered(world, request, b"of the emulator")])
        world.store.fail(attempt, "killed", "abandoned", world.now)
        world.source = "the real one"
        following = world.claim(RUN, "search")
        assert world.store.reusable(following) == set()
        assert list(world.store.answers(following, [request.fingerprint])) == []
        world.store.record(following, [answered(world, request, b"the real one's")])
        assert [answer.body for answer in world.store.answers(following, [request.fingerprint])] == [b"the real one's"]
        world.publish(following)
        world.source = "emulator"
        adopting = world.store.adopt_answers(world.claim(RUN, "search"))
        assert [answer.body for answer in world.store.answers(adopting, [request.fingerprint])] == [b"of the emulator"]

    def test_jobs_and_runs_do_not_share(self, world: World, attempt: Attempt) -> None:
        world.store.record(attempt, [answered(world, request) for request in asked("a")])
        world.open("2026-11-30")
        for other in (world.claim("2026-11-30", "search"), world.claim(RUN, "archive", inputs={})):
            assert world.store.reusable(other) == set()


class TestCredits:
    def test_are_counted_as_charged_reused_and_possibly_billed(self, world: World, attempt: Attempt) -> None:
        a, b, c = asked("a", "b", "c")
        doubtful = TransientSourceError("timed out", possibly_billed=True)
        world.store.record(attempt, [answered(world, a), unanswered(world, b, doubtful)])
        world.store.record(attempt, [unanswered(world, c, TransientSourceError("busy"))])
        world.store.count_reuse(attempt, 2)
        assert world.store.credits(RUN) == Credits(charged=2, reused=2, possibly_billed=2)
        assert world.store.run_view(RUN).credits == world.store.credits(RUN)

    def test_of_a_run_that_never_was_are_none(self, world: World) -> None:
        assert world.store.credits(RUN) == Credits(0, 0, 0)


class TestBudget:
    @pytest.fixture
    def details(self, world: World, attempt: Attempt) -> Attempt:
        """Another attempt at the same time."""
        return world.claim(attempt.run_id, "details", inputs={"search": None})

    def test_holds_over_all_jobs_of_the_run(self, world: World, attempt: Attempt, details: Attempt) -> None:
        assert world.store.reserve(attempt, 6, 10)
        assert not world.store.reserve(details, 6, 10)
        assert world.store.reserve(details, 4, 10)
        assert not world.store.reserve(details, 1, 10)

    def test_what_is_charged_takes_the_place_of_what_was_reserved(self, world: World, attempt: Attempt) -> None:
        assert world.store.reserve(attempt, 4, 10)
        world.store.record(attempt, [answered(world, request) for request in asked("a", "b")], release=4)
        assert world.store.reserve(attempt, 6, 10)
        assert not world.store.reserve(attempt, 1, 10)

    def test_what_may_have_been_billed_counts_as_spent(self, world: World, attempt: Attempt) -> None:
        assert world.store.reserve(attempt, 2, 4)
        doubtful = TransientSourceError("timed out", possibly_billed=True)
        world.store.record(attempt, [unanswered(world, asked("a")[0], doubtful)], release=2)
        assert not world.store.reserve(attempt, 3, 4)
        assert world.store.reserve(attempt, 2, 4)

    def test_what_was_not_needed_goes_back(self, world: World, attempt: Attempt, details: Attempt) -> None:
        assert world.store.reserve(attempt, 10, 10)
        world.store.release(attempt, 7)
        assert world.store.reserve(details, 7, 10)

    @pytest.mark.parametrize("end", ["fail", "abandoned", "tried again"])
    def test_what_an_attempt_leaves_reserved_may_have_been_billed(
        self, world: World, attempt: Attempt, details: Attempt, end: str
    ) -> None:
        assert world.store.reserve(attempt, 8, 10)
        match end:
            case "fail":
                world.store.fail(attempt, "no", "x", world.now)
            case "abandoned":
                world.store.fail_abandoned(RUN, "search", attempt.holder, "gone", world.now)
            case _:
                world.claim(RUN, "search", attempt.holder)
        assert world.store.credits(RUN).possibly_billed == 8
        assert world.store.reserve(details, 2, 10)
        assert not world.store.reserve(details, 1, 10)


class TestTakenOver:
    """Somebody took the job over from an attempt that is still alive."""

    @pytest.fixture
    def following(self, world: World, attempt: Attempt) -> Attempt:
        assert world.store.reserve(attempt, 50, 100)
        following = world.claim(RUN, "search", takes_over=True)
        assert world.store.reserve(following, 50, 100)
        return following

    def test_it_may_not_reserve_any_more(self, world: World, attempt: Attempt, following: Attempt) -> None:
        with pytest.raises(LostClaimError, match="Attempt 1 at search of run 2026-11-29 no longer holds the job"):
            world.store.reserve(attempt, 0, 100)
        with pytest.raises(LostClaimError):
            world.store.reserve(attempt, 1, None)
        assert world.store.reserve(following, 0, 100)

    def test_what_it_releases_late_is_not_its_followers(
        self, world: World, attempt: Attempt, following: Attempt
    ) -> None:
        """Its own reservation is in doubt since the take-over, and counts against the budget for good."""
        world.store.release(attempt, 50)
        assert not world.store.reserve(following, 1, 100)

    def test_what_it_records_late_is_kept_and_uses_up_nothing_of_its_followers(
        self, world: World, attempt: Attempt, following: Attempt
    ) -> None:
        with pytest.raises(LostClaimError, match="Attempt 1 at search of run 2026-11-29 no longer holds the job"):
            world.store.record(attempt, [answered(world, request) for request in asked("late")], release=2)
        assert world.store.reusable(following) == fingerprints(asked("late"))
        assert world.store.credits(RUN) == Credits(charged=2, reused=0, possibly_billed=50)
        assert world.store.reserve(following, 8, 110)
        assert not world.store.reserve(following, 1, 110)


def test_many_answers_are_read_in_flat_memory(world: World, attempt: Attempt) -> None:
    requests = asked(*map(str, range(3000)))
    body = b"x" * 10_000
    for start in range(0, len(requests), 500):
        world.store.record(attempt, [answered(world, request, body) for request in requests[start : start + 500]])
    tracemalloc.start()
    answers = world.store.answers(attempt, ordered(requests))
    assert sum(len(answer.body) for answer in answers) == len(requests) * len(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15_000_000
