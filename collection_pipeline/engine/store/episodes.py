"""Alerts as episodes: one message when something goes bad, one when it heals, and the count of runs in between."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.store.database import EPISODES, advisory_lock
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.runs import lock_run, unknown_run
from collection_pipeline.engine.store.schema import alerts, artifacts, jobs, runs

RETRY_AFTER = timedelta(minutes=1)
"""An announcement that did not get out is tried again after this, by whoever looks next."""

ENDED = "the process that was to send it ended"


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that is bad and was announced: since which run, in how many runs, and whether the message went out."""

    episode_id: int
    key: str
    text: str
    opened_run: str
    last_run: str
    run_count: int
    opened_at: datetime
    delivered: bool
    delivery_error: str | None


@dataclass(frozen=True, slots=True)
class Transition:
    """An episode that opened or healed, to be announced. `text` is the whole message, `title` its subject.

    `problem`: why it did not get out so far.
    """

    episode_id: int
    key: str
    change: Literal["opened", "healed"]
    title: str
    text: str
    problem: str | None = None


class Episodes(StorePart):
    """Keeping track of what was announced."""

    def open_episodes(self) -> dict[str, Episode]:
        """What is bad now, by key, oldest first."""
        columns = [getattr(alerts.c, field.name) for field in fields(Episode)]
        with self.database.read() as connection:
            rows = connection.execute(sa.select(*columns).where(alerts.c.healed_at.is_(None))).all()
        return {row.key: Episode(*row) for row in sorted(rows, key=lambda row: row.episode_id)}

    def episode_transitions(
        self, run_id: str, bad: Mapping[str, str], good: Collection[str], now: datetime
    ) -> list[Transition]:
        """Tell what is bad in a run (key → text) and which keys are good again; returns what is to be announced.

        A key that is bad already is counted once for each further run. It heals by the run that was its last, or by
        what a later run published since: what an earlier run or an older artifact says is history. So is what stays
        bad in a run after its episode healed elsewhere. Each transition is returned once, to one caller, who announces
        it and says so; `take_overdue` has those of whom nobody said so. Raises `UnknownRunError`.
        """
        if not bad and not good:
            return []
        with self.database.read() as connection:
            seen = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).one_or_none()
            if seen is None:
                raise unknown_run(run_id)
            if not any(_changes(connection, seen, bad, good)):
                return []
        with self.database.write() as connection:
            advisory_lock(connection, EPISODES)
            run = lock_run(connection, run_id)
            changes = _changes(connection, run, bad, good)
            for row in changes.counted:
                _count(connection, run, row)
            opened = [_open(connection, run, key, bad[key], now) for key in changes.opened]
            return opened + [_heal(connection, run, row, now) for row in changes.over]

    def undelivered(self, now: datetime) -> list[Transition]:
        """The announcements that nobody has seen although there was time, oldest first."""
        unseen = ~alerts.c.delivered & (alerts.c.delivery_error.is_not(None) | _tried_long_ago(now))
        with self.database.read() as connection:
            rows = connection.execute(sa.select(alerts).where(unseen).order_by(alerts.c.episode_id))
            return [_announcement(row) for row in rows]

    def take_overdue(self, now: datetime) -> list[Transition]:
        """The announcements to be tried again now, oldest first; each is given to one caller, once in a minute."""
        overdue = ~alerts.c.delivered & _tried_long_ago(now)
        with self.database.read() as connection:
            if not connection.execute(sa.select(sa.exists().where(overdue))).scalar_one():
                return []
        with self.database.write() as connection:
            advisory_lock(connection, EPISODES)
            taken = connection.execute(alerts.update().where(overdue).values(tried_at=now).returning(alerts)).all()
        return [_announcement(row) for row in sorted(taken, key=lambda row: row.episode_id)]

    def mark_delivered(self, transition: Transition) -> None:
        """Note that the message went out."""
        self._mark(transition, delivered=True, delivery_error=None)

    def mark_undelivered(self, transition: Transition, problem: str) -> None:
        """Note that it did not, and why."""
        self._mark(transition, delivery_error=problem)

    def _mark(self, transition: Transition, **values: Any) -> None:
        with self.database.write() as connection:
            # Unless it healed meanwhile: then the end is still to be announced.
            healed_at = alerts.c.healed_at
            is_last = healed_at.is_(None) if transition.change == "opened" else healed_at.is_not(None)
            same = alerts.c.episode_id == transition.episode_id
            connection.execute(alerts.update().where(same, is_last).values(**values))


def _tried_long_ago(now: datetime) -> sa.ColumnElement[bool]:
    """Also if the try lies ahead, since the clock was set back: nobody knows how long ago it was."""
    return (alerts.c.tried_at <= now - RETRY_AFTER) | (alerts.c.tried_at >= now + RETRY_AFTER)


class _Changes(NamedTuple):
    """What a look at a run changes: the keys to open, and the open episodes that it adds to or ends."""

    opened: list[str]
    counted: list[sa.Row[Any]]
    over: list[sa.Row[Any]]


