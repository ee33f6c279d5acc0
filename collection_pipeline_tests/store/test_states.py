"""Runs open, settle and open again; the state that plans are made of is the state as it is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import (
    Attempt,
    Manifest,
    Published,
    Shown,
    Store,
    UnknownRunError,
    UnreadableRunError,
)
from collection_pipeline.sources.contract import ApiRequest, Exchange
from collection_pipeline_tests.store.world import (
    GRAPH,
    SHELF_LIFE,
    UTC_ZONE,
    World,
    dataset_of,
    moment_of,
    passes,
    places,
)

RUN = "2026-11-29"


class TestOpening:
    def test_inserts_all_jobs_as_pending(self, world: World) -> None:
        world.open(RUN)
        view = world.store.run_view(RUN)
        assert [(job.job_id, job.deps, job.status) for job in view.jobs] == [
            ("search", (), "pending"),
            ("details", ("search",), "pending"),
            ("report", ("details",), "pending"),
            ("archive", ("report",), "pending"),
        ]
        assert (view.moment, view.opened_at, view.settled_at) == (moment_of(RUN), world.now, None)
        assert view.graph == GRAPH

    def test_twice_changes_nothing(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search")
        before = world.store.run_view(RUN)
        later = world.now + timedelta(hours=1)
        assert not world.store.open_run(RunId.parse(RUN), UTC_ZONE, GRAPH, later)
        assert world.store.run_view(RUN) == before

    def test_shows_in_the_state_table_as_anybody_would_query_it(self, world: World, database_url: str) -> None:
        world.open(RUN)
        with world.store.database.read() as connection:
            query = sa.text("SELECT job_id, deps, status FROM jobs WHERE run_id = :run ORDER BY job_id")
            rows = [tuple(row) for row in connection.execute(query, {"run": RUN})]
        deps = ["report"] if database_url.startswith("postgresql") else '["report"]'
        assert rows[0] == ("archive", deps, "pending")


def test_open_runs_come_in_the_order_of_runs(world: World) -> None:
    run_ids = ["2026-11-29.10", "2026-11-29.2", "2026-11-28", "2026-11-29T0600", "2026-11-29"]
    world.open(*run_ids)
    ordered = ["2026-11-28", "2026-11-29", "2026-11-29.2", "2026-11-29.10", "2026-11-29T0600"]
    assert [run.run_id for run in world.store.open_runs()] == ordered
    assert world.store.newest_runs(2) == ordered[:-3:-1]


def test_a_run_that_never_was_is_named(world: World) -> None:
    for read in (world.store.run_view, world.store.reopen, world.store.graph_of, world.state):
        with pytest.raises(UnknownRunError, match="no run 2026-11-29"):
            read(RUN)


class TestSettling:
    def settle(self, world: World, run_id: str = RUN) -> None:
        world.done(run_id, "search", "details", "report", "archive")
        assert world.tick(run_id).settled
        assert world.store.run_view(run_id).settled_at == world.now

    def test_takes_the_run_from_the_open_ones(self, world: World) -> None:
        world.open(RUN)
        self.settle(world)
        assert world.store.open_runs() == []
        world.store.reopen(RUN)
        assert [run.run_id for run in world.store.open_runs()] == [RUN]

    def test_a_claim_a_publish_and_a_failure_open_it_again(self, world: World) -> None:
        world.open(RUN)
        self.settle(world)
        attempt = world.claim(RUN, "search")
        assert world.store.open_runs()
        world.publish(attempt)
        world.tick(RUN)
        assert not world.store.open_runs()
        world.fail(RUN, "search")
        assert world.store.open_runs()

    def test_does_not_happen_on_a_state_that_is_out_of_date(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search", "details", "report", "archive")
        state, decided = world.state(RUN), world.plan(RUN)
        assert decided.settled
        world.done(RUN, "search", names=("something", "new"))
        assert not world.store.show_statuses(state, decided, world.now, {}).applied
        assert world.store.open_runs()
        assert world.plan(RUN).requests[0] == "details"


class TestSkips:
    graph = Graph.build(
        [Job("details"), Job("news", (Edge("details", policy="skip", on_rerun="follow", why="top places only"),))]
    )

    def test_are_written_with_their_reason_and_announced_once(self, store: Store) -> None:
        world = World(store, self.graph)
        world.open(RUN)
        world.fail(RUN, "details")
        state, decided = world.state(RUN), world.plan(RUN)
        shown = store.show_statuses(state, decided, world.now, {"news": "details failed"})
        assert (shown.applied, shown.skipped) == (True, ("news",))
        job = store.run_view(RUN).jobs[1]
        assert (job.status, job.outcome, job.reason, job.attempted) == (
            "skipped",
            "skipped",
            "details failed",
            {"details": None},
        )
        assert world.tick(RUN).settled
        world.done(RUN, "details")
        assert world.plan(RUN).requests == ("news",)


def lacking(world: World, run_id: str, late: str) -> Attempt:
    """A run that is over but for details to fall back on, and the attempt of an earlier one that is making them."""
    world.open(late, run_id)
    world.done(late, "search")
    world.done(run_id, "search")
    attempt = world.claim(late, "details")
    world.fail(run_id, "details")
    world.done(run_id, "archive")
    return attempt


def publish(world: World, attempt: Attempt, now: Callable[[], datetime]) -> None:
    world.store.publish(
        attempt,
        dataset_of(attempt.job_id),
        [places("late")],
        lambda _: passes(),
        manifest=lambda _: Manifest(),
        now=now,
    )


def until_it_waits(store: Store, other: Future[Any]) -> None:
    """Return when the other thread waits for a lock of this one, or failed to."""
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
    while not other.done():
        with store.database.read() as connection:
            if connection.execute(waiting).scalar():
                return


class TestFallbacks:
    def test_the_newest_of_an_earlier_run(self, world: World) -> None:
        world.open("2026-11-27", "2026-11-28", RUN, "2026-11-30")
        for run_id in ("2026-11-27", "2026-11-28", "2026-11-30"):
            world.done(run_id, "search", "details")
        [newest] = world.done("2026-11-28", "details")
        assert world.state(RUN).fallbacks == {"details": newest.artifact}
        assert world.state("2026-11-27").fallbacks == {}

    def test_the_order_is_by_as_of_then_by_run(self, world: World) -> None:
        """A further collection of the same moment comes later; a degraded one stands behind a whole one."""
        world.open("2026-11-27", "2026-11-28", "2026-11-28.2", RUN)
        world.done("2026-11-27", "search", "details")
        world.done("2026-11-28", "search", "details")
        world.done("2026-11-28.2", "search", "details")
        assert world.state(RUN).fallbacks["details"].run_id == "2026-11-28.2"
        assert world.state("2026-11-28.2").fallbacks["details"].run_id == "2026-11-28"
        degraded = world.claim(
            "2026-11-28.2", "details", inputs={"search": world.state("2026-11-27").jobs["search"].current}
        )
        world.publish(degraded)
        assert world.state(RUN).fallbacks["details"].run_id == "2026-11-28"

    def test_neither_unusable_nor_retracted_ones(self, world: World) -> None:
        world.open("2026-11-27", "2026-11-28", RUN)
        world.done("2026-11-27", "search", "details")
        world.done("2026-11-28", "search", "details")
        world.store.retract("details", "2026-11-28", None, "wrong", world.now)
        assert world.state(RUN).fallbacks["details"].run_id == "2026-11-27"

    def test_a_fallback_that_comes_to_be_opens_the_runs_that_lacked_it(self, world: World) -> None:
        late, far = "2026-11-28", "2026-12-10"
        world.open(late, RUN, far)
        for run_id in (RUN, far):
            world.done(run_id, "search")
            world.fail(run_id, "details")
            world.done(run_id, "archive")
            assert world.tick(run_id).settled
            assert world.plan(run_id).decisions["report"].blocked
        world.done(late, "search", "details")
        assert [run.run_id for run in world.store.open_runs()] == [late, RUN]
        assert world.plan(RUN).requests == ("report",)
        assert moment_of(far) - moment_of(late) > SHELF_LIFE

    def test_nor_does_a_run_settle_on_a_look_that_missed_it(self, world: World) -> None:
        """Published after the look and before it is shown, when the run was not yet among those that lack it."""
        late = "2026-11-28"
        attempt = lacking(world, RUN, late)
        state, decided = world.state(RUN), world.plan(RUN)
        assert decided.settled
        world.publish(attempt)
        assert not world.store.show_statuses(state, decided, world.now, {}).applied
        assert [run.run_id for run in world.store.open_runs()] == [late, RUN]
        assert world.tick(RUN).requests == ("report",)

    def test_a_run_that_settles_waits_for_one_that_is_being_published(self, postgres_url: str) -> None:
        """The publication has looked already for runs that lack it, and found this one not among them."""
        late = "2026-11-28"
        with Store.open(postgres_url) as store, ThreadPoolExecutor(1) as other:
            world = World(store)
            attempt = lacking(world, RUN, late)
            state, decided = world.state(RUN), world.plan(RUN)
            settling: list[Future[Shown]] = []

            def now() -> datetime:
                settling.append(other.submit(store.show_statuses, state, decided, world.now, {}))
                until_it_waits(store, settling[0])
                return world.now

            publish(world, attempt, now)
            assert not settling[0].result().applied
            assert world.tick(RUN).requests == ("report",)

    def test_one_that_is_published_waits_for_a_run_that_is_settling(self, postgres_url: str) -> None:
        late = "2026-11-28"
        with Store.open(postgres_url) as store, ThreadPoolExecutor(1) as other:
            world = World(store)
            attempt = lacking(world, RUN, late)
            state, decided = world.state(RUN), world.plan(RUN)
            publishing: list[Future[Published]] = []

            def noting(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
                if statement.startswith("INSERT INTO unmet_fallbacks"):
                    publishing.append(other.submit(world.publish, attempt))
                    until_it_waits(store, publishing[0])

            sa.event.listen(store.database.engine, "before_cursor_execute", noting)
            assert store.show_statuses(state, decided, world.now, {}).applied
            publishing[0].result()
            assert [run.run_id for run in store.open_runs()] == [late, RUN]

    def test_it_leaves_settled_runs_alone_that_lack_nothing(self, world: World) -> None:
        world.open("2026-11-28", RUN)
        world.done(RUN, "search", "details", "report", "archive")
        world.tick(RUN)
        world.done("2026-11-28", "search", "details")
        assert [run.run_id for run in world.store.open_runs()] == ["2026-11-28"]


def account_of(store: Store, call: Callable[[], object], sign: str) -> str:
    """How the database would go about the one statement of `call` that has `sign` in it."""
    database = store.database
    statements: list[tuple[str, Any]] = []

    def remember(_connection: object, _cursor: object, statement: str, parameters: Any, *_more: object) -> None:
        statements.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", remember)
    call()
    sa.event.remove(database.engine, "before_cursor_execute", remember)
    [(statement, parameters)] = [each for each in statements if sign in each[0]]
    with database.write() as connection:
        if not database.is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # which it prefers for tables of a few rows
        explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
        return " ".join(str(row) for row in connection.exec_driver_sql(explain + statement, parameters))


class TestCost:
    """What a tick asks is answered by an index of just those rows, however many settled runs there are."""

    def test_of_fallbacks(self, world: World) -> None:
        world.open(RUN)
        account = account_of(world.store, lambda: world.state(RUN), "ORDER BY artifacts.as_of DESC")
        assert "ix_artifacts_fallback" in account
        assert "TEMP B-TREE" not in account
        assert "Sort " not in account

    def test_of_the_open_runs(self, world: World) -> None:
        assert "ix_runs_open" in account_of(world.store, world.store.open_runs, "FROM runs")

    def test_of_the_running_jobs(self, world: World) -> None:
        assert "ix_jobs_running" in account_of(world.store, world.store.running, "FROM jobs")

    def test_of_the_open_episodes(self, world: World) -> None:
        assert "ix_alerts_open" in account_of(world.store, world.store.open_episodes, "FROM alerts")

    def test_of_earlier_artifacts(self, world: World) -> None:
        world.open(RUN)
        account = account_of(world.store, lambda: world.store.recent_row_counts("search", RUN, 7), "ORDER BY")
        assert "ix_artifacts_order" in account
        assert "TEMP B-TREE" not in account


class TestChangedGraph:
    wider = Graph.build(
        [
            Job("search"),
            Job("weather"),
            Job(
                "report",
                (
                    Edge("search", policy="hard", on_rerun="follow", why="rewired"),
                    Edge("weather", policy="optional", on_rerun="follow", why="new"),
                ),
            ),
        ]
    )

    def test_an_open_run_takes_it(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search", "details")
        assert world.store.adopt_graph(RUN, self.wider)
        assert not world.store.adopt_graph(RUN, self.wider)
        world.graph = self.wider
        view = world.store.run_view(RUN)
        assert [(job.job_id, job.deps, job.removed) for job in view.jobs] == [
            ("search", (), False),
            ("weather", (), False),
            ("report", ("search", "weather"), False),
            ("details", ("search",), True),
        ]
        assert view.jobs[3].current is not None
        assert world.plan(RUN).requests == ("weather", "report")
        assert set(world.state(RUN).jobs) == {"search", "weather", "report"}

    def test_a_job_that_comes_back_has_its_past(self, world: World) -> None:
        world.open(RUN)
        [_, details] = world.done(RUN, "search", "details")
        world.store.adopt_graph(RUN, self.wider)
        world.store.adopt_graph(RUN, GRAPH)
        assert world.state(RUN).jobs["details"].current == details.artifact

    def test_a_settled_run_keeps_its_own(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search", "details", "report", "archive")
        world.tick(RUN)
        assert not world.store.adopt_graph(RUN, self.wider)
        assert world.store.graph_of(RUN) == GRAPH


def test_earlier_row_counts_are_those_of_the_current_versions(world: World) -> None:
    world.open("2026-11-26", "2026-11-27", "2026-11-28", RUN)
    world.done("2026-11-26", "search", names=("a", "b", "c"))
    world.done("2026-11-27", "search", names=("a",))
    [newest] = world.done("2026-11-27", "search", names=("a", "b"))
    world.fail("2026-11-28", "search")
    assert world.store.recent_row_counts("search", RUN, 5) == [2, 3]
    assert world.store.recent_row_counts("search", RUN, 1) == [2]
    assert world.store.recent_row_counts("search", "2026-11-26", 5) == []
    assert world.store.previous_artifact("search", RUN) == newest.artifact
    assert world.store.previous_artifact("search", "2026-11-26") is None


@pytest.mark.parametrize(
    ("one", "other", "zone"),
    [
        ("2026-11-29", "2026-11-29T0000", "Europe/Berlin"),
        ("2026-03-29T0230", "2026-03-29T0330", "Europe/Berlin"),  # its clocks skip the hour from 02:00
        ("2026-03-08T0230", "2026-03-08T0330", "America/New_York"),
    ],
)
def test_two_runs_of_one_moment_are_neither_before_the_other(world: World, one: str, other: str, zone: str) -> None:
    for run_id in (one, other):
        world.store.open_run(RunId.parse(run_id), ZoneInfo(zone), world.graph, world.now)
    world.done(one, "search", "details")
    world.fail(other, "search")

    assert world.state(other).fallbacks == {}
    assert world.plan(other).decisions["report"].readiness == "blocked"
    assert world.store.previous_artifact("details", other) is None
    assert world.store.recent_row_counts("details", other, 5) == []
    world.done(other, "search", "details")
    assert world.state(one).fallbacks == {}
    assert world.store.previous_artifact("details", one) is None


def test_a_run_whose_zone_this_host_does_not_know_says_what_to_install(world: World) -> None:
    world.open(RUN)
    with world.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET timezone = 'Mars/Olympus'")
    said = f"Run {RUN} was opened in the time zone Mars/Olympus, .* pip install --upgrade tzdata"
    with pytest.raises(UnreadableRunError, match=said):
        world.store.run_view(RUN)
    with pytest.raises(UnreadableRunError, match=said):
        world.claim(RUN, "search")
    assert world.state(RUN).jobs["search"].status == "pending"


def test_a_run_whose_graph_cannot_be_read_says_which_run_it_is(world: World) -> None:
    world.open(RUN)
    with world.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE graphs SET graph = 'half of a gr'")
    said = f"^Run {RUN} cannot be read, and is kept as it is. The stored graph is damaged"
    with pytest.raises(UnreadableRunError, match=said):
        world.store.run_view(RUN)
    with pytest.raises(UnreadableRunError, match=said):
        world.store.graph_of(RUN)


def test_runs_are_in_the_order_of_their_moments_then_of_their_suffixes(world: World) -> None:
    """Also where clocks change: two runs an hour apart by the clock on the wall are two hours apart, or none."""
    in_order = ["2026-10-25", "2026-10-25.2", "2026-10-25.10", "2026-10-25T0230", "2026-10-25T0300", "2026-10-26"]
    for run_id in reversed(in_order):
        world.store.open_run(RunId.parse(run_id), ZoneInfo("Europe/Berlin"), world.graph, world.now)
    assert [run.run_id for run in world.store.open_runs()] == in_order
    for run_id in in_order:
        world.done(run_id, "search", "details")
    for before, run_id in pairwise(in_order):
        previous = world.store.previous_artifact("details", run_id)
        assert previous is not None
        assert previous.run_id == before


class TestWhenARunWasCollected:
    """When the last of what its artifacts were made from was stored: by what asked a source, or was made of nothing."""

    def bought(self, world: World, job_id: str) -> None:
        attempt = world.claim(RUN, job_id)
        request = ApiRequest("maps_detail", {"q": "a"})
        answer = Exchange(request, 1, True, world.now, 20, 200, 0, "r-1", request.credits, body=b"{}")
        world.store.record(attempt, [answer])
        world.publish(attempt)

    def collected_at(self, world: World) -> tuple[datetime | None, datetime | None]:
        """As `collect status` says it, and as the report does, of its inputs."""
        view = world.store.run_view(RUN)
        report = next(job.current for job in view.jobs if job.job_id == "report")
        assert report is not None
        inputs = [each.artifact for each in report.inputs if each.artifact is not None]
        return view.collected_at, world.store.collected_at(inputs)

    def test_what_was_repaired_days_later_was(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search")
        world.now += timedelta(days=3)
        self.bought(world, "details")
        repaired_at = world.now
        world.done(RUN, "report")
        assert self.collected_at(world) == (repaired_at, repaired_at)

    def test_what_is_only_made_anew_was_not(self, world: World) -> None:
        world.open(RUN)
        collected_at = world.now
        world.done(RUN, "search")
        world.now += timedelta(days=1)
        world.done(RUN, "details", "report")
        assert self.collected_at(world) == (collected_at, collected_at)

    def test_a_fallback_was_when_its_own_run_was(self, world: World) -> None:
        world.open("2026-11-28", RUN)
        world.done("2026-11-28", "search", "details")
        collected_at = world.now
        world.now += timedelta(days=1)
        world.fail(RUN, "search")
        world.done(RUN, "report")
        assert self.collected_at(world) == (collected_at, collected_at)

    def test_what_the_graph_no_longer_has_does_not_count(self, world: World) -> None:
        world.open(RUN)
        collected_at = world.now
        world.done(RUN, "search", "details", "report")
        world.now += timedelta(days=1)
        self.bought(world, "archive")
        assert world.store.run_view(RUN).collected_at == world.now
        world.store.adopt_graph(RUN, Graph.build(job for job in GRAPH if job.job_id != "archive"))
        assert self.collected_at(world) == (collected_at, collected_at)

    def test_a_run_without_artifacts_was_not(self, world: World) -> None:
        world.open(RUN)
        assert world.store.run_view(RUN).collected_at is None
        assert world.store.collected_at([]) is None

    def test_is_asked_once_however_long_the_lineage(self, world: World) -> None:
        world.open(RUN)
        world.done(RUN, "search", "details", "report", "archive")
        account = account_of(world.store, lambda: world.store.run_view(RUN), "lineage")
        assert "ix_requests_lookup" in account
