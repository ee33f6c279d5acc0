"""Publishing is one transaction: a reader sees a whole artifact or none, and every version stays what it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from collection_pipeline.engine.checks import CheckOutcome
from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store import Attempt, DatasetError, LostClaimError, Manifest, Staged, Store
from collection_pipeline.sources.contract import ApiRequest, Exchange
from collection_pipeline_tests.store.world import World, dataset_of, holder, passes, places, rejects

RUN = "2026-11-29"


def shown(store: Store, job_id: str, run_id: str = RUN) -> list[tuple[int, str]]:
    """What anybody's query over the view of a data set finds."""
    query = sa.text(f"SELECT version, name FROM {job_id}_places WHERE run_id = :run_id ORDER BY place_id")
    with store.database.read() as connection:
        return [tuple(row) for row in connection.execute(query, {"run_id": run_id})]


def test_versions_count_up_and_stay_readable(world: World) -> None:
    world.open(RUN)
    [first] = world.done(RUN, "search", names=("a",))
    [second] = world.done(RUN, "search", names=("b",))
    assert (first.artifact.version, second.artifact.version) == (1, 2)
    assert world.state(RUN).jobs["search"].current == second.artifact
    assert shown(world.store, "search") == [(2, "b")]
    pd.testing.assert_frame_equal(world.store.read(dataset_of("search"), first.artifact), places("a"))


def test_a_rejected_version_is_stored_and_nobody_reads_it(world: World) -> None:
    world.open(RUN)
    world.done(RUN, "search", names=("good",))
    rejected = world.publish(world.claim(RUN, "search"), [places("bad")], rejects())
    assert not rejected.usable
    state = world.state(RUN).jobs["search"]
    assert state.status == "failed"
    assert state.current is not None
    assert state.current.version == 1
    assert shown(world.store, "search") == [(1, "good")]
    job = world.store.run_view(RUN).jobs[0]
    assert job.reason == "check rows failed: there are no rows"
    assert job.error_kind == "check"
    assert job.latest is not None
    assert (job.latest.artifact.version, job.latest.usable) == (2, False)
    [third] = world.done(RUN, "search")
    assert third.artifact.version == 3


def test_a_rejection_says_what_the_soft_checks_warn_of(world: World) -> None:
    world.open(RUN)
    hard = CheckOutcome("volume", passed=False, severity="hard", description="2 rows, at least 10 expected")
    soft = CheckOutcome("fruitful", passed=False, severity="soft", description="1 of 2 queries found nothing: Bali")
    fine = CheckOutcome("schema", passed=True, severity="hard", description="all is as declared")
    world.publish(world.claim(RUN, "search"), [places("bad")], [soft, hard, fine])
    said = "check volume failed: 2 rows, at least 10 expected; warning: 1 of 2 queries found nothing: Bali"
    assert world.store.run_view(RUN).jobs[0].reason == said


def test_the_manifest_says_what_was_published(world: World) -> None:
    world.open(RUN)
    checks = [*passes(), CheckOutcome("soft", False, "soft", "a little thin", {"share": 0.9})]
    world.publish(world.claim(RUN, "search"), None, checks, {"coverage": 0.5, "words": "東京"})
    [view, *_] = world.store.run_view(RUN).jobs
    assert view.status == "done"
    assert view.current is not None
    assert view.current.checks == [check.to_json() for check in checks]
    assert view.current.metadata == {"coverage": 0.5, "words": "東京"}
    assert view.current.files == [{"name": "v1.html"}]
    assert (view.current.source, view.current.credits_charged, view.current.credits_reused) == ("emulator", 2, 1)
    assert (view.current.row_count, view.current.published_at) == (2, world.now)


def test_it_is_published_when_its_rows_are_written_and_its_files_with_them(world: World) -> None:
    world.open(RUN)

    def frames() -> Iterator[pd.DataFrame]:
        for name in ("a", "b"):
            world.now += timedelta(minutes=10)
            yield places(name).assign(place_id=name)

    def manifest(_version: int) -> Manifest:
        world.now += timedelta(minutes=1)
        return Manifest()

    started_at = world.now
    attempt = world.claim(RUN, "search")
    world.store.publish(
        attempt, dataset_of("search"), frames(), lambda _: passes(), manifest=manifest, now=lambda: world.now
    )
    search = world.store.run_view(RUN).jobs[0]
    assert search.current is not None
    assert (search.started_at, search.finished_at) == (started_at, started_at + timedelta(minutes=21))
    assert search.current.published_at == search.finished_at


class InterruptedPublishError(Exception):
    """Something outside the store that ends a publish half-way."""


