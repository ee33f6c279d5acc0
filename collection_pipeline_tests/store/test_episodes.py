"""One message when something goes bad, one when it heals, and a count in between."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collection_pipeline_tests.store.world import World

FIRST, SECOND, THIRD = "2026-11-27", "2026-11-28", "2026-11-29"
KEY = "failed:details"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def three_days(world: World) -> World:
    world.open(FIRST, SECOND, THIRD)
    return world


def delivers(world: World, run_id: str) -> None:
    """Search and details are published, a minute later than whatever was before."""
    world.now += MINUTE
    world.done(run_id, "search", "details")


def fails(world: World, run_id: str) -> None:
    """Details fail, a minute later than whatever was before; search is fetched first where it has to be."""
    world.now += MINUTE
    if world.statuses(run_id)["search"] == "pending":
        world.done(run_id, "search")
    world.fail(run_id, "details")


def changes(world: World, run_id: str, bad: str | None = None, good: str | None = None) -> list[tuple[str, str]]:
    transitions = world.store.episode_transitions(
        run_id, {} if bad is None else {bad: f"{bad} in {run_id}"}, [] if good is None else [good], world.now
    )
    return [(transition.key, transition.change) for transition in transitions]


def test_it_opens_once_counts_runs_and_heals_once(three_days: World) -> None:
    assert changes(three_days, FIRST, bad=KEY) == [(KEY, "opened")]
    assert changes(three_days, FIRST, bad=KEY) == []
    assert changes(three_days, SECOND, bad=KEY) == []
    assert changes(three_days, SECOND, bad=KEY) == []
    episode = three_days.store.open_episodes()[KEY]
    assert (episode.opened_run, episode.last_run, episode.run_count) == (FIRST, SECOND, 2)
    delivers(three_days, THIRD)
    assert changes(three_days, THIRD, good=KEY) == [(KEY, "healed")]
    assert changes(three_days, THIRD, good=KEY) == []
    assert three_days.store.open_episodes() == {}


def test_the_message_at_the_end_says_how_long_it_was(three_days: World) -> None:
    changes(three_days, FIRST, bad=KEY)
    changes(three_days, SECOND, bad=KEY)
    delivers(three_days, THIRD)
    [healed] = three_days.store.episode_transitions(THIRD, {}, [KEY], three_days.now)
    assert healed.title == "details of 2026-11-29 has delivered"
    assert healed.text == (
        "details of 2026-11-29 has delivered. It was failed in 2 runs, first in 2026-11-27, since 2026-11-29 06:00 UTC."
    )


@pytest.mark.parametrize(("kind", "words"), [("failed", "failed"), ("late", "is late"), ("skipped", "is skipped")])
def test_a_title_says_what_happened_to_which_job_and_run(three_days: World, kind: str, words: str) -> None:
    [opened] = three_days.store.episode_transitions(FIRST, {f"{kind}:details": "text"}, [], three_days.now)
    assert opened.title == f"details of 2026-11-27 {words}"


def test_an_older_run_neither_counts_nor_heals(three_days: World) -> None:
    changes(three_days, SECOND, bad=KEY)
    assert changes(three_days, FIRST, bad=KEY) == []
    assert changes(three_days, FIRST, good=KEY) == []
    assert three_days.store.open_episodes()[KEY].run_count == 1
    assert changes(three_days, SECOND, good=KEY) == [(KEY, "healed")]


@pytest.mark.parametrize("key", [KEY, "late:details", "skipped:details", "check:details:coverage"])
def test_what_is_older_heals_nothing(three_days: World, key: str) -> None:
    delivers(three_days, THIRD)
    fails(three_days, SECOND)
    assert changes(three_days, SECOND, bad=key) == [(key, "opened")]
    assert changes(three_days, THIRD, good=key) == []
    delivers(three_days, THIRD)
    assert changes(three_days, THIRD, good=key) == [(key, "healed")]


def test_what_is_older_than_the_last_failure_heals_nothing_either(three_days: World) -> None:
    fails(three_days, SECOND)
    changes(three_days, SECOND, bad=KEY)
    delivers(three_days, THIRD)
    fails(three_days, SECOND)
    assert changes(three_days, THIRD, good=KEY) == []
    assert changes(three_days, SECOND, good=KEY) == [(KEY, "healed")], "the run in which it was bad"


def test_an_episode_of_a_job_that_left_the_graph_ends_with_the_next_run(three_days: World) -> None:
    changes(three_days, FIRST, bad="failed:removed")
    assert changes(three_days, SECOND, good="failed:removed") == [("failed:removed", "healed")]


def test_what_stays_bad_after_a_later_run_delivered_was_said_and_is_over_until_it_fails_anew(three_days: World) -> None:
    fails(three_days, FIRST)
    changes(three_days, FIRST, bad=KEY)
    fails(three_days, SECOND)
    changes(three_days, SECOND, bad=KEY)
    delivers(three_days, THIRD)
    changes(three_days, THIRD, good=KEY)
    assert changes(three_days, FIRST, bad=KEY) == changes(three_days, SECOND, bad=KEY) == []
    fails(three_days, FIRST)
    assert changes(three_days, FIRST, bad=KEY) == [(KEY, "opened")]


def test_a_run_opened_after_an_episode_was_over_was_no_part_of_it(three_days: World) -> None:
    changes(three_days, SECOND, bad="late:details")
    delivers(three_days, THIRD)
    changes(three_days, THIRD, good="late:details")
    assert changes(three_days, FIRST, bad="late:details") == [], "an earlier run is history"
    three_days.now += MINUTE
    three_days.open("2026-11-26")
    assert changes(three_days, "2026-11-26", bad="late:details") == [("late:details", "opened")]


def test_what_comes_back_is_a_new_episode(three_days: World) -> None:
    changes(three_days, FIRST, bad=KEY)
    changes(three_days, FIRST, good=KEY)
    assert changes(three_days, FIRST, bad=KEY) == [(KEY, "opened")], "in the run that was good again"
    delivers(three_days, SECOND)
    changes(three_days, SECOND, good=KEY)
    assert changes(three_days, THIRD, bad=KEY) == [(KEY, "opened")]


def test_keys_do_not_mix(three_days: World) -> None:
    assert changes(three_days, FIRST, bad=KEY, good="failed:search") == [(KEY, "opened")]
    assert changes(three_days, FIRST, bad="late:search") == [("late:search", "opened")]
    assert list(three_days.store.open_episodes()) == [KEY, "late:search"]


def test_a_failing_channel_is_visible(three_days: World) -> None:
    [opened] = three_days.store.episode_transitions(FIRST, {KEY: "details failed"}, [], three_days.now)
    three_days.store.mark_undelivered(opened, "the channel refused it")
    episode = three_days.store.open_episodes()[KEY]
    assert (episode.delivered, episode.delivery_error) == (False, "the channel refused it")
    three_days.store.mark_delivered(opened)
    episode = three_days.store.open_episodes()[KEY]
    assert (episode.delivered, episode.delivery_error) == (True, None)


def test_an_announcement_that_a_killed_process_never_sent_is_given_to_one_other_after_a_minute(
    three_days: World,
) -> None:
    store, now = three_days.store, three_days.now
    [opened] = store.episode_transitions(FIRST, {KEY: "details failed"}, [], now)
    assert (store.take_overdue(now), store.undelivered(now)) == ([], []), "it may be on its way"

    later = now + MINUTE
    [shown] = store.undelivered(later)
    assert (shown.text, shown.problem) == ("details failed", "the process that was to send it ended")
    [again] = store.take_overdue(later)
    assert (again.title, again.text, again.change) == (opened.title, opened.text, "opened")
    assert store.take_overdue(later) == [], "once in a minute"
    assert [each.key for each in store.take_overdue(later + MINUTE)] == [KEY], "and again until it got out"
    store.mark_delivered(again)
    assert (store.take_overdue(later + 2 * MINUTE), store.undelivered(later + 2 * MINUTE)) == ([], [])


def test_a_clock_that_is_set_back_makes_nobody_wait_for_hours(three_days: World) -> None:
    store, now = three_days.store, three_days.now
    store.episode_transitions(FIRST, {KEY: "details failed"}, [], now)

    back = now - timedelta(hours=2)
    assert [each.key for each in store.undelivered(back)] == [KEY]
    assert [each.key for each in store.take_overdue(back)] == [KEY]
    assert store.take_overdue(back) == [], "once in a minute"


def test_the_end_of_an_episode_is_announced_until_it_gets_out_too(three_days: World) -> None:
    store, now = three_days.store, three_days.now
    [opened] = store.episode_transitions(FIRST, {KEY: "details failed"}, [], now)
    store.mark_delivered(opened)
    [healed] = store.episode_transitions(FIRST, {}, [KEY], now)
    store.mark_undelivered(healed, "a channel refused it.")

    [shown] = store.undelivered(now)
    assert (shown.title, shown.text, shown.problem) == (
        "details of 2026-11-27 has delivered",
        healed.text,
        "a channel refused it.",
    )
    assert [(each.key, each.change) for each in store.take_overdue(now + MINUTE)] == [(KEY, "healed")]


def test_news_of_the_beginning_that_arrives_late_does_not_count_for_the_end(three_days: World) -> None:
    store, now = three_days.store, three_days.now
    [opened] = store.episode_transitions(FIRST, {KEY: "details failed"}, [], now)
    store.episode_transitions(FIRST, {}, [KEY], now)
    store.mark_delivered(opened)
    assert [each.change for each in store.take_overdue(now + MINUTE)] == ["healed"]


def test_the_end_of_a_warning_names_its_check(three_days: World) -> None:
    store, now = three_days.store, three_days.now
    [opened] = store.episode_transitions(FIRST, {"check:details:coverage": "9 of 10"}, [], now)
    assert opened.title == "details of 2026-11-27 does not pass coverage"
    [healed] = store.episode_transitions(FIRST, {}, ["check:details:coverage"], now)
    assert healed.text.startswith("details of 2026-11-27 passes coverage. It was warned about in 1 run, first in 2026-")
