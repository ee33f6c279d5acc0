"""The name of a run, and what can be read off it: its moment, and which collection of that moment it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from collection_pipeline.engine.visible import shortened

GRAMMAR = "YYYY-MM-DD, or YYYY-MM-DDTHHMM for several a day, with .2, .3 … for a further collection of the same moment"

_PATTERN = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T(\d{2})(\d{2}))?(?:\.([1-9]\d{0,5}))?", re.ASCII)


class RunIdError(ValueError):
    """The text is no run_id; the message shows the grammar."""


@dataclass(frozen=True, slots=True)
class RunId:
    """A parsed run_id: the local moment it names and which collection of that moment it is (1 for the first)."""

    text: str
    local: datetime
    suffix: int

    @classmethod
    def parse(cls, text: str) -> RunId:
        """Read a run_id. Raises `RunIdError`, before anything is written, for whatever is outside the grammar."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise RunIdError(
                f"{shortened(text)!r} is no run_id. Write {GRAMMAR}; for example 2026-11-29 or 2026-11-29T0600.2."
            )
        *calendar, suffix = match.groups(default="0")
        if suffix == "1":
            raise RunIdError(f"{text!r} is no run_id: the first collection of a moment has no suffix. Write {GRAMMAR}.")
        try:
            year, month, day, hour, minute = map(int, calendar)
            local = datetime(year, month, day, hour, minute)  # noqa: DTZ001 - local until `moment` is told the zone
        except ValueError as error:
            raise RunIdError(f"{text!r} is no run_id: there is no such date or time. Write {GRAMMAR}.") from error
        if not 1970 <= local.year <= 9000:
            raise RunIdError(f"{text!r} is no run_id: the year lies outside 1970 to 9000. Write {GRAMMAR}.")
        return cls(text, local, int(suffix) or 1)

    @classmethod
    def of_day(cls, now: datetime, timezone: ZoneInfo) -> RunId:
        """The scheduled run of the day that `now` (aware) falls on in `timezone`."""
        return cls.parse(now.astimezone(timezone).date().isoformat())

    def is_ahead(self, now: datetime, timezone: tzinfo) -> bool:
        """Whether the day of the run has not begun in `timezone` at `now` (aware)."""
        return self.local.date() > now.astimezone(timezone).date()

    def moment(self, timezone: ZoneInfo) -> datetime:
        """The instant the run speaks of, in UTC.

        A local time that a clock change repeats is its first reading; one that it skips counts on from the old offset.
        """
        return self.local.replace(tzinfo=timezone).astimezone(UTC)

    def further(self) -> RunId:
        """The next collection of the same moment: 2026-11-29 → 2026-11-29.2."""
        return RunId.parse(f"{self.text.partition('.')[0]}.{self.suffix + 1}")

    def __str__(self) -> str:
        return self.text
