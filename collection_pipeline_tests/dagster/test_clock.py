"""Clocks: one that is set back, runs across midnight, days of 23 and 25 hours, teams in other time zones.

What the data speaks of is the run's moment, whatever the clock shows while it is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.texts import as_of_line
from collection_pipeline_tests.dagster.in_process import InProcess, in_process
from collection_pipeline_tests.dagster.small_collection import assets, definitions

MONDAY, TUESDAY, WEDNESDAY = (f"2026-03-0{day}" for day in range(2, 5))

ALL_DONE = {"search_results": "done", "detail_pages": "done", "news_mentions": "done", "daily_report": "done"}


class TestSetBackByTwoHours:
    def test_between_two_attempts(self, world: InProcess) -> None:
        world.at(f"{TUESDAY}T06:30")
        world.open(TUESDAY)
        world.tell("search_results", TUESDAY, then="fail")
        world.settle()
        assert world.statuses(TUESDAY)["search_results"] == "failed"

        world.at(f"{TUESDAY}T04:30")
        world.tell("search_results", TUESDAY)
        world.launch(TUESDAY, "search_results")
        world.settle()

        assert world.statuses(TUESDAY) == ALL_DONE
        assert world.report(TUESDAY) == ["as of 2026-03-03"]
        assert world.script.alerts() == ["Alert: failed:search_results", "Over: failed:search_results"]

    def test_between_two_versions(self, world: InProcess) -> None:
        """The order of versions is that of their numbers."""
        world.morning(TUESDAY)

        world.at(f"{TUESDAY}T04:00")
        world.tell("search_results", TUESDAY, edition=2)
        world.launch(TUESDAY, "search_results")
        world.settle()

        assert [world.current(job_id, TUESDAY).version for job_id in ALL_DONE] == [2, 2, 2, 2]
        assert world.read("daily_report", TUESDAY)["detail_pages"].artifact == world.current("detail_pages", TUESDAY)
        world.morning(WEDNESDAY)
        assert world.report(WEDNESDAY) == ["as of 2026-03-04"]

    def test_in_the_middle_of_a_job(self, world: InProcess) -> None:
        world.at(f"{TUESDAY}T06:00")
        world.tell("search_results", TUESDAY, held=True)
        with world.in_background(TUESDAY, "search_results"):
            world.at(f"{TUESDAY}T04:00")
            assert world.tick() == [], "it is still at work"
            world.script.release("search_results", TUESDAY)
        world.settle()

        assert world.statuses(TUESDAY) == ALL_DONE
        assert world.report(TUESDAY) == ["as of 2026-03-03"]

    def test_after_a_deadline_had_passed(self, world: InProcess) -> None:
        """What was decided at the deadline stands; nobody is alerted again, and the day ends as it would have."""
        world.morning(MONDAY)
        world.at(f"{TUESDAY}T06:00")
        world.tell("search_results", TUESDAY, held=True)
        with world.in_background(TUESDAY, "search_results"):
            world.at(f"{TUESDAY}T08:00")
            assert world.tick() == [(TUESDAY, ("daily_report",))]
            late = world.script.alerts()

            world.at(f"{TUESDAY}T06:00")
            assert world.tick() == []
            assert world.statuses(TUESDAY)["daily_report"] == "done"
            assert world.current("daily_report", TUESDAY).version == 1
            assert world.script.alerts() == late == ["Alert: late:detail_pages"]

            world.at(f"{TUESDAY}T08:00")
            assert world.tick() == []
            world.script.release("search_results", TUESDAY)
        world.settle()

        assert world.statuses(TUESDAY) == ALL_DONE
        assert world.report(TUESDAY) == ["as of 2026-03-03"]
        assert world.script.alerts() == ["Alert: late:detail_pages", "Over: late:detail_pages"]

    def test_after_somebody_opened_a_run_and_died(self, world: InProcess) -> None:
        world.at(f"{TUESDAY}T06:00")
        world.open(TUESDAY, ago=timedelta(0))
        assert world.evaluate() == [], "whoever opened it is about to start it"

        world.at(f"{TUESDAY}T04:00")
        world.settle()

        assert world.statuses(TUESDAY) == ALL_DONE


@pytest.fixture(
    params=[
        ("Europe/Berlin", "2026-03-28", "2026-03-29"),  # the second day has 23 hours
        ("Europe/Berlin", "2026-10-25", "2026-10-26"),  # the first has 25
        ("America/New_York", "2026-10-31", "2026-11-01"),
        ("Asia/Shanghai", "2026-03-28", "2026-03-29"),
    ],
    ids=lambda param: f"{param[0]} {param[1]}",
)
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[InProcess, ZoneInfo, str, str]]:
    """The small collection of a team somewhere, and two days there."""
    zone, day, next_day = request.param
    with in_process(tmp_path) as made:
        script = made.script
        there = definitions(assets(script), script, timezone=ZoneInfo(zone))
        yield InProcess(script, made.instance, there, made.opened), ZoneInfo(zone), day, next_day


def test_a_run_across_midnight_is_of_its_own_day_and_the_next_one_falls_back_to_it_as_yesterday(
    team: tuple[InProcess, ZoneInfo, str, str],
) -> None:
    world, zone, day, next_day = team

    def at(local: str) -> None:
        world.script.set_clock(datetime.fromisoformat(local).replace(tzinfo=zone))

    at(f"{day}T23:50")
    world.open(day)
    world.launch(day, "search_results")
    world.tell("detail_pages", day, held=True)
    with world.in_background(day, "detail_pages"):
        at(f"{next_day}T00:20")
        world.script.release("detail_pages", day)
    world.settle()

    moment = RunId.parse(day).moment(zone)
    report = world.current("daily_report", day)
    assert world.statuses(day) == ALL_DONE
    assert (report.as_of, report.degraded) == (moment, False)
    assert as_of_line("en", report.as_of, moment, moment, zone) == f"data as of {day} (today)"

    at(f"{next_day}T06:00")
    world.open(next_day)
    world.tell("search_results", next_day, then="fail")
    world.settle()

    report = world.current("daily_report", next_day)
    assert (report.as_of, report.degraded) == (moment, True)
    next_moment = RunId.parse(next_day).moment(zone)
    assert as_of_line("en", report.as_of, next_moment, moment, zone) == f"data as of {day} (yesterday)"
    reason = world.reason("daily_report", next_day)
    assert f"uses detail_pages of {day}, version 1, data as of {day} 00:00, yesterday" in reason

    moved = definitions(assets(world.script), world.script, timezone=ZoneInfo("Pacific/Honolulu"))
    assert replace(world, defs=moved).reason("daily_report", next_day) == reason, "a run keeps the zone of its days"
