"""Texts in both languages, and the words for the age of the data."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from collection_pipeline.texts import TEXTS, as_of_line, first_line, text

UTC_ZONE = ZoneInfo("UTC")
MOMENT = datetime(2026, 11, 29, tzinfo=UTC)


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("key", TEXTS)
def test_a_text_says_the_same_in_both_languages(key: str) -> None:
    entry = TEXTS[key]
    assert entry.en.strip()
    assert entry.zh.strip()
    assert placeholders(entry.en) == placeholders(entry.zh)
    if entry.one is not None:
        assert placeholders(entry.one) <= placeholders(entry.en)
        assert "n" in placeholders(entry.en)


def test_one_is_singular_in_english_and_large_numbers_are_readable() -> None:
    assert text("en", "reviews", n=1) == "1 review"
    assert text("en", "reviews", n=12345) == "12,345 reviews"
    assert text("zh", "reviews", n=1) == "1 条评价"


def test_an_unknown_text_and_a_missing_value_are_errors() -> None:
    with pytest.raises(KeyError):
        text("en", "no such text")
    with pytest.raises(KeyError):
        text("en", "reviews")


@pytest.mark.parametrize(
    ("as_of", "english", "chinese"),
    [
        (MOMENT, "data as of 2026-11-29 (today)", "数据截至 2026-11-29（今日）"),
        (MOMENT + timedelta(hours=6), "data as of 2026-11-29 (today)", "数据截至 2026-11-29（今日）"),
        (MOMENT - timedelta(seconds=1), "data as of 2026-11-28 (yesterday)", "数据截至 2026-11-28（昨日）"),
        (MOMENT - timedelta(days=1), "data as of 2026-11-28 (yesterday)", "数据截至 2026-11-28（昨日）"),
        (MOMENT - timedelta(days=2), "data as of 2026-11-27 (2 days ago)", "数据截至 2026-11-27（2 天前）"),
    ],
)
def test_the_first_line_has_the_right_word_for_the_age(as_of: datetime, english: str, chinese: str) -> None:
    assert as_of_line("en", as_of, MOMENT, MOMENT, UTC_ZONE) == english
    assert as_of_line("zh", as_of, MOMENT, MOMENT, UTC_ZONE) == chinese
    assert first_line("en", as_of, MOMENT, MOMENT, UTC_ZONE) == f"{english} · {chinese}"
    assert first_line("zh", as_of, MOMENT, MOMENT, UTC_ZONE) == f"{chinese} · {english}"


def test_earlier_on_the_same_day_shows_the_time() -> None:
    evening = datetime(2026, 11, 29, 18, tzinfo=UTC)
    assert as_of_line("en", MOMENT, evening, evening, UTC_ZONE) == "data as of 2026-11-29 00:00 (earlier today)"
    assert as_of_line("zh", MOMENT, evening, evening, UTC_ZONE) == "数据截至 2026-11-29 00:00（今日稍早）"


def test_an_earlier_run_of_the_same_moment_is_no_news_of_today() -> None:
    said = {
        language: as_of_line(language, MOMENT, MOMENT, MOMENT, UTC_ZONE, is_older=True) for language in ("en", "zh")
    }
    assert said == {
        "en": "data as of 2026-11-29 00:00 (earlier today)",
        "zh": "数据截至 2026-11-29 00:00（今日稍早）",
    }
    yesterday = MOMENT - timedelta(days=1)
    assert as_of_line("en", yesterday, MOMENT, MOMENT, UTC_ZONE, is_older=True) == "data as of 2026-11-28 (yesterday)"


@pytest.mark.parametrize(
    ("as_of", "collected_after", "words"),
    [
        (MOMENT, timedelta(hours=23, minutes=59), "2026-11-29 (today)"),
        (MOMENT, timedelta(hours=24), "2026-11-29, collected on 2026-11-30"),
        (MOMENT, timedelta(hours=-1), "2026-11-29, collected on 2026-11-28"),
        (MOMENT - timedelta(days=1), timedelta(hours=23), "2026-11-28 (yesterday)"),
        (MOMENT - timedelta(days=1), timedelta(days=30), "2026-11-28 (yesterday), collected on 2026-12-29"),
    ],
)
def test_what_was_collected_on_another_day_says_so_and_is_not_called_todays(
    as_of: datetime, collected_after: timedelta, words: str
) -> None:
    assert as_of_line("en", as_of, MOMENT, MOMENT + collected_after, UTC_ZONE) == f"data as of {words}"


def test_what_is_of_earlier_on_a_day_and_was_collected_later_shows_both() -> None:
    evening, later = MOMENT + timedelta(hours=18), MOMENT + timedelta(days=30)
    words = "data as of 2026-11-29 00:00, collected on 2026-12-29"
    assert as_of_line("en", MOMENT, evening, later, UTC_ZONE) == words


def test_days_are_those_of_the_runs_time_zone() -> None:
    """Half an hour apart, on both sides of midnight in Shanghai, on one day in UTC."""
    before, after = datetime(2026, 11, 28, 15, 45, tzinfo=UTC), datetime(2026, 11, 28, 16, 15, tzinfo=UTC)
    assert as_of_line("en", before, after, after, ZoneInfo("Asia/Shanghai")) == "data as of 2026-11-28 (yesterday)"
    assert as_of_line("en", before, after, after, UTC_ZONE) == "data as of 2026-11-28 15:45 (earlier today)"


def test_a_day_of_25_hours_is_one_day() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    run, yesterday = datetime(2026, 10, 26, tzinfo=berlin), datetime(2026, 10, 25, tzinfo=berlin)
    assert run.astimezone(UTC) - yesterday.astimezone(UTC) == timedelta(hours=25)
    assert as_of_line("en", yesterday, run, run, berlin) == "data as of 2026-10-25 (yesterday)"