@pytest.mark.parametrize("where", ["frames", "audit", "manifest"])
def test_what_raises_half_way_leaves_nothing_behind(world: World, where: str) -> None:
    world.open(RUN)
    world.done(RUN, "search", names=("old",))
    attempt = world.claim(RUN, "search")

    def frames() -> Iterator[pd.DataFrame]:
        yield places("new")
        if where == "frames":
            raise InterruptedPublishError

    def audit(staged: Staged) -> list[CheckOutcome]:
        assert staged.row_count == 1
        if where == "audit":
            raise InterruptedPublishError
        return passes()

    def manifest(version: int) -> Manifest:
        assert version == 2
        raise InterruptedPublishError

    with pytest.raises(InterruptedPublishError):
        world.store.publish(attempt, dataset_of("search"), frames(), audit, manifest=manifest, now=lambda: world.now)
    assert shown(world.store, "search") == [(1, "old")]
    assert world.statuses(RUN)["search"] == "running"
    world.publish(attempt, [places("new")])
    assert shown(world.store, "search") == [(2, "new")]


def test_another_connection_sees_nothing_until_it_sees_all(world: World, database_url: str) -> None:
    world.open(RUN)
    attempt = world.claim(RUN, "search")
    with Store.open(database_url) as other:

        def audit(staged: Staged) -> list[CheckOutcome]:
            assert staged.row_count == 2
            assert shown(other, "search") == []
            assert other.run_view(RUN).jobs[0].status == "running"
            return passes()

        world.store.publish(
            attempt,
            dataset_of("search"),
            [places("a"), places("b")],
            audit,
            manifest=lambda _: Manifest(),
            now=lambda: world.now,
        )
        assert len(shown(other, "search")) == 2
        assert other.run_view(RUN).jobs[0].status == "done"


def test_the_audit_asks_the_staged_rows_and_only_those(world: World) -> None:
    world.open(RUN)
    world.done(RUN, "search")
    frame = places("a", "a", "b", "c")
    frame["place_id"] = pd.array(["1", "1", None, None], dtype="str")
    answers: list[Any] = []

    def audit(staged: Staged) -> list[CheckOutcome]:
        answers.extend([staged.duplicates(), staged.duplicates(["name"]), staged.duplicates(["place_id", "name"])])
        answers.append(staged.nulls())
        return passes()

    world.store.publish(
        world.claim(RUN, "search"),
        dataset_of("search"),
        [frame],
        audit,
        manifest=lambda _: Manifest(),
        now=lambda: world.now,
    )
    assert answers[:3] == [2, 1, 1]
    assert answers[3] == {column: 2 if column == "place_id" else 0 for column in frame.columns}


def test_whoever_lost_the_job_publishes_nothing(world: World) -> None:
    world.open(RUN)
    lost = world.claim(RUN, "search", holder("dead"))
    assert world.store.fail_abandoned(RUN, "search", holder("dead"), "gone", world.now)
    with pytest.raises(LostClaimError, match="Nothing was published"):
        world.publish(lost)
    world.done(RUN, "search", names=("mine",))
    with pytest.raises(LostClaimError):
        world.publish(lost)
    assert shown(world.store, "search") == [(1, "mine")]


def test_nor_does_whoever_loses_it_while_writing(postgres_url: str) -> None:
    """Both write version 1, and the one that holds the job is first; on SQLite only one writes at a time."""

    def frames() -> Iterator[pd.DataFrame]:
        yield places("first")
        assert store.fail_abandoned(RUN, "search", holder("dead"), "gone", world.now)
        world.done(RUN, "search", names=("mine",))
        yield places("late")

    with Store.open(postgres_url) as store:
        world = World(store)
        world.open(RUN)
        lost = world.claim(RUN, "search", holder("dead"))
        with pytest.raises(LostClaimError, match="Nothing was published"):
            world.publish(lost, frames())
        assert shown(store, "search") == [(1, "mine")]


def test_as_of_and_degradation_pass_down(world: World) -> None:
    world.open("2026-11-28", RUN)
    world.done("2026-11-28", "search", "details")
    world.done(RUN, "search")
    world.fail(RUN, "details")
    attempt = world.claim(RUN, "report")
    yesterday = world.state("2026-11-28").moment
    assert (attempt.as_of, attempt.degraded) == (yesterday, True)  # the body is told what will be published
    report = world.publish(attempt)
    [archive] = world.done(RUN, "archive")
    assert (report.artifact.as_of, report.artifact.degraded) == (yesterday, True)
    assert (archive.artifact.as_of, archive.artifact.degraded) == (yesterday, True)
    world.done(RUN, "details")
    [whole] = world.done(RUN, "report")
    assert (whole.artifact.as_of, whole.artifact.degraded) == (world.state(RUN).moment, False)


def test_the_consumed_versions_are_on_record(world: World) -> None:
    world.open(RUN)
    world.done(RUN, "search", names=("a",))
    world.done(RUN, "details")
    world.done(RUN, "search", names=("b",))
    details = world.store.run_view(RUN).jobs[1].current
    assert details is not None
    [consumed] = details.inputs
    assert consumed.artifact is not None
    assert (consumed.upstream, consumed.artifact.version, consumed.policy, consumed.on_rerun) == (
        "search",
        1,
        "hard",
        "follow",
    )
    assert not consumed.retracted
    assert [(each.artifact.job_id, each.artifact.version) for each in world.store.lineage([details.artifact])] == [
        ("search", 1),
        ("details", 1),
    ]


