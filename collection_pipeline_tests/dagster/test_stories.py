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


def test_search_is_late_so_nothing_runs_on_it_and_the_report_degrades_at_its_deadline(world: InProcess) -> None:
    world.morning(MONDAY)
    world.at(f"{TUESDAY}T06:00")
    world.tell("search_results", TUESDAY, held=True)
    with world.in_background(TUESDAY, "search_results"):
        world.at(f"{TUESDAY}T07:59")
        assert world.tick() == [], "before the deadline everybody waits"
        assert world.statuses(TUESDAY) == {
            "search_results": "running",
            "detail_pages": "pending",
            "news_mentions": "pending",
            "daily_report": "pending",
        }

        world.at(f"{TUESDAY}T08:00")
        assert world.tick() == [(TUESDAY, ("daily_report",))]
        assert world.read("daily_report", TUESDAY)["detail_pages"].artifact == world.current("detail_pages", MONDAY)
        assert world.script.starts("detail_pages", TUESDAY) == 0
        assert world.script.alerts() == ["Alert: late:detail_pages"], "one page, for what the report lacks"

        world.script.release("search_results", TUESDAY)

    assert world.settle() == [(TUESDAY, ("detail_pages", "news_mentions")), (TUESDAY, ("daily_report",))]
    assert world.statuses(TUESDAY) == ALL_DONE
    assert world.report(TUESDAY) == ["as of 2026-03-03"], "whole again"
    assert world.script.alerts()[1:] == ["Over: late:detail_pages"]


def test_search_succeeds_with_nothing_so_it_is_failed_and_details_never_run(world: InProcess) -> None:
    world.morning(MONDAY)
    world.tell("search_results", TUESDAY, rows=0)
    world.morning(TUESDAY)

    assert world.statuses(TUESDAY) == {
        "search_results": "failed",
        "detail_pages": "pending",
        "news_mentions": "pending",
        "daily_report": "done",
    }
    assert world.script.starts("detail_pages", TUESDAY) == 0
    assert world.requested_by(TUESDAY) == ["daily_schedule", "propagation_sensor"]
    assert world.report(TUESDAY)[0] == "as of 2026-03-02"
    assert "check feature_id_present failed" in world.reason("detail_pages", TUESDAY)
    assert world.script.alerts() == ["Alert: failed:search_results"], "the cause, and not all that is blocked behind it"


def test_search_finds_a_tenth_of_its_usual_size_so_it_is_failed_and_details_never_run(world: InProcess) -> None:
    world.morning(MONDAY)
    world.tell("search_results", TUESDAY, rows=2)
    world.morning(TUESDAY)

    assert world.statuses(TUESDAY)["search_results"] == "failed"
    assert world.script.starts("detail_pages", TUESDAY) == 0
    assert "check volume failed: 2 rows, at least 10 expected (usual: 20, min_share: 0.5)" in world.reason(
        "detail_pages", TUESDAY
    )


def test_details_are_down_for_days_and_the_report_says_how_old_its_data_is_until_nothing_keeps(
    world: InProcess,
) -> None:
    for day in (TUESDAY, WEDNESDAY, THURSDAY, FRIDAY):
        world.tell("detail_pages", day, then="fail")
    world.morning(MONDAY)

    world.morning(TUESDAY)
    assert world.statuses(TUESDAY) == {**ALL_DONE, "detail_pages": "failed", "news_mentions": "skipped"}
    assert world.report(TUESDAY)[0] == "as of 2026-03-02"
    assert "yesterday" in world.reason("daily_report", TUESDAY)
    assert world.current("daily_report", TUESDAY).degraded

    world.morning(WEDNESDAY)
    assert world.report(WEDNESDAY)[0] == "as of 2026-03-02", "yesterday's report stood on Monday too: no chain to fresh"
    assert "2 days ago, 2 days old, shelf life 3 days, warned about from 36 hours" in world.reason(
        "daily_report", WEDNESDAY
    )

    world.morning(THURSDAY)
    assert world.read("daily_report", THURSDAY)["detail_pages"].artifact == world.current("detail_pages", MONDAY)

    world.morning(FRIDAY)
    assert world.statuses(FRIDAY) == {
        "search_results": "done",
        "detail_pages": "failed",
        "news_mentions": "skipped",
        "daily_report": "pending",
    }
    assert "nothing of an earlier run inside its shelf life of 3 days" in world.reason("daily_report", FRIDAY)

    skips = ["Alert: skipped:news_mentions"]
    assert sorted(world.script.alerts()) == sorted(["Alert: failed:detail_pages", *skips])
    assert world.store.open_episodes()["failed:detail_pages"].run_count == 4


