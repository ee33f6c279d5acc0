"""At most one attempt works on a job of a run, and whoever dies does not hold it for ever."""

from __future__ import annotations

import multiprocessing
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.store import (
    HeldError,
    Holder,
    MadeMeanwhileError,
    RunState,
    UnknownJobError,
    UnknownRunError,
)
from collection_pipeline_tests.store import processes
from collection_pipeline_tests.store.world import GRAPH, World, dataset_of, holder

RUN = "2026-11-29"
PROCESSES = 8


def test_a_claim_takes_the_job_and_says_what_it_consumes(world: World) -> None:
    world.open(RUN)
    [search] = world.done(RUN, "search")
    attempt = world.claim(RUN, "details", holder())
    assert (attempt.number, attempt.inputs, attempt.holder) == (1, {"search": search.artifact}, holder())
    assert world.state(RUN).jobs["details"].attempted == {"search": search.artifact}
    assert world.statuses(RUN)["details"] == "running"
    assert world.store.running() == [(RUN, "details", holder(), world.now)]
    assert world.store.running("2026-11-28") == []


def test_a_second_claim_is_told_who_holds_the_job(world: World) -> None:
    world.open(RUN)
    first = world.claim(RUN, "search", holder("first"))
    with pytest.raises(HeldError, match=r"Dagster run first \(process 1 on host-a\) holds it since 2026-11-29 06:00"):
        world.claim(RUN, "search", holder("second", 2))
    world.publish(first)


def test_the_same_dagster_run_retries_the_same_attempt(world: World) -> None:
    world.open(RUN)
    first = world.claim(RUN, "search", holder("same", pid=1))
    again = world.claim(RUN, "search", holder("same", pid=2))
    assert again.number == first.number == 1
    assert not world.store.fail(first, "late word of a dead process", "x", world.now)
    world.publish(again)


def test_a_dead_holder_is_taken_over(world: World) -> None:
    world.open(RUN)
    dead = world.claim(RUN, "search", holder("dead"))
    asked: list[Holder] = []

    def is_over(held: Holder) -> bool:
        asked.append(held)
        return True

    attempt = world.store.claim(
        RUN, "search", holder("alive"), GRAPH, source="a", decide=lambda _: {}, is_over=is_over, now=lambda: world.now
    )
    assert asked == [dead.holder]
    assert attempt.number == 2


class TestMadeWhileALaunchWaited:
    """Two launches of one job at once: the second waited for its turn, and meets no holder any more."""

    def test_is_not_made_again(self, world: World) -> None:
        world.open(RUN)
        launched_at = world.now
        world.now += timedelta(minutes=1)
        world.publish(world.claim(RUN, "search", holder("first")))
        before = world.store.run_view(RUN)
        with pytest.raises(MadeMeanwhileError, match="was made meanwhile, by Dagster run first"):
            world.claim(RUN, "search", holder("second"), launched_at=launched_at)
        assert world.store.run_view(RUN) == before

    def test_nor_by_who_waited_for_the_lock_while_it_was_published(self, world: World) -> None:
        """Which is then not later than now: the clock is read when the lock is there."""
        world.open(RUN)
        order: list[str] = []
        engine = world.store.database.engine
        sa.event.listen(engine, "before_cursor_execute", lambda _connection, _cursor, said, *_: order.append(said))

        def clock() -> datetime:
            order.append("clock")
            return world.now

        world.store.claim(
            RUN, "search", holder(), GRAPH, source="a", decide=lambda _: {}, is_over=lambda _: False, now=clock
        )
        locked = next(place for place, said in enumerate(order) if "FROM jobs" in said)
        assert order.index("clock") > locked

    @pytest.mark.parametrize(
        ("by", "launched_after_min", "set_back_min"),
        [("second", 1, 0), ("first", 0, 0), ("second", 0, 2)],
        ids=["it was asked for afterwards", "it is the same Dagster run", "the clock was set back"],
    )
    def test_but_it_is_when(self, world: World, by: str, launched_after_min: int, set_back_min: int) -> None:
        world.open(RUN)
        launched_at = world.now + timedelta(minutes=launched_after_min)
        world.now += timedelta(minutes=1)
        world.publish(world.claim(RUN, "search", holder("first")))
        world.now -= timedelta(minutes=set_back_min)
        again = world.claim(RUN, "search", holder(by), launched_at=launched_at)
        assert world.publish(again).artifact.version == 2

    @pytest.mark.parametrize(("found", "is_made"), [(("a", "b"), True), (("a",), False)], ids=["new data", "the same"])
    def test_or_when_what_it_would_consume_has_changed_since(
        self, world: World, found: tuple[str, ...], is_made: bool
    ) -> None:
        """One launch is search and details; another made details of the search that was there before."""
        world.open(RUN)
        world.done(RUN, "search", names=("a",))
        launched_at = world.now
        world.now += timedelta(minutes=1)
        world.done(RUN, "details")
        [search] = world.done(RUN, "search", names=found)
        assert world.plan(RUN).decisions["details"].due == is_made
        if is_made:
            details = world.claim(RUN, "details", launched_at=launched_at)
            assert details.inputs == {"search": search.artifact}
        else:
            with pytest.raises(MadeMeanwhileError):
                world.claim(RUN, "details", launched_at=launched_at)

    def test_or_when_it_failed(self, world: World) -> None:
        world.open(RUN)
        launched_at = world.now
        world.now += timedelta(minutes=1)
        world.fail(RUN, "search")
        assert world.claim(RUN, "search", launched_at=launched_at).number == 2


