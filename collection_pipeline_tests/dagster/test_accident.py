"""The accident that this project exists to prevent: details fetched for an empty, failed, late or shrunken search.

Whoever launches them, and however, meets the same decision and the same words.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collection_pipeline.engine.runs.launches import REQUESTED_BY
from collection_pipeline_tests.dagster.in_process import InProcess, failures

YESTERDAY, TODAY = "2026-03-02", "2026-03-03"

Search = Callable[[InProcess], None]


def never_started(world: InProcess) -> None:
    world.open(TODAY)


def failed(world: InProcess) -> None:
    world.tell("search_results", TODAY, then="fail")
    world.launch(TODAY, "search_results")


def empty(world: InProcess) -> None:
    world.tell("search_results", TODAY, rows=0)
    world.launch(TODAY, "search_results")


def a_tenth_of_its_usual_size(world: InProcess) -> None:
    world.tell("search_results", TODAY, rows=2)
    world.launch(TODAY, "search_results")


SEARCHES = {
    never_started: "detail_pages of 2026-03-03 has to wait: search_results has not run yet;"
    " type: collect run 2026-03-03 --only search_results",
    failed: "detail_pages of 2026-03-03 is blocked: search_results failed at 07:00 (the source says no);"
    " type: collect rerun search_results 2026-03-03",
    empty: "detail_pages of 2026-03-03 is blocked: search_results failed at 07:00 (check feature_id_present failed:"
    " 0 of 0 rows with a feature_id; check volume failed: 0 rows, at least 10 expected (usual: 20, min_share: 0.5));"
    " type: collect rerun search_results 2026-03-03",
    a_tenth_of_its_usual_size: "detail_pages of 2026-03-03 is blocked: search_results failed at 07:00 (check volume"
    " failed: 2 rows, at least 10 expected (usual: 20, min_share: 0.5)); type: collect rerun search_results 2026-03-03",
}


@pytest.mark.parametrize(("search", "words"), SEARCHES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_details_are_refused_in_the_same_words_whoever_launches_them(
    world: InProcess, search: Search, words: str
) -> None:
    world.morning(YESTERDAY)
    world.at(f"{TODAY}T07:00")
    search(world)

    button = world.launch(TODAY, "detail_pages")
    second_job = world.launch(TODAY, job_name="details_job")
    backfill = world.launch(TODAY, "detail_pages", tags={"dagster/backfill": "abcdefgh"})
    assert failures(button) == failures(second_job) == failures(backfill) == [words]

    # What nobody watches is no failure: it ends without an artifact, and the same words are in its log.
    sensor = world.launch(TODAY, "detail_pages", tags={REQUESTED_BY: "propagation_sensor"})
    assert sensor.success
    assert words in world.log(sensor)
    assert not [event for event in sensor.all_events if event.event_type_value == "ASSET_MATERIALIZATION"]

    assert world.script.starts("detail_pages", TODAY) == 0
    assert world.statuses(TODAY)["detail_pages"] == "pending", "only what was attempted can fail"


def test_a_launch_that_has_to_wait_opens_no_run_for_the_sensor_to_collect(world: InProcess) -> None:
    (told,) = failures(world.launch(TODAY, "detail_pages"))
    assert told == f"{SEARCHES[never_started]}. The run was not opened."
    assert world.store.newest_runs(1) == []
    assert world.evaluate() == []


def test_details_are_refused_while_search_is_late(world: InProcess) -> None:
    world.morning(YESTERDAY)
    world.at(f"{TODAY}T06:00")
    world.tell("search_results", TODAY, held=True)
    with world.in_background(TODAY, "search_results") as dagster_run_id:
        world.at(f"{TODAY}T09:00")
        waits = "detail_pages of 2026-03-03 has to wait: search_results running since 06:00"
        assert failures(world.launch(TODAY, "detail_pages")) == [f"{waits} in Dagster run {dagster_run_id[:8]}"]
        world.script.release("search_results", TODAY)
    assert world.script.starts("detail_pages", TODAY) == 0


def test_a_run_that_cannot_be_read_is_refused_in_words_and_not_tried_again(world: InProcess) -> None:
    world.open(TODAY)
    with world.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET timezone = 'Mars/Olympus'")
    launched = world.launch(TODAY, "search_results")
    (told,) = failures(launched)
    assert told.startswith(f"search_results did not start. Run {TODAY} was opened in the time zone Mars/Olympus")
    assert not [event for event in launched.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"]


def test_a_name_that_is_no_run_id_is_refused_before_anything_is_written(world: InProcess) -> None:
    (told,) = failures(world.launch("yesterday", "search_results"))
    assert told.startswith("search_results did not start: 'yesterday' is no run_id. Write YYYY-MM-DD")
    assert world.store.newest_runs(1) == []
