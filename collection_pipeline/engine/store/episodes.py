"""Alerts as episodes: one message when something goes bad, one when it heals, and the count of runs in between."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from collection_pipeline.engine.store.database import EPISODES, advisory_lock
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.runs import lock_run
from collection_pipeline.engine.store.schema import alerts


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
    """An episode that just opened or healed, to be announced. `text` is the whole message, `title` its subject."""

    episode_id: int
    key: str
    change: Literal["opened", "healed"]
    title: str
    text: str


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

        A key that is bad already is counted once for each further run. A run before the episode's last one neither
        counts nor heals: what it says is history. Each transition is returned once, to one caller.
        """
        if not bad and not good:
            return []
        concerned = alerts.c.key.in_([*bad, *good]) & alerts.c.healed_at.is_(None)
        with self.database.read() as connection:
            known = {row.key: row for row in connection.execute(sa.select(alerts).where(concerned))}
        if all(key in known and known[key].last_run == run_id for key in bad) and not known.keys() & set(good):
            return []
        with self.database.write() as connection:
            advisory_lock(connection, EPISODES)
            run = lock_run(connection, run_id)
            known = {row.key: row for row in connection.execute(sa.select(alerts).where(concerned))}
            transitions = []
            for key, text in bad.items():
                if key not in known:
                    transitions.append(_open(connection, run, key, text, now))
                elif _is_later(run, known[key]):
                    _count(connection, run, known[key])
            over = [known[key] for key in good if key in known and key not in bad]
            transitions += [_heal(connection, run, row, now) for row in over if not _is_earlier(run, row)]
            return transitions

    def mark_delivered(self, transition: Transition) -> None:
        """Note that the message went out."""
        self._mark(transition, delivered=True, delivery_error=None)

    def mark_undelivered(self, transition: Transition, problem: str) -> None:
        """Note that it did not, and why."""
        self._mark(transition, delivery_error=problem)

    def _mark(self, transition: Transition, **values: Any) -> None:
        with self.database.write() as connection:
            same = alerts.c.episode_id == transition.episode_id
            connection.execute(alerts.update().where(same).values(**values))


def _open(connection: sa.Connection, run: sa.Row[Any], key: str, text: str, now: datetime) -> Transition:
    row = {"key": key, "text": text, "opened_run": run.run_id, "run_count": 1, "opened_at": now, **_last(run)}
    episode_id = connection.execute(alerts.insert().values(row).returning(alerts.c.episode_id)).scalar_one()
    return Transition(episode_id, key, "opened", f"Alert: {key}", text)


def _heal(connection: sa.Connection, run: sa.Row[Any], row: sa.Row[Any], now: datetime) -> Transition:
    healed = alerts.update().where(alerts.c.episode_id == row.episode_id)
    values = {"healed_at": now, "healed_run": run.run_id, "delivered": False, "delivery_error": None}
    connection.execute(healed.values(**values))
    kind, _, job_id = row.key.partition(":")
    runs_hit = "1 run" if row.run_count == 1 else f"{row.run_count} runs"
    text = (
        f"{job_id} of {run.run_id} has delivered. It was {kind} in {runs_hit}, first in {row.opened_run},"
        f" since {row.opened_at:%Y-%m-%d %H:%M} UTC."
    )
    return Transition(row.episode_id, row.key, "healed", f"Over: {row.key}", text)


def _count(connection: sa.Connection, run: sa.Row[Any], row: sa.Row[Any]) -> None:
    counted = alerts.update().where(alerts.c.episode_id == row.episode_id)
    connection.execute(counted.values(run_count=alerts.c.run_count + 1, **_last(run)))


def _last(run: sa.Row[Any]) -> dict[str, Any]:
    return {"last_run": run.run_id, "last_moment": run.moment, "last_suffix": run.suffix}


def _is_later(run: sa.Row[Any], row: sa.Row[Any]) -> bool:
    return (run.moment, run.suffix) > (row.last_moment, row.last_suffix)


def _is_earlier(run: sa.Row[Any], row: sa.Row[Any]) -> bool:
    return (run.moment, run.suffix) < (row.last_moment, row.last_suffix)