class RefusedError(Exception):
    """What a gate says."""


def test_a_refused_claim_writes_nothing(world: World) -> None:
    world.open(RUN)
    before = world.store.run_view(RUN)

    def refuse(state: RunState) -> dict[str, Any]:
        assert plan(GRAPH, state, world.now).decisions["details"].readiness == "wait"
        raise RefusedError

    with pytest.raises(RefusedError):
        world.store.claim(
            RUN, "details", holder(), GRAPH, source="a", decide=refuse, is_over=lambda _: False, now=lambda: world.now
        )
    assert world.store.run_view(RUN) == before


def test_unknown_runs_and_jobs_are_named(world: World) -> None:
    with pytest.raises(UnknownRunError, match="no run 2026-11-29"):
        world.claim(RUN, "search")
    world.open(RUN)
    with pytest.raises(UnknownJobError, match="no job serach"):
        world.claim(RUN, "serach")


def test_a_failure_keeps_its_words_and_what_was_attempted(world: World) -> None:
    world.open(RUN)
    world.fail(RUN, "search")
    job = world.store.run_view(RUN).jobs[0]
    assert (job.status, job.reason, job.error_kind, job.finished_at) == ("failed", "no answer", "transient", world.now)
    assert job.attempted == {}
    assert world.store.running() == []


def test_only_the_holder_named_is_declared_gone(world: World) -> None:
    world.open(RUN)
    world.claim(RUN, "search", holder("dead"))
    assert not world.store.fail_abandoned(RUN, "search", holder("other"), "gone", world.now)
    assert world.statuses(RUN)["search"] == "running"
    assert world.store.fail_abandoned(RUN, "search", holder("dead"), "gone", world.now)
    assert not world.store.fail_abandoned(RUN, "search", holder("dead"), "gone", world.now)
    assert world.statuses(RUN)["search"] == "failed"


class TestJobsThatNobodyStarted:
    def test_are_counted_until_an_attempt_starts(self, world: World) -> None:
        world.open(RUN)
        assert world.store.start_counts(RUN, "search") == (0, 0)
        world.store.count_start_failure(RUN, "search")
        world.store.count_start_failure(RUN, "search")
        assert world.store.start_counts(RUN, "search") == (0, 2)
        world.done(RUN, "search")
        assert world.store.start_counts(RUN, "search") == (1, 0)

    def test_fail_as_if_they_had_been_attempted(self, world: World) -> None:
        world.open(RUN)
        [search] = world.done(RUN, "search")
        assert world.store.fail_unstarted(RUN, "details", {"search": search.artifact}, "never started", world.now)
        assert not world.plan(RUN).decisions["details"].wanted
        assert world.statuses(RUN)["details"] == "failed"
        world.done(RUN, "search", names=("something", "else"))
        assert world.plan(RUN).decisions["details"].due

    def test_but_not_when_they_run_after_all(self, world: World) -> None:
        world.open(RUN)
        world.claim(RUN, "search")
        assert not world.store.fail_unstarted(RUN, "search", {}, "never started", world.now)
        world.store.count_start_failure(RUN, "search")
        assert world.store.start_counts(RUN, "search") == (1, 0)


def in_processes(url: str, jobs: list[str]) -> list[Any]:
    """One process a job, all at once; what became of each."""
    # Forked from one process that has imported everything, and has no connection: eight fresh ones take half a minute.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([processes.__name__])
    start, results = context.Barrier(len(jobs)), context.SimpleQueue()
    running = [
        context.Process(target=processes.claim_and_publish, args=(url, number, job_id, start, results))
        for number, job_id in enumerate(jobs)
    ]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
        assert process.exitcode == 0
    return [results.get() for _ in jobs]


def test_of_eight_processes_after_one_job_never_two_hold_it(world: World, database_url: str) -> None:
    """Each is refused, or makes a version of its own once another one is through."""
    world.open(RUN)
    results = in_processes(database_url, [f"{RUN}/search"] * PROCESSES)
    versions = [result for result in results if result != "held"]
    assert sorted(versions) == list(range(1, len(versions) + 1))
    assert versions


def test_eight_processes_publish_at_once_and_nothing_is_lost(world: World, database_url: str) -> None:
    jobs = ["search", "details", "report", "archive"]
    run_ids = [RUN, "2026-11-30"]
    world.open(*run_ids)
    results = in_processes(database_url, [f"{run_id}/{job_id}" for run_id in run_ids for job_id in jobs])
    assert results == [1] * PROCESSES
    for run_id in run_ids:
        for job in world.store.run_view(run_id).jobs:
            assert job.status == "done"
            assert job.current is not None
            assert len(world.store.read(dataset_of(job.job_id), job.current.artifact)) == 1
