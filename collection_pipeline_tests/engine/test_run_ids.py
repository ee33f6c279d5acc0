"""The grammar of run_ids, and the instants they name."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collection_pipeline.engine.run_ids import GRAMMAR, RunId, RunIdError

MOMENTS = st.dates(date(1970, 1, 1), date(9000, 12, 31)).flatmap(
    lambda day: st.times().map(lambda time: datetime.combine(day, time))
)


@st.composite
def run_ids(draw: st.DrawFn) -> str:
    moment = draw(MOMENTS)
    text = moment.strftime("%Y-%m-%d" if draw(st.booleans()) else "%Y-%m-%dT%H%M")
    suffix = draw(st.none() | st.integers(2, 999_999))
    return text if suffix is None else f"{text}.{suffix}"


@given(run_ids())
def test_what_the_grammar_allows_is_read_and_written_back_unchanged(text: str) -> None:
    assert str(RunId.parse(text)) == text


@given(st.text(alphabet="0123456789-T.٣ \n", max_size=20) | st.text(max_size=12))
def test_anything_is_either_a_run_id_or_refused(text: str) -> None:
    with suppress(RunIdError):
        run_id = RunId.parse(text)
        assert str(run_id) == text
        assert text.isascii()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "today",
        "2026-11-29 ",
        "2026-11-29\n",
        "2026-1-29",
        "20261129",
        "2026-02-29",
        "2026-11-29T6",
        "2026-11-29T2400",
        "2026-11-29T0660",
        "2026-11-29T06:00",
        "2026-11-29t0600",
        "2026-11-29Z",
        "2026-11-29.0",
        "2026-11-29.1",
        "2026-11-29.02",
        "2026-11-29.-2",
        "2026-11-29.1000000",
        "2026-11-29..2",
        "1969-12-31",
        "9001-01-01",
        "٢٠٢٦-١١-٢٩",
        "../2026-11-29",
        "2026-11-29/../../x",
        "2026-11-29; DROP TABLE runs",
    ],
)
def test_what_is_outside_the_grammar_is_refused_and_shown(text: str) -> None:
    with pytest.raises(RunIdError) as caught:
        RunId.parse(text)
    assert repr(text) in str(caught.value)
    assert GRAMMAR in str(caught.value)


def test_a_long_one_is_shown_by_its_beginning() -> None:
    with pytest.raises(RunIdError) as caught:
        RunId.parse("2026-11-29\x1b" + "9" * 100_000)
    assert str(caught.value).startswith("'2026-11-29\\x1b999")
    assert len(str(caught.value)) < 300


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("1970-01-01", False),
        ("2026-11-29", False),
        ("2026-11-29.7", False),
        ("2026-11-29T2359", False),
        ("2026-11-30", True),
        ("2026-11-30T0000.2", True),
    ],
)
def test_a_run_is_ahead_until_its_day_has_begun(text: str, *, ahead: bool) -> None:
    assert RunId.parse(text).is_ahead(NOON, ZoneInfo("UTC")) is ahead


def test_the_day_begins_where_the_team_is() -> None:
    tomorrow = RunId.parse("2026-11-30")
    assert not tomorrow.is_ahead(NOON, ZoneInfo("Pacific/Kiritimati"))
    assert tomorrow.is_ahead(NOON + timedelta(hours=16), ZoneInfo("America/New_York"))


@given(run_ids().filter(lambda text: not text.endswith(".999999")))
def test_a_further_collection_is_of_the_same_moment(text: str) -> None:
    first = RunId.parse(text)
    assert (first.further().local, first.further().suffix) == (first.local, first.suffix + 1)


@pytest.mark.parametrize(
    ("now", "zone", "day"),
    [
        (datetime(2026, 11, 28, 22, 30, tzinfo=UTC), "UTC", "2026-11-28"),
        (datetime(2026, 11, 28, 22, 30, tzinfo=UTC), "Asia/Shanghai", "2026-11-29"),
        (datetime(2026, 11, 29, 4, 30, tzinfo=UTC), "America/New_York", "2026-11-28"),
        (datetime(2026, 11, 28, 10, 30, tzinfo=UTC), "Pacific/Kiritimati", "2026-11-29"),
    ],
)
def test_the_scheduled_run_is_the_date_where_the_team_is(now: datetime, zone: str, day: str) -> None:
    assert str(RunId.of_day(now, ZoneInfo(zone))) == day


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-11-29", "UTC", datetime(2026, 11, 29, 0, tzinfo=UTC)),
        ("2026-11-29", "Asia/Shanghai", datetime(2026, 11, 28, 16, tzinfo=UTC)),
        ("2026-11-29T0600.3", "Asia/Kolkata", datetime(2026, 11, 29, 0, 30, tzinfo=UTC)),
        # Berlin sets its clocks forward on 2026-03-29 and back on 2026-10-25
        ("2026-03-29", "Europe/Berlin", datetime(2026, 3, 28, 23, tzinfo=UTC)),
        ("2026-03-30", "Europe/Berlin", datetime(2026, 3, 29, 22, tzinfo=UTC)),
        ("2026-03-29T0230", "Europe/Berlin", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        ("2026-10-25T0230", "Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        # Santiago's clocks go forward at midnight: the day begins at 01:00
        ("2026-09-06", "America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),
    ],
)
def test_a_run_speaks_of_one_instant_also_when_clocks_change(text: str, zone: str, moment: datetime) -> None:
    assert RunId.parse(text).moment(ZoneInfo(zone)) == moment


@given(MOMENTS.filter(lambda moment: moment.year < 2100), st.sampled_from(["UTC", "Asia/Shanghai", "America/St_Johns"]))
def test_the_scheduled_run_of_now_began_less_than_a_day_ago(local: datetime, zone: str) -> None:
    now = local.replace(tzinfo=UTC) + timedelta(days=1)
    age = now - RunId.of_day(now, ZoneInfo(zone)).moment(ZoneInfo(zone))
    assert timedelta(0) <= age < timedelta(hours=25)