def _changes(connection: sa.Connection, run: sa.Row[Any], bad: Collection[str], good: Collection[str]) -> _Changes:
    concerned = alerts.c.key.in_([*bad, *good]) & alerts.c.healed_at.is_(None)
    known = {row.key: row for row in connection.execute(sa.select(alerts).where(concerned))}
    return _Changes(
        [key for key in bad if key not in known and not _was_over(connection, run, key)],
        [known[key] for key in bad if key in known and _place(run) > _last_place(known[key])],
        [known[key] for key in good if key in known and key not in bad and _ends(connection, run, known[key])],
    )


def _ends(connection: sa.Connection, run: sa.Row[Any], row: sa.Row[Any]) -> bool:
    """Whether what is good in the run came after what was bad: in the same run, or published since by a later one."""
    if _place(run) <= _last_place(row):
        return _place(run) == _last_place(row)
    job = _job_row(connection, run.run_id, row.key)
    if job is None or job.removed:
        return True
    # An episode grows only until a later run delivers, so what came after its beginning came after all of it; but its
    # last run may have been tried again since.
    last = _job_row(connection, row.last_run, row.key)
    tried_at = None if last is None else last.finished_at
    published = sa.select(artifacts.c.published_at).where(
        artifacts.c.run_id == run.run_id, artifacts.c.job_id == job.job_id, artifacts.c.is_current
    )
    published_at = connection.execute(published).scalar()
    return published_at is not None and published_at > max(row.opened_at, tried_at or row.opened_at)


def _was_over(connection: sa.Connection, run: sa.Row[Any], key: str) -> bool:
    """Whether what is bad in the run was so already when another run ended the episode: nothing happened here since."""
    healed = alerts.c.healed_at.is_not(None) & (alerts.c.key == key)
    row = connection.execute(sa.select(alerts).where(healed).order_by(alerts.c.episode_id.desc()).limit(1)).first()
    if row is None or row.healed_run == run.run_id or _place(run) > _last_place(row):
        return False
    job = _job_row(connection, run.run_id, key)
    return job is not None and max(run.opened_at, job.finished_at or run.opened_at) < row.healed_at


def _job_row(connection: sa.Connection, run_id: str, key: str) -> sa.Row[Any] | None:
    """The state of a key's job in a run; None when the run does not have it."""
    job_id = key.split(":")[1]
    return connection.execute(sa.select(jobs).where(jobs.c.run_id == run_id, jobs.c.job_id == job_id)).one_or_none()


def _open(connection: sa.Connection, run: sa.Row[Any], key: str, text: str, now: datetime) -> Transition:
    row = {"key": key, "text": text, "opened_run": run.run_id, "run_count": 1, "opened_at": now, "tried_at": now}
    return _announcement(connection.execute(alerts.insert().values({**row, **_last(run)}).returning(alerts)).one())


def _heal(connection: sa.Connection, run: sa.Row[Any], row: sa.Row[Any], now: datetime) -> Transition:
    healed = alerts.update().where(alerts.c.episode_id == row.episode_id)
    values = {"healed_at": now, "healed_run": run.run_id, "delivered": False, "delivery_error": None, "tried_at": now}
    return _announcement(connection.execute(healed.values(**values).returning(alerts)).one())


def _announcement(row: sa.Row[Any]) -> Transition:
    """The last thing to be said about an episode."""
    problem = None if row.delivered else row.delivery_error or ENDED
    change: Literal["opened", "healed"]
    if row.healed_at is None:
        change, title, text = "opened", _title(row.key, row.opened_run, _BAD), row.text
    else:
        change, title, text = "healed", _title(row.key, row.healed_run, _GOOD), _healed_text(row)
    return Transition(row.episode_id, row.key, change, title, text, problem)


_BAD = {"failed": "failed", "late": "is late", "skipped": "is skipped", "check": "does not pass"}
_GOOD = {"check": "passes"}


def _title(key: str, run_id: str, words: Mapping[str, str]) -> str:
    kind, job_id, *check = key.split(":")
    return " ".join((f"{job_id} of {run_id}", words.get(kind, "has delivered"), *check))


def _healed_text(row: sa.Row[Any]) -> str:
    kind = row.key.partition(":")[0]
    return (
        f"{_title(row.key, row.healed_run, _GOOD)}. It was {'warned about' if kind == 'check' else kind} in"
        f" {counted(row.run_count, 'run')}, first in {row.opened_run}, since {row.opened_at:%Y-%m-%d %H:%M} UTC."
    )


def _count(connection: sa.Connection, run: sa.Row[Any], row: sa.Row[Any]) -> None:
    episode = alerts.update().where(alerts.c.episode_id == row.episode_id)
    connection.execute(episode.values(run_count=alerts.c.run_count + 1, **_last(run)))


def _last(run: sa.Row[Any]) -> dict[str, Any]:
    return {"last_run": run.run_id, "last_moment": run.moment, "last_suffix": run.suffix}


def _place(run: sa.Row[Any]) -> tuple[datetime, int]:
    return run.moment, run.suffix


def _last_place(row: sa.Row[Any]) -> tuple[datetime, int]:
    return row.last_moment, row.last_suffix
