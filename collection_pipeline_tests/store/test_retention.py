"""Old runs go whole, never what a kept artifact was built on, and a kill in the middle loses no file."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from collection_pipeline.engine.store import UnknownRunError
from collection_pipeline.engine.store.schema import artifact_inputs, artifacts, metadata, runs
from collection_pipeline_tests.store.world import World, moment_of

DAYS = [f"2026-11-{day:02}" for day in range(21, 30)]


@pytest.fixture
def nine_days(world: World) -> World:
    """Nine settled days; on the 25th the details failed, so that day's report stands on the 24th's."""
    world.open(*DAYS)
    for run_id in DAYS:
        if run_id == "2026-11-25":
            world.done(run_id, "search")
            world.fail(run_id, "details")
            world.done(run_id, "report", "archive")
        else:
            world.done(run_id, "search", "details", "report", "archive")
        assert world.tick(run_id).settled
    return world


def test_age_and_count_both_have_to_allow_it(nine_days: World) -> None:
    store, now = nine_days.store, moment_of("2026-11-29")
    assert store.prunable(keep_days=6, keep_runs=0, now=now) == ["2026-11-21", "2026-11-22"]
    assert store.prunable(keep_days=0, keep_runs=8, now=now) == ["2026-11-21"]
    assert store.prunable(keep_days=0, keep_runs=9, now=now) == []
    assert store.prunable(keep_days=365, keep_runs=0, now=now) == []


def test_what_a_kept_artifact_consumed_stays(nine_days: World) -> None:
    now = moment_of("2026-11-29")
    assert nine_days.store.prunable(keep_days=4, keep_runs=0, now=now) == DAYS[:3]
    assert nine_days.store.prunable(keep_days=3, keep_runs=0, now=now) == DAYS[:5]


def test_and_so_on_upwards(world: World) -> None:
    """The kept run consumed from the second, which consumed from the first."""
    world.open(*DAYS[:3])
    first = world.publish(world.claim(DAYS[0], "details", inputs={"search": None}))
    second = world.publish(world.claim(DAYS[1], "details", inputs={"search": first.artifact}))
    world.publish(world.claim(DAYS[2], "details", inputs={"search": second.artifact}))
    with world.store.database.write() as connection:
        connection.execute(sa.text("UPDATE runs SET settled_at = opened_at"))
    now = moment_of(DAYS[2])
    assert world.store.prunable(keep_days=0, keep_runs=1, now=now + timedelta(days=1)) == []
    assert world.store.prunable(keep_days=0, keep_runs=0, now=now + timedelta(days=1)) == DAYS[:3]


def test_a_chain_through_years_of_runs_goes_newest_first(world: World) -> None:
    """Each run consumed from the one before, more runs than Python's stack is deep."""
    world.open("2020-01-01")
    world.done("2020-01-01", "search")
    run_ids = [f"{moment_of('2020-01-01') + timedelta(days=day):%Y-%m-%d}" for day in range(1500)]
    with world.store.database.write() as connection:
        run = connection.execute(sa.select(runs)).mappings().one()
        artifact = connection.execute(sa.select(artifacts)).mappings().one()
        later = list(enumerate(run_ids))[1:]
        connection.execute(
            runs.insert(), [{**run, "run_id": run_id, "moment": moment_of(run_id)} for _, run_id in later]
        )
        first = artifact["artifact_id"]
        connection.execute(
            artifacts.insert(),
            [
                {**artifact, "artifact_id": first + day, "run_id": run_id, "moment": moment_of(run_id)}
                for day, run_id in later
            ],
        )
        link = {"upstream": "search", "policy": "degrade", "on_rerun": "follow"}
        connection.execute(
            artifact_inputs.insert(),
            [{**link, "artifact_id": first + day, "input_artifact_id": first + day - 1} for day, _ in later],
        )
        connection.execute(runs.update().values(settled_at=world.now))
    now = moment_of("2030-01-01")
    assert world.store.prunable(keep_days=1, keep_runs=1, now=now) == []
    assert world.store.prunable(keep_days=1, keep_runs=0, now=now) == run_ids
    pruning = world.store.prune(keep_days=1, keep_runs=0, now=now)
    assert [next(pruning).run_id for _ in range(3)] == run_ids[:-4:-1]


def test_an_open_run_stays(nine_days: World) -> None:
    nine_days.store.reopen(DAYS[0])
    assert nine_days.store.prunable(keep_days=6, keep_runs=0, now=moment_of("2026-11-29")) == [DAYS[1]]


def test_it_goes_with_everything(nine_days: World) -> None:
    removals = list(nine_days.store.prune(keep_days=0, keep_runs=0, now=moment_of("2026-11-30")))
    assert sorted(removal.run_id for removal in removals) == DAYS
    order = [removal.run_id for removal in removals]
    assert order.index("2026-11-25") < order.index("2026-11-24")
    assert list(removals[0].files) == [{"name": "v1.html"}] * 4
    kept = {"store_schema", "graphs", "datasets", "removals"}
    with nine_days.store.database.read() as connection:
        for table in metadata.sorted_tables:
            count = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            assert bool(count) == (table.name in kept), table.name
        for rows in ("search_places_rows", "report_places_rows"):
            assert connection.execute(sa.text(f"SELECT count(*) FROM {rows}")).scalar_one() == 0
    with pytest.raises(UnknownRunError):
        nine_days.store.run_view(DAYS[0])


def test_what_was_not_confirmed_is_handed_out_again(nine_days: World) -> None:
    now = moment_of("2026-11-29")
    pruning = nine_days.store.prune(keep_days=4, keep_runs=0, now=now)
    first = next(pruning)
    pruning.close()  # killed before the files were removed
    again = nine_days.store.prune(keep_days=4, keep_runs=0, now=now)
    assert next(again) == first
    nine_days.store.confirm_removal(first.run_id)
    for removal in again:
        nine_days.store.confirm_removal(removal.run_id)
    assert list(nine_days.store.prune(keep_days=4, keep_runs=0, now=now)) == []
    with pytest.raises(UnknownRunError):
        nine_days.store.run_view(DAYS[2])
    assert nine_days.store.run_view(DAYS[3]).run_id == DAYS[3]


def test_a_run_opened_again_meanwhile_stays(nine_days: World) -> None:
    pruning = nine_days.store.prune(keep_days=4, keep_runs=0, now=moment_of("2026-11-29"))
    assert next(pruning).run_id == DAYS[2]
    nine_days.store.reopen(DAYS[1])
    assert [removal.run_id for removal in pruning] == [DAYS[0]]
