"""Alerts get out, or it is seen that they did not: whatever a channel does, nobody else notices."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apprise.decorators import notify

from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs import alerts
from collection_pipeline.engine.store import Store, StoreUnavailableError, Transition

NOW = datetime(2026, 11, 29, 6, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
RUN = RunId.parse("2026-11-29")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:apprise")

taken: list[tuple[str, str, str]] = []

FAILED = ("failure", "collection_pipeline: details of 2026-11-29 failed", "details failed")


def takes(body: str, title: str, notify_type: str, *_: Any, **__: Any) -> bool:
    taken.append((notify_type, title, body))
    return True


def refuses(*_: Any, **__: Any) -> bool:
    return False


def raises(*_: Any, **__: Any) -> bool:
    raise TimeoutError("https://secret-token.example took too long")


@pytest.fixture(autouse=True, scope="module")
def channels() -> None:
    """Three services of our own. Apprise loads all of its own first, one of which needs what Python is to drop."""
    service: Any = notify  # untyped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for send in (takes, refuses, raises):
            service(on=send.__name__)(send)


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    taken.clear()
    with Store.open(sqlite_url) as store:
        store.open_run(RUN, ZoneInfo("UTC"), Graph.build([Job("details")]), NOW)
        yield store


def opened(store: Store) -> list[Transition]:
    return store.episode_transitions("2026-11-29", {"failed:details": "details failed"}, [], NOW)


def problems(store: Store) -> list[str | None]:
    return [each.problem for each in store.undelivered(LATER)]


def test_a_message_that_every_channel_took_is_delivered(store: Store) -> None:
    alerts.send(store, opened(store), ["takes://"])
    assert taken == [FAILED]
    assert problems(store) == []


def test_a_channel_is_told_how_grave_it_is(store: Store) -> None:
    bad = dict.fromkeys(("failed:details", "late:details", "skipped:details", "check:details:coverage"), "what is bad")
    alerts.send(store, store.episode_transitions("2026-11-29", bad, [], NOW), ["takes://"])
    alerts.send(store, store.episode_transitions("2026-11-29", {}, list(bad), NOW), ["takes://"])
    assert [grave for grave, *_ in taken] == ["failure", *["warning"] * 3, *["success"] * 4]


def test_without_channels_the_log_is_where_alerts_go(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    alerts.send(store, opened(store), [])
    alerts.send(store, store.episode_transitions("2026-11-29", {}, ["failed:details"], NOW), [])
    assert [level for _, level, _ in caplog.record_tuples] == [logging.WARNING, logging.INFO]
    assert caplog.messages[0] == "details failed"
    assert problems(store) == [], "nothing to be sent again once a channel is configured"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("refuses://", "a channel refused it."),
        ("raises://", "a channel refused it."),
        ("json://127.0.0.1:1/", "a channel refused it."),
        ("nosuchservice://secret-token", "in ALERT_URLS, address 2 is not one that apprise knows."),
    ],
)
def test_a_channel_that_fails_is_named_without_its_address_and_keeps_the_others_from_nothing(
    store: Store, url: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    alerts.send(store, opened(store), ["takes://", url])
    assert len(taken) == 1
    assert problems(store) == [problem]
    said = [each.getMessage() for each in caplog.records if each.name == alerts.log.name]
    assert not [message for message in said if "secret-token" in message]
    assert said[-1] == f"The alert failed:details was not delivered: {problem} Check ALERT_URLS."


def test_an_apprise_that_raises_does_not_reach_the_job(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> bool:
        raise RuntimeError("secret-token")

    monkeypatch.setattr("apprise.Apprise.notify", broken)
    alerts.send(store, opened(store), ["takes://"])
    assert problems(store) == ["a channel raised RuntimeError."]


def test_what_was_refused_gets_out_at_a_later_look(store: Store) -> None:
    alerts.send(store, opened(store), ["refuses://"])
    alerts.send(store, store.take_overdue(LATER), ["takes://"])
    assert taken == [FAILED]
    assert problems(store) == []


class AwayHandler(logging.Handler):
    """As Dagster's in a step, when its database is away."""

    def emit(self, _: logging.LogRecord) -> None:
        raise StoreUnavailableError("the server restarts")


def test_a_log_that_cannot_be_written_keeps_nothing_from_anybody(store: Store) -> None:
    away = AwayHandler()
    alerts.log.logger.addHandler(away)
    try:
        alerts.send(store, opened(store), ["refuses://"])
        alerts.send(store, store.take_overdue(LATER), ["takes://"])
    finally:
        alerts.log.logger.removeHandler(away)
    assert taken == [FAILED]
    assert problems(store) == []


@pytest.mark.parametrize("url", ["takes://", "refuses://"])
def test_what_cannot_be_recorded_raises_nothing_and_is_sent_once_more(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> None:
        raise StoreUnavailableError("the server restarts")

    both = store.episode_transitions("2026-11-29", {"failed:details": "failed", "late:search": "late"}, [], NOW)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(store, "mark_delivered", gone)
        meanwhile.setattr(store, "mark_undelivered", gone)
        alerts.send(store, both, [url])
    assert [each.key for each in store.take_overdue(LATER)] == ["failed:details", "late:search"]