def test_the_paid_calls_behind_an_artifact_are_those_of_its_source(world: World) -> None:
    """Its job may have asked another source before, in an attempt that did not publish."""
    world.open(RUN)

    def asks(source: str) -> Attempt:
        world.source = source
        attempt = world.claim(RUN, "search")
        request = ApiRequest("maps_search", {"q": "a"})
        answer = Exchange(request, 1, True, world.now, 20, 200, 0, f"of {source}", request.credits, body=b"{}")
        world.store.record(attempt, [answer])
        return attempt

    world.store.fail(asks("emulator"), "killed", "abandoned", world.now)
    attempt = asks("SerpBase")
    [ancestor] = world.store.lineage([world.publish(attempt).artifact])
    assert (ancestor.source, ancestor.request_count, ancestor.request_ids) == ("SerpBase", 1, ("of SerpBase",))


def test_an_input_left_out_is_on_record_too(world: World) -> None:
    world.open(RUN)
    world.publish(world.claim(RUN, "archive", inputs={"report": None}))
    archive = world.store.run_view(RUN).jobs[3].current
    assert archive is not None
    assert [(each.upstream, each.artifact) for each in archive.inputs] == [("report", None)]
    assert not archive.artifact.degraded


class TestDataSets:
    """The table and the view follow the description."""

    def publish(self, world: World, dataset: Dataset, frame: pd.DataFrame) -> Artifact:
        attempt = world.claim(RUN, "search")
        return world.store.publish(
            attempt, dataset, [frame], lambda _: passes(), manifest=lambda _: Manifest(), now=lambda: world.now
        ).artifact

    def test_a_new_column_is_missing_in_old_rows(self, world: World, database_url: str) -> None:
        world.open(RUN)
        narrow = Dataset("things", (Column("a", "text", ""),))
        wide = Dataset("things", (Column("b", "json", ""), Column("a", "text", "")))
        old = self.publish(world, narrow, pd.DataFrame({"a": ["1"]}))
        new = self.publish(world, wide, pd.DataFrame({"a": ["2"], "b": ["[]"]}))
        with Store.open(database_url) as other:
            assert other.read(wide, old).isna().to_dict("list") == {"b": [True], "a": [False]}
            assert other.read(wide, new).to_dict("list") == {"b": ["[]"], "a": ["2"]}
            assert other.read(narrow, new).to_dict("list") == {"a": ["2"]}

    def test_a_column_no_longer_described_stays_in_the_table(self, world: World) -> None:
        world.open(RUN)
        wide = Dataset("things", (Column("a", "text", ""), Column("b", "text", "")))
        self.publish(world, wide, pd.DataFrame({"a": ["1"], "b": ["2"]}))
        self.publish(world, Dataset("things", wide.columns[:1]), pd.DataFrame({"a": ["3"]}))
        with world.store.database.read() as connection:
            shown_columns = list(connection.execute(sa.text("SELECT * FROM things")).keys())
            rows = connection.execute(sa.text("SELECT b FROM things_rows ORDER BY version")).scalars().all()
        assert shown_columns == ["run_id", "version", "a"]
        assert rows == ["2", None]

    def test_a_column_cannot_change_its_kind(self, world: World) -> None:
        world.open(RUN)
        self.publish(world, Dataset("things", (Column("a", "text", ""),)), pd.DataFrame({"a": ["1"]}))
        with pytest.raises(
            DatasetError, match=r"Column a of data set things is stored as text .* described as integer"
        ):
            self.publish(world, Dataset("things", (Column("a", "integer", ""),)), pd.DataFrame({"a": [1]}))

    def test_which_is_seen_before_there_are_rows(self, world: World) -> None:
        world.store.prepare(Dataset("things", (Column("a", "text", ""),)))
        with pytest.raises(DatasetError, match="Column a of data set things is stored as text"):
            world.store.prepare(Dataset("things", (Column("a", "integer", ""),)))

    @pytest.mark.parametrize("name", ["jobs", "Things", "1st", "a-b", 'x"; DROP TABLE jobs; --', "", "requests_rows"])
    def test_a_name_that_is_no_identifier_is_refused(self, world: World, name: str) -> None:
        world.open(RUN)
        with pytest.raises(DatasetError, match="cannot be called"):
            self.publish(world, Dataset(name, (Column("a", "text", ""),)), pd.DataFrame({"a": ["1"]}))

    @pytest.mark.parametrize("name", ["run_id", "version", "row_no", "A", "a b", "a;"])
    def test_nor_may_a_column_be_called_so(self, world: World, name: str) -> None:
        world.open(RUN)
        with pytest.raises(DatasetError, match="cannot have a column called"):
            self.publish(world, Dataset("things", (Column(name, "text", ""),)), pd.DataFrame({name: ["1"]}))

    def test_words_of_sql_are_good_names(self, world: World) -> None:
        world.open(RUN)
        dataset = Dataset("order", (Column("select", "text", ""), Column("group", "integer", "")), key=("select",))
        frame = pd.DataFrame({"select": ["x"], "group": pd.array([1], dtype="Int64")})
        pd.testing.assert_frame_equal(world.store.read(dataset, self.publish(world, dataset, frame)), frame)
