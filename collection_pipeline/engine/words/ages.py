"""How old, how long, as of what time: the words for it in English."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from collection_pipeline.engine.counting import counted
from collection_pipeline.engine.planning.state import Artifact

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def duration(span: timedelta) -> str:
    """A length of time in the largest unit that keeps it exact to the second: "3 days", "36 hours"."""
    seconds = max(0, int(span.total_seconds()))
    return next(
        counted(seconds // size, name) for name, size in _UNITS if size == 1 or (seconds and seconds % size == 0)
    )


def age(span: timedelta) -> str:
    """A length of time rounded down to its largest unit: 1 day and 20 minutes is "1 day"; never negative."""
    seconds = max(0, int(span.total_seconds()))
    return next(counted(seconds // size, name) for name, size in _UNITS if seconds >= size or size == 1)


def day_of(instant: datetime, moment: datetime, timezone: tzinfo) -> str:
    """The day of what an earlier run collected, as seen from the day of `moment`: "earlier today", "3 days ago"."""
    days = (moment.astimezone(timezone).date() - instant.astimezone(timezone).date()).days
    if days <= 0:
        return "earlier today"
    return "yesterday" if days == 1 else f"{days} days ago"


def identity(artifact: Artifact, timezone: tzinfo) -> str:
    """Which artifact it is and the moment its data speaks of, in local time."""
    as_of = artifact.as_of.astimezone(timezone)
    return f"{artifact.job_id} of {artifact.run_id}, version {artifact.version}, data as of {as_of:%Y-%m-%d %H:%M}"


def clock(instant: datetime, moment: datetime, timezone: tzinfo) -> str:
    """The local time, with the date unless it is the day of `moment`: "06:12", "2026-11-28 06:12"."""
    local = instant.astimezone(timezone)
    same_day = local.date() == moment.astimezone(timezone).date()
    return f"{local:%H:%M}" if same_day else f"{local:%Y-%m-%d %H:%M}"
