"""A version found to be wrong goes, and all that was built on it, in whatever run; then policies decide anew."""

from __future__ import annotations

import pandas as pd
import pytest

from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.store import Published, RetractedInputError, Retraction, UnknownArtifactError
from collection_pipeline_tests.store.world import World, dataset_of, places

YESTERDAY, TODAY = "2026-11-28", "2026-11-29"


def named(artifacts: tuple[Artifact, ...]) -> list[str]:
    return [f"{each.job_id} {each.run_id} {each.version}" for each in artifacts]


@pytest.fixture
def two_days(world: World) -> World:
    """Yesterday whole; today's details failed, so today's report stands on yesterday's details."""
    world.open(YESTERDAY, TODAY)
    world.done(YESTERDAY, "search", "details", "report", "archive")
    world.tick(YESTERDAY)
    world.done(TODAY, "search")
    world.fail(TODAY, "details")
    world.done(TODAY, "report", "archive")
    world.tick(TODAY)
    assert world.store.open_runs() == []
    return world


def test_the_preview_lists_what_goes_and_what_stands_and_changes_nothing(two_days: World) -> None:
    preview = two_days.store.retraction("search", YESTERDAY)
    assert named(preview.withdrawn) == [
        f"search {YESTERDAY} 1",
        f"details {YESTERDAY} 1",
        f"report {YESTERDAY} 1",
        f"report {TODAY} 1",
    ]
    assert named(preview.standing) == [f"archive {YESTERDAY} 1", f"archive {TODAY} 1"]
    assert two_days.store.open_runs() == []


def test_it_does_what_the_preview_said(two_days: World) -> None:
    preview = two_days.store.retraction("search", YESTERDAY)
    done: Retraction = two_days.store.retract("search", YESTERDAY, None, "wrong city", two_days.now)
    assert done == preview
    assert two_days.statuses(YESTERDAY) == {
        "search": "failed",
        "details": "pending",
        "report": "pending",
        "archive": "done",
    }
    assert [run.run_id for run in two_days.store.open_runs()] == [YESTERDAY, TODAY]
    search, details, _, archive = two_days.store.run_view(YESTERDAY).jobs
    assert (search.reason, search.error_kind) == ("version 1 was retracted: wrong city", "retracted")
    assert details.latest is not None
    assert details.latest.retract_reason == f"built on version 1 of search of run {YESTERDAY}, retracted: wrong city"
    assert archive.current is not None
    assert [each.retracted for each in archive.current.inputs] == [True]


def test_the_retracted_job_is_not_started_again_by_itself(two_days: World) -> None:
    two_days.store.retract("search", YESTERDAY, None, "wrong city", two_days.now)
    plan = two_days.tick(YESTERDAY)
    assert plan.requests == ()
    assert plan.decisions["details"].blocked


def test_what_fell_back_on_it_is_decided_anew(two_days: World) -> None:
    two_days.store.retract("details", YESTERDAY, None, "wrong city", two_days.now)
    assert two_days.plan(TODAY).decisions["report"].blocked
    two_days.done(YESTERDAY, "details")
    assert two_days.plan(TODAY).requests == ("report",)


def test_an_earlier_version_that_stands_takes_its_place(world: World) -> None:
    world.open(TODAY)
    [first] = world.done(TODAY, "search", names=("good",))
    world.done(TODAY, "details")
    world.done(TODAY, "search", names=("bad",))
    [details] = world.done(TODAY, "details")
    gone = world.store.retract("search", TODAY, 2, "bad", world.now)
    assert named(gone.withdrawn) == [f"search {TODAY} 2", f"details {TODAY} 2"]
    state = world.state(TODAY)
    assert state.jobs["search"].current == first.artifact
    assert state.jobs["search"].status == state.jobs["details"].status == "done"
    assert state.jobs["details"].attempted == {"search": first.artifact}
    assert not world.plan(TODAY).decisions["details"].wanted
    frame = world.store.read(dataset_of("details"), details.artifact)
    pd.testing.assert_frame_equal(frame, places("Reykjavík", "東京"))


def test_runs_that_lacked_the_version_to_fall_back_on_are_decided_anew(world: World) -> None:
    """Yesterday's second version is of older data than today's report may use; the first one is not."""
    long_ago, beyond = "2026-11-01", "2026-12-20"
    world.open(long_ago, YESTERDAY, TODAY, beyond)
    [old] = world.done(long_ago, "search")
    world.done(YESTERDAY, "search", "details")
    world.publish(world.claim(YESTERDAY, "details", inputs={"search": old.artifact}))
    for run_id in (TODAY, beyond):
        world.fail(run_id, "search")
        world.done(run_id, "archive")
        assert world.tick(run_id).settled
        assert world.plan(run_id).decisions["report"].blocked

    world.store.retract("details", YESTERDAY, 2, "made of old data", world.now)

    open_again = {run.run_id for run in world.store.open_runs()}
    assert TODAY in open_again
    assert beyond not in open_again, "it is too old for that run"
    assert world.plan(TODAY).requests == ("report",)


def test_a_superseded_version_goes_without_its_successor(world: World) -> None:
    world.open(TODAY)
    world.done(TODAY, "search", names=("old",))
    [second] = world.done(TODAY, "search", names=("new",))
    assert named(world.store.retract("search", TODAY, 1, "bad", world.now).withdrawn) == [f"search {TODAY} 1"]
    assert world.state(TODAY).jobs["search"].current == second.artifact


def test_a_job_that_runs_is_left_to_end_but_not_to_publish(world: World) -> None:
    world.open(TODAY)
    world.done(TODAY, "search", "details")
    running = world.claim(TODAY, "details")
    world.store.retract("search", TODAY, None, "bad", world.now)
    assert world.statuses(TODAY)["details"] == "running"
    with pytest.raises(RetractedInputError, match="version 1 of search of run 2026-11-29, which was retracted"):
        world.publish(running)
    assert world.store.fail(running, "input retracted", "retracted", world.now)
    world.done(TODAY, "search", names=("good",))
    assert world.plan(TODAY).decisions["details"].due


@pytest.mark.parametrize("version", [None, 1, 7])
def test_what_is_not_there_cannot_be_retracted(two_days: World, version: int | None) -> None:
    two_days.store.retract("search", YESTERDAY, None, "wrong", two_days.now)
    with pytest.raises(UnknownArtifactError, match="search of run 2026-11-28 has no"):
        two_days.store.retraction("search", YESTERDAY, version)


def test_it_goes_however_far_down(world: World) -> None:
    """A chain over many runs, each built on the one before."""
    run_ids = [f"2026-11-{day:02}" for day in range(1, 29)]
    world.open(*run_ids)
    previous: Published | None = None
    for run_id in run_ids:
        inputs = {"search": previous.artifact if previous else None}
        previous = world.publish(world.claim(run_id, "details", inputs=inputs))
    gone = world.store.retract("details", run_ids[0], None, "bad", world.now)
    assert [each.run_id for each in gone.withdrawn] == run_ids