def test_a_failed_backfill_stays_bad_until_it_is_repaired_or_newer_data_arrives(world: InProcess) -> None:
    world.tell("detail_pages", MONDAY, then="fail")
    world.morning(TUESDAY)
    world.at(f"{TUESDAY}T07:00")
    assert not world.launch(MONDAY).success
    world.settle()
    alerts = ["Alert: failed:detail_pages", "Alert: skipped:news_mentions"]
    assert world.script.alerts() == alerts

    world.launch(TUESDAY, "daily_report")
    world.settle()
    assert world.script.alerts() == alerts, "what Tuesday has is older than the failure"

    world.morning(WEDNESDAY)
    assert sorted(world.script.alerts()[2:]) == ["Over: failed:detail_pages", "Over: skipped:news_mentions"]

    world.launch(MONDAY, "daily_report")
    world.settle()
    assert len(world.script.alerts()) == 4, "Monday is as it was: that was said, and that it is over too"

    world.at(f"{WEDNESDAY}T07:00")
    assert not world.launch(MONDAY, "detail_pages").success
    assert world.script.alerts()[4:] == ["Alert: failed:detail_pages"], "it failed anew"


def test_a_run_that_is_late_for_good_does_not_alert_again_once_a_later_one_delivered(world: InProcess) -> None:
    world.at(f"{TUESDAY}T06:00")
    world.tell("search_results", TUESDAY, held=True)
    with world.in_background(TUESDAY, "search_results"):
        world.at(f"{TUESDAY}T08:00")
        world.settle()
        world.morning(WEDNESDAY)
        world.settle()
        alerts = world.script.alerts()
        world.script.release("search_results", TUESDAY)
    assert alerts == ["Alert: late:detail_pages", "Over: late:detail_pages"]


def test_news_is_down_so_the_report_goes_out_without_that_section(world: InProcess) -> None:
    world.tell("news_mentions", MONDAY, then="fail")
    world.morning(MONDAY)

    assert world.statuses(MONDAY) == {**ALL_DONE, "news_mentions": "failed"}
    assert world.read("daily_report", MONDAY)["news_mentions"].artifact is None
    as_of, without, because = world.report(MONDAY)
    assert (as_of, without) == ("as of 2026-03-02", "without news_mentions")
    assert because == "failed"
    assert not world.current("daily_report", MONDAY).degraded, "today's data, one section less"


def test_details_recover_after_the_degraded_report_which_follows_and_is_whole_again(world: InProcess) -> None:
    world.morning(MONDAY)
    world.tell("detail_pages", TUESDAY, then="fail")
    world.morning(TUESDAY)
    degraded = world.current("daily_report", TUESDAY)
    assert degraded.degraded

    world.tell("detail_pages", TUESDAY, edition=2)
    assert world.launch(TUESDAY, "detail_pages").success
    world.settle()

    assert world.statuses(TUESDAY) == ALL_DONE, "news, which was skipped, is made up for"
    whole = world.current("daily_report", TUESDAY)
    assert (whole.version, whole.degraded) == (2, False)
    assert world.report(TUESDAY) == ["as of 2026-03-03"]
    assert sorted(world.script.alerts()) == [
        "Alert: failed:detail_pages",
        "Alert: skipped:news_mentions",
        "Over: failed:detail_pages",
        "Over: skipped:news_mentions",
    ]


def test_a_transient_error_is_tried_again_by_dagster_and_the_job_is_running_meanwhile(world: InProcess) -> None:
    world.tell("detail_pages", MONDAY, then="try again later")
    world.morning(MONDAY)

    assert world.statuses(MONDAY) == ALL_DONE
    assert world.script.starts("detail_pages", MONDAY) == 2
    assert world.requested_by(MONDAY) == ["daily_schedule"], "no tick was needed"
    assert world.job("detail_pages", MONDAY).attempts == 1


def test_search_is_rerun_with_equal_content_and_nothing_moves(world: InProcess) -> None:
    world.morning(MONDAY)
    world.launch(MONDAY, "search_results")

    assert world.settle() == []
    assert world.current("search_results", MONDAY).version == 2
    assert world.current("detail_pages", MONDAY).version == 1


