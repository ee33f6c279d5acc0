"""What the policies mean, told as days in the life of a small collection, on a real Dagster instance.

The graph is the template's: search → details (hard) → news (skip) → report (degrade on details, optional on news).
Details keep three days and are warned about after 36 hours; the report stops waiting at eight.
"""

from __future__ import annotations

from collection_pipeline_tests.dagster.in_process import InProcess

MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY = (f"2026-03-0{day}" for day in range(2, 7))

ALL_DONE = {"search_results": "done", "detail_pages": "done", "news_mentions": "done", "daily_report": "done"}


def test_a_normal_day_is_one_dagster_run_of_the_whole_chain(world: InProcess) -> None:
    world.morning(MONDAY)

    assert world.statuses(MONDAY) == ALL_DONE
    assert world.requested_by(MONDAY) == ["daily_schedule"]
    assert world.report(MONDAY) == ["as of 2026-03-02"]
    assert world.tick() == [], "a settled run costs nothing"
    assert world.script.alerts() == []