def test_search_is_rerun_with_other_content_and_everything_follows(world: InProcess) -> None:
    world.morning(MONDAY)
    before = world.read("daily_report", MONDAY)
    world.tell("search_results", MONDAY, rows=15, edition=2)
    world.launch(MONDAY, "search_results")

    assert world.settle() == [(MONDAY, ("detail_pages",)), (MONDAY, ("news_mentions", "daily_report"))]
    assert world.current("daily_report", MONDAY).version == 2
    assert world.rows("detail_pages", MONDAY, 2) == 15
    old = before["detail_pages"].artifact
    assert old is not None
    assert old.version == 1
    assert world.rows("detail_pages", MONDAY, old.version) == 20, "what the old report read can still be read"


def test_a_pinned_report_keeps_what_it_has_and_is_shown_as_outdated(pinned: InProcess) -> None:
    pinned.morning(MONDAY)
    pinned.tell("search_results", MONDAY, edition=2)
    pinned.tell("detail_pages", MONDAY, edition=2)
    pinned.launch(MONDAY, "search_results")

    assert pinned.settle() == [(MONDAY, ("detail_pages",)), (MONDAY, ("news_mentions",))]
    assert pinned.current("daily_report", MONDAY).version == 1
    assert "outdated: detail_pages is at version 2, this stands on version 1" in pinned.reason("daily_report", MONDAY)
    assert pinned.tick() == []


def test_an_old_run_is_backfilled_and_never_reads_the_future(world: InProcess) -> None:
    world.morning(WEDNESDAY)
    world.tell("detail_pages", TUESDAY, then="fail")
    world.launch(TUESDAY)

    assert world.settle() == []
    assert world.statuses(TUESDAY)["daily_report"] == "pending"
    assert "nothing of an earlier run" in world.reason("daily_report", TUESDAY)

    world.launch(MONDAY)
    assert world.settle() == [(TUESDAY, ("daily_report",))], "Monday's details are what Tuesday waited for"
    assert world.read("daily_report", TUESDAY)["detail_pages"].artifact == world.current("detail_pages", MONDAY)


def test_yesterdays_details_are_retracted_and_with_them_todays_degraded_report(world: InProcess) -> None:
    world.morning(MONDAY)
    world.morning(TUESDAY)
    world.tell("detail_pages", WEDNESDAY, then="fail")
    world.morning(WEDNESDAY)
    assert world.read("daily_report", WEDNESDAY)["detail_pages"].artifact == world.current("detail_pages", TUESDAY)

    withdrawn = world.store.retract("detail_pages", TUESDAY, None, "wrong city", world.collection.now()).withdrawn
    assert {(each.job_id, each.run_id) for each in withdrawn} == {
        ("detail_pages", TUESDAY),
        ("news_mentions", TUESDAY),
        ("daily_report", TUESDAY),
        ("daily_report", WEDNESDAY),
    }

    world.settle()
    for day in (TUESDAY, WEDNESDAY):
        assert world.read("daily_report", day)["detail_pages"].artifact == world.current("detail_pages", MONDAY)
        assert world.report(day)[0] == "as of 2026-03-02"
    assert world.statuses(TUESDAY)["detail_pages"] == "failed"
    assert "wrong city" in world.reason("detail_pages", TUESDAY)


def test_a_job_is_added_to_the_graph_and_only_open_runs_get_it(world: InProcess) -> None:
    world.morning(MONDAY)
    world.tell("detail_pages", TUESDAY, then="fail")
    world.at(f"{TUESDAY}T06:00")
    world.launch(TUESDAY, "search_results")  # the sensor has not looked yet: Tuesday is open

    grown = world.with_summary()
    grown.settle()
    assert "summary" not in grown.statuses(MONDAY), "settled runs stay as they are"
    assert grown.statuses(TUESDAY)["summary"] == "done"

    assert grown.launch(MONDAY, "summary").success, "until somebody runs something in them"
    assert grown.statuses(MONDAY) == {**ALL_DONE, "summary": "done"}
    assert grown.current("daily_report", MONDAY).version == 1


def test_a_job_is_removed_from_the_graph_and_nothing_is_stuck(world: InProcess) -> None:
    grown = world.with_summary()
    grown.tell("summary", MONDAY, then="fail")
    grown.morning(MONDAY)
    grown.tell("summary", TUESDAY, then="fail")
    grown.at(f"{TUESDAY}T06:00")
    grown.launch(TUESDAY, "search_results", "detail_pages")

    assert world.settle() == [(TUESDAY, ("news_mentions", "daily_report"))]
    assert world.statuses(TUESDAY) == ALL_DONE
    assert world.view(TUESDAY).settled_at is not None
